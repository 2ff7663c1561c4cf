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
    use std::net::SocketAddr;
    use std::time::Duration;

    use airtcp_types::{ByteCount, ExtSeq, FlowId, SeqNumber, SeqRange};
    use airtcp_wire::tcp::{Header, emit};

    use super::*;

    #[test]
    fn what_is_neither_processed_nor_a_copy_was_refused() {
        let (receiver, room) = (NodeId(1), Room::new(Duration::ZERO));
        let (arrived, processed) = (None, BTreeSet::new());
        let mut watch = Watch { room, receiver: Some(receiver), arrived, processed, refused: 0 };
        // The second arrival of 100 is a copy; the first of 200 is refused.
        for (seq, is_processed) in
            [(100, true), (100, false), (200, false), (200, true), (300, true)]
        {
            let end: SocketAddr = "10.0.0.1:7".parse().unwrap();
            let header = Header { seq: SeqNumber(seq), ..Header::default() };
            let packet = emit(&FlowId { local: end, remote: end }, 64, &header, &[7; 100]);
            watch.on_packet(Instant::ZERO, receiver, Crossing::In, &packet);
            let start = ExtSeq(u64::from(seq));
            let range = SeqRange::new(start, start + ByteCount(100));
            let kind = EventKind::Received { range, ack: start, window: ByteCount(1_000) };
            if is_processed {
                watch.on_event(receiver, &Event { at: Instant::ZERO, flow: None, kind });
            }
        }
        assert_eq!(watch.refused, 1);
    }
}
