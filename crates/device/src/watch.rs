//! A place in the real-time world from which an observer is shown things.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airtcp_types::{Crossing, Event, Instant, NodeId, Observer, Packet};
use airtcp_wire::each_segment;

/// An observer, and the node that is shown to it.
///
/// Several nodes may share an observer, from several threads. Each shows its own packets in the
/// order of time; between nodes the stamps tell, to within the length of a batch.
#[derive(Clone)]
pub struct Watch {
    observer: Arc<Mutex<dyn Observer + Send>>,
    node: NodeId,
}

impl Watch {
    /// Shows `node` to `observer`.
    pub fn new(observer: Arc<Mutex<dyn Observer + Send>>, node: NodeId) -> Self {
        Self { observer, node }
    }

    /// A packet crosses the node's edge. Of a super-segment the observer sees the segments.
    pub fn packet(&self, now: Instant, crossing: Crossing, packet: &Packet) {
        let mut observer = self.observer();
        each_segment(packet, |segment| observer.on_packet(now, self.node, crossing, segment));
    }

    /// Something happened at the node.
    pub fn event(&self, event: &Event) {
        self.observer().on_event(self.node, event);
    }

    fn observer(&self) -> MutexGuard<'_, dyn Observer + Send + 'static> {
        // A panic of an observer has been reported; the packets go on.
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("node", &self.node).finish_non_exhaustive()
    }
}
