//! Fig. 8: a mixed workload with an increasing number of flows.

use super::mixed::{Case, Queue, Sweep};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig8",
    what: "2 to 6 flows with DCR and as many without, 1 % dropped, 1 % late",
    source: "DCR 3.1, Fig. 8",
    seconds: 350,
    body,
    ..Experiment::STUDY
};

fn body(run: &Run) -> Result<Findings, LabError> {
    let case = |flows| Case { x: 2 * flows, flows, late: 1, queue: Queue::ForDrops(1.0) };
    let sweep = Sweep {
        name: "fig8",
        title: "Flows on 10 Mbit/s, 1 % of packets late and 1 % dropped",
        x: "flows",
        cases: [2, 3, 4, 5, 6].map(case).to_vec(),
        is_over_drops: false,
        isolates_undo: false,
    };
    let (mut findings, curves) = sweep.run(run)?;
    for curve in &curves {
        let differences = || curve.outcomes.iter().map(|outcome| outcome.difference);
        let order = |a: &Interval, b: &Interval| a.mean.total_cmp(&b.mean);
        let least = differences().min_by(order).unwrap_or_default();
        let most = differences().max_by(order).unwrap_or_default();
        let [low, high] = [least, most].map(|of| theory::show(&of, 1.0, 2));
        let why = || {
            let dropped = |at: usize| theory::show(&curve.outcomes[at].dropped, 1.0, 2);
            let last = curve.outcomes.len() - 1;
            format!(
                "guess: drops go from {} to {} %, as no queue tried gives 1 % for all",
                dropped(0),
                dropped(last)
            )
        };
        let verdict = theory::below(&theory::difference(&most, &least), 0.2, why);
        findings.beside(curve.is_beside(), |findings| {
            findings.claim(
                format!("{}: difference over the mean, least and most", curve.name),
                "stable (within 0.2)",
                format!("{low} to {high}"),
                verdict,
            )
        });
    }
    Ok(findings)
}
