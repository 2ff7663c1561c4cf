//! Sends back what it reads (RFC 862).

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, copy_buf, split};

use super::CHUNK;

/// Serves one connection until the peer's end of stream, and ends ours then.
///
/// # Errors
/// Those of the stream.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    let (reader, mut writer) = split(stream);
    copy_buf(&mut BufReader::with_capacity(CHUNK, reader), &mut writer).await?;
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    #[tokio::test]
    async fn everything_comes_back_and_then_the_end() {
        // A pipe smaller than the data: reading and writing take turns.
        let (client, mut server) = duplex(1000);
        let serving = tokio::spawn(async move { serve(&mut server).await });
        let (mut reader, mut writer) = split(client);
        let data: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
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
