//! Writes until the peer closes.

use std::io;

use airtcp_net::TcpStream;
use airtcp_testbed::peer::source_bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Stop;

/// Serves one connection. It sends the bytes of the testbed's source, so that a reader can check
/// them.
///
/// # Errors
/// Those of the stream, except that of a peer that closes while data is written, which is the usual
/// end.
pub(super) async fn serve(stream: &mut TcpStream, mut stop: Stop) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let bytes = source_bytes();
    let writing = async {
        loop {
            let mut chunk = bytes.clone();
            while !chunk.is_empty() {
                writer.write_chunk(&mut chunk).await?;
            }
        }
    };
    // Read the peer's data; otherwise its end of stream would not be noticed.
    let reading = async {
        let mut unread = vec![0; 4096];
        while reader.read(&mut unread).await? > 0 {}
        Ok(())
    };
    let ended = tokio::select! {
        written = writing => written,
        closed = reading => closed,
        () = stop.wait() => Ok(()),
    };
    match ended {
        Ok(()) => writer.shutdown().await,
        Err(error) if is_gone(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use airtcp_testbed::peer::source_pattern;

    use super::*;
    use crate::services::tests::connected;

    #[tokio::test]
    async fn source_writes_a_known_pattern_until_the_peer_closes() {
        let (mut client, mut server, _stacks) = connected().await;
        let (_sender, stop) = Stop::new();
        let serving = tokio::spawn(async move { serve(&mut server, stop).await });
        let mut received = vec![0; 1_000_000];
        client.read_exact(&mut received).await.unwrap();
        assert_eq!(source_pattern().check(&received), Ok(()));
        drop(client);
        serving.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_stop_ends_the_stream() {
        let (mut client, mut server, _stacks) = connected().await;
        let (sender, stop) = Stop::new();
        let serving = tokio::spawn(async move { serve(&mut server, stop).await });
        client.read_exact(&mut [0; 100]).await.unwrap();
        sender.send(true).unwrap();
        client.read_to_end(&mut Vec::new()).await.unwrap();
        serving.await.unwrap().unwrap();
    }
}
