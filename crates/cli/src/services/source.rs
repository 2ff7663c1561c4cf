//! Writes until the peer closes.

use std::io;

use airtcp_testbed::{Pattern, peer::SOURCE_SEED};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use super::{CHUNK, Stop};

/// Serves one connection: the bytes are those of the testbed's source, so that a reader can check
/// them.
///
/// # Errors
/// Those of the stream; a peer that goes away while we write is the usual end, and none.
pub(super) async fn serve<S>(stream: &mut S, mut stop: Stop) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut reader, mut writer) = split(stream);
    let writing = async {
        let mut pattern = Pattern::new(SOURCE_SEED);
        let mut buffer = vec![0; CHUNK];
        loop {
            pattern.fill(&mut buffer);
            writer.write_all(&buffer).await?;
        }
    };
    // What it sends to us is read, or the end of it would never show.
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
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn it_writes_until_the_peer_closes() {
        let (mut client, mut server) = duplex(4096);
        let (_sender, stop) = Stop::new();
        let serving = tokio::spawn(async move { serve(&mut server, stop).await });
        let mut received = vec![0; 1_000_000];
        client.read_exact(&mut received).await.unwrap();
        assert_eq!(Pattern::new(SOURCE_SEED).check(&received), Ok(()));
        drop(client);
        serving.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_stop_ends_the_stream() {
        let (mut client, mut server) = duplex(4096);
        let (sender, stop) = Stop::new();
        let serving = tokio::spawn(async move { serve(&mut server, stop).await });
        client.read_exact(&mut [0; 100]).await.unwrap();
        sender.send(true).unwrap();
        client.read_to_end(&mut Vec::new()).await.unwrap();
        serving.await.unwrap().unwrap();
    }
}
