//! One connection: passes calls, packets and the time to its parts, and exchanges their results.
//!
//! ```text
//! handshake.rs  SYN, SYN-ECHO, START, START-ECHO: the client's side
//! rtt.rs        round-trip times: measured, from a profile, reported by the peer
//! probing.rs    trains that measure the path's capacity
//! pacing.rs     the time of the next data packet
//! epochs.rs     the transmissions of a FEEDBACK's epoch, and its new counts
//! losses.rs     the losses that reduce the rate
//! liveness.rs   keep-alive, stalls, idle and progress time-outs
//! notices.rs    events for the application, and readiness
//! ```
//!
//! Only the code of a part accesses its fields. [`SendHalf`], [`ReceiveHalf`] and [`RateControl`]
//! are parts, too. `input.rs`, `output.rs` and `timers.rs` handle received packets, packets to
//! send, and deadlines.

mod epochs;
mod handshake;
mod input;
mod liveness;
mod losses;
mod notices;
mod output;
mod pacing;
mod probing;
mod rtt;
mod timers;

use std::net::SocketAddr;

use airtcp_types::{ByteCount, Instant, Rate};

use crate::config::{Config, NetworkKind, NetworkProfile};
use crate::cookie::Nonces;
use crate::counters::Counters;
use crate::error::{CallError, ConnectionError};
use crate::info::{Info, Phase};
use crate::pool::{FLOOR, Pool};
use crate::rate::RateControl;
use crate::receive::ReceiveHalf;
use crate::send::SendHalf;
use crate::wire::{Cookie, DATA_HEADER, Params};

use epochs::Epochs;
use handshake::Handshake;
use liveness::Liveness;
use losses::Losses;
use notices::{News, Notices};
use pacing::Pacing;
use probing::Probing;
use rtt::RoundTrip;

/// The codes of a CLOSE.
pub(crate) const CLOSE_ABORTED: u8 = 0;
pub(crate) const CLOSE_UNKNOWN: u8 = 1;
pub(crate) const CLOSE_REFUSED: u8 = 2;

/// The initial rate without a profile, until a train is measured: packets in a round-trip time.
const FIRST_RATE: f64 = 4.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Connecting(Handshake),
    Established,
    /// Everything was sent and received; the peer may not know it yet.
    Lingering(Instant),
    Closed(Option<ConnectionError>),
}

/// The endpoint's state that a connection uses.
pub(crate) struct Around<'a> {
    pub(crate) counters: &'a mut Counters,
    pub(crate) pool: &'a mut Pool,
}

#[derive(Clone, Debug)]
pub(crate) struct Connection {
    id: u64,
    remote: SocketAddr,
    config: Config,
    accepted_by: Option<u64>,
    state: State,
    owe_start_echo: bool,
    owe_close: Option<u8>,
    rtt: RoundTrip,
    packet_size: usize,
    send: SendHalf,
    receive: ReceiveHalf,
    rate: RateControl,
    probing: Probing,
    pacing: Pacing,
    epochs: Epochs,
    losses: Losses,
    liveness: Liveness,
    notices: Notices,
    /// The bytes that the endpoint has counted for this connection.
    counted: u64,
}

impl Connection {
    /// Opens a connection.
    pub(crate) fn open(
        now: Instant,
        id: (u64, Nonces),
        remote: SocketAddr,
        config: Config,
    ) -> Self {
        let handshake = Handshake::new(now, config.handshake_timeout);
        Self::new(now, id, remote, config, State::Connecting(handshake))
    }

    /// Accepts a connection by a START with a valid cookie.
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
            // The cookie contains the time at which it was sent.
            connection.rtt.on_handshake(now.since(Instant::from_nanos(cookie.made)));
        }
        connection.establish(now, params);
        connection
    }

    fn new(
        now: Instant,
        (id, nonces): (u64, Nonces),
        remote: SocketAddr,
        config: Config,
        state: State,
    ) -> Self {
        let packet_size = usize::from(config.packet_size());
        let payload = packet_size - DATA_HEADER;
        let window = config.window(config.packet_size());
        Self {
            id,
            remote,
            accepted_by: None,
            state,
            owe_start_echo: false,
            owe_close: None,
            rtt: RoundTrip::new(config.profile.round_trip_time),
            packet_size,
            send: SendHalf::new(payload, nonces),
            receive: ReceiveHalf::new(&config, payload, window),
            rate: RateControl::new(config.kind, 1.0, None, 1.0),
            probing: Probing::new(),
            pacing: Pacing::new(now),
            epochs: Epochs::default(),
            losses: Losses::new(config.profile.loss_rate),
            liveness: Liveness::new(now, &config),
            notices: Notices::default(),
            counted: 0,
            config,
        }
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
            self.probing.end();
        }
        self.state = State::Established;
        self.liveness.on_established(now);
    }

    /// The receive window announced at the start; it does not depend on the peer's parameters.
    fn window(&self) -> u64 {
        self.config.window(self.config.packet_size())
    }

    fn params(&self) -> Params {
        Params { packet_size: self.packet_size as u16, window: self.window() as u32 }
    }

    /// Handles a repeated START: the START-ECHO was lost.
    pub(crate) fn on_repeated_start(&mut self) {
        self.owe_start_echo = true;
    }

    /// The length of the IP and UDP headers in bytes.
    const fn overhead(&self) -> usize {
        if self.remote.is_ipv4() { 28 } else { 48 }
    }

    /// The key of the connection: the peer's address and the wire id.
    pub(crate) const fn key(&self) -> (SocketAddr, u64) {
        (self.remote, self.id)
    }

    /// The time of the cookie with which the connection was accepted; `None` if it was opened by
    /// this endpoint.
    pub(crate) const fn accepted_by(&self) -> Option<u64> {
        self.accepted_by
    }

    /// Limits the send rate of a profile that the peer requested.
    pub(crate) fn cap(&self, asked: NetworkProfile) -> NetworkProfile {
        let send_rate = asked.send_rate.map(|rate| rate.min(self.config.asked_rate_cap));
        NetworkProfile { send_rate, ..asked }
    }

    /// The length of a full packet with headers, in bits.
    fn packet_bits(&self) -> f64 {
        ((self.packet_size + self.overhead()) * 8) as f64
    }

    pub(crate) fn is_established(&self) -> bool {
        matches!(self.state, State::Established | State::Lingering(_))
    }

    /// Whether the application has released the connection.
    pub(crate) const fn is_orphaned(&self) -> bool {
        self.liveness.is_orphaned()
    }

    /// Whether the connection can be removed: closed, released, and with no CLOSE to send.
    pub(crate) fn is_over(&self) -> bool {
        let closed = matches!(self.state, State::Closed(_));
        closed && self.is_orphaned() && self.owe_close.is_none()
    }

    /// Returns the bytes held, as counted before and as of now.
    pub(crate) fn recount(&mut self) -> (u64, u64) {
        let now = self.receive.held() + self.send.cost() as u64;
        (std::mem::replace(&mut self.counted, now), now)
    }

    pub(crate) fn take_news(&mut self, pool: &Pool) -> News {
        let (capacity, send) = (self.send_capacity(), &self.send);
        // The free space that is worth waking a writer for.
        let mark = (capacity / 4).clamp(1, FLOOR as usize / 4);
        let is_writable = || send.room(capacity, pool) >= mark;
        self.notices.take(self.receive.is_readable(), is_writable)
    }

    /// Returns how much data can be written ahead: a few round trips' worth, so that a connection
    /// to a slow peer holds little.
    fn send_capacity(&self) -> usize {
        let trip = self.rate.rate() / 8.0 * self.rtt.of_sender().as_secs_f64();
        let most = self.config.send_buffer.as_usize();
        // At least one packet, regardless of the buffer size.
        (trip as usize).saturating_mul(4).max(4 * FLOOR as usize).min(most).max(self.packet_size)
    }

    fn error(&self) -> Result<(), CallError> {
        match self.state {
            State::Closed(Some(error)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn write(&mut self, data: &[u8], pool: &Pool) -> Result<usize, CallError> {
        self.error()?;
        if self.send.is_finished() {
            return Err(CallError::Finished);
        }
        let taken = self.send.write(data, self.send.room(self.send_capacity(), pool));
        if taken < data.len() {
            self.notices.on_write_refused();
        }
        Ok(taken)
    }

    pub(crate) fn finish(&mut self) -> Result<(), CallError> {
        self.error()?;
        self.send.finish();
        Ok(())
    }

    /// Reads into `out`; returns `None` if no data is available, and `Some(0)` at the end.
    pub(crate) fn read(
        &mut self,
        out: &mut [u8],
        pool: &mut Pool,
    ) -> Result<Option<usize>, CallError> {
        let count = self.receive.read(out, pool);
        if count > 0 || self.receive.is_at_end() {
            return Ok(Some(count));
        }
        self.notices.on_nothing_to_read();
        self.error()?;
        Ok(None)
    }

    /// Releases the connection. Data already written is still sent; unread data is lost, which
    /// aborts the connection.
    pub(crate) fn release(&mut self, now: Instant, pool: &mut Pool) {
        self.liveness.on_release(now);
        let unread = self.receive.is_readable() && !self.receive.is_at_end();
        match self.state {
            State::Connecting(_) if self.send.held() == 0 => {
                self.close(Some(ConnectionError::AbortedHere));
            }
            State::Established if unread => self.abort(),
            State::Connecting(_) | State::Established => self.send.finish(),
            State::Lingering(_) | State::Closed(_) => {}
        }
        self.receive.discard(pool);
    }

    /// Aborts the connection and notifies the peer.
    pub(crate) fn abort(&mut self) {
        if self.is_established() {
            self.owe_close = Some(CLOSE_ABORTED);
        }
        if !matches!(self.state, State::Closed(_)) {
            self.close(Some(ConnectionError::AbortedHere));
        }
    }

    /// Ends the connection with an error and notifies the peer.
    fn give_up(&mut self, error: ConnectionError) {
        self.owe_close = Some(CLOSE_ABORTED);
        self.close(Some(error));
    }

    fn close(&mut self, error: Option<ConnectionError>) {
        self.state = State::Closed(error);
        self.notices.on_closed(error);
        if error.is_some() {
            self.send.discard();
        }
    }

    pub(crate) fn reconfigure(&mut self, kind: NetworkKind, profile: NetworkProfile) {
        self.config.kind = kind;
        self.receive.reconfigure(kind);
        self.rtt.reconfigure(profile.round_trip_time);
        self.losses.reconfigure(profile.loss_rate);
        let seed = profile.send_rate.map(|rate| rate.bits_per_sec() as f64);
        self.rate.reconfigure(kind, seed);
        self.rate.limit(self.packet_bits());
        if seed.is_some() {
            self.probing.end();
            self.on_rate();
        }
        self.config.profile = profile;
    }

    /// Marks a new rate that is not based on feedback: earlier transmissions say nothing about it.
    fn on_rate(&mut self) {
        let next = self.send.next_transmission();
        self.epochs.on_rate(next);
        self.losses.start_recovery(next);
    }

    pub(crate) fn info(&self) -> Info {
        let rate = |bits: f64| Rate::from_bits_per_sec(bits as u64);
        let (least, most) = self.rate.bounds();
        let [received, congestive, wireless] = self.receive.totals();
        Info {
            phase: match self.state {
                State::Connecting(_) => Phase::Connecting,
                State::Established => Phase::Established,
                State::Lingering(_) => Phase::Lingering,
                State::Closed(_) => Phase::Closed,
            },
            remote: self.remote,
            kind: self.config.kind,
            packet_size: self.packet_size,
            round_trip_time: self.rtt.measured().srtt(),
            round_trip_variation: self.rtt.measured().rttvar(),
            least_round_trip_time: self.rtt.measured().min(),
            rate: rate(self.rate.rate()),
            rate_min: rate(least),
            rate_max: rate(most),
            characteristic_rate: self.rate.characteristic().map(rate),
            loss_rate: self.losses.loss_rate(),
            packets_sent: self.send.next_transmission() - 1,
            retransmissions: self.send.retransmissions(),
            packets_received: received,
            congestive_losses: congestive,
            wireless_losses: wireless,
            unacknowledged: ByteCount::from(self.send.bytes()),
            unread: ByteCount(self.receive.unread()),
            is_stalled: self.liveness.is_stalled(),
        }
    }
}
