//! One flow over a link that loses data at random, and what its control holds the path to carry.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Interval, Scenario, Topology, Way, Wire};
use airtcp_types::{Event, EventKind, Instant, NodeId, Observer};
use serde::Serialize;

use crate::{Findings, LabError, Run, feed, simulate};

pub(super) struct Course<'a> {
    pub(super) control: &'a str,
    pub(super) profile: &'a Profile,
    /// What ACKs meet on their way, as it is called.
    pub(super) way: &'a str,
    /// Of data, per cent.
    pub(super) loss: f64,
    /// The link's ways, without loss.
    pub(super) forth: &'a str,
    pub(super) back: &'a str,
    /// Whether a `reno` flow goes the other way.
    pub(super) is_shared: bool,
}

/// Over the seeds.
pub(super) struct Outcome {
    /// bit/s.
    pub(super) goodput: Interval,
    /// The mean over reductions, bit/s.
    pub(super) estimate: Interval,
    /// Of a run's estimate over its goodput.
    pub(super) ratio: Interval,
    pub(super) timeouts: Interval,
}

/// ssthresh of every reduction, which is the estimate times the smallest round trip.
#[derive(Clone, Debug)]
struct Reductions {
    /// What comes before does not count, as for the goodput.
    from: Instant,
    is_due: bool,
    ssthresh: Vec<f64>,
}

impl Reductions {
    fn new(from: Duration) -> Self {
        Self { from: Instant::ZERO + from, is_due: false, ssthresh: Vec::new() }
    }
}

impl Observer for Reductions {
    fn on_event(&mut self, node: NodeId, event: &Event) {
        // The left host is the first node of a chain.
        if node != NodeId(0) || event.at < self.from {
            return;
        }
        match event.kind {
            EventKind::Reduced { .. } => self.is_due = true,
            EventKind::Window { ssthresh: Some(ssthresh), .. } if self.is_due => {
                self.is_due = false;
                self.ssthresh.push(ssthresh.0 as f64);
            }
            _ => {}
        }
    }
}

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    control: &'a str,
    profile: &'a str,
    way: &'a str,
    /// Per cent.
    loss: f64,
    /// bit/s.
    goodput: f64,
    /// bit/s, the mean over reductions.
    estimate: f64,
    reductions: usize,
    timeouts: u64,
}

impl Course<'_> {
    pub(super) fn run(&self, run: &Run, findings: &mut Findings) -> Result<Outcome, LabError> {
        let scenario = self.scenario(run)?;
        let results =
            simulate::watched(run, |_| scenario.clone(), || Reductions::new(scenario.warm_up))?;
        let mut records = Vec::new();
        for (result, seen) in &results {
            let flow = &result.flows[0];
            let count = seen.ssthresh.len();
            let mean = seen.ssthresh.iter().sum::<f64>() / count.max(1) as f64;
            let record = Record {
                seed: result.seed,
                control: self.control,
                profile: self.profile.name,
                way: self.way,
                loss: self.loss,
                goodput: flow.goodput,
                estimate: if flow.rtt.count == 0 { 0.0 } else { mean * 8.0 / flow.rtt.min },
                reductions: count,
                timeouts: flow.timeouts.unwrap_or(0),
            };
            findings.record(&record)?;
            records.push(record);
        }
        // A run without a reduction tells nothing of the estimate.
        let told = || records.iter().filter(|r| r.reductions > 0);
        Ok(Outcome {
            goodput: Interval::of(&records.iter().map(|r| r.goodput).collect::<Vec<_>>()),
            estimate: Interval::of(&told().map(|r| r.estimate).collect::<Vec<_>>()),
            ratio: Interval::of(
                &told().map(|r| r.estimate / r.goodput.max(1.0)).collect::<Vec<_>>(),
            ),
            timeouts: Interval::of(&records.iter().map(|r| r.timeouts as f64).collect::<Vec<_>>()),
        })
    }

    fn scenario(&self, run: &Run) -> Result<Scenario, LabError> {
        let forth = format!("{} loss {}% only payload", self.forth, self.loss);
        let wire = Wire { forth: feed::spec(&forth)?, back: feed::spec(self.back)? };
        let flow = |control: &str, way| FlowSpec {
            way,
            profile: self.profile.clone(),
            ..FlowSpec::new(format!("sack/{control}").parse().expect("a name of the registry"))
        };
        let mut flows = vec![flow(self.control, Way::Forth)];
        if self.is_shared {
            flows.push(flow("reno", Way::Back));
        }
        let (warm_up, duration) = if run.is_small { (1, 2) } else { (10, 60) };
        Ok(Scenario {
            warm_up: Duration::from_secs(warm_up),
            duration: Duration::from_secs(duration),
            flows,
            ..Scenario::new("westwood", Topology::Chain { wires: vec![wire] })
        })
    }
}
