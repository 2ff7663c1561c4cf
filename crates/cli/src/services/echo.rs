//! Sends back what it reads (RFC 862).

use std::io;

use airtcp_net::TcpStream;
use airtcp_stack::tcp::Chunk;
use tokio::io::AsyncWriteExt;

/// Serves one connection until the peer's end of stream, then closes it.
///
/// # Errors
/// Those of the stream.
pub(super) async fn serve(stream: &mut TcpStream) -> io::Result<()> {
    // An idle connection allocates no buffer.
    let mut chunk = Chunk::default();
    while stream.read_chunk(&mut chunk).await? > 0 {
        stream.write_all(&chunk).await?;
    }
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, split};

    use super::*;
    use crate::services::tests::connected;

    #[tokio::test]
    async fn echo_returns_all_bytes_and_the_end() {
        let (client, mut server, _stacks) = connected().await;
        let serving = tokio::spawn(async move { serve(&mut server).await });
        let (mut reader, mut writer) = split(client);
        // More than the buffers of both ends hold, so that reading and writing alternate.
        let data: Vec<u8> = (0..10_000_000u32).map(|n| (n % 251) as u8).collect();
        let expected = data.clone();
        let writing = tokio::spawn(async move {
            writer.write_all(&data).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        let mut echoed = Vec::new();
        reader.read_to_end(&mut echoed).await.unwrap();
        assert!(echoed == expected);
        writing.await.unwrap();
        serving.await.unwrap().unwrap();
    }
}
