//! Fig. 8: a mixed workload with an increasing number of flows.

use super::mixed::{Case, Queue, Sweep, outside};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig8",
    what: "2 to 6 flows with DCR and as many without, 1 % dropped, 1 % late",
    source: "DCR 3.1, Fig. 8",
    seconds: 245,
    body,
    ..Experiment::STUDY
};

/// The drops that count as the paper's "around 1 %": those that round to it.
const DROPPED: (f64, f64) = (0.5, 1.5);

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
        let (Some(first), Some(last)) = (curve.outcomes.first(), curve.outcomes.last()) else {
            continue;
        };
        // The ends are compared, because the largest of several differences is large by chance.
        let by = theory::difference(&last.difference, &first.difference);
        let reached = [first, last].map(|of| outside("around 1 %", DROPPED, &of.dropped));
        let judge = || {
            theory::within(&by, (-0.1, 0.1), || {
                let [few, many] = [first, last].map(|of| theory::show(&of.dropped, 1.0, 2));
                format!("the cause was not determined; {few} and {many} % are dropped")
            })
        };
        let verdict = reached.into_iter().flatten().next().unwrap_or_else(judge);
        let [few, many] = [first, last].map(|of| theory::show(&of.difference, 1.0, 2));
        findings.beside(curve.is_beside(), |findings| {
            findings.claim(
                format!("{}: difference over the mean, of 12 flows less that of 4", curve.name),
                "stable (within a tenth of the mean)",
                format!("{} ({many} and {few})", theory::show(&by, 1.0, 2)),
                verdict,
            );
        });
    }
    Ok(findings)
}
