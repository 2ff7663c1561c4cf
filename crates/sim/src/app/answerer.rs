//! The passive end of connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airtcp_stack::host::{HostError, SocketId};
use airtcp_stack::tcp::{Readiness, TcpConfig, TcpError};

use super::end_host::Desk;
use super::{Meter, pattern};

/// The size of the read buffer.
const READ: usize = 2048;
/// The backlog of the listener.
const BACKLOG: usize = 4096;

/// A server that reads everything, responds to each request, and closes a connection after the
/// other end has.
#[derive(Debug)]
pub(crate) struct Answerer {
    address: SocketAddr,
    config: TcpConfig,
    /// The sizes of a request and of its response; `None` without responses.
    answers: Option<(u64, u64)>,
    /// The total of expected bytes on all connections; `None` without a limit.
    expected: Option<u64>,
    listener: Option<SocketId>,
    connections: BTreeMap<SocketId, Stream>,
    pub(crate) meter: Meter,
}

/// One connection.
#[derive(Debug, Default)]
struct Stream {
    read: u64,
    written: u64,
    /// The stream offset up to which data is to be written.
    owed: u64,
    /// Whether the other end has closed.
    over: bool,
}

impl Answerer {
    pub(crate) const fn new(
        address: SocketAddr,
        config: TcpConfig,
        answers: Option<(u64, u64)>,
        expected: Option<u64>,
        meter: Meter,
    ) -> Self {
        let connections = BTreeMap::new();
        Self { address, config, answers, expected, listener: None, connections, meter }
    }

    /// Starts to listen.
    pub(super) fn listen(&mut self, desk: &mut Desk<'_>) {
        match desk.host.tcp_listen_with(self.address, BACKLOG, self.config.clone()) {
            Ok(listener) => {
                self.listener = Some(listener);
                desk.hold(listener);
            }
            Err(error) => self.meter.refused = Some(error),
        }
    }

    pub(super) fn on_ready(&mut self, desk: &mut Desk<'_>, socket: SocketId, ready: Readiness) {
        if self.listener == Some(socket) {
            while let Ok(Some((stream, _))) = desk.host.tcp_accept(desk.now, socket) {
                desk.hold(stream);
                self.connections.insert(stream, Stream::default());
            }
            return;
        }
        let alive = !ready.readable || self.read(desk, socket);
        if !alive || self.write(desk, socket) {
            self.connections.remove(&socket);
            desk.close(socket);
        }
    }

    /// Reads the available data; returns whether the connection is still usable.
    fn read(&mut self, desk: &mut Desk<'_>, socket: SocketId) -> bool {
        let Some(stream) = self.connections.get_mut(&socket) else { return false };
        let mut buffer = [0; READ];
        loop {
            match desk.host.tcp_recv(desk.now, socket, &mut buffer) {
                Ok(0) => {
                    stream.over = true;
                    break;
                }
                Ok(len) => {
                    self.meter.on_read(desk.now, stream.read, &buffer[..len]);
                    stream.read += len as u64;
                    if len < READ && !desk.is_readable(socket) {
                        break;
                    }
                }
                Err(HostError::Tcp(TcpError::WouldBlock)) => break,
                Err(_) => {
                    self.meter.broken += 1;
                    return false;
                }
            }
        }
        if self.expected.is_some_and(|expected| self.meter.bytes >= expected) {
            self.meter.finished.get_or_insert(desk.now);
        }
        if let Some((request, answer)) = self.answers {
            stream.owed = stream.read / request * answer;
        }
        true
    }

    /// Writes the pending responses; returns whether the connection can be closed.
    fn write(&mut self, desk: &mut Desk<'_>, socket: SocketId) -> bool {
        let Some(stream) = self.connections.get_mut(&socket) else { return true };
        while stream.written < stream.owed {
            let piece = pattern::shared(stream.written, stream.owed - stream.written);
            let Ok(len) = desk.host.tcp_send_shared(desk.now, socket, &piece) else { return false };
            stream.written += len as u64;
        }
        stream.over
    }
}
