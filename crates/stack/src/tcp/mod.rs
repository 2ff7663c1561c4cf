//! One TCP connection (RFC 9293) as a pure state machine.
//!
//! The inputs are segments, calls of the application and the current time; the outputs are packets,
//! readiness and the next deadline. A [`Connection`] knows neither ports nor listeners: the
//! [`Host`](crate::Host) finds it by its 4-tuple.
//!
//! ```text
//! on_segment     arrival.rs          RFC 9293 section 3.10.7, in the RFC's order: PAWS, sequence
//!                                    numbers, RST ... FIN
//!                handshake/          three-way handshake, negotiation of options; cookie.rs: SYN
//!                                    cookies; deferral.rs: deferred accept
//!                receive/            the receive window; reassembly.rs, buffer.rs; growth.rs:
//!                                    autotuning; ack_policy.rs: when to acknowledge; withhold.rs:
//!                                    withholding of duplicate ACKs behind a base station
//!                ecn/                feedback of ECN marks
//!                extensions/         negotiated header checksums (HACK) and transmission numbers
//!                refused.rs          counts and logs rejected segments
//!                acknowledgement.rs  ACKs, for airtcp_recovery::Sender and send/; send/hold.rs:
//!                                    data that is held back
//! on_corrupted   extensions/hack.rs  segments with an intact header and corrupted data
//! poll_transmit  transmit.rs         RST, SYN, special ACKs, ACKs, data, probes, in this order;
//!                                    queues ACKs
//! on_timeout     timers/             all deadlines; keep_alive.rs: keep-alive probes
//! on_path_mtu    path/               path MTU discovery and black-hole detection
//! send, ...      write.rs            writes, and the options that control when data is sent
//! path_news      sharing.rs          path measurements for other connections to the peer
//! set_*          option.rs           socket options; switch.rs: replaces the sender's strategies
//! close, ...     close/              FIN, RST, TIME-WAIT; time_wait.rs: compact TIME-WAIT state
//! ```
//!
//! Not implemented, because nothing needs it yet: the urgent pointer (urgent data is ordinary data,
//! RFC 6093), Fast Open.

mod acknowledgement;
mod arrival;
mod challenge;
mod close;
mod config;
mod ecn;
mod error;
mod extensions;
mod handshake;
mod info;
mod option;
mod outlet;
mod path;
mod receive;
pub(crate) mod refused;
mod send;
mod sharing;
mod state;
mod switch;
mod timers;
mod timestamps;
mod transmit;
mod write;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_recovery::{Sender, WireNeeds};
use airtcp_types::{ByteCount, EventKind, FlowId, Instant, SeqNumber};
pub use airtcp_wire::options::HackForm;

pub(crate) use close::time_wait;
pub use config::TcpConfig;
pub use ecn::{EcnMode, EcnModeError};
pub use error::{TcpError, Unreachable};
pub use extensions::Offer;
pub(crate) use handshake::cookie;
pub use info::{AccEcnInfo, Info};
pub use option::SocketOption;
pub use outlet::Outlet;
pub use receive::{Chunk, MarkAware};
pub use state::State;
pub use switch::SwitchError;
pub use timers::KeepAlive;

use challenge::Challenge;
use close::Closing;
use ecn::Ecn;
use extensions::Extensions;
use handshake::Handshake;
use info::Tally;
use path::PathMtu;
use receive::{AckPolicy, Receiver, Withholding};
pub(crate) use send::LEAST;
use send::SendHalf;
pub(crate) use sharing::PathNews;
use sharing::Sharing;
use timers::Watch;
use timestamps::Timestamps;

/// The length of the timestamps option with its padding, which every segment carries (bytes, RFC
/// 7323).
const TIMESTAMPS_LEN: u16 = 12;
/// Unsent data up to this amount is not part of a long transfer.
const LITTLE: ByteCount = ByteCount::from_kib(3);
/// The maximum number of queued events, for an observer that does not poll them.
const MAX_EVENTS: usize = 4096;

/// One TCP connection.
///
/// The caller supplies the time, which must never go backwards. After any call it takes packets
/// with [`poll_transmit`](Self::poll_transmit) until that returns `None`, and then asks
/// [`poll_timeout`](Self::poll_timeout) for the next deadline.
#[derive(Debug)]
pub struct Connection {
    flow: FlowId,
    state: State,
    /// The maximum time for which sent data may stay unacknowledged, or data may wait for a closed
    /// window.
    user_timeout: Option<Duration>,
    /// The TTL or hop limit.
    hop_limit: u8,
    path: PathMtu,
    /// `None` from ESTABLISHED on.
    handshake: Option<Box<Handshake>>,
    timestamps: Option<Timestamps>,
    sack: bool,
    /// `None` unless an extension was negotiated.
    extensions: Option<Box<Extensions>>,
    ecn: Ecn,
    receive: Receiver,
    /// `None` unless enabled.
    withholding: Option<Box<Withholding>>,
    acks: AckPolicy,
    send: SendHalf,
    /// `None` unless enabled.
    keep_alive: Option<Box<Watch>>,
    challenge: Challenge,
    /// Whether the host's limit allows another challenge ACK.
    may_challenge: bool,
    /// A RST to send.
    reset: Option<transmit::Reset>,
    closing: Closing,
    /// Events for an observer; `None` unless enabled.
    #[expect(clippy::box_collection, reason = "an idle connection has none, and is to be small")]
    events: Option<Box<VecDeque<EventKind>>>,
    tally: Tally,
    /// `None` unless enabled.
    sharing: Option<Box<Sharing>>,
    /// The details at the time when the sender was dropped.
    last_info: Option<Box<Info>>,
}

/// The readiness of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Readiness {
    /// [`Connection::recv`] returns bytes, the end of the stream, or an error.
    pub readable: bool,
    /// [`Connection::send`] accepts a substantial amount, or returns an error.
    pub writable: bool,
    /// The handshake was completed.
    pub connected: bool,
    /// The connection has ended: no packets follow those that are due now.
    pub closed: bool,
}

impl Connection {
    /// Returns the next event, if [`TcpConfig::events`] is on.
    pub fn poll_event(&mut self) -> Option<EventKind> {
        self.events.as_mut()?.pop_front()
    }

    /// Copies received data to `buf` and returns the number of bytes; 0 after the peer's FIN.
    ///
    /// # Errors
    ///
    /// [`TcpError::WouldBlock`] if no data is available; otherwise the reason why the connection
    /// ended. Data that arrived before the end is returned first.
    pub fn recv(&mut self, now: Instant, buf: &mut [u8]) -> Result<usize, TcpError> {
        self.read(|receive| receive.read(now, buf))
    }

    /// Receives as [`recv`](Self::recv), but without a copy: `chunk` becomes the next contiguous
    /// bytes, at most 64 KiB.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    pub fn recv_chunk(&mut self, now: Instant, chunk: &mut Chunk) -> Result<usize, TcpError> {
        let read = self.read(|receive| receive.take(now, chunk))?;
        if read == 0 {
            *chunk = Chunk::default();
        }
        Ok(read)
    }

    fn read(&mut self, take: impl FnOnce(&mut Receiver) -> usize) -> Result<usize, TcpError> {
        if self.receive.readable() > ByteCount::ZERO {
            let n = take(&mut self.receive);
            // If an ACK is already due, it carries the new window.
            let speaks = self.state.takes_data() && !self.has_ack_due();
            if speaks && self.receive.wants_update() {
                self.schedule_ack(None);
            }
            return Ok(n);
        }
        self.nothing_to_read()
    }

    /// Peeks: as [`recv`](Self::recv), but the data stays in the buffer.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    pub fn peek(&self, buf: &mut [u8]) -> Result<usize, TcpError> {
        match self.receive.readable() {
            ByteCount::ZERO => self.nothing_to_read(),
            _ => Ok(self.receive.peek(buf)),
        }
    }

    fn nothing_to_read(&self) -> Result<usize, TcpError> {
        match self.closing.error() {
            Some(error) => Err(error),
            None if self.receive.is_finished() || self.state == State::Closed => Ok(0),
            None => Err(TcpError::WouldBlock),
        }
    }

    /// Whether `seq` was sent and is not acknowledged yet. An ICMP error that quotes any other
    /// number must be ignored (RFC 5927 section 4.1).
    pub fn is_outstanding(&self, seq: SeqNumber) -> bool {
        let (una, nxt) = match self.handshake {
            Some(_) => (self.send.first() - 1, self.send.first()),
            None => (self.send.una(), self.send.nxt()),
        };
        self.state != State::Closed && (una..nxt).contains(&una.nearest(seq))
    }

    /// Handles an ICMP error about a segment of this connection that
    /// [`is_outstanding`](Self::is_outstanding).
    ///
    /// During the handshake a hard error ends the connection, and with
    /// [`TcpConfig::unreachable_ends_attempt`] a soft one, too. Any other error is only stored: it
    /// becomes the reason if the connection times out (RFC 5461).
    pub fn on_unreachable(&mut self, now: Instant, error: Unreachable) {
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_ended_by(error)) {
            self.fail(
                now,
                match error {
                    Unreachable::Port => TcpError::Refused,
                    other => TcpError::Unreachable(other),
                },
            );
        } else {
            self.closing.on_soft_error(error);
        }
    }

    /// Enables quick ACKs: for a while ACKs are sent at once, and a delayed ACK is sent now.
    /// Disabled, ACKs wait for data on which they can be piggybacked (`TCP_QUICKACK`). As in Linux,
    /// neither is permanent: the usual rules change the mode again.
    pub fn set_quick_ack(&mut self, on: bool) {
        self.acks.set_quick(on);
        if on && self.acks.timer().is_some() {
            self.schedule_ack(None);
        }
    }

    /// Whether quick ACKs are on: ACKs do not wait for data to be piggybacked on.
    pub const fn quick_ack(&self) -> bool {
        self.acks.is_set_quick()
    }

    /// Sets the user timeout: how long sent data may stay unacknowledged, or data may wait for a
    /// closed window. With `None` the usual number of time-outs applies.
    pub fn set_user_timeout(&mut self, limit: Option<Duration>) {
        self.user_timeout = limit;
    }

    /// Sets the TTL or hop limit.
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.hop_limit = hop_limit;
    }

    /// The TTL or hop limit.
    pub const fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Sets whether the host is short of memory. If it is, the send buffer accepts 1 KiB and the
    /// receive buffer three segments. A window that was already offered stays offered, but data in
    /// it beyond the three segments is dropped.
    pub fn set_memory_pressure(&mut self, pressure: bool) {
        self.receive.hold_back(pressure);
        self.send.hold_back(pressure);
    }

    /// Sets whether the host may send another challenge ACK now (RFC 5961 section 7).
    pub fn set_may_challenge(&mut self, may: bool) {
        self.may_challenge = may;
    }

    /// Sets the amount of out-of-order data that the host can still store.
    pub fn set_out_of_order_room(&mut self, room: ByteCount) {
        self.receive.set_out_of_order_room(room);
    }

    /// The memory of its out-of-order data, including the overhead.
    pub fn out_of_order(&self) -> ByteCount {
        self.receive.out_of_order()
    }

    /// Whether its unsent data fits in about two segments (3 KiB).
    pub fn has_little_to_send(&self) -> bool {
        self.send.end().since(self.send.nxt()) <= LITTLE
    }

    /// The buffered bytes in both directions.
    pub fn held(&self) -> ByteCount {
        self.receive.held() + self.send.buffer().len()
    }

    /// The received bytes that were not read, in order or not.
    pub fn unread(&self) -> ByteCount {
        self.receive.held()
    }

    /// The received payload bytes, each counted once: [`Info::bytes_received`] without a snapshot,
    /// which walks all segments in flight.
    pub const fn bytes_received(&self) -> ByteCount {
        self.tally.bytes_received()
    }

    /// The readiness of the connection.
    pub fn readiness(&self) -> Readiness {
        let over = self.closing.error().is_some() || self.state == State::Closed;
        let connected = self.handshake.is_none() && self.tally.is_established();
        let room = self.send.is_writable() || self.send.is_shut_down();
        Readiness {
            readable: self.is_readable(),
            writable: over || (connected && room),
            connected,
            closed: self.state == State::Closed,
        }
    }

    /// As [`Readiness::readable`].
    pub(crate) fn is_readable(&self) -> bool {
        self.receive.readable() > ByteCount::ZERO
            || self.receive.is_finished()
            || self.closing.error().is_some()
            || self.state == State::Closed
    }

    /// The reason why the connection ended; `None` if it has not ended, or ended by both FINs.
    pub const fn error(&self) -> Option<TcpError> {
        self.closing.error()
    }

    /// The state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The local and remote address.
    pub const fn flow(&self) -> FlowId {
        self.flow
    }

    /// SND.NXT.
    pub fn snd_nxt(&self) -> SeqNumber {
        self.send.nxt().wire()
    }

    /// A read-only view of the sender; `None` before the connection is established.
    pub fn sender(&self) -> Option<&Sender> {
        self.send.sender()
    }

    /// The negotiated options; during the handshake, the offered ones.
    ///
    /// A connection with HACK or transmission numbers never sends super-segments: one option would
    /// be copied to all their segments.
    pub fn granted(&self) -> WireNeeds {
        let extensions = self.extensions.as_ref().map_or(WireNeeds::NONE, |e| e.granted());
        extensions.union(WireNeeds {
            sack: self.sack,
            timestamps: self.timestamps.is_some(),
            ecn: self.ecn.is_on(),
            ..WireNeeds::NONE
        })
    }

    fn set_state(&mut self, to: State) {
        let from = std::mem::replace(&mut self.state, to);
        if from != to {
            self.record(|| EventKind::State { from: from.name(), to: to.name() });
        }
    }

    /// Appends the sender's events to the queue, after the earlier events of the connection.
    fn collect_events(&mut self) {
        let Some(events) = &mut self.events else { return };
        while let Some(event) = self.send.poll_event() {
            if events.len() < MAX_EVENTS {
                events.push_back(event);
            }
        }
    }

    fn record(&mut self, event: impl FnOnce() -> EventKind) {
        if let Some(events) = self.events.as_mut().filter(|events| events.len() < MAX_EVENTS) {
            events.push_back(event());
        }
    }
}
