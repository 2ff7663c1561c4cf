//! A listener.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use airtcp_rrtp::{Config, Limits};
use tokio::sync::Notify;

use super::core::Handshake;
use super::socket::RrtpSocket;
use super::stream::RrtpStream;

/// A listener for RRTP connections; created by [`RrtpSocket::listen`].
///
/// Dropping it aborts the connections that were not accepted; accepted ones continue.
#[derive(Debug)]
pub struct RrtpListener {
    socket: RrtpSocket,
    incoming: Arc<Notify>,
}

impl RrtpListener {
    /// Listens on a new UDP socket of the kernel.
    ///
    /// # Errors
    /// As [`RrtpSocket::bind`].
    pub async fn bind(local: SocketAddr, config: Config) -> io::Result<Self> {
        RrtpSocket::bind(local, Limits::default()).await?.listen(config)
    }

    pub(super) fn new(socket: RrtpSocket, config: Config) -> io::Result<Self> {
        let incoming = socket.shared().with(|core, _| {
            core.open()?;
            if core.endpoint.is_listening() {
                return Err(io::Error::from(io::ErrorKind::AddrInUse));
            }
            core.endpoint.listen(Some(config));
            Ok(core.incoming.clone())
        })?;
        Ok(Self { socket, incoming })
    }

    /// Accepts a connection; returns it with the address of its peer.
    ///
    /// Cancel-safe; several tasks may wait at once.
    ///
    /// # Errors
    /// `NotConnected` or `NetworkDown`: the socket has ended or is about to end.
    pub async fn accept(&self) -> io::Result<(RrtpStream, SocketAddr)> {
        tokio::task::coop::consume_budget().await;
        loop {
            // Registered before the check, so that a connection between check and wait is not
            // missed.
            let incoming = self.incoming.notified();
            let taken = self.socket.shared().with(|core, _| {
                core.open()?;
                while let Some(id) = core.endpoint.accept() {
                    // The connection may have ended in the queue.
                    if let Some(info) = core.endpoint.info(id) {
                        core.add(id, Handshake::Done);
                        return Ok::<_, io::Error>(Some((id, info.remote)));
                    }
                }
                Ok(None)
            })?;
            if let Some((id, remote)) = taken {
                let local = self.socket.local_addr();
                let stream = RrtpStream::new(self.socket.handle().clone(), id, local, remote);
                return Ok((stream, remote));
            }
            incoming.await;
        }
    }

    /// The socket, which can also open connections and has the counters.
    pub const fn socket(&self) -> &RrtpSocket {
        &self.socket
    }

    /// The local address.
    ///
    /// # Errors
    /// None; the signature matches other listeners.
    pub const fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.local_addr())
    }
}

impl Drop for RrtpListener {
    fn drop(&mut self) {
        self.socket.shared().with(|core, now| {
            core.endpoint.listen(None);
            while let Some(id) = core.endpoint.accept() {
                core.endpoint.abort(now, id);
                core.endpoint.release(now, id);
            }
        });
    }
}
