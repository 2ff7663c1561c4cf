//! The interface between protocol logic and its drivers.

use crate::{Event, Instant, Packet};

/// A port of a node, which attaches it to the network; ports are numbered from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PortId(pub u16);

/// A state machine that processes packets: a host, a link, a router, a base station.
///
/// The caller supplies the time and calls the five methods in any order; a node never blocks,
/// sleeps or reads a clock. `now` never decreases between calls. After any `handle_*` call the
/// caller drains [`poll_transmit`](Node::poll_transmit) and reads
/// [`poll_timeout`](Node::poll_timeout) again.
pub trait Node {
    /// Processes a packet that arrived on `port`. Invalid packets are counted and dropped.
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet);

    /// Runs all timers that are due at `now` or before.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next packet to send, with the port it leaves by; `None` if there is none.
    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)>;

    /// Returns the next deadline, if there is one. It may be in the past.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns the next event for observers; `None` if there is none.
    fn poll_event(&mut self) -> Option<Event>;
}
