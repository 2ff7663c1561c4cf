//! A listener.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use airtcp_stack::host::SocketId;
use airtcp_types::Instant;
use tokio::sync::Notify;
use tokio::task::coop;
use tracing::debug;

use super::core::Core;
use super::ready::in_turn;
use super::stack::Handle;
use super::stream::TcpStream;
use crate::wakers::Direction;

/// A listener for TCP connections; created by [`Stack::listen`](super::Stack::listen) or
/// [`TcpSocket::listen`](super::TcpSocket::listen).
///
/// Dropping it resets the connections that were not accepted; accepted ones continue.
#[derive(Debug)]
pub struct TcpListener {
    handle: Handle,
    id: SocketId,
    notify: Arc<Notify>,
}

impl TcpListener {
    pub(super) fn new(handle: Handle, id: SocketId, notify: Arc<Notify>) -> Self {
        Self { handle, id, notify }
    }

    /// Accepts a connection; returns it with the address of its peer.
    ///
    /// Cancel-safe; several tasks may wait at once.
    ///
    /// # Errors
    /// `NotConnected` or `NetworkDown`: the stack has ended or is about to end.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        coop::consume_budget().await;
        loop {
            // Registered before the check, so that a connection between check and wait is not
            // missed.
            let notified = self.notify.notified();
            let accepted = self.handle.shared().with(|core, now| self.take(core, now))?;
            if let Some(accepted) = accepted {
                return Ok(self.stream(accepted));
            }
            notified.await;
        }
    }

    /// Polls [`accept`](Self::accept). Only the last polling task is woken.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let accepted = in_turn(context, |context| {
            self.handle.shared().with(|core, now| match self.take(core, now)? {
                Some(accepted) => Poll::Ready(Ok(accepted)),
                None => core.wait(self.id, Direction::Read, context),
            })
        });
        accepted.map_ok(|accepted| self.stream(accepted))
    }

    /// Takes the next connection from the queue, if there is one.
    fn take(&self, core: &mut Core, now: Instant) -> io::Result<Option<(SocketId, SocketAddr)>> {
        match core.host.tcp_accept(now, self.id) {
            Ok(Some((id, remote))) => {
                core.add_stream(id);
                Ok(Some((id, remote)))
            }
            Ok(None) => core.alive().map(|()| None),
            // Report the shutdown of the stack rather than the stale socket.
            Err(error) => Err(core.open().err().unwrap_or_else(|| error.into())),
        }
    }

    /// Makes the stream of a connection. There must be no await between taking the connection from
    /// the host and making its stream, or cancelling would lose the connection.
    fn stream(&self, (id, remote): (SocketId, SocketAddr)) -> (TcpStream, SocketAddr) {
        debug!(%remote, "connection accepted");
        (TcpStream::new(self.handle.clone(), id), remote)
    }

    /// The local address.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.handle.shared().look(|core, _| core.host.local_addr(self.id).map_err(io::Error::from))
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.handle.shared().with(|core, now| {
            core.remove(self.id);
            // Fails if a shutdown has already closed the listener.
            let _ = core.host.tcp_close(now, self.id);
        });
    }
}
