//! A reader that accepts a connection and compares its bytes with those that were sent.

use airtcp_stack::host::{Host, SocketId};
use airtcp_types::Instant;

/// The byte at this offset of the stream.
pub(crate) fn pattern(at: u64) -> u8 {
    (at % 251) as u8
}

pub(crate) struct Reader {
    listener: SocketId,
    socket: Option<SocketId>,
    /// The number of bytes that have arrived.
    pub(crate) read: u64,
}

impl Reader {
    pub(crate) fn new(listener: SocketId) -> Self {
        Self { listener, socket: None, read: 0 }
    }

    /// Reads what `host` has; returns whether there was any data.
    pub(crate) fn read(&mut self, host: &mut Host, now: Instant) -> bool {
        if self.socket.is_none() {
            let accepted = host.tcp_accept(now, self.listener).unwrap();
            self.socket = accepted.map(|(socket, _)| socket);
        }
        let Some(socket) = self.socket else { return false };
        let mut buf = [0; 65_536];
        let len = host.tcp_recv(now, socket, &mut buf).unwrap_or(0);
        for byte in &buf[..len] {
            assert_eq!(*byte, pattern(self.read), "byte {}", self.read);
            self.read += 1;
        }
        len > 0
    }
}
