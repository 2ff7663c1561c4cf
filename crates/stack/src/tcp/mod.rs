//! One TCP connection (RFC 9293) as a pure state machine.
//!
//! Segments, calls of the application and the passing of time go in; packets, readiness and a next
//! deadline come out. A [`Connection`] knows no port table and no listener: the
//! [`Host`](crate::Host) finds it by its 4-tuple.
//!
//! ```text
//! on_segment     arrival.rs        RFC 9293 section 3.10.7, in its order: PAWS, sequence, RST ... FIN
//!                handshake/        the three-way handshake and what it negotiates; cookie.rs, without state;
//!                                  deferral.rs, until there is data
//!                receive/          windows and order; reassembly.rs, buffer.rs, growth.rs; ack_policy.rs, when to
//!                                  acknowledge; withhold.rs, when not to, behind a base station
//!                ecn/              that packets were marked
//!                extensions/       header checksums (HACK) and transmission numbers, where agreed on
//!                refused.rs        what is counted and told of segments that are refused
//!                acknowledgement.rs, send/, airtcp_recovery::Sender; hold.rs, what the application holds back
//! on_corrupted   extensions/       hack.rs: a segment of which only the header is good
//! poll_transmit  transmit.rs       RST, SYN, special ACKs, ACKs, data, probes: in that order; ACKs are queued there, too
//! on_timeout     timers/           every deadline; keep_alive.rs, whether a silent peer is still there
//! on_path_mtu    path/             segments that are too large for the path
//! send, ...      write.rs          what the application writes, and when that leaves
//! path_news      sharing.rs        what it learns of the path, for other connections to the peer
//! set_*          option.rs         what an application may set; switch.rs, other strategies for the sender
//! close, ...     close/            FIN, RST, TIME-WAIT; time_wait.rs, what is left when nobody holds it
//! ```
//!
//! Not here, because nothing needs it yet: the urgent pointer (urgent data is data, RFC 6093), Fast Open.

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

/// The timestamps option with its padding takes so many bytes from every segment (RFC 7323).
const TIMESTAMPS_LEN: u16 = 12;
/// What an answer has that is not part of a long transfer.
const LITTLE: ByteCount = ByteCount::from_kib(3);
/// Events kept for an observer that does not come.
const MAX_EVENTS: usize = 4096;

/// One TCP connection.
///
/// The caller hands in the time, which never runs backwards, and after any call takes packets with
/// [`poll_transmit`](Self::poll_transmit) until there is none, then asks
/// [`poll_timeout`](Self::poll_timeout) anew.
#[derive(Debug)]
pub struct Connection {
    flow: FlowId,
    state: State,
    /// How long sent data may go unacknowledged, or data wait for a closed window.
    user_timeout: Option<Duration>,
    /// The TTL or hop limit.
    hop_limit: u8,
    path: PathMtu,
    /// Only until ESTABLISHED.
    handshake: Option<Box<Handshake>>,
    timestamps: Option<Timestamps>,
    sack: bool,
    /// Only where something was agreed on.
    extensions: Option<Box<Extensions>>,
    ecn: Ecn,
    receive: Receiver,
    /// Only where asked for.
    withholding: Option<Box<Withholding>>,
    acks: AckPolicy,
    send: SendHalf,
    /// Only where asked for.
    keep_alive: Option<Box<Watch>>,
    challenge: Challenge,
    /// All connections of the host together may send one more challenge ACK.
    may_challenge: bool,
    /// A RST is to leave.
    reset: Option<transmit::Reset>,
    closing: Closing,
    /// For an observer, if one is wanted.
    #[expect(clippy::box_collection, reason = "an idle connection has none, and is to be small")]
    events: Option<Box<VecDeque<EventKind>>>,
    tally: Tally,
    /// Only where asked for.
    sharing: Option<Box<Sharing>>,
    /// How it stood when there was nothing left to send.
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
    /// The connection has ended: nothing follows the last packets.
    pub closed: bool,
}

impl Connection {
    /// The next event, if [`TcpConfig::events`] is on.
    pub fn poll_event(&mut self) -> Option<EventKind> {
        self.events.as_mut()?.pop_front()
    }

    /// Copies received data to `buf`, and returns its length; 0 after the peer's FIN.
    ///
    /// # Errors
    ///
    /// [`TcpError::WouldBlock`] if nothing is there; else why the connection ended. What arrived
    /// before it ended is given first.
    pub fn recv(&mut self, now: Instant, buf: &mut [u8]) -> Result<usize, TcpError> {
        self.read(|receive| receive.read(now, buf))
    }

    /// As [`recv`](Self::recv), but without a copy: `chunk` becomes the part that lies in one place, 64 KiB at most.
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
            // An ACK that is due anyway will tell of it.
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

    /// Whether something sent with the number `seq` is not acknowledged yet. An ICMP error that quotes another number
    /// is not to be believed (RFC 5927 section 4.1).
    pub fn is_outstanding(&self, seq: SeqNumber) -> bool {
        let (una, nxt) = match self.handshake {
            Some(_) => (self.send.first() - 1, self.send.first()),
            None => (self.send.una(), self.send.nxt()),
        };
        self.state != State::Closed && (una..nxt).contains(&una.nearest(seq))
    }

    /// Takes an ICMP error about a segment of this connection that [`is_outstanding`](Self::is_outstanding).
    ///
    /// Before the handshake is done a hard error ends the connection. Later, and a soft one always, unless
    /// [`TcpConfig::unreachable_ends_attempt`] says otherwise, it is only remembered: it names the reason should the
    /// connection time out (RFC 5461).
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

    /// Acknowledges at once for a while, and what waits to be acknowledged now; or lets ACKs wait for data that they can
    /// ride on (`TCP_QUICKACK`). As in Linux neither is for good: the usual rules go on from there.
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

    /// Sets how long sent data may go unacknowledged, or data wait for a closed window; `None` for the usual number of
    /// time-outs.
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

    /// Tells whether the host is short of memory: the send buffer then takes one KiB, and the receive buffer three
    /// segments. A window already offered stays offered, but data in it beyond them is dropped.
    pub fn set_memory_pressure(&mut self, pressure: bool) {
        self.receive.hold_back(pressure);
        self.send.hold_back(pressure);
    }

    /// Sets whether the host may send another challenge ACK now (RFC 5961 section 7).
    pub fn set_may_challenge(&mut self, may: bool) {
        self.may_challenge = may;
    }

    /// Sets how much more out-of-order data the host can store.
    pub fn set_out_of_order_room(&mut self, room: ByteCount) {
        self.receive.set_out_of_order_room(room);
    }

    /// Memory of its out-of-order data, including the overhead.
    pub fn out_of_order(&self) -> ByteCount {
        self.receive.out_of_order()
    }

    /// Whether its unsent data fits one or two segments.
    pub fn has_little_to_send(&self) -> bool {
        self.send.end().since(self.send.nxt()) <= LITTLE
    }

    /// Buffered bytes in both directions.
    pub fn held(&self) -> ByteCount {
        self.receive.held() + self.send.buffer().len()
    }

    /// Received bytes that were not read, in order or not.
    pub fn unread(&self) -> ByteCount {
        self.receive.held()
    }

    /// Its readiness.
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

    /// The reason why it ended, if not by both FINs.
    pub const fn error(&self) -> Option<TcpError> {
        self.closing.error()
    }

    /// Its state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Its local and remote address.
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
    /// A connection with HACK or transmission numbers never hands down super-segments: one option
    /// would stand in all their segments.
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

    /// Queues what the sender has to tell behind what happened before it.
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
