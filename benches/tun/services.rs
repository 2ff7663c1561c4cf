//! The services of every stack under test: two sinks, a source and an echo. `airtcp serve` has its
//! own.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes per read and write of bulk data.
pub(crate) const CHUNK: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Service {
    /// Reads data in place, without a copy, where the stack supports that. At the end it answers
    /// with the number of bytes: 8 bytes, big-endian.
    Sink,
    /// Like the sink, but copies everything into its own buffer.
    Reader,
    /// Writes until the peer resets.
    Source,
    /// Sends back what it reads.
    Echo,
}

impl Service {
    pub(crate) const ALL: [Self; 4] = [Self::Sink, Self::Reader, Self::Source, Self::Echo];

    /// The name that `airtcp serve` uses; it has no reader.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sink => "sink",
            Self::Reader => "reader",
            Self::Source => "source",
            Self::Echo => "echo",
        }
    }

    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Sink => 5001,
            Self::Source => 5002,
            Self::Echo => 5003,
            Self::Reader => 5004,
        }
    }

    /// Serves one connection to its end, for a stack whose reads copy.
    pub(crate) async fn serve(
        self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
    ) -> io::Result<()> {
        match self {
            Self::Sink | Self::Reader => {
                let (mut buffer, mut count) = (vec![0; CHUNK], 0);
                loop {
                    match stream.read(&mut buffer).await? {
                        0 => break,
                        length => count += length as u64,
                    }
                }
                stream.write_u64(count).await?;
            }
            Self::Source => {
                let chunk = vec![0x5a; CHUNK];
                loop {
                    stream.write_all(&chunk).await?;
                }
            }
            Self::Echo => {
                // A small buffer, so that the memory of an idle connection is the stack's.
                let mut buffer = [0; 64];
                loop {
                    match stream.read(&mut buffer).await? {
                        0 => break,
                        length => stream.write_all(&buffer[..length]).await?,
                    }
                }
            }
        }
        stream.shutdown().await
    }
}
