//! A connection.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use airtcp_recovery::Combination;
use airtcp_types::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tracing::debug;

use super::error::{io_error, tcp_error};
use super::shared::Direction;
use super::split::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use super::stack::Handle;
use crate::host::{Host, HostError, SocketId};
use crate::tcp::{Info, KeepAlive, TcpError};

/// A TCP connection; made by [`Stack::connect`](super::Stack::connect) or
/// [`TcpListener::accept`](super::TcpListener::accept).
///
/// Reading gives 0 bytes after the peer's FIN. [`shutdown`](tokio::io::AsyncWriteExt::shutdown)
/// sends a FIN after what was written, and reading goes on. Dropping the stream closes it as
/// close(2) does: what was written is still delivered, then the FIN; if data was received and not
/// read, the peer is told with a RST (RFC 2525 section 2.17).
#[derive(Debug)]
pub struct TcpStream(pub(super) Arc<Inner>);

/// What the halves of a stream share.
#[derive(Debug)]
pub(super) struct Inner {
    handle: Handle,
    id: SocketId,
}

impl TcpStream {
    /// The host already knows `id`, and the core that there is a handle for it.
    pub(super) fn new(handle: Handle, id: SocketId) -> Self {
        Self(Arc::new(Inner { handle, id }))
    }

    pub(super) async fn connect(
        handle: Handle,
        remote: SocketAddr,
        open: impl FnOnce(&mut Host, Instant) -> Result<SocketId, HostError>,
    ) -> io::Result<Self> {
        let id = handle.shared().with(|core, now| {
            core.open()?;
            let id = open(&mut core.host, now).map_err(io_error)?;
            core.add_stream(id);
            Ok::<_, io::Error>(id)
        })?;
        // A stream from here on, so that giving up closes it.
        let stream = Self::new(handle, id);
        poll_fn(|context| stream.0.poll_connected(context)).await?;
        debug!(%remote, "connected");
        Ok(stream)
    }

    /// This end's address.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }

    /// Lets small segments leave at once (Nagle's algorithm off), or not.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        let inner = &self.0;
        inner
            .handle
            .shared()
            .with(|core, now| core.host.tcp_set_nodelay(now, inner.id, on).map_err(io_error))
    }

    /// Asks a silent peer whether it is still there, from now on; `None`, the default, never does. When it
    /// is gone reading and writing give `TimedOut`.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_keep_alive(&self, settings: Option<KeepAlive>) -> io::Result<()> {
        let inner = &self.0;
        inner.handle.shared().with(|core, now| {
            core.host.tcp_set_keep_alive(now, inner.id, settings).map_err(io_error)
        })
    }

    /// Gives the connection other strategies, at any time: what was sent and what is known of the
    /// path survive, and they begin from the window that there is.
    ///
    /// # Errors
    /// `Unsupported`: they need what the two ends have not agreed on, and the old ones stay;
    /// `BrokenPipe`: nothing will be sent any more; `NotConnected`: the stack has ended; otherwise
    /// why the connection ended.
    pub fn set_combination(&self, combination: &Combination) -> io::Result<()> {
        let inner = &self.0;
        inner.handle.shared().with(|core, now| {
            core.host.tcp_set_combination(now, inner.id, combination).map_err(io_error)
        })
    }

    /// The state of the connection, in the tokens of `ss -ti`.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn info(&self) -> io::Result<Info> {
        self.0.info()
    }

    /// Ends the connection at once, with a RST; what has not been sent is lost.
    pub fn abort(self) {
        self.0.handle.shared().with(|core, now| {
            // An error says that it has ended already.
            let _ = core.host.tcp_abort(now, self.0.id);
        });
    }

    /// Reads and writes at the same time, in one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        split::borrowed(self)
    }

    /// Reads and writes in different tasks.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split::owned(self)
    }
}

impl Inner {
    fn poll_connected(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        self.handle.shared().with(|core, _| {
            let readiness = core.host.readiness(self.id).map_err(io_error)?;
            if readiness.connected {
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = core.host.tcp_error(self.id).map_err(io_error)? {
                return Poll::Ready(Err(tcp_error(error)));
            }
            if readiness.closed {
                return Poll::Ready(Err(tcp_error(TcpError::Aborted)));
            }
            core.wait(self.id, Direction::Write, context)
        })
    }

    pub(super) fn poll_read(
        &self,
        context: &Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Outside the lock: it may have a lot to zero.
        let unfilled = buf.initialize_unfilled();
        if unfilled.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let read = self.handle.shared().with(|core, now| {
            match core.host.tcp_recv(now, self.id, unfilled) {
                Ok(read) => Poll::Ready(Ok(read)),
                Err(HostError::Tcp(TcpError::WouldBlock)) => {
                    core.wait(self.id, Direction::Read, context)
                }
                // Without a stack, why the stack ended says more than that the socket is gone.
                Err(error) => {
                    Poll::Ready(Err(core.alive().err().unwrap_or_else(|| io_error(error))))
                }
            }
        });
        read.map_ok(|read| buf.advance(read))
    }

    pub(super) fn poll_write(
        &self,
        context: &Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.handle.shared().with(|core, now| {
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
                    // An error is told by the next write, if some of this one was taken.
                    Err(_) if written > 0 => break,
                    Err(HostError::Tcp(TcpError::WouldBlock)) => {
                        return core.wait(self.id, Direction::Write, context);
                    }
                    Err(error) => return Poll::Ready(Err(io_error(error))),
                }
            }
            Poll::Ready(Ok(written))
        })
    }

    /// Sends a FIN after what was written.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        self.handle.shared().with(|core, now| {
            core.alive()?;
            core.host.tcp_shutdown(now, self.id).map_err(io_error)
        })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.handle.shared().look(|core, _| core.host.local_addr(self.id).map_err(io_error))
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.handle
            .shared()
            .look(|core, _| core.host.tcp_flow(self.id).map(|flow| flow.remote).map_err(io_error))
    }

    pub(super) fn info(&self) -> io::Result<Info> {
        self.handle.shared().look(|core, now| core.host.tcp_info(now, self.id).map_err(io_error))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.handle.shared().with(|core, now| {
            core.remove(self.id);
            // An error says that it was aborted before.
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

    /// Nothing to do: what was written is on its way.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Sends a FIN after what was written; ready before it is acknowledged.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown())
    }
}
