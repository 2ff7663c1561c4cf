//! One end of an RRTP connection, over a UDP socket of the host.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use airtcp_rrtp::{CallError, Config, ConnectionId, Endpoint, Event, Info, Limits};
use airtcp_stack::HostError;
use airtcp_stack::host::SocketId;
use airtcp_types::{ByteCount, ExtSeq, Instant, RangeSet, SeqRange};

use super::end_host::Desk;
use super::{Meter, pattern};
use crate::summary::Running;

/// The size of the read buffer: the maximum of a datagram.
const READ: usize = u16::MAX as usize;
/// The memory limit. It has no effect, because each connection's buffers are bounded.
const UNLIMITED: ByteCount = ByteCount::from_mib(1 << 20);

/// Offsets in packets of version 1 (docs/rrtp.md): the type is in the first byte, the number of a
/// data packet's transmission at `TRANSMISSION`.
const DATA: u8 = 4;
const TRANSMISSION: usize = 20;

/// The transmission number of a datagram, if it is a data packet.
fn transmission(datagram: &[u8]) -> Option<SeqRange> {
    datagram.first().filter(|first| *first & 0xf == DATA)?;
    let number = u32::from_be_bytes(*datagram.get(TRANSMISSION..)?.first_chunk()?);
    let first = ExtSeq(number.into());
    Some(SeqRange::new(first, first + 1))
}

/// The role of an end.
#[derive(Debug)]
pub(crate) enum Role {
    /// Opens the connection at `start`, and sends `size` bytes, or without a size as many as
    /// possible until `stop`.
    Sends { start: Instant, stop: Option<Instant>, remote: SocketAddr, size: Option<u64> },
    /// Accepts one connection at `port`, and reads everything: `expected` bytes, if the sender has
    /// a size.
    Takes { port: u16, expected: Option<u64> },
}

impl Role {
    /// Binds the UDP socket of this end, and registers the application for its readiness.
    pub(super) fn bind(&self, desk: &mut Desk<'_>) -> Result<SocketId, HostError> {
        let port = match self {
            Self::Sends { .. } => 0,
            Self::Takes { port, .. } => *port,
        };
        let socket = desk.host.udp_bind((Ipv4Addr::UNSPECIFIED, port).into())?;
        desk.hold(socket);
        Ok(socket)
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct RrtpEnd {
    role: Role,
    config: Config,
    endpoint: Endpoint,
    socket: Option<SocketId>,
    stream: Option<ConnectionId>,
    written: u64,
    read: u64,
    /// The last smoothed round-trip time.
    round_trip_time: Option<Duration>,
    /// Statistics of all values of the smoothed round-trip time.
    pub(crate) rtt: Running,
    /// The transmissions that arrived. The network made further copies of the same transmission.
    came: RangeSet,
    /// Whether the end waits for room to send.
    waits: bool,
    /// Retransmitted data packets whose data had already arrived.
    pub(crate) spurious: u64,
    /// The read buffer.
    buffer: Vec<u8>,
    /// The datagram that is being sent.
    datagram: Vec<u8>,
    pub(crate) meter: Meter,
}

impl RrtpEnd {
    /// Creates an end. Its connection IDs and cookies are derived from `key`.
    pub(crate) fn new(role: Role, config: Config, key: [u8; 16], meter: Meter) -> Self {
        let limits = Limits { memory: UNLIMITED, ..Limits::default() };
        let mut endpoint = Endpoint::new(limits, key);
        if matches!(role, Role::Takes { .. }) {
            endpoint.listen(Some(config.clone()));
        }
        Self {
            role,
            config,
            endpoint,
            socket: None,
            stream: None,
            written: 0,
            read: 0,
            round_trip_time: None,
            rtt: Running::default(),
            came: RangeSet::default(),
            waits: false,
            spurious: 0,
            buffer: vec![0; READ],
            datagram: Vec::new(),
            meter,
        }
    }

    /// Binds the socket.
    pub(super) fn bind(&mut self, desk: &mut Desk<'_>) {
        match self.role.bind(desk) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => self.meter.refused = Some(error),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.role {
            _ if self.waits => None,
            Role::Sends { start, .. } if self.stream.is_none() => Some(start),
            Role::Sends { stop, .. } => self.endpoint.poll_timeout().into_iter().chain(stop).min(),
            Role::Takes { .. } => self.endpoint.poll_timeout(),
        }
    }

    pub(super) fn on_timeout(&mut self, desk: &mut Desk<'_>) {
        if let (Role::Sends { remote, .. }, None) = (&self.role, self.stream) {
            // An endpoint without connections has room for one.
            self.stream = self.endpoint.connect(desk.now, *remote, self.config.clone()).ok();
        }
        self.endpoint.handle_timeout(desk.now);
        if let Role::Sends { stop, size, .. } = &mut self.role
            && stop.is_some_and(|stop| stop <= desk.now)
        {
            (*stop, *size) = (None, Some(self.written));
            if let Some(id) = self.stream {
                // The error is reported by an event.
                let _ = self.write(desk.now, id);
            }
        }
        self.work(desk);
    }

    /// Processes received datagrams.
    pub(super) fn on_ready(&mut self, desk: &mut Desk<'_>) {
        let Some(socket) = self.socket else { return };
        while let Ok(Some((len, from))) = desk.host.udp_recv_from(socket, &mut self.buffer) {
            self.on_datagram(desk.now, from, len);
        }
        let trip = self.info().and_then(|info| info.round_trip_time);
        if let Some(trip) = trip.filter(|_| trip != self.round_trip_time) {
            self.round_trip_time = Some(trip);
            self.rtt.add(trip.as_secs_f64());
        }
        self.work(desk);
    }

    /// Processes a datagram, the first `len` bytes of the buffer.
    fn on_datagram(&mut self, now: Instant, from: SocketAddr, len: usize) {
        let before = *self.endpoint.counters();
        self.endpoint.handle_datagram(now, from, &self.buffer[..len]);
        let after = self.endpoint.counters();
        if (after.bad_checksum, after.malformed) != (before.bad_checksum, before.malformed) {
            return;
        }
        let Some(transmission) = transmission(&self.buffer[..len]) else { return };
        let is_spurious = after.duplicates > before.duplicates && !self.came.covers(transmission);
        self.spurious += u64::from(is_spurious);
        self.came.insert(transmission);
    }

    /// The state of the connection; it is kept to the end of the run.
    pub(crate) fn info(&self) -> Option<Info> {
        self.endpoint.info(self.stream?)
    }

    /// Resumes sending, as there is room again.
    pub(super) fn on_room(&mut self, desk: &mut Desk<'_>) {
        // If other applications have used the room, the end waits again.
        self.waits = false;
        self.work(desk);
    }

    /// Processes all events, and sends all datagrams that are due.
    fn work(&mut self, desk: &mut Desk<'_>) {
        let Some(socket) = self.socket else { return };
        loop {
            // Resumed in the same instant, after the host has sent its packets.
            let waits = !desk.host.udp_has_room();
            let waited = std::mem::replace(&mut self.waits, waits);
            if waits {
                if !waited {
                    desk.wait();
                }
                return;
            }
            while let Some(event) = self.endpoint.poll_event() {
                self.on_event(desk.now, event);
            }
            self.datagram.clear();
            let Some(to) = self.endpoint.poll_transmit(desk.now, &mut self.datagram) else {
                return;
            };
            if let Err(error) = desk.host.udp_send_to(socket, &self.datagram, to) {
                self.meter.refused = Some(error);
            }
        }
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Incoming => self.stream = self.endpoint.accept(),
            Event::Connected(id) | Event::Writable(id) => {
                // The error is reported by an event.
                let _ = self.write(now, id);
            }
            Event::Readable(id) => {
                let _ = self.read(now, id);
            }
            Event::Closed(_, error) => self.meter.broken += u64::from(error.is_some()),
        }
    }

    fn write(&mut self, now: Instant, id: ConnectionId) -> Result<(), CallError> {
        let Role::Sends { size, .. } = self.role else { return Ok(()) };
        let owed = size.unwrap_or(u64::MAX);
        while self.written < owed {
            let piece = pattern::piece(self.written, owed - self.written);
            let taken = self.endpoint.send(now, id, piece)?;
            self.written += taken as u64;
            if taken < piece.len() {
                return Ok(());
            }
        }
        self.endpoint.finish(now, id)
    }

    fn read(&mut self, now: Instant, id: ConnectionId) -> Result<(), CallError> {
        while let Some(len) = self.endpoint.recv(now, id, &mut self.buffer)? {
            if len == 0 {
                // A receiving end has nothing to send.
                return match self.role {
                    Role::Takes { .. } => self.endpoint.finish(now, id),
                    Role::Sends { .. } => Ok(()),
                };
            }
            self.meter.on_read(now, self.read, &self.buffer[..len]);
            self.read += len as u64;
            if matches!(self.role, Role::Takes { expected: Some(expected), .. } if self.read >= expected)
            {
                self.meter.finished.get_or_insert(now);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_transmission_has_not_come() {
        let role = Role::Takes { port: 80, expected: None };
        let mut end =
            RrtpEnd::new(role, Config::default(), [1; 16], Meter::new(Instant::ZERO, false));
        // The length and type of a data packet, with a wrong checksum.
        end.buffer[0] = 1 << 4 | DATA;
        end.on_datagram(Instant::ZERO, (Ipv4Addr::LOCALHOST, 1).into(), 100);
        assert_eq!(end.endpoint.counters().bad_checksum, 1);
        assert!(end.came.is_empty());
    }
}
