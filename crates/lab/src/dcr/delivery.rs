//! Measures when data reaches the receivers of a dumbbell.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_sim::Simulation;
use airtcp_trace::figure::{Series, Style};
use airtcp_types::{Crossing, Event, EventKind, ExtSeq, Instant, NodeId, Observer, Packet};
use airtcp_wire::tcp::View;

use crate::draw;

/// Returns the hosts of one side of a dumbbell, with the index of each one's flow in the results.
pub(super) fn hosts(dumbbell: &Simulation<'_>, side: &str) -> BTreeMap<NodeId, usize> {
    let number = |name: &str| name.strip_prefix(side)?.parse::<usize>().ok()?.checked_sub(1);
    let host = |(id, (name, _)): (u32, &(String, _))| Some((NodeId(id), number(name)?));
    (0..).zip(dumbbell.nodes()).filter_map(host).collect()
}

/// Measures the time from the first transmission of every segment until it arrives.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    senders: BTreeMap<NodeId, usize>,
    receivers: BTreeMap<NodeId, usize>,
    /// In the order of the results.
    pub(super) flows: Vec<Segments>,
}

/// The segments of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    highest: ExtSeq,
    /// The time of the first transmission, and whether the segment was retransmitted.
    under_way: BTreeMap<ExtSeq, (Instant, bool)>,
    /// In the order of arrival.
    pub(super) delivered: Vec<Delivered>,
}

/// A segment that arrived.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Delivered {
    /// In seconds.
    pub(super) at: f64,
    pub(super) took: f64,
    /// Whether it was retransmitted before it arrived.
    pub(super) is_again: bool,
}

impl Delivery {
    pub(super) fn new(dumbbell: &Simulation<'_>) -> Self {
        let (senders, receivers) = (hosts(dumbbell, "left-"), hosts(dumbbell, "right-"));
        let flows = vec![Segments::default(); senders.len()];
        Self { senders, receivers, flows }
    }
}

impl Observer for Delivery {
    fn on_event(&mut self, node: NodeId, event: &Event) {
        match event.kind {
            EventKind::Sent { range, .. } => {
                let Some(flow) = self.senders.get(&node) else { return };
                let flow = &mut self.flows[*flow];
                if range.end > flow.highest {
                    flow.highest = range.end;
                    flow.under_way.insert(range.start, (event.at, false));
                } else if let Some((_, is_again)) = flow.under_way.get_mut(&range.start) {
                    *is_again = true;
                }
            }
            EventKind::Received { range, .. } if !range.is_empty() => {
                let Some(flow) = self.receivers.get(&node) else { return };
                let flow = &mut self.flows[*flow];
                while let Some((start, _)) = flow.under_way.range(range.start..range.end).next() {
                    let start = *start;
                    let Some((left, is_again)) = flow.under_way.remove(&start) else { return };
                    let took = event.at.since(left).as_secs_f64();
                    let at = event.at.since(Instant::ZERO).as_secs_f64();
                    flow.delivered.push(Delivered { at, took, is_again });
                }
            }
            _ => {}
        }
    }
}

/// The payload that arrives in each interval: of the first flows, and of all others.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    receivers: BTreeMap<NodeId, usize>,
    first: usize,
    stretch: Duration,
    /// The bytes of the first flows and of the others.
    stretches: Vec<[u64; 2]>,
}

impl Arrivals {
    pub(super) fn new(dumbbell: &Simulation<'_>, first: usize, stretch: Duration) -> Self {
        let receivers = hosts(dumbbell, "right-");
        Self { receivers, first, stretch, stretches: Vec::new() }
    }

    /// Returns the end of each interval in seconds, with the mean rates in bit/s over the last
    /// `count` intervals.
    pub(super) fn rates(&self, count: usize) -> impl Iterator<Item = (f64, [f64; 2])> {
        let stretch = self.stretch.as_secs_f64();
        self.stretches.windows(count).zip(count..).map(move |(of, end)| {
            let sum = |side: usize| of.iter().map(|bytes| bytes[side]).sum::<u64>() as f64;
            let rate = |side| sum(side) * 8.0 / (stretch * count as f64);
            (end as f64 * stretch, [rate(0), rate(1)])
        })
    }

    /// Returns the rates of each side in Mbit/s, as lines with these names.
    pub(super) fn lines(&self, count: usize, names: [String; 2]) -> [Series; 2] {
        let line = |side: usize, name| {
            let point = |(end, rates): (f64, [f64; 2])| draw::point(end, rates[side] * 1e-6);
            draw::series(name, Style::Line, self.rates(count).map(point).collect())
        };
        let [first, second] = names;
        [line(0, first), line(1, second)]
    }
}

impl Observer for Arrivals {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        let Some(flow) = self.receivers.get(&node) else { return };
        if crossing == Crossing::In {
            let index = (now.since(Instant::ZERO).as_nanos() / self.stretch.as_nanos()) as usize;
            self.stretches.resize(self.stretches.len().max(index + 1), [0; 2]);
            let payload = View::of(&packet.data).map_or(0, |segment| segment.data_len());
            self.stretches[index][usize::from(*flow >= self.first)] += payload as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_recovery::Profile;
    use airtcp_sim::Scenario;

    use super::super::congested::{RANDOM_WAIT, network};
    use super::*;
    use crate::simulate;

    /// Two flows at the same time, for five seconds.
    fn scenario() -> Scenario {
        let scenario = network(&["sack/reno"], &Profile::paper(), RANDOM_WAIT).unwrap();
        let flows = scenario.flows[..2].to_vec();
        Scenario { duration: Duration::from_secs(5), flows, ..scenario }
    }

    #[test]
    fn a_segment_takes_the_path_and_the_queue_and_one_sent_again_longer() {
        let scenario = scenario();
        let (result, delivery) = simulate::once_watched(scenario, 1, Delivery::new).unwrap();
        for (flow, segments) in result.flows.iter().zip(&delivery.flows) {
            let again = segments.delivered.iter().filter(|segment| segment.is_again);
            let missing = flow.retransmissions - flow.spurious;
            assert!(missing > 0 && again.clone().count() as u64 <= missing);
            // The delay is 12 ms, and jitter can remove 0.8 ms from it; three links each take 0.8 ms
            // for 1040 bytes.
            let least = segments.delivered.iter().map(|s| s.took).fold(1.0, f64::min);
            assert!((0.0136..0.016).contains(&least), "{least}");
            // A lost segment is delayed by at least a round trip.
            assert!(again.clone().all(|segment| segment.took > 3.0 * 0.0136));
            assert_eq!(segments.delivered.len() as u64 * 1_000, flow.bytes / 1_000 * 1_000);
        }
    }

    #[test]
    fn what_arrives_is_counted_by_side_and_time() {
        let scenario = scenario();
        let halves =
            |dumbbell: &Simulation<'_>| Arrivals::new(dumbbell, 1, Duration::from_millis(500));
        let (result, arrivals) = simulate::once_watched(scenario, 1, halves).unwrap();
        let rates: Vec<_> = arrivals.rates(10).collect();
        let [(end, whole)] = rates[..] else { panic!("{rates:?}") };
        assert_eq!(end, 5.0);
        for (flow, rate) in result.flows.iter().zip(whole) {
            // Duplicate arrivals are counted twice, and only arrivals are counted.
            let least = flow.goodput;
            let most = least + (flow.spurious * 1_000 * 8) as f64 / 5.0;
            assert!((least..=most).contains(&rate), "{least} {rate} {most}");
        }
    }
}
