//! A peer: its sessions, its endpoint, its timers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use airtcp_types::Packet;
use boringtun::noise::errors::WireGuardError;
use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519;

use crate::handle::PeerStatus;
use crate::outgoing::{Arrival, Io, Outgoing};
use crate::{Datagrams, PeerConfig, PrivateKey, TunnelError};

/// The interval at which the timers of a busy peer are run.
const TICK: Duration = Duration::from_millis(250);
/// How long after the last packet timers are run at the short interval. The protocol's longest
/// short timer has 15 s.
const BUSY: Duration = Duration::from_secs(16);
/// Times after the start of an idle session at which its timers must run: REKEY-AFTER-TIME,
/// REJECT-AFTER-TIME less 15 s, and REJECT-AFTER-TIME (WireGuard paper, section 6.1), each a little
/// later, so that it has passed.
const STEPS: [Duration; 3] = [
    Duration::from_millis(120_250),
    Duration::from_millis(165_250),
    Duration::from_millis(180_250),
];
const REJECT_AFTER_TIME: Duration = STEPS[2];
/// The interval after which a keepalive that was not sent is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// A peer that was heard from within this time has a session, and needs no handshake from this end.
const RECENT: Duration = Duration::from_secs(10);
/// The maximum number of packets that wait for a handshake, as in the Linux kernel. boringtun's own
/// queue, which does not count its drops, has room for 256.
const QUEUE: usize = 128;
/// The minimum interval between responses to outdated initiations, as between initiations.
const REKEY_TIMEOUT: Duration = Duration::from_secs(5);
/// The counter from which on data messages are rejected (WireGuard paper, section 6.1).
const REJECT_AFTER_MESSAGES: u64 = u64::MAX - (1 << 13);
/// The length of an empty data message, which is a keepalive.
const EMPTY: usize = 32;

/// Message types, in the first byte.
pub(crate) mod kind {
    pub(crate) const INITIATION: u8 = 1;
    pub(crate) const RESPONSE: u8 = 2;
    pub(crate) const DATA: u8 = 4;
}

pub(crate) struct Peer {
    config: PeerConfig,
    tunn: Tunn,
    endpoint: Option<SocketAddr>,
    /// The number of packets that wait for a handshake.
    queued: usize,
    /// When the timers last ran, and when they run next.
    ticked: Instant,
    due: Option<Instant>,
    busy_until: Instant,
    /// When the last persistent keepalive was sent.
    kept: Instant,
    /// When the current session was established; `None` if it has expired.
    session: Option<Instant>,
    last_handshake: Option<Instant>,
    /// When a message last showed that the peer has a session.
    heard: Option<Instant>,
    /// When an outdated initiation was last answered.
    answered: Option<Instant>,
    pub(crate) rx_bytes: u64,
    tx_bytes: u64,
    tx_dropped: u64,
    pub(crate) rx_invalid: u64,
    pub(crate) rx_replayed: u64,
    pub(crate) rx_refused: u64,
}

/// The result of processing a datagram.
pub(crate) enum Received {
    /// The datagram contained no packet.
    Nothing,
    /// The datagram was invalid or replayed.
    Bad,
    /// A packet was decrypted; its source address must still be checked.
    Packet(IpAddr),
}

impl Peer {
    /// Creates a peer. `index` has 24 bits and must be unique.
    pub(crate) fn new(
        private_key: &PrivateKey,
        config: PeerConfig,
        index: u32,
        never: &Arc<RateLimiter>,
        now: Instant,
    ) -> Result<Self, TunnelError> {
        let tunn = Tunn::new(
            private_key.0.clone(),
            x25519::PublicKey::from(config.public_key.0),
            config.preshared_key.as_ref().map(|key| key.0),
            config.keepalive_seconds()?,
            index,
            Some(never.clone()),
        );
        Ok(Self {
            endpoint: config.endpoint,
            due: (config.keepalive.is_some() && config.endpoint.is_some()).then_some(now),
            config,
            tunn,
            queued: 0,
            ticked: now,
            busy_until: now,
            kept: now,
            session: None,
            last_handshake: None,
            heard: None,
            answered: None,
            rx_bytes: 0,
            tx_bytes: 0,
            tx_dropped: 0,
            rx_invalid: 0,
            rx_replayed: 0,
            rx_refused: 0,
        })
    }

    pub(crate) const fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// Returns when its timers must run.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) fn status(&self, now: Instant) -> PeerStatus {
        PeerStatus {
            public_key: self.config.public_key,
            endpoint: self.endpoint,
            allowed_ips: self.config.allowed_ips.clone(),
            last_handshake: self.last_handshake.map(|at| now.duration_since(at)),
            rx_bytes: self.rx_bytes,
            tx_bytes: self.tx_bytes,
            tx_dropped: self.tx_dropped,
            rx_invalid: self.rx_invalid,
            rx_replayed: self.rx_replayed,
            rx_refused: self.rx_refused,
        }
    }

    /// Sends a packet, or queues it and starts a handshake if there is no session.
    pub(crate) fn transmit<S: Datagrams>(&mut self, packet: &[u8], io: &mut Io<'_, S>) {
        let Some(to) = self.endpoint else {
            io.out.counters.tx_errors += 1;
            return;
        };
        self.tick_if_old(io);
        if self.queued >= QUEUE {
            self.drop_packets(1, io.out);
            return;
        }
        io.out.counters.tx_packets += 1;
        io.out.counters.tx_bytes += packet.len() as u64;
        match self.tunn.encapsulate(packet, io.buf) {
            TunnResult::WriteToNetwork(message) => {
                self.queued += usize::from(message[0] != kind::DATA);
                self.tx_bytes += message.len() as u64;
                io.out.send(message, to);
            }
            TunnResult::Done => self.queued += 1,
            _ => self.drop_packets(1, io.out),
        }
        self.is_busy(io.now);
    }

    /// Processes a datagram that passed the gate. A decrypted packet is written to `packet`.
    pub(crate) fn receive<S: Datagrams>(
        &mut self,
        datagram: Arrival<'_>,
        packet: &mut Packet,
        io: &mut Io<'_, S>,
    ) -> Received {
        let Arrival { from, bytes } = datagram;
        self.tick_if_old(io);
        if bytes[0] == kind::DATA {
            return self.receive_data(datagram, packet, io);
        }
        match self.tunn.decapsulate(Some(from.ip()), bytes, io.buf) {
            TunnResult::WriteToNetwork(answer) => {
                self.tx_bytes += answer.len() as u64;
                io.out.send(answer, from);
                self.authenticated(io.now, datagram);
                (self.session, self.last_handshake) = (Some(io.now), Some(io.now));
                self.is_busy(io.now);
                // The initiator sends first; the responder may send only after that.
                if bytes[0] == kind::RESPONSE {
                    self.flush(io);
                }
            }
            TunnResult::Done => {}
            TunnResult::Err(error) => return self.refuse(from, &error, io),
            // Only for data.
            TunnResult::WriteToTunnelV4(..) | TunnResult::WriteToTunnelV6(..) => {}
        }
        Received::Nothing
    }

    fn receive_data<S: Datagrams>(
        &mut self,
        datagram: Arrival<'_>,
        packet: &mut Packet,
        io: &mut Io<'_, S>,
    ) -> Received {
        let Arrival { from, bytes } = datagram;
        let counter = bytes[8..16].try_into().map_or(u64::MAX, u64::from_le_bytes);
        if counter >= REJECT_AFTER_MESSAGES {
            self.rx_invalid += 1;
            return Received::Bad;
        }
        packet.data.resize(bytes.len(), 0);
        let (len, source) = match self.tunn.decapsulate(Some(from.ip()), bytes, &mut packet.data) {
            TunnResult::WriteToTunnelV4(inner, source) => (inner.len(), IpAddr::V4(source)),
            TunnResult::WriteToTunnelV6(inner, source) => (inner.len(), IpAddr::V6(source)),
            TunnResult::Err(error) => return self.refuse(from, &error, io),
            // A keepalive.
            TunnResult::Done | TunnResult::WriteToNetwork(_) => {
                self.authenticated(io.now, datagram);
                self.flush(io);
                return Received::Nothing;
            }
        };
        packet.data.truncate(len);
        self.authenticated(io.now, datagram);
        self.is_busy(io.now);
        if self.queued > 0 {
            self.flush(io);
        }
        Received::Packet(source)
    }

    fn authenticated(&mut self, now: Instant, Arrival { from, bytes }: Arrival<'_>) {
        self.rx_bytes += bytes.len() as u64;
        if bytes[0] != kind::INITIATION {
            self.heard = Some(now);
        }
        if self.endpoint != Some(from) {
            tracing::debug!(peer = %self.config.public_key, endpoint = %from, "endpoint updated");
            self.endpoint = Some(from);
            self.due = earliest(self.due, Some(now + TICK));
        }
    }

    fn refuse<S: Datagrams>(
        &mut self,
        from: SocketAddr,
        error: &WireGuardError,
        io: &mut Io<'_, S>,
    ) -> Received {
        match error {
            WireGuardError::DuplicateCounter | WireGuardError::InvalidCounter => {
                self.rx_replayed += 1
            }
            WireGuardError::WrongTai64nTimestamp => {
                self.rx_replayed += 1;
                // Either a replay, or the peer restarted with an earlier clock and is rejected
                // until the clock has caught up. An initiation of this end does not depend on the
                // peer's clock. It is sent to the source of the datagram, even if another one is in
                // flight to the known endpoint, which stays until the new one is answered.
                let is_recent = |at: Option<Instant>, limit| {
                    at.is_some_and(|at| io.now.duration_since(at) < limit)
                };
                if !is_recent(self.heard, RECENT) && !is_recent(self.answered, REKEY_TIMEOUT) {
                    self.answered = Some(io.now);
                    if let TunnResult::WriteToNetwork(message) =
                        self.tunn.format_handshake_initiation(io.buf, true)
                    {
                        self.tx_bytes += message.len() as u64;
                        io.out.send(message, from);
                        self.is_busy(io.now);
                    }
                }
            }
            _ => self.rx_invalid += 1,
        }
        Received::Bad
    }

    /// Sends the packets that waited for a session.
    fn flush<S: Datagrams>(&mut self, io: &mut Io<'_, S>) {
        let Some(to) = self.endpoint else { return };
        while let TunnResult::WriteToNetwork(message) = self.tunn.decapsulate(None, &[], io.buf) {
            if message[0] == kind::DATA && message.len() > EMPTY {
                self.queued = self.queued.saturating_sub(1);
            }
            self.tx_bytes += message.len() as u64;
            io.out.send(message, to);
        }
    }

    /// boringtun uses the time of the last run of its timers, so they must run before the first
    /// message after a pause.
    fn tick_if_old<S: Datagrams>(&mut self, io: &mut Io<'_, S>) {
        if io.now.duration_since(self.ticked) >= TICK {
            self.tick(io);
        }
    }

    /// Runs the timers: handshakes are started, repeated and given up after 90 s, sessions expire,
    /// keepalives are sent.
    pub(crate) fn tick<S: Datagrams>(&mut self, io: &mut Io<'_, S>) {
        let now = io.now;
        self.ticked = now;
        match self.tunn.update_timers(io.buf) {
            TunnResult::WriteToNetwork(message) => {
                if message[0] == kind::DATA {
                    self.kept = Instant::now();
                } else {
                    self.busy_until = now + BUSY;
                }
                Self::emit(self.endpoint, message, &mut self.tx_bytes, io.out);
            }
            // The next packet starts another handshake.
            TunnResult::Err(WireGuardError::ConnectionExpired) => {
                self.drop_packets(self.queued, io.out);
                (self.queued, self.session) = (0, None);
            }
            _ => {}
        }
        self.session = self.session.filter(|&at| now.duration_since(at) < REJECT_AFTER_TIME);
        // With a keepalive, the session is established before there is a packet, and again after a
        // failed handshake.
        if self.config.keepalive.is_some()
            && self.session.is_none()
            && self.endpoint.is_some()
            && let TunnResult::WriteToNetwork(message) =
                self.tunn.format_handshake_initiation(io.buf, false)
        {
            self.busy_until = now + BUSY;
            Self::emit(self.endpoint, message, &mut self.tx_bytes, io.out);
        }
        self.due = self.next_due(now);
    }

    fn emit<S: Datagrams>(
        to: Option<SocketAddr>,
        message: &[u8],
        tx_bytes: &mut u64,
        out: &mut Outgoing<S>,
    ) {
        if let Some(to) = to {
            *tx_bytes += message.len() as u64;
            out.send(message, to);
        }
    }

    fn drop_packets<S: Datagrams>(&mut self, count: usize, out: &mut Outgoing<S>) {
        self.tx_dropped += count as u64;
        out.counters.tx_dropped += count as u64;
    }

    fn is_busy(&mut self, now: Instant) {
        self.busy_until = now + BUSY;
        self.due = earliest(self.due, Some(now + TICK));
    }

    /// Returns when the timers must run next. An idle peer has few such times or none, so that an
    /// idle process sleeps.
    fn next_due(&self, now: Instant) -> Option<Instant> {
        self.endpoint?;
        if now < self.busy_until {
            return Some(now + TICK);
        }
        let session = self
            .session
            .and_then(|began| STEPS.iter().map(|&step| began + step).find(|&at| at > now));
        let keepalive = self.config.keepalive.map(|every| (self.kept + every).max(now + RETRY));
        earliest(session, keepalive)
    }
}

pub(crate) fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}
