//! A number of bytes across a dumbbell, every one compared at the other end.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airtcp_stack::tcp::Info;
use airtcp_types::{ByteCount, Node};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::dumbbell::{Dumbbell, End};
use crate::peer;

const SEED: u64 = 4;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// From the call until the receiver has all of it, and the stream's end.
    pub time: Duration,
    /// What the sender tells of itself at the end.
    pub info: Info,
}

impl<N: Node + Send + 'static> Dumbbell<N> {
    /// Sends `bytes` from the left host, a stack, to the right one, which compares every byte.
    ///
    /// There is no limit to the time it takes: dropping the future gives it up with the dumbbell.
    ///
    /// # Errors
    /// The connection does not open or breaks; a byte differs, is missing or is too many; the left
    /// host is the kernel, which tells nothing of itself.
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
        // A receiver that finds a difference hangs up: its error is the first, and the one that
        // tells.
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

/// Reads to the end of the stream, compares, answers with the number of bytes, and tells when the
/// end was there.
async fn compare(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Instant> {
    let bytes = peer::receive(&mut stream, SEED).await?;
    let end = Instant::now();
    stream.write_u64(bytes).await?;
    stream.shutdown().await?;
    Ok(end)
}
