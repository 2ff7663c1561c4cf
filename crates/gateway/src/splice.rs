//! Joins two connections.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncWrite, Interest, Ready};
use tokio::task::coop;

/// What is moved at a time (bytes): half a millisecond of a Gbit/s. A direction keeps no more of it
/// than the receiving side did not take, and nothing while it is idle.
const CHUNK: usize = 64 * 1024;

thread_local! {
    /// Never in use across an await.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into());
}

/// A connection that can be spliced: tokio's `TcpStream`, this project's, and a
/// [`Carried`](crate::Carried).
pub trait Side: Send + Sync {
    /// Waits until it is ready in one of the ways asked for, or is broken.
    ///
    /// # Errors
    /// It is broken.
    fn ready(&self, interest: Interest) -> impl Future<Output = io::Result<Ready>> + Send;

    /// Reads what is there into `buf`, without waiting; gives how many bytes, 0 after the peer's
    /// FIN.
    ///
    /// # Errors
    /// `WouldBlock`: there is nothing; otherwise why it is broken.
    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes as much of `buf` as there is room for; gives how many bytes.
    ///
    /// # Errors
    /// `WouldBlock`: there is no room; otherwise why it is broken.
    fn try_write(&self, buf: &[u8]) -> io::Result<usize>;

    /// Sends a FIN after what was written.
    ///
    /// # Errors
    /// It is broken.
    fn send_fin(&mut self) -> io::Result<()>;

    /// Makes its drop reset the connection.
    fn abort(&mut self);
}

/// What a splice has carried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spliced {
    /// Bytes from the near side to the far side.
    pub sent: u64,
    /// Bytes from the far side to the near side.
    pub received: u64,
    /// One side was reset or failed, and so the other was reset.
    pub reset: bool,
}

/// Joins `near` and `far` until both have ended: data goes both ways, a half-close is passed on as
/// one, and when one side fails or is reset, the other is reset.
///
/// A side that does not read holds the other back: beside what the sockets hold a direction keeps
/// at most 64 KiB. What has not been delivered when a side is reset is lost, as with any reset.
///
/// Dropped before it is ready it resets both: a FIN would say that all data has come.
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

/// Both sides. Dropped before both have ended it resets them.
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
    /// What was read and not yet written.
    left: Vec<u8>,
    moved: u64,
    /// The FIN was read.
    ended: bool,
}

impl Direction {
    /// Moves data until `from` has ended and `to` is to be told. Called again, it waits for an
    /// error.
    ///
    /// It may be dropped at any time.
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
                    // Nobody reads from it, and so nobody else would notice.
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

    /// Reads once and writes what `to` takes of it; gives what was read.
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

/// `None` for what has to wait.
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
                // Neither kind of socket waits here.
                match Pin::new(self).poll_shutdown(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(done) => done,
                    Poll::Pending => Err(ErrorKind::WouldBlock.into()),
                }
            }

            fn abort(&mut self) {
                // An error says that it has ended already.
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
