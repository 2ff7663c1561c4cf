//! A socket for datagrams.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Notify;

use super::error::io_error;
use super::stack::Handle;
use crate::host::{HostError, SocketId};

/// A UDP socket; made by [`Stack::udp_bind`](super::Stack::udp_bind).
///
/// Dropping it drops the datagrams that wait in it; those sent are on their way.
#[derive(Debug)]
pub struct UdpSocket {
    handle: Handle,
    id: SocketId,
    notify: Arc<Notify>,
}

impl UdpSocket {
    pub(super) fn new(handle: Handle, id: SocketId, notify: Arc<Notify>) -> Self {
        Self { handle, id, notify }
    }

    /// Sends one datagram, waiting while too many wait to leave; gives its length in bytes.
    ///
    /// Cancel-safe: the datagram is sent whole or not at all.
    ///
    /// # Errors
    /// `InvalidInput`: longer than the MTU allows; `NetworkUnreachable`; `NotConnected` or
    /// `NetworkDown` once the stack has ended.
    pub async fn send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        loop {
            // Before the look, so that a turn in between is heard.
            let drained = self.handle.shared().drained.notified();
            let sent = self.handle.shared().with(|core, _| {
                core.alive()?;
                match core.host.udp_send_to(self.id, data, to) {
                    Ok(()) => Ok(true),
                    Err(HostError::WouldBlock) => Ok(false),
                    Err(error) => Err(io_error(error)),
                }
            })?;
            if sent {
                return Ok(data.len());
            }
            drained.await;
        }
    }

    /// Waits for a datagram; gives its length in bytes and where it came from. What does not fit
    /// into `buf` is lost.
    ///
    /// Cancel-safe; several tasks may wait at once.
    ///
    /// # Errors
    /// `NotConnected` or `NetworkDown`: the stack has ended.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        loop {
            let notified = self.notify.notified();
            let received = self.handle.shared().with(|core, _| {
                match core.host.udp_recv_from(self.id, buf).map_err(io_error)? {
                    None => core.alive().map(|()| None),
                    received => Ok(received),
                }
            })?;
            if let Some(received) = received {
                return Ok(received);
            }
            notified.await;
        }
    }

    /// The address the socket is bound to.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.handle.shared().look(|core, _| core.host.local_addr(self.id).map_err(io_error))
    }
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        self.handle.shared().with(|core, _| {
            core.remove(self.id);
            // An error says that a shutdown closed it before.
            let _ = core.host.udp_close(self.id);
        });
    }
}
