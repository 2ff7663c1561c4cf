//! A socket that connections come out of.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Notify;
use tracing::debug;

use super::error::io_error;
use super::stack::Handle;
use super::stream::TcpStream;
use crate::host::SocketId;

/// Takes connections; made by [`Stack::listen`](super::Stack::listen).
///
/// Dropping it resets the connections that nobody accepted; those accepted go on.
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

    /// Waits for the next connection; gives it and the address of its peer.
    ///
    /// Cancel-safe; several tasks may wait at once.
    ///
    /// # Errors
    /// `NotConnected` or `NetworkDown`: the stack has ended.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            // Before the look, so that a connection that comes in between is heard.
            let notified = self.notify.notified();
            let accepted = self.handle.shared().with(|core, now| {
                let Some((id, remote)) = core.host.tcp_accept(now, self.id).map_err(io_error)?
                else {
                    return core.alive().map(|()| None);
                };
                core.add_stream(id);
                Ok::<_, io::Error>(Some((id, remote)))
            })?;
            // No await between the host's letting go of a connection and its being a stream.
            if let Some((id, remote)) = accepted {
                debug!(%remote, "accepted");
                return Ok((TcpStream::new(self.handle.clone(), id), remote));
            }
            notified.await;
        }
    }

    /// The address listened on.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.handle.shared().look(|core, _| core.host.local_addr(self.id).map_err(io_error))
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.handle.shared().with(|core, now| {
            core.remove(self.id);
            // An error says that a shutdown closed it before.
            let _ = core.host.tcp_close(now, self.id);
        });
    }
}
