//! One flow over a link with random loss of data, and its control's estimate of the bandwidth.

use airtcp_sim::FlowDirection;
use airtcp_types::{Event, EventKind, Instant, NodeId, Observer};

use super::pinned;
use crate::prelude::*;

/// The two directions of the link, without loss.
pub(super) struct Path {
    pub(super) forth: &'static str,
    pub(super) back: &'static str,
    /// Whether a `reno` flow runs in the other direction.
    pub(super) is_shared: bool,
}

/// The ssthresh of every reduction: the bandwidth estimate times the minimum RTT.
#[derive(Clone, Debug)]
struct Reductions {
    /// The start of the measurement, as for the goodput.
    from: Instant,
    is_due: bool,
    ssthresh: Vec<f64>,
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

/// Runs every point of the axes `profile`, `way`, `control` and `loss` (of data packets, in per
/// cent).
pub(super) fn measure(
    run: &Run,
    findings: &mut Findings,
    axes: Vec<Axis>,
    path: fn(&str) -> Path,
) -> Result<Grid, LabError> {
    let grid = Grid::run(run, axes, |point, seed| {
        let scenario = scenario(point, &path(&point.text("way")), run.is_small)?;
        let from = Instant::ZERO + scenario.warm_up;
        let seen = Reductions { from, is_due: false, ssthresh: Vec::new() };
        let (result, seen) = simulate::once_watched(scenario, seed, |_| seen)?;
        let (flow, count) = (&result.flows[0], seen.ssthresh.len());
        let mean = seen.ssthresh.iter().sum::<f64>() / count.max(1) as f64;
        let estimate = if flow.rtt.count == 0 { 0.0 } else { mean * 8.0 / flow.rtt.min };
        Ok(fields! {
            goodput: flow.goodput,
            estimate,
            reductions: count,
            timeouts: flow.timeouts.unwrap_or(0),
        })
    })?;
    grid.record(findings, &["control", "profile", "way", "loss"])?;
    Ok(grid)
}

/// Returns the bandwidth estimate in bit/s, over the runs with a reduction; others have no
/// estimate.
pub(super) fn estimate(part: &Slice<'_>) -> Interval {
    Interval::of(&part.of(reported))
}

/// Returns the ratio of the estimate to the goodput of each run.
pub(super) fn ratio(part: &Slice<'_>) -> Interval {
    Interval::of(&part.of(|run| Some(reported(run)? / run.number("goodput")?.max(1.0))))
}

fn reported(run: &Fields) -> Option<f64> {
    run.number("estimate").filter(|_| run.number("reductions") > Some(0.0))
}

fn scenario(point: &Point, path: &Path, is_small: bool) -> Result<Scenario, LabError> {
    let forth = format!("{} loss {}% only payload", path.forth, point.text("loss"));
    let wire = feed::wire(&forth, path.back)?;
    let flow = |control: &str, way| FlowSpec {
        way,
        profile: point.profile(),
        ..FlowSpec::new(pinned::combine(control).into())
    };
    let mut flows = vec![flow(&point.text("control"), FlowDirection::LeftToRight)];
    if path.is_shared {
        flows.push(flow("reno", FlowDirection::RightToLeft));
    }
    let (warm_up, duration) = if is_small { (1, 2) } else { (10, 60) };
    Ok(Scenario {
        warm_up: Duration::from_secs(warm_up),
        duration: Duration::from_secs(duration),
        flows,
        ..Scenario::new("westwood", Topology::Chain { wires: vec![wire] })
    })
}
