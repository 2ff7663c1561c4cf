//! Those who watch.

use crate::{Event, Instant, Packet};

/// A node in a trace: its place in the list of nodes that the trace was begun with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// Which way a packet crosses the edge of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Crossing {
    /// It arrives.
    In,
    /// It leaves.
    Out,
}

/// Someone who watches nodes, and is shown everything in the order of time.
///
/// Who drives nodes shows packets and passes on what [`Node::poll_event`](crate::Node::poll_event)
/// gives. An observer changes nothing: a run with one is the run without. Both methods do nothing
/// unless written.
pub trait Observer {
    /// A packet arrives at a node or leaves it.
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        let _ = (now, node, crossing, packet);
    }

    /// Something happened at a node.
    fn on_event(&mut self, node: NodeId, event: &Event) {
        let _ = (node, event);
    }
}

/// Nobody watches.
impl Observer for () {}

/// One who may be taken away while those who show it things go on.
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
