//! Reads to the end of the stream and answers with the number of bytes.

use std::io;

use airtcp_net::TcpStream;
use airtcp_stack::tcp::Chunk;
use tokio::io::AsyncWriteExt;

/// Serves one connection: the count is 8 bytes, big-endian.
///
/// # Errors
/// Those of the stream.
pub(super) async fn serve(stream: &mut TcpStream) -> io::Result<()> {
    let mut chunk = Chunk::default();
    let mut count: u64 = 0;
    loop {
        match stream.read_chunk(&mut chunk).await? {
            0 => break,
            length => count += length as u64,
        }
    }
    stream.write_u64(count).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::services::tests::connected;

    #[tokio::test]
    async fn the_answer_is_the_count_and_nothing_else() {
        for count in [0, 1, 70_000] {
            let (mut client, mut server, _stacks) = connected().await;
            let serving = tokio::spawn(async move { serve(&mut server).await });
            client.write_all(&vec![7; count]).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, (count as u64).to_be_bytes());
            serving.await.unwrap().unwrap();
        }
    }
}
