//! Measurement of flows from the events of their hosts and from the packets that arrive at them, as
//! defined on [the crate's page](crate#figures).

use std::collections::BTreeMap;

use airtcp_types::{
    Crossing, Event, EventKind, ExtSeq, FlowId, Instant, NodeId, Observer, Packet, RangeSet,
    SeqRange,
};
use airtcp_wire::is_accepted;
use airtcp_wire::tcp::View;

use crate::Samples;
use crate::summary::Running;

/// The first server port. The range of server ports ends below the ephemeral ports of hosts.
pub(crate) const FIRST_PORT: u16 = 5001;
pub(crate) const PORTS: u16 = 27_000;

/// The maximum number of retransmissions of one direction that are not yet classified.
const MAX_PENDING: usize = 4096;

/// The counters of all flows.
#[derive(Debug)]
pub(crate) struct Measure {
    pub(crate) flows: Vec<Counts>,
    /// For each node, the flow whose server port is [`FIRST_PORT`]; `None` if the node is not a
    /// host.
    first_flows: Vec<Option<u32>>,
    /// The number of unclassified retransmissions of all flows: if it is zero, packets are not
    /// inspected.
    pending: usize,
    keep_samples: bool,
}

/// The counters of one flow.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments_sent: u64,
    pub(crate) retransmissions: u64,
    pub(crate) spurious: u64,
    pub(crate) timeouts: u64,
    pub(crate) lost: u64,
    pub(crate) reductions: u64,
    pub(crate) recoveries: Running,
    pub(crate) rtt: Running,
    pub(crate) samples: Samples,
    /// The key is the port of the end that opened the connection, and whether that end is the
    /// sender.
    halves: BTreeMap<(u16, bool), Half>,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Half {
    /// One past the highest sequence number sent.
    highest: ExtSeq,
    /// The start of the recovery, and the sequence number whose ACK ends it.
    recovery: Option<(Instant, ExtSeq)>,
    /// The received data.
    arrived: RangeSet,
    /// Retransmissions that may still prove to be spurious.
    pending: BTreeMap<ExtSeq, SeqRange>,
}

impl Measure {
    /// Creates the measurement. `first_flows` has for each host its first flow, whose server port
    /// is [`FIRST_PORT`].
    pub(crate) fn new(flows: usize, first_flows: Vec<Option<u32>>, keep_samples: bool) -> Self {
        let flows = std::iter::repeat_with(Counts::default).take(flows).collect();
        Self { flows, first_flows, pending: 0, keep_samples }
    }

    pub(crate) fn is_host(&self, node: NodeId) -> bool {
        self.first_flows.get(node.0 as usize).is_some_and(Option::is_some)
    }

    /// The flow at this node, the port of its caller, and whether this end is the caller.
    fn find(&self, node: NodeId, flow: &FlowId) -> Option<(usize, u16, bool)> {
        let first = (*self.first_flows.get(node.0 as usize)?)? as usize;
        let (local, remote) = (flow.local.port(), flow.remote.port());
        let server = |port: u16| Some(port.checked_sub(FIRST_PORT).filter(|n| *n < PORTS)?.into());
        let (number, caller, calls): (usize, _, _) = match server(remote) {
            Some(number) => (number, local, true),
            None => (server(local)?, remote, false),
        };
        (first + number < self.flows.len()).then_some((first + number, caller, calls))
    }

    fn on_retransmission_arrived(&mut self, node: NodeId, packet: &Packet) -> Option<()> {
        let segment = View::of(&packet.data)?;
        let flow = FlowId { local: segment.dst(), remote: segment.src() };
        let (index, port, calls) = self.find(node, &flow)?;
        let flow = &mut self.flows[index];
        let half = flow.halves.get_mut(&(port, !calls))?;
        let seq = half.highest.nearest(segment.fields().seq());
        let range = *half.pending.get(&seq)?;
        // Only a packet that would count is verified: the receiver drops a damaged one.
        if half.arrived.covers(range) && is_accepted(&packet.data) {
            half.pending.remove(&seq);
            self.pending -= 1;
            flow.spurious += 1;
        }
        Some(())
    }
}

impl Observer for Measure {
    fn on_packet(&mut self, _now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        if self.pending > 0 && crossing == Crossing::In && self.is_host(node) {
            self.on_retransmission_arrived(node, packet);
        }
    }

    fn on_event(&mut self, node: NodeId, event: &Event) {
        let Some((index, port, calls)) = event.flow.and_then(|flow| self.find(node, &flow)) else {
            return;
        };
        let keep = self.keep_samples;
        let counts = &mut self.flows[index];
        match &event.kind {
            EventKind::Sent { range, rule, .. } => {
                counts.segments_sent += 1;
                let half = counts.halves.entry((port, calls)).or_default();
                half.highest = half.highest.max(range.end);
                if rule.is_retransmission() {
                    counts.retransmissions += 1;
                    if half.arrived.covers(*range) {
                        counts.spurious += 1;
                    } else if half.pending.insert(range.start, *range).is_none() {
                        self.pending += 1;
                        if half.pending.len() > MAX_PENDING {
                            half.pending.pop_first();
                            self.pending -= 1;
                        }
                    }
                }
            }
            EventKind::Received { range, ack, .. } => {
                if !range.is_empty() {
                    let half = counts.halves.entry((port, !calls)).or_default();
                    half.arrived.insert(*range);
                }
                let Some(half) = counts.halves.get_mut(&(port, calls)) else { return };
                if let Some((began, _)) = half.recovery.take_if(|(_, point)| ack >= point) {
                    let took = event.at.since(began).as_secs_f64();
                    counts.recoveries.add(took);
                    if keep {
                        counts.samples.recoveries.push((began.as_secs_f64(), took));
                    }
                }
            }
            EventKind::Lost { .. } | EventKind::Timeout { .. } => {
                match event.kind {
                    EventKind::Lost { .. } => counts.lost += 1,
                    _ => counts.timeouts += 1,
                }
                if let Some(half) = counts.halves.get_mut(&(port, calls)) {
                    half.recovery.get_or_insert((event.at, half.highest));
                }
            }
            EventKind::Reduced { .. } => counts.reductions += 1,
            EventKind::Rtt { sample, .. } => {
                let sample = sample.as_secs_f64();
                counts.rtt.add(sample);
                if keep {
                    counts.samples.rtt.push((event.at.as_secs_f64(), sample));
                }
            }
            // Another connection may soon use the port.
            EventKind::State { to: "CLOSED", .. } if calls => {
                for calls in [false, true] {
                    let gone = counts.halves.remove(&(port, calls));
                    self.pending -= gone.map_or(0, |half| half.pending.len());
                }
            }
            _ => {}
        }
    }
}
