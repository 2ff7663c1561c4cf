//! Observers of nodes.

use crate::{Event, Instant, Packet};

/// The number of a node in a trace: its index in the list of nodes that the trace starts with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// The direction in which a packet crosses the edge of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Crossing {
    /// The packet arrives at the node.
    In,
    /// The packet leaves the node.
    Out,
}

/// An observer of nodes, called in order of time.
///
/// The driver of a node reports packets and passes on the events of
/// [`Node::poll_event`](crate::Node::poll_event). An observer must not affect the run: results are
/// the same with and without it. The default methods do nothing.
pub trait Observer {
    /// Called when a packet arrives at a node or leaves it.
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        let _ = (now, node, crossing, packet);
    }

    /// Called for an event at a node.
    fn on_event(&mut self, node: NodeId, event: &Event) {
        let _ = (node, event);
    }
}

/// An observer that does nothing.
impl Observer for () {}

/// An observer that can be removed during a run.
impl<O: Observer> Observer for Option<O> {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_packet(now, node, crossing, packet);
        }
    }

    fn on_event(&mut self, node: NodeId, event: &Event) {
        if let Some(observer) = self {
            observer.on_event(node, event);
        }
    }
}
