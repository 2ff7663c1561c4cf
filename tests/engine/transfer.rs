//! One connection with data in both directions, driven to its end.

use airtcp_stack::host::{HostError, SocketId};
use airtcp_stack::tcp::TcpError;
use airtcp_types::Instant;

use crate::world::{CLIENT_HOST, Observer, SERVER_HOST, World, pattern_bytes, server};

/// One end: the data it sends and receives.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) socket: Option<SocketId>,
    pub(crate) sent: u64,
    pub(crate) to_send: u64,
    pub(crate) received: u64,
    pub(crate) received_all: bool,
    pub(crate) shut: bool,
    pub(crate) error: Option<TcpError>,
    /// When the last byte and the FIN were read.
    pub(crate) finished_at: Option<Instant>,
}

/// A connection from the client to the server with a number of bytes in each direction, closed by
/// both ends.
pub(crate) struct Transfer {
    pub(crate) ends: [End; 2],
    listener: SocketId,
    /// Memory to read into.
    buffer: Vec<u8>,
}

impl Transfer {
    pub(crate) fn start<O: Observer>(world: &mut World<O>, up: u64, down: u64) -> Self {
        let now = world.now;
        let listener = world.hosts[SERVER_HOST].tcp_listen(server(), 16).unwrap();
        let socket = world.hosts[CLIENT_HOST].tcp_connect(now, server(), None).unwrap();
        let client = End { socket: Some(socket), to_send: up, ..End::default() };
        let ends = [client, End { to_send: down, ..End::default() }];
        Self { ends, listener, buffer: vec![0; 16_384] }
    }

    /// Runs both applications. Panics if a received byte differs from the one sent.
    pub(crate) fn work<O: Observer>(&mut self, world: &mut World<O>) {
        let now = world.now;
        if self.ends[SERVER_HOST].socket.is_none() {
            let accepted = world.hosts[SERVER_HOST].tcp_accept(now, self.listener).unwrap();
            self.ends[SERVER_HOST].socket = accepted.map(|(socket, _)| socket);
        }
        let Self { ends, buffer, .. } = self;
        for (end, host) in ends.iter_mut().zip(&mut world.hosts) {
            let Some(socket) = end.socket.filter(|_| end.error.is_none()) else { continue };
            loop {
                let left = end.to_send - end.sent;
                if left == 0 || !host.readiness(socket).unwrap().writable {
                    break;
                }
                let chunk = pattern_bytes(end.sent, left.min(16_384) as usize);
                match host.tcp_send(now, socket, &chunk) {
                    Ok(0) => break,
                    Ok(taken) => end.sent += taken as u64,
                    Err(error) => {
                        end.fail(error);
                        break;
                    }
                }
            }
            if end.sent == end.to_send && !end.shut && end.error.is_none() {
                match host.tcp_shutdown(now, socket) {
                    Ok(()) => end.shut = true,
                    Err(error) => end.fail(error),
                }
            }
            while !end.received_all && end.error.is_none() {
                match host.tcp_recv(now, socket, buffer) {
                    Ok(0) => {
                        end.received_all = true;
                        end.finished_at = Some(now);
                    }
                    Ok(len) => {
                        let expected = pattern_bytes(end.received, len);
                        if buffer[..len] != *expected {
                            let same = buffer.iter().zip(&*expected).take_while(|(a, b)| a == b);
                            panic!("byte {} of the stream", end.received + same.count() as u64);
                        }
                        end.received += len as u64;
                    }
                    Err(HostError::Tcp(TcpError::WouldBlock)) => break,
                    Err(error) => end.fail(error),
                }
            }
        }
    }

    /// Whether both ends have received everything, or ended in an error.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| (end.received_all && end.shut) || end.error.is_some())
    }

    /// Closes both sockets and the listener.
    pub(crate) fn close<O: Observer>(&mut self, world: &mut World<O>) {
        for (end, host) in self.ends.iter_mut().zip(&mut world.hosts) {
            if let Some(socket) = end.socket.take() {
                host.tcp_close(world.now, socket).unwrap();
            }
        }
        world.hosts[SERVER_HOST].tcp_close(world.now, self.listener).unwrap();
    }
}

impl End {
    fn fail(&mut self, error: HostError) {
        match error {
            HostError::Tcp(TcpError::WouldBlock) => {}
            HostError::Tcp(error) => self.error = Some(error),
            other => panic!("{other}"),
        }
    }
}
