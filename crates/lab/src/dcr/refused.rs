//! Counts the segments that a receiver refuses although it lacks their data.

use std::collections::BTreeSet;

use airtcp_sim::Simulation;
use airtcp_types::{Crossing, Event, EventKind, Instant, NodeId, Observer, Packet};
use airtcp_wire::tcp::View;

use super::delivery::hosts;
use super::room::Room;

/// Watches the only flow of a dumbbell. A segment that arrives is processed before the next one. If
/// it is not, and its data never was, PAWS (RFC 7323 section 5.3) refused it: nothing else refuses
/// data that is missing and in the window.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) room: Room,
    receiver: Option<NodeId>,
    /// The first sequence number of the last segment that arrived, until it is processed.
    arrived: Option<u32>,
    processed: BTreeSet<u32>,
    pub(super) refused: u64,
}

impl Watch {
    pub(super) fn new(room: Room, dumbbell: &Simulation<'_>) -> Self {
        let receiver = hosts(dumbbell, "right-").into_keys().next();
        Self { room, receiver, arrived: None, processed: BTreeSet::new(), refused: 0 }
    }
}

impl Observer for Watch {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        self.room.on_packet(now, node, crossing, packet);
        if self.receiver != Some(node) || crossing != Crossing::In {
            return;
        }
        let Some(segment) = View::of(&packet.data).filter(|segment| segment.data_len() > 0) else {
            return;
        };
        let before = self.arrived.replace(segment.fields().seq().0);
        let is_missing = before.is_some_and(|seq| !self.processed.contains(&seq));
        self.refused += u64::from(is_missing);
    }

    fn on_event(&mut self, node: NodeId, event: &Event) {
        self.room.on_event(node, event);
        if let EventKind::Received { range, .. } = event.kind
            && self.receiver == Some(node)
            && !range.is_empty()
        {
            self.processed.extend(self.arrived.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use airtcp_recovery::Profile;
    use airtcp_sim::{FlowSpec, Scenario, Topology, Wire};

    use super::super::flow;
    use super::*;
    use crate::{feed, simulate};

    #[test]
    fn late_segments_are_refused_because_of_their_timestamps_only() {
        let refused = |timestamps| {
            let forth = "rate 8mbit delay 50ms limit 50 delayed 30% 25ms 8ms";
            let bottleneck = feed::wire(forth, "rate 8mbit delay 50ms limit 50").unwrap();
            let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
            let flow = FlowSpec { timestamps, ..flow("sack/reno", &Profile::paper()) };
            let (duration, flows) = (Duration::from_secs(10), vec![flow]);
            let scenario = Scenario { duration, flows, ..Scenario::new("late", topology) };
            let watch = |dumbbell: &Simulation<'_>| Watch::new(Room::new(Duration::ZERO), dumbbell);
            let (result, watched) = simulate::once_watched(scenario, 1, watch).unwrap();
            assert!(result.flows[0].spurious > 0);
            watched.refused
        };
        assert_eq!(refused(false), 0);
        assert!(refused(true) > 0);
    }
}
