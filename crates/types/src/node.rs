//! The seam between protocol logic and everything that drives it.

use crate::{Event, Instant, Packet};

/// One of a node's attachments to the network, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PortId(pub u16);

/// A state machine that packets go through: a host, a link, a router, a base station.
///
/// The caller owns time and calls these five verbs, in any order; a node never blocks, sleeps or
/// looks at a clock. `now` never runs backwards between calls. After any `handle_*` call the caller
/// drains [`poll_transmit`](Node::poll_transmit) and asks [`poll_timeout`](Node::poll_timeout)
/// anew.
pub trait Node {
    /// Takes a packet that arrived on `port`. What cannot be understood is counted and dropped.
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet);

    /// Takes the passing of time: everything due at `now` or before is worked.
    fn handle_timeout(&mut self, now: Instant);

    /// Gives the next packet to send, and the port it leaves by, until there is none.
    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)>;

    /// Gives the next deadline, if there is one. It may lie in the past.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Gives the next thing an observer may want to know, until there is none.
    fn poll_event(&mut self) -> Option<Event>;
}
