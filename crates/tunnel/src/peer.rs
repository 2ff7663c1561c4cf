//! One peer: its sessions, its endpoint, its timers.

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

/// How often the timers of a busy peer are looked at.
const TICK: Duration = Duration::from_millis(250);
/// Timers may be due for so long after the last packet: the protocol's longest short one has 15 s.
const BUSY: Duration = Duration::from_secs(16);
/// When an idle session has to be looked at, after it began: REKEY-AFTER-TIME, REJECT-AFTER-TIME less 15 s,
/// REJECT-AFTER-TIME (WireGuard paper, section 6.1), each a little later, so that it is over.
const STEPS: [Duration; 3] = [
    Duration::from_millis(120_250),
    Duration::from_millis(165_250),
    Duration::from_millis(180_250),
];
const REJECT_AFTER_TIME: Duration = STEPS[2];
/// A keepalive that was due and not sent is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// A peer that was heard of so recently has a session, and needs no handshake from this end.
const RECENT: Duration = Duration::from_secs(10);
/// Packets that wait for a handshake, as many as in the Linux kernel. The protocol's own queue, which does not count
/// what it drops, has room for 256.
const QUEUE: usize = 128;
/// The least time between answers to initiations from the past, as between initiations.
const REKEY_TIMEOUT: Duration = Duration::from_secs(5);
/// A counter of a data message that no honest peer reaches (WireGuard paper, section 6.1).
const REJECT_AFTER_MESSAGES: u64 = u64::MAX - (1 << 13);
/// An empty data message: a keepalive.
const EMPTY: usize = 32;

/// The first byte of a message.
pub(crate) mod kind {
    pub(crate) const INITIATION: u8 = 1;
    pub(crate) const RESPONSE: u8 = 2;
    pub(crate) const DATA: u8 = 4;
}

pub(crate) struct Peer {
    config: PeerConfig,
    tunn: Tunn,
    endpoint: Option<SocketAddr>,
    /// Packets that wait for a handshake.
    queued: usize,
    /// When the timers were looked at, and when they are next.
    ticked: Instant,
    due: Option<Instant>,
    busy_until: Instant,
    /// When the last keepalive was sent that only time asked for.
    kept: Instant,
    /// When the present session began, if it is not over.
    session: Option<Instant>,
    last_handshake: Option<Instant>,
    /// When it last showed that it has a session.
    heard: Option<Instant>,
    /// When an initiation from the past was last answered.
    answered: Option<Instant>,
    pub(crate) rx_bytes: u64,
    tx_bytes: u64,
    tx_dropped: u64,
    pub(crate) rx_invalid: u64,
    pub(crate) rx_replayed: u64,
    pub(crate) rx_refused: u64,
}

/// A datagram was taken.
pub(crate) enum Received {
    /// Nothing came out of it.
    Nothing,
    /// It was no message of this peer, or one that was there before.
    Bad,
    /// The packet has its content; who sent it is still to be checked.
    Packet(IpAddr),
}

impl Peer {
    /// `index` has 24 bits and is no other peer's.
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

    /// When its timers are to be looked at.
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

    /// Sends a packet, or keeps it until there is a session, which it asks for.
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

    /// Takes a datagram that the gate let pass. What it carries is written to `packet`.
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
                // Who answered an initiation may send only once the initiator has.
                if bytes[0] == kind::RESPONSE {
                    self.flush(io);
                }
            }
            TunnResult::Done => {}
            TunnResult::Err(error) => return self.refuse(from, &error, io),
            // Only of data.
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
            tracing::debug!(peer = %self.config.public_key, endpoint = %from, "endpoint");
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
                // It was replayed, or the peer started again with a clock that was set back: its initiations count for
                // nothing until the clock has caught up. An initiation of this end does not depend on the peer's clock.
                // It is for where the datagram came from, even if another one is on its way to where the peer was; the
                // endpoint stays until it is answered.
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

    /// Sends what waited for a session.
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

    /// The protocol stamps what happens with the time of the last look, so that one has to precede what comes after a
    /// pause.
    fn tick_if_old<S: Datagrams>(&mut self, io: &mut Io<'_, S>) {
        if io.now.duration_since(self.ticked) >= TICK {
            self.tick(io);
        }
    }

    /// Looks at the timers: handshakes begin, are repeated and are given up after 90 s, sessions end, keepalives are
    /// sent.
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
        // With a keepalive the tunnel is to be there before there is a packet, and again when it was given up.
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

    /// An idle peer has none, or few, so that an idle process sleeps.
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
