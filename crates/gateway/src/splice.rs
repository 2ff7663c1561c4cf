//! Joins two connections.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncWrite, Interest, Ready};
use tokio::task::coop;

/// The most bytes moved at a time: half a millisecond at 1 Gbit/s. A direction buffers only what
/// the receiving side did not take, and nothing while it is idle.
const CHUNK: usize = 64 * 1024;

thread_local! {
    /// A shared read buffer, never borrowed across an await.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into());
}

/// A connection that can be spliced: tokio's `TcpStream`, airtcp's, and a
/// [`Carried`](crate::Carried).
pub trait Side: Send + Sync {
    /// Waits until the connection is ready for one of `interest`, or is broken.
    ///
    /// # Errors
    /// The connection is broken.
    fn ready(&self, interest: Interest) -> impl Future<Output = io::Result<Ready>> + Send;

    /// Reads available data into `buf` without waiting; returns the number of bytes, 0 after the
    /// peer's FIN.
    ///
    /// # Errors
    /// `WouldBlock`: no data is available; otherwise why the connection is broken.
    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes as much of `buf` as there is room for; returns the number of bytes.
    ///
    /// # Errors
    /// `WouldBlock`: there is no room; otherwise why the connection is broken.
    fn try_write(&self, buf: &[u8]) -> io::Result<usize>;

    /// Sends a FIN after the data that was written.
    ///
    /// # Errors
    /// The connection is broken.
    fn send_fin(&mut self) -> io::Result<()>;

    /// Makes the drop of this side reset the connection.
    fn abort(&mut self);
}

/// The result of a splice.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spliced {
    /// Bytes from the near side to the far side.
    pub sent: u64,
    /// Bytes from the far side to the near side.
    pub received: u64,
    /// Whether one side was reset or failed, and so the other was reset.
    pub reset: bool,
}

/// Joins `near` and `far` until both have ended. Data flows in both directions; a half-close is
/// passed on as a half-close; when one side fails or is reset, the other is reset.
///
/// A side that does not read holds the other back: in addition to the socket buffers, a direction
/// keeps at most 64 KiB. Data not yet delivered when a side is reset is lost, as with any reset.
///
/// Dropping the future before it completes resets both sides: a FIN would claim that all data has
/// arrived.
pub async fn splice(near: impl Side, far: impl Side) -> Spliced {
    let (mut forth, mut back) = (Direction::default(), Direction::default());
    let mut pair = Pair { near, far, ended: false };
    while !pair.ended {
        let done = tokio::select! {
            ended = forth.run(&pair.near, &pair.far) => ended.and_then(|()| pair.far.send_fin()),
            ended = back.run(&pair.far, &pair.near) => ended.and_then(|()| pair.near.send_fin()),
        };
        if done.is_err() {
            break;
        }
        pair.ended = forth.ended && back.ended;
    }
    Spliced { sent: forth.moved, received: back.moved, reset: !pair.ended }
}

/// Both sides. Dropping the pair before both have ended resets them.
struct Pair<N: Side, F: Side> {
    near: N,
    far: F,
    ended: bool,
}

impl<N: Side, F: Side> Drop for Pair<N, F> {
    fn drop(&mut self) {
        if !self.ended {
            self.near.abort();
            self.far.abort();
        }
    }
}

/// One direction of a splice.
#[derive(Default)]
struct Direction {
    /// Data that was read and not yet written.
    left: Vec<u8>,
    moved: u64,
    /// Whether the FIN was read.
    ended: bool,
}

impl Direction {
    /// Moves data until `from` has sent its FIN; the caller then sends a FIN to `to`. Called again
    /// after that, it waits for an error.
    ///
    /// The future may be dropped at any time.
    async fn run(&mut self, from: &impl Side, to: &impl Side) -> io::Result<()> {
        loop {
            coop::consume_budget().await;
            if self.ended {
                return Err(broken(from).await);
            } else if self.left.is_empty() {
                match done(self.pass_on(from, to))? {
                    Some(0) => {
                        self.ended = true;
                        return Ok(());
                    }
                    Some(read) => self.moved += read as u64,
                    None => drop(from.ready(Interest::READABLE | Interest::ERROR).await?),
                }
            } else {
                tokio::select! {
                    ready = to.ready(Interest::WRITABLE) => drop(ready?),
                    // While `to` is not writable, nothing reads from `from`, so its errors must be
                    // awaited here.
                    error = broken(from) => return Err(error),
                }
                let written = done(to.try_write(&self.left))?.unwrap_or(0);
                self.left.drain(..written);
                if self.left.is_empty() {
                    self.left = Vec::new();
                }
            }
        }
    }

    /// Reads once and writes what `to` accepts; returns the number of bytes read.
    fn pass_on(&mut self, from: &impl Side, to: &impl Side) -> io::Result<usize> {
        SCRATCH.with_borrow_mut(|scratch| {
            let read = from.try_read(scratch)?;
            let data = &scratch[..read];
            let written = if read > 0 { done(to.try_write(data))?.unwrap_or(0) } else { 0 };
            self.left.extend_from_slice(&data[written..]);
            Ok(read)
        })
    }
}

/// Waits until `side` is broken.
async fn broken(side: &impl Side) -> io::Error {
    match side.ready(Interest::ERROR).await {
        Ok(_) => ErrorKind::ConnectionReset.into(),
        Err(error) => error,
    }
}

/// Turns `WouldBlock` into `None`.
fn done(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        moved => moved.map(Some),
    }
}

macro_rules! side {
    ($stream:ty) => {
        impl Side for $stream {
            async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.ready(interest).await
            }

            fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.try_read(buf)
            }

            fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.try_write(buf)
            }

            fn send_fin(&mut self) -> io::Result<()> {
                // `poll_shutdown` of both kinds of socket completes at once.
                match Pin::new(self).poll_shutdown(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(done) => done,
                    Poll::Pending => Err(ErrorKind::WouldBlock.into()),
                }
            }

            fn abort(&mut self) {
                // An error means that the connection has ended already.
                let _ = self.set_zero_linger();
            }
        }
    };
}

side!(tokio::net::TcpStream);
side!(airtcp_net::TcpStream);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(to), listener.accept());
        (one.unwrap(), other.unwrap().0)
    }

    #[tokio::test]
    async fn a_splice_that_is_dropped_resets_both_sides() {
        let ((mut program, near), (far, mut server)) = (pair().await, pair().await);
        let splicing = tokio::spawn(splice(near, far));
        program.write_all(b"half").await.unwrap();
        server.read_exact(&mut [0; 4]).await.unwrap();
        splicing.abort();
        for side in [&mut program, &mut server] {
            let error = side.read(&mut [0]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    }
}
