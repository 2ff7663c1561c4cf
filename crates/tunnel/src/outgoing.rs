//! Datagrams to send.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use airtcp_device::Counters;

use crate::Datagrams;

/// The maximum number of datagrams that wait for the socket. The device accepts no packets
/// meanwhile, so these are handshakes, keepalives and packets that waited for a handshake.
const ROOM: usize = 512;

/// A socket, the datagrams that wait for it, and the counters of the device.
pub(crate) struct Outgoing<S> {
    pub(crate) socket: S,
    waiting: VecDeque<(Vec<u8>, SocketAddr)>,
    pub(crate) counters: Counters,
}

/// The context in which a peer sends messages.
pub(crate) struct Io<'a, S> {
    pub(crate) now: Instant,
    /// A buffer with room for any message.
    pub(crate) buf: &'a mut [u8],
    pub(crate) out: &'a mut Outgoing<S>,
}

/// A received datagram.
#[derive(Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) bytes: &'a [u8],
}

impl<S: Datagrams> Outgoing<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, waiting: VecDeque::new(), counters: Counters::default() }
    }

    pub(crate) fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends a datagram now, or later when there is room.
    pub(crate) fn send(&mut self, datagram: &[u8], to: SocketAddr) {
        if !self.is_full() && self.try_send(datagram, to) {
            return;
        }
        if self.waiting.len() < ROOM {
            self.waiting.push_back((datagram.to_vec(), to));
        } else {
            self.counters.tx_dropped += 1;
        }
    }

    /// Sends waiting datagrams as far as there is room.
    pub(crate) fn flush(&mut self) {
        while let Some((datagram, to)) = self.waiting.pop_front() {
            if !self.try_send(&datagram, to) {
                self.waiting.push_front((datagram, to));
                return;
            }
        }
    }

    /// Returns whether the datagram is done: it was sent, or cannot be sent at all.
    fn try_send(&mut self, datagram: &[u8], to: SocketAddr) -> bool {
        loop {
            match self.socket.try_send_to(datagram, to) {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, %to, length = datagram.len(), "datagram not sent");
                    self.counters.tx_errors += 1;
                    return true;
                }
            }
        }
    }
}
