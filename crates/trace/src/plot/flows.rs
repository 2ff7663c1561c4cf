//! Assignment of packets to flows.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airtcp_types::{ByteCount, Instant, SeqNumber};

use crate::capture::Direction;
use crate::segment::Segment;

use super::Flow;
use super::inputs::Seen;

/// The maximum number of flows, so that a port scan does not exhaust the memory.
const MAX_FLOWS: usize = 100_000;

/// Finds the flows of a trace, with the same indices each time it is read.
#[derive(Default)]
pub(super) struct FlowTable {
    entries: Vec<Entry>,
    /// The latest flow from a sender to a receiver.
    current: BTreeMap<(SocketAddr, SocketAddr), usize>,
}

struct Entry {
    flow: Flow,
    /// The interface and direction at which the sender's packets are used.
    edge: Seen,
    isn: Option<SeqNumber>,
}

/// The flow whose data a packet carries, and the flow in the other direction that it
/// acknowledges.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Roles {
    pub(super) sends: Option<usize>,
    pub(super) acknowledges: Option<usize>,
}

impl FlowTable {
    pub(super) fn on_packet(&mut self, at: Instant, seen: Seen, segment: &Segment) -> Roles {
        let (from, to) = (segment.from, segment.to);
        let sends = self.sender(at, seen, segment);
        let acknowledges = self.current(to, from).filter(|&index| {
            let edge = self.entries[index].edge;
            edge.interface == seen.interface && edge.direction == opposite(seen.direction)
        });
        if let Some(index) = sends {
            let flow = &mut self.entries[index].flow;
            flow.bytes += ByteCount(u64::from(segment.len));
            flow.packets += 1;
        }
        for index in [sends, acknowledges].into_iter().flatten() {
            // Timestamps of several interfaces or processors may go backwards.
            let flow = &mut self.entries[index].flow;
            (flow.first, flow.last) = (flow.first.min(at), flow.last.max(at));
        }
        Roles { sends, acknowledges }
    }

    /// Returns the latest flow of data from one end to the other.
    pub(super) fn current(&self, sender: SocketAddr, receiver: SocketAddr) -> Option<usize> {
        self.current.get(&(sender, receiver)).copied()
    }

    fn sender(&mut self, at: Instant, seen: Seen, segment: &Segment) -> Option<usize> {
        let (from, to) = (segment.from, segment.to);
        let isn = segment.syn.then_some(segment.seq);
        let mut before = 0;
        if let Some(index) = self.current(from, to) {
            let entry = &self.entries[index];
            if entry.edge != seen {
                return None;
            }
            // A SYN with another sequence number starts a new connection.
            if isn.is_none() || entry.isn == isn {
                return Some(index);
            }
            before = entry.flow.before + 1;
        }
        let index = self.entries.len();
        if index == MAX_FLOWS {
            return None;
        }
        let (bytes, packets, first, last) = (ByteCount::ZERO, 0, at, at);
        let flow = Flow { sender: from, receiver: to, before, bytes, packets, first, last, index };
        self.entries.push(Entry { flow, edge: seen, isn });
        self.current.insert((from, to), index);
        Some(index)
    }

    /// Returns the flows that carried data, the one with the most first.
    pub(super) fn into_flows(self) -> Vec<Flow> {
        let flows = self.entries.into_iter().map(|entry| entry.flow);
        let mut flows: Vec<Flow> = flows.filter(|flow| flow.bytes > ByteCount::ZERO).collect();
        flows.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes), flow.index));
        flows
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::In => Direction::Out,
        Direction::Out => Direction::In,
        Direction::Unknown => Direction::Unknown,
    }
}
