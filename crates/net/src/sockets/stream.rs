//! A TCP connection as a byte stream.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use airtcp_stack::host::{Host, HostError, SocketId};
use airtcp_stack::tcp::{Chunk, Info, TcpError};
use airtcp_types::{Instant, SharedBytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tracing::debug;

use super::core::Core;
use super::ready::{both, in_turn, reads, writes};
use super::split::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use super::stack::Handle;
use crate::shared::Shared;
use crate::wakers::Direction;

/// A TCP connection; created by [`Stack::connect`](super::Stack::connect),
/// [`TcpSocket::connect`](super::TcpSocket::connect) or
/// [`TcpListener::accept`](super::TcpListener::accept).
///
/// ```
/// # use airtcp_device::memory;
/// # use airtcp_net::Stack;
/// # use airtcp_stack::HostConfig;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (left, right) = memory::pair(1500, 64);
/// # let server = Stack::new(left, HostConfig::new(["10.0.0.1/24".parse()?]))?;
/// # let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
/// # let listener = server.listen("10.0.0.1:7".parse()?, 16)?;
/// let mut stream = client.connect("10.0.0.1:7".parse()?).await?;
/// stream.set_nodelay(true)?;
/// stream.set_congestion("cubic")?;
/// stream.write_all(b"hello").await?;
/// stream.shutdown().await?;
///
/// let (mut accepted, _) = listener.accept().await?;
/// let mut received = Vec::new();
/// accepted.read_to_end(&mut received).await?;
/// assert_eq!(received, b"hello");
/// assert_eq!(stream.info()?.combination, "rack/cubic");
/// # Ok(())
/// # }
/// ```
///
/// Reading returns 0 bytes after the peer's FIN. tokio's `AsyncWriteExt::shutdown` sends a FIN
/// after the data already written; reading continues. Dropping the stream closes it as close(2)
/// does: data already written is still delivered, then the FIN; if received data was not read, a
/// RST is sent (RFC 2525 section 2.17).
#[derive(Debug)]
pub struct TcpStream(pub(super) Arc<Inner>);

/// The state shared by the halves of a stream.
#[derive(Debug)]
pub(super) struct Inner {
    handle: Handle,
    pub(super) id: SocketId,
    /// Whether [`TcpStream::take_error`] has returned the error.
    pub(super) error_reported: AtomicBool,
}

both!(TcpStream, stream => stream.0);
reads!(TcpStream, stream => stream.0);
writes!(TcpStream, stream => stream.0);

impl TcpStream {
    /// Wraps `id`, which the host knows and the core lists as a stream.
    pub(super) fn new(handle: Handle, id: SocketId) -> Self {
        Self(Arc::new(Inner { handle, id, error_reported: AtomicBool::new(false) }))
    }

    pub(super) async fn connect(
        handle: Handle,
        remote: SocketAddr,
        open: impl FnOnce(&mut Host, Instant) -> Result<SocketId, HostError>,
    ) -> io::Result<Self> {
        let id = handle.shared().with(|core, now| {
            core.open()?;
            let id = open(&mut core.host, now).map_err(io::Error::from)?;
            core.add_stream(id);
            Ok::<_, io::Error>(id)
        })?;
        // From here on it is a stream, so that dropping the future closes the connection.
        let stream = Self::new(handle, id);
        poll_fn(|context| stream.0.poll_connected(context)).await?;
        debug!(%remote, "connected");
        Ok(stream)
    }

    /// Aborts the connection with a RST. Data that was not delivered is lost.
    pub fn abort(self) {
        self.0.handle.shared().with(|core, now| {
            // Fails if the connection has already ended.
            let _ = core.host.tcp_abort(now, self.0.id);
        });
    }

    /// Splits the stream for use within one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        split::borrowed(self)
    }

    /// Splits the stream for use by different tasks.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split::owned(self)
    }
}

impl Inner {
    pub(super) fn shared(&self) -> &Shared<Core> {
        self.handle.shared()
    }

    fn poll_connected(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        self.shared().with(|core, _| {
            let readiness = core.host.readiness(self.id).map_err(io::Error::from)?;
            if readiness.connected {
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = core.host.tcp(self.id).map_err(io::Error::from)?.error() {
                return Poll::Ready(Err(error.into()));
            }
            if readiness.closed {
                return Poll::Ready(Err(TcpError::Aborted.into()));
            }
            core.wait(self.id, Direction::Write, context)
        })
    }

    pub(super) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Outside the lock: zeroing the buffer may take long.
        let unfilled = buf.initialize_unfilled();
        if unfilled.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let read = in_turn(context, |context| {
            self.shared().with(|core, now| match self.receive(core, now, unfilled)? {
                Some(read) => Poll::Ready(Ok(read)),
                None => core.wait(self.id, Direction::Read, context),
            })
        });
        read.map_ok(|read| buf.advance(read))
    }

    pub(super) fn poll_read_chunk(
        &self,
        context: &mut Context<'_>,
        chunk: &mut Chunk,
    ) -> Poll<io::Result<usize>> {
        in_turn(context, |context| {
            self.shared().with(|core, now| {
                let received = core.host.tcp_recv_chunk(now, self.id, chunk);
                match found(core, received)? {
                    Some(read) => Poll::Ready(Ok(read)),
                    None => core.wait(self.id, Direction::Read, context),
                }
            })
        })
    }

    pub(super) fn poll_write(
        &self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        in_turn(context, |context| {
            self.shared().with(|core, now| match self.send(core, now, parts)? {
                Some(written) => Poll::Ready(Ok(written)),
                None => core.wait(self.id, Direction::Write, context),
            })
        })
    }

    pub(super) fn poll_write_chunk(
        &self,
        context: &mut Context<'_>,
        chunk: &mut SharedBytes,
    ) -> Poll<io::Result<usize>> {
        in_turn(context, |context| {
            self.shared().with(|core, now| {
                core.alive()?;
                let sent = core.host.tcp_send_shared(now, self.id, chunk);
                match found(core, sent)? {
                    Some(written) => {
                        chunk.advance(written);
                        Poll::Ready(Ok(written))
                    }
                    None => core.wait(self.id, Direction::Write, context),
                }
            })
        })
    }

    /// Reads available data; `None` if there is none.
    pub(super) fn receive(
        &self,
        core: &mut Core,
        now: Instant,
        buf: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let received = core.host.tcp_recv(now, self.id, buf);
        found(core, received)
    }

    /// Writes as much as fits; `None` if there is no room.
    pub(super) fn send(
        &self,
        core: &mut Core,
        now: Instant,
        parts: &[IoSlice<'_>],
    ) -> io::Result<Option<usize>> {
        core.alive()?;
        let mut written = 0;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            match core.host.tcp_send(now, self.id, part) {
                Ok(taken) => {
                    written += taken;
                    if taken < part.len() {
                        break;
                    }
                }
                // If this call has written data, the next write returns the error.
                Err(_) if written > 0 => break,
                Err(HostError::Tcp(TcpError::WouldBlock)) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(written))
    }

    /// Sends a FIN after the data already written.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        self.shared().with(|core, now| {
            core.alive()?;
            core.host.tcp_shutdown(now, self.id).map_err(io::Error::from)
        })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared().look(|core, _| core.host.local_addr(self.id).map_err(io::Error::from))
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.shared().look(|core, _| {
            core.host.tcp(self.id).map(|tcp| tcp.flow().remote).map_err(io::Error::from)
        })
    }

    pub(super) fn info(&self) -> io::Result<Info> {
        self.shared().look(|core, now| {
            core.host.tcp(self.id).map(|tcp| tcp.info(now)).map_err(io::Error::from)
        })
    }
}

/// Returns the number of bytes moved; `None` if the call would block.
pub(super) fn found(core: &Core, moved: Result<usize, HostError>) -> io::Result<Option<usize>> {
    match moved {
        Ok(moved) => Ok(Some(moved)),
        Err(HostError::Tcp(TcpError::WouldBlock)) => Ok(None),
        // If the stack has ended, its reason says more than that the socket no longer exists.
        Err(error) => Err(core.alive().err().unwrap_or_else(|| error.into())),
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared().with(|core, now| {
            core.remove(self.id);
            // Fails if the connection was aborted before.
            let _ = core.host.tcp_close(now, self.id);
        });
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(context, buf)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(context, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(context, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: data already written is sent without a flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Sends a FIN after the data already written; ready before it is acknowledged.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown())
    }
}
