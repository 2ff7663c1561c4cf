//! The connection of an observer to a node that runs in real time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airtcp_types::{Crossing, Event, Instant, NodeId, Observer, Packet};
use airtcp_wire::each_segment;

/// An observer, together with the node that it observes.
///
/// Several nodes may share an observer, also from several threads. Packets of one node are reported
/// in order of time; across nodes, timestamps give the order to within the duration of a batch.
#[derive(Clone)]
pub struct Watch {
    observer: Arc<Mutex<dyn Observer + Send>>,
    node: NodeId,
}

impl Watch {
    /// Connects `observer` to `node`.
    pub fn new(observer: Arc<Mutex<dyn Observer + Send>>, node: NodeId) -> Self {
        Self { observer, node }
    }

    /// Reports a packet that crosses the node's edge. A super-segment is reported as its segments.
    pub fn packet(&self, now: Instant, crossing: Crossing, packet: &Packet) {
        let mut observer = self.observer();
        each_segment(packet, |segment| observer.on_packet(now, self.node, crossing, segment));
    }

    /// Reports an event of the node.
    pub fn event(&self, event: &Event) {
        self.observer().on_event(self.node, event);
    }

    fn observer(&self) -> MutexGuard<'_, dyn Observer + Send + 'static> {
        // A panic of an observer has already been reported; packets continue to flow.
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("node", &self.node).finish_non_exhaustive()
    }
}
