//! Either end of an RRTP connection, over a UDP socket of the host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airtcp_rrtp::{CallError, Config, ConnectionId, Endpoint, Event, Info, Limits};
use airtcp_stack::host::SocketId;
use airtcp_types::{ByteCount, ExtSeq, Instant, RangeSet, SeqRange};

use super::end_host::Desk;
use super::{Meter, pattern};
use crate::summary::Running;

/// So much is read at once: what a datagram has at most.
const READ: usize = u16::MAX as usize;
/// What connections hold is bounded by their own buffers.
const UNLIMITED: ByteCount = ByteCount::from_mib(1 << 20);

/// Where docs/rrtp.md, packets of version 1, has their type and the number of a data packet's
/// transmission.
const DATA: u8 = 4;
const TRANSMISSION: usize = 20;

/// The transmission that a datagram with data is.
fn transmission(datagram: &[u8]) -> Option<SeqRange> {
    datagram.first().filter(|first| *first & 0xf == DATA)?;
    let number = u32::from_be_bytes(*datagram.get(TRANSMISSION..)?.first_chunk()?);
    let first = ExtSeq(number.into());
    Some(SeqRange::new(first, first + 1))
}

/// What an end does.
#[derive(Debug)]
pub(crate) enum Role {
    /// It opens the connection at `start`, and sends `size` bytes, or as many as there is time for
    /// until `stop`.
    Sends { start: Instant, stop: Option<Instant>, remote: SocketAddr, size: Option<u64> },
    /// It takes one connection at `port`, and reads everything: so many bytes, if there is an end.
    Takes { port: u16, expected: Option<u64> },
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
    /// The smoothed round-trip time as it was last.
    round_trip_time: Option<Duration>,
    /// All its values.
    pub(crate) rtt: Running,
    /// The transmissions that came: a second copy of one is the network's.
    came: RangeSet,
    /// Whether it waits for room to send.
    waits: bool,
    /// Data packets that were sent again, and came although they had come before.
    pub(crate) spurious: u64,
    /// What is read into.
    buffer: Vec<u8>,
    /// The datagram that leaves.
    datagram: Vec<u8>,
    pub(crate) meter: Meter,
}

impl RrtpEnd {
    /// `key` is what its connection ids and cookies come from.
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

    /// Takes its socket.
    pub(super) fn bind(&mut self, desk: &mut Desk<'_>) {
        let port = match self.role {
            Role::Sends { .. } => 0,
            Role::Takes { port, .. } => port,
        };
        match desk.host.udp_bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)) {
            Ok(socket) => {
                self.socket = Some(socket);
                desk.hold(socket);
            }
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
                // Why it has ended is told by an event of its own.
                let _ = self.write(desk.now, id);
            }
        }
        self.work(desk);
    }

    /// Datagrams have come.
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

    /// The first `len` bytes of the buffer are one.
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

    /// What the connection was like at the end; it is never let go of.
    pub(crate) fn info(&self) -> Option<Info> {
        self.endpoint.info(self.stream?)
    }

    /// There is room again.
    pub(super) fn on_room(&mut self, desk: &mut Desk<'_>) {
        // Others may have taken it: then it waits anew.
        self.waits = false;
        self.work(desk);
    }

    /// Acts on what there is to act on, and lets everything leave that leaves now.
    fn work(&mut self, desk: &mut Desk<'_>) {
        let Some(socket) = self.socket else { return };
        loop {
            // It goes on at the same moment, when the host has let its packets leave.
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
                // Why it has ended is told by an event of its own.
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
                // Who takes has nothing to send.
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
        // As long as a data packet is, and its type; the sum is wrong.
        end.buffer[0] = 1 << 4 | DATA;
        end.on_datagram(Instant::ZERO, (Ipv4Addr::LOCALHOST, 1).into(), 100);
        assert_eq!(end.endpoint.counters().bad_checksum, 1);
        assert!(end.came.is_empty());
    }
}
