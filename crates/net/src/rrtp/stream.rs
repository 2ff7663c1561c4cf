//! An RRTP connection as a byte stream.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use airtcp_rrtp::{CallError, Config, ConnectionId, Info, NetworkKind, NetworkProfile};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop;
use tracing::debug;

use super::core::Handshake;
use super::socket::{Handle, RrtpSocket};
use super::split::{OwnedReadHalf, OwnedWriteHalf};
use crate::wakers::Direction;

/// An RRTP connection; created by [`connect`](RrtpSocket::connect) or
/// [`accept`](super::RrtpListener::accept).
///
/// Reading returns 0 bytes after the peer has finished sending. tokio's `AsyncWriteExt::shutdown`
/// finishes the sending direction after the data already written; reading continues. Dropping the
/// stream releases the connection: data already written is still delivered, then the end of the
/// stream; if received data was not read, or more arrives, the connection is aborted.
#[derive(Debug)]
pub struct RrtpStream(pub(super) Arc<Inner>);

/// The state shared by the halves of a stream.
#[derive(Debug)]
pub(super) struct Inner {
    handle: Handle,
    id: ConnectionId,
    local: SocketAddr,
    remote: SocketAddr,
}

impl RrtpStream {
    /// Connects to `remote` from a new UDP socket of the kernel.
    ///
    /// # Errors
    /// As [`RrtpSocket::bind`] and [`RrtpSocket::connect`].
    pub async fn connect(remote: SocketAddr, config: Config) -> io::Result<Self> {
        RrtpSocket::towards(remote).await?.connect(remote, config).await
    }

    pub(super) fn new(
        handle: Handle,
        id: ConnectionId,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Self {
        Self(Arc::new(Inner { handle, id, local, remote }))
    }

    pub(super) async fn open(
        handle: Handle,
        local: SocketAddr,
        remote: SocketAddr,
        config: Config,
    ) -> io::Result<Self> {
        let id = handle.shared().with(|core, now| {
            core.open()?;
            let id = core.endpoint.connect(now, remote, config);
            let id = id.map_err(|error| core.why(error))?;
            core.add(id, Handshake::Open);
            Ok::<_, io::Error>(id)
        })?;
        // From here on it is a stream, so that dropping the future releases the connection.
        let stream = Self::new(handle, id, local, remote);
        poll_fn(|context| stream.0.poll_connected(context)).await?;
        debug!(%remote, "connected");
        Ok(stream)
    }

    /// Aborts the connection and notifies the peer; undelivered data is lost.
    pub fn abort(&self) {
        self.0.handle.shared().with(|core, now| core.endpoint.abort(now, self.0.id));
    }

    /// Replaces the network parameters of a live connection: the values set in `profile` replace
    /// the measured ones.
    ///
    /// # Errors
    /// `NotConnected`: the connection has ended, and perhaps the socket.
    pub fn reconfigure(&self, kind: NetworkKind, profile: NetworkProfile) -> io::Result<()> {
        self.0.handle.shared().with(|core, now| {
            let done = core.endpoint.reconfigure(now, self.0.id, kind, profile);
            done.map_err(|error| core.why(error))
        })
    }

    /// Like [`reconfigure`](Self::reconfigure), for a profile that the peer requested: its send
    /// rate is limited to [`Config::asked_rate_cap`].
    ///
    /// # Errors
    /// As [`reconfigure`](Self::reconfigure).
    pub fn reconfigure_as_asked(&self, kind: NetworkKind, asked: NetworkProfile) -> io::Result<()> {
        self.0.handle.shared().with(|core, now| {
            let done = core.endpoint.reconfigure_as_asked(now, self.0.id, kind, asked);
            done.map_err(|error| core.why(error))
        })
    }

    /// A snapshot of the connection.
    ///
    /// # Errors
    /// As [`reconfigure`](Self::reconfigure).
    pub fn info(&self) -> io::Result<Info> {
        self.0.info()
    }

    /// The local address.
    ///
    /// # Errors
    /// None; the signature matches other streams.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.local)
    }

    /// The peer's address.
    ///
    /// # Errors
    /// None; the signature matches other streams.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.remote)
    }

    /// Splits the stream for use by different tasks.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        (OwnedReadHalf::new(self.0.clone()), OwnedWriteHalf::new(self.0))
    }
}

impl Inner {
    fn info(&self) -> io::Result<Info> {
        self.handle.shared().look(|core, _| {
            core.endpoint.info(self.id).ok_or_else(|| core.why(CallError::NoConnection))
        })
    }

    fn poll_connected(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        self.handle.shared().with(|core, now| {
            if core.is_connected(self.id) {
                return Poll::Ready(Ok(()));
            }
            // No data can arrive yet; the call returns the error that ended the handshake, if any.
            match core.endpoint.recv(now, self.id, &mut []) {
                Err(error) => Poll::Ready(Err(core.why(error))),
                Ok(_) => core.wait(self.id, Direction::Write, context),
            }
        })
    }

    pub(super) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let turn = ready!(coop::poll_proceed(context));
        // Outside the lock: zeroing the buffer may take long.
        let unfilled = buf.initialize_unfilled();
        if unfilled.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let read = self.handle.shared().with(|core, now| {
            match core.endpoint.recv(now, self.id, unfilled) {
                Ok(Some(read)) => Poll::Ready(Ok(read)),
                Ok(None) => core.wait(self.id, Direction::Read, context),
                Err(error) => Poll::Ready(Err(core.why(error))),
            }
        });
        let read = ready!(read)?;
        turn.made_progress();
        buf.advance(read);
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_write(
        &self,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let turn = ready!(coop::poll_proceed(context));
        let written = self.handle.shared().with(|core, now| {
            core.alive()?;
            match core.endpoint.send(now, self.id, data) {
                Ok(0) if !data.is_empty() => core.wait(self.id, Direction::Write, context),
                Ok(written) => Poll::Ready(Ok(written)),
                Err(error) => Poll::Ready(Err(core.why(error))),
            }
        });
        let written = ready!(written)?;
        turn.made_progress();
        Poll::Ready(Ok(written))
    }

    /// Finishes the sending direction after the data already written.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        self.handle.shared().with(|core, now| {
            core.alive()?;
            core.endpoint.finish(now, self.id).map_err(|error| core.why(error))
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.handle.shared().with(|core, now| {
            core.remove(self.id);
            core.endpoint.release(now, self.id);
        });
    }
}

impl AsyncRead for RrtpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(context, buf)
    }
}

impl AsyncWrite for RrtpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(context, data)
    }

    /// Does nothing: data already written is sent without a flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the sending direction after the data already written; ready before it is
    /// acknowledged.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown())
    }
}
