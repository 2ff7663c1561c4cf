//! A transfer of a number of bytes across a dumbbell, each verified at the receiver.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airtcp_stack::tcp::Info;
use airtcp_types::{ByteCount, Node};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::dumbbell::{Dumbbell, End};
use crate::peer;

const SEED: u64 = 4;

/// The result of a transfer.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The time from the call until the receiver has all data and the end of the stream.
    pub time: Duration,
    /// The sender's connection information at the end.
    pub info: Info,
}

impl<N: Node + Send + 'static> Dumbbell<N> {
    /// Sends `bytes` from the left host, a stack, to the right one, which verifies every byte.
    ///
    /// The transfer has no time limit. To cancel it, drop the future and the dumbbell.
    ///
    /// # Errors
    /// The connection cannot be opened or breaks, a byte differs, or the number of bytes is wrong;
    /// the left host is the kernel, which has no connection information.
    pub async fn deliver(&self, bytes: ByteCount) -> io::Result<Delivered> {
        let End::Stack(stack, namespace) = self.left() else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the left host is not an airtcp stack",
            ));
        };
        let any = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, false), 0);
        let (server, receiving) = match self.right() {
            End::Kernel(namespace) => {
                let listener = namespace.spawn(async move { peer::listen(any, None) });
                let listener = listener.await.map_err(io::Error::other)??;
                let server = listener.local_addr()?;
                (server, namespace.spawn(async move { compare(listener.accept().await?.0).await }))
            }
            End::Stack(stack, namespace) => {
                let listener = stack.listen(any, 1)?;
                let server = listener.local_addr()?;
                (server, namespace.spawn(async move { compare(listener.accept().await?.0).await }))
            }
        };
        let (stack, begin) = (stack.clone(), Instant::now());
        let sending = namespace.spawn(async move {
            let mut stream = stack.connect(server).await?;
            let received = peer::upload(&mut stream, SEED, bytes.0).await?;
            Ok::<_, io::Error>((received, stream.info()?))
        });
        // A receiver that finds a difference closes the connection: its error comes first, and has
        // the cause.
        let receiving = async { receiving.await.map_err(io::Error::other)? };
        let sending = async { sending.await.map_err(io::Error::other)? };
        let (end, (received, info)) = tokio::try_join!(receiving, sending)?;
        if received != bytes.0 {
            let text = format!("{received} of {bytes} bytes arrived");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Delivered { time: end.duration_since(begin), info })
    }
}

/// Reads to the end of the stream, verifies the data, sends the number of bytes; returns the time
/// of the stream's end.
async fn compare(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Instant> {
    let bytes = peer::receive(&mut stream, SEED).await?;
    let end = Instant::now();
    stream.write_u64(bytes).await?;
    stream.shutdown().await?;
    Ok(end)
}
