//! Aggregation of the runs of one scenario.

use serde::Serialize;

use crate::{FlowResult, Interval, LinkResult, RadioResult, RunResult, StationResult};

/// The results of all runs of a scenario: means over the seeds, with confidence intervals.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Aggregate {
    /// Every flow of the scenario.
    pub flows: Vec<FlowAggregate>,
    /// Every direction of every link.
    pub links: Vec<LinkAggregate>,
    /// The base station, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<StationAggregate>,
    /// Jain's index.
    pub jain: Interval,
}

/// A flow of the scenario. A run's value is the mean of the flow's copies; times are in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowAggregate {
    /// Its name.
    pub name: String,
    /// The sender's strategies.
    pub combination: String,
    /// The number of copies.
    pub copies: u64,
    /// Goodput, in bit/s.
    pub goodput: Interval,
    /// Retransmitted segments.
    pub retransmissions: Interval,
    /// Of these, spurious retransmissions.
    pub spurious: Interval,
    /// Time-outs; RRTP has none.
    pub timeouts: Interval,
    /// The mean round-trip time, of the copies and runs that measured any.
    pub rtt: Interval,
    /// The mean duration of recoveries, of the copies and runs that had any.
    pub recovery: Interval,
    /// The mean duration of exchanges, of the copies and runs that had any.
    pub exchange: Interval,
    /// The completion time, of the copies and runs that completed.
    pub finished: Interval,
    /// Connections that ended abnormally.
    pub broken: Interval,
}

/// A direction of a link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkAggregate {
    /// Its name.
    pub name: String,
    /// `forth` or `back`.
    pub way: &'static str,
    /// Forwarded packets.
    pub forwarded: Interval,
    /// Packets dropped by the policer.
    pub policed: Interval,
    /// Packets dropped by the queue.
    pub queue_dropped: Interval,
    /// Packets lost in the channel.
    pub channel_lost: Interval,
    /// Packets lost because the link was down.
    pub disconnected: Interval,
    /// Packets dropped because the delay line was full.
    pub overflowed: Interval,
    /// Packets with bits flipped.
    pub corrupted: Interval,
    /// Packets given the CE mark.
    pub marked: Interval,
    /// The mean queue length in packets, over time.
    pub queue_mean: Interval,
    /// The maximum queue length in packets.
    pub queue_max: Interval,
    /// The utilization of the rate, if there is one.
    pub utilisation: Interval,
}

/// A base station.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StationAggregate {
    /// Its radio: towards the mobiles, and from them.
    pub radio: Vec<RadioAggregate>,
    /// Segments given the paper's mark.
    pub marked: Interval,
    /// Duplicate ACKs dropped.
    pub hidden: Interval,
    /// Segments retransmitted from the cache.
    pub sent_again: Interval,
    /// ACKs whose window was closed.
    pub frozen: Interval,
    /// ACKs that it made.
    pub made: Interval,
    /// Segments held while the mobile was out of reach.
    pub held: Interval,
    /// Held segments dropped because the buffer was full or the mobile did not return in time.
    pub held_dropped: Interval,
    /// Peak memory in bytes: the state of flows.
    pub memory_flows: Interval,
    /// Copies of packets.
    pub memory_cached: Interval,
    /// Packets queued for the radio.
    pub memory_queued: Interval,
    /// Packets held for the mobile.
    pub memory_held: Interval,
    /// The peak of the total.
    pub memory: Interval,
}

/// A direction of a radio.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RadioAggregate {
    /// `forth` or `back`.
    pub way: &'static str,
    /// Packets that arrived.
    pub forwarded: Interval,
    /// Packets dropped by the queue.
    pub queue_dropped: Interval,
    /// Packets lost after all tries.
    pub channel_lost: Interval,
    /// Packets lost because the mobile was out of reach.
    pub disconnected: Interval,
    /// Packets given the CE mark.
    pub marked: Interval,
    /// The share of packets lost after all tries.
    pub residual_loss: Interval,
    /// The share of reordered packets.
    pub reordered: Interval,
    /// Transmissions per delivered packet.
    pub tries: Interval,
}

impl Aggregate {
    /// Aggregates runs of one scenario.
    pub fn of(runs: &[RunResult]) -> Self {
        let Some(first) = runs.first() else { return Self::default() };
        // Each first copy begins a flow: names may repeat.
        let begins = first.flows.iter().enumerate().filter(|(_, flow)| flow.copy == 0);
        let mut bounds: Vec<usize> = begins.map(|(index, _)| index).collect();
        bounds.push(first.flows.len());
        let flow = |bounds: &[usize]| FlowAggregate::of(runs, bounds[0]..bounds[1]);
        Self {
            flows: bounds.windows(2).filter_map(flow).collect(),
            links: (0..first.links.len()).filter_map(|at| LinkAggregate::of(runs, at)).collect(),
            station: StationAggregate::of(runs),
            jain: Interval::of(&runs.iter().map(|run| run.jain).collect::<Vec<_>>()),
        }
    }
}

impl FlowAggregate {
    fn of(runs: &[RunResult], copies: std::ops::Range<usize>) -> Option<Self> {
        let over = |value: &dyn Fn(&FlowResult) -> Option<f64>| {
            let run = |run: &RunResult| {
                let flows = run.flows.get(copies.clone()).unwrap_or_default();
                let values: Vec<f64> = flows.iter().filter_map(value).collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            };
            Interval::of(&runs.iter().filter_map(run).collect::<Vec<_>>())
        };
        let mean = |summary: &crate::Summary| (summary.count > 0).then_some(summary.mean);
        let first = runs.first()?.flows.get(copies.start)?;
        Some(Self {
            name: first.name.clone(),
            combination: first.combination.clone(),
            copies: copies.len() as u64,
            goodput: over(&|flow| Some(flow.goodput)),
            retransmissions: over(&|flow| Some(flow.retransmissions as f64)),
            spurious: over(&|flow| Some(flow.spurious as f64)),
            timeouts: over(&|flow| Some(flow.timeouts? as f64)),
            rtt: over(&|flow| mean(&flow.rtt)),
            recovery: over(&|flow| mean(flow.recoveries.as_ref()?)),
            exchange: over(&|flow| mean(&flow.exchanges)),
            finished: over(&|flow| flow.finished),
            broken: over(&|flow| Some(flow.broken as f64)),
        })
    }
}

impl LinkAggregate {
    fn of(runs: &[RunResult], at: usize) -> Option<Self> {
        let over = |value: &dyn Fn(&LinkResult) -> Option<f64>| {
            let links = runs.iter().filter_map(|run| run.links.get(at));
            Interval::of(&links.filter_map(value).collect::<Vec<_>>())
        };
        let first = runs.first()?.links.get(at)?;
        Some(Self {
            name: first.name.clone(),
            way: first.way,
            forwarded: over(&|link| Some(link.counters.forwarded as f64)),
            policed: over(&|link| Some(link.counters.policed as f64)),
            queue_dropped: over(&|link| Some(link.counters.queue_dropped as f64)),
            channel_lost: over(&|link| Some(link.counters.channel_lost as f64)),
            disconnected: over(&|link| Some(link.counters.disconnected as f64)),
            overflowed: over(&|link| Some(link.counters.overflowed as f64)),
            corrupted: over(&|link| Some(link.counters.corrupted as f64)),
            marked: over(&|link| Some(link.counters.marked as f64)),
            queue_mean: over(&|link| Some(link.queue_mean)),
            queue_max: over(&|link| Some(link.queue_max as f64)),
            utilisation: over(&|link| link.utilisation),
        })
    }
}

impl StationAggregate {
    fn of(runs: &[RunResult]) -> Option<Self> {
        let over = |value: &dyn Fn(&StationResult) -> u64| {
            let stations = runs.iter().filter_map(|run| run.station.as_ref());
            Interval::of(&stations.map(|station| value(station) as f64).collect::<Vec<_>>())
        };
        let first = runs.first()?.station.as_ref()?;
        Some(Self {
            radio: (0..first.radio.len()).filter_map(|at| RadioAggregate::of(runs, at)).collect(),
            marked: over(&|station| station.counters.marked),
            hidden: over(&|station| station.counters.hidden),
            sent_again: over(&|station| station.counters.sent_again),
            frozen: over(&|station| station.counters.frozen),
            made: over(&|station| station.counters.made),
            held: over(&|station| station.counters.held),
            held_dropped: over(&|station| station.counters.held_dropped),
            memory_flows: over(&|station| station.memory.flows),
            memory_cached: over(&|station| station.memory.cached),
            memory_queued: over(&|station| station.memory.queued),
            memory_held: over(&|station| station.memory.held),
            memory: over(&|station| station.memory.all),
        })
    }
}

impl RadioAggregate {
    fn of(runs: &[RunResult], at: usize) -> Option<Self> {
        let over = |value: &dyn Fn(&RadioResult) -> f64| {
            let radios = runs.iter().filter_map(|run| run.station.as_ref()?.radio.get(at));
            Interval::of(&radios.map(value).collect::<Vec<_>>())
        };
        let first = runs.first()?.station.as_ref()?.radio.get(at)?;
        Some(Self {
            way: first.way,
            forwarded: over(&|radio| radio.counters.forwarded as f64),
            queue_dropped: over(&|radio| radio.counters.queue_dropped as f64),
            channel_lost: over(&|radio| radio.counters.channel_lost as f64),
            disconnected: over(&|radio| radio.counters.disconnected as f64),
            marked: over(&|radio| radio.counters.marked as f64),
            residual_loss: over(&|radio| radio.residual_loss),
            reordered: over(&|radio| radio.reordered),
            tries: over(&|radio| radio.air.tries as f64 / radio.counters.forwarded.max(1) as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowSpec, Scenario, Topology, Wire, run_seeds};

    #[test]
    fn copies_are_averaged_and_flows_told_apart_even_of_one_name() {
        let bottleneck = Wire::both("rate 2mbit delay 5ms limit 20 loss 1%".parse().unwrap());
        let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
        let flow = |count| FlowSpec { count, ..FlowSpec::new("sack/reno".parse().unwrap()) };
        let scenario = Scenario {
            duration: std::time::Duration::from_secs(2),
            flows: vec![flow(2), flow(1)],
            ..Scenario::new("two", topology)
        };
        let runs = run_seeds(&scenario, 3..6, None, |_| ()).unwrap();
        assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [3, 4, 5]);
        let aggregate = Aggregate::of(&runs);
        let copies: Vec<_> = aggregate.flows.iter().map(|flow| flow.copies).collect();
        assert_eq!(copies, [2, 1]);
        let mean = |run: &RunResult| (run.flows[0].goodput + run.flows[1].goodput) / 2.0;
        let means: Vec<f64> = runs.iter().map(mean).collect();
        assert_eq!(aggregate.flows[0].goodput, Interval::of(&means));
        assert_eq!(aggregate.flows[0].exchange.n, 0, "a bulk transfer has none");
        assert_eq!(aggregate.links.len(), runs[0].links.len());
        let lost =
            runs.iter().map(|run| run.links.iter().map(|l| l.counters.channel_lost).sum::<u64>());
        let of_links: f64 = aggregate.links.iter().map(|link| link.channel_lost.mean * 3.0).sum();
        assert!((of_links - lost.sum::<u64>() as f64).abs() < 1e-6 && of_links > 0.0);
        assert_eq!(Aggregate::of(&[]), Aggregate::default());
    }
}
