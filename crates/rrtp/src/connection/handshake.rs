//! SYN, SYN-ECHO, START, START-ECHO (thesis 3.2): a server keeps nothing before the START.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_types::Instant;

use super::{Connection, FIRST_RATE, Probe, State};
use crate::config::Config;
use crate::cookie::{self, Nonces};
use crate::rate::RateControl;
use crate::receive::ReceiveHalf;
use crate::wire::{Body, Cookie, DATA_HEADER, Params};

/// The first SYN is repeated after this, where no round-trip time is seeded.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LEAST_RETRY: Duration = Duration::from_millis(100);
const MOST_RETRY: Duration = Duration::from_secs(2);

impl Connection {
    /// One opened from here.
    pub(crate) fn open(
        now: Instant,
        id: (u64, Nonces),
        remote: SocketAddr,
        config: Config,
    ) -> Self {
        Self::new(now, id, remote, config, State::SynSent)
    }

    /// One that a START with a good cookie makes.
    pub(crate) fn accept(
        now: Instant,
        id: (u64, Nonces),
        remote: SocketAddr,
        config: Config,
        (cookie, attempt, params): (Cookie, u8, Params),
    ) -> Self {
        let mut connection = Self::new(now, id, remote, config, State::Established);
        connection.accepted_by = Some(cookie.made);
        connection.owe_start_echo = true;
        if attempt == 0 {
            // The cookie is also the time at which it was sent.
            connection.rtt.on_handshake(now.since(Instant::from_nanos(cookie.made)));
        }
        connection.establish(now, params);
        connection
    }

    fn establish(&mut self, now: Instant, params: Params) {
        self.packet_size = self.packet_size.min(usize::from(params.packet_size));
        let payload = self.packet_size - DATA_HEADER;
        self.send.set_payload(payload);
        self.send.open(params.window.into());
        self.receive = ReceiveHalf::new(&self.config, payload, self.window());
        let cap = self.config.rate_cap.bits_per_sec() as f64;
        let seed = self.config.profile.send_rate.map(|rate| rate.bits_per_sec() as f64);
        let guess = FIRST_RATE * self.packet_bits() / self.rtt.of_sender().as_secs_f64().max(1e-3);
        self.rate = RateControl::new(self.config.kind, cap, seed, guess);
        self.rate.limit(self.packet_bits());
        if !self.rate.is_guessed() {
            self.probe = Probe::Done;
        }
        self.state = State::Established;
        (self.heard, self.reported, self.spoke) = (now, now, now);
    }

    /// What the peer was told at first; it does not depend on what the peer said.
    fn window(&self) -> u64 {
        self.config.window(self.config.packet_size())
    }

    fn params(&self) -> Params {
        Params { packet_size: self.packet_size as u16, window: self.window() as u32 }
    }

    pub(super) fn on_syn_echo(&mut self, now: Instant, cookie: Cookie, echo: u32) -> bool {
        if self.state != State::SynSent {
            return false;
        }
        let trip = ((now.as_nanos() / 1_000) as u32).wrapping_sub(echo);
        self.rtt.on_handshake(Duration::from_micros(trip.into()));
        self.state = State::StartSent(cookie, now);
        (self.attempts, self.retry_at) = (0, now);
        true
    }

    pub(super) fn on_start_echo(&mut self, now: Instant, params: Params) -> bool {
        if !matches!(self.state, State::StartSent(..)) {
            return false;
        }
        self.establish(now, params);
        self.news.connected = true;
        true
    }

    /// The START came again: its answer was lost.
    pub(crate) fn on_repeated_start(&mut self) {
        self.owe_start_echo = true;
    }

    /// The packet of the handshake that is due.
    pub(super) fn poll_handshake(&mut self, now: Instant) -> Option<Body<'static>> {
        if self.retry_at > now {
            return None;
        }
        if let State::StartSent(_, came) = self.state {
            // Another cookie before this one expires.
            if now.since(came) > cookie::LIFETIME / 2 {
                (self.state, self.attempts) = (State::SynSent, 0);
            }
        }
        let attempt = self.attempts;
        let rtt = self.rtt.measured();
        let first = rtt.srtt().map_or(FIRST_RETRY, |_| rtt.rto().max(LEAST_RETRY));
        self.retry_at = now + (first * (1 << attempt.min(6))).min(MOST_RETRY.max(first));
        self.attempts = attempt.saturating_add(1);
        match self.state {
            State::SynSent => Some(Body::Syn { sent: (now.as_nanos() / 1_000) as u32 }),
            State::StartSent(cookie, _) => {
                Some(Body::Start { cookie, attempt, params: self.params() })
            }
            _ => None,
        }
    }

    pub(super) fn poll_start_echo(&mut self) -> Option<Body<'static>> {
        std::mem::take(&mut self.owe_start_echo).then(|| Body::StartEcho { params: self.params() })
    }
}
