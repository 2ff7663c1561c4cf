//! Fig. 8: a mixed workload with an increasing number of flows.

use super::mixed::{Case, Outcome, Queue, Sweep, outside};
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
        let Some((first, rest)) = curve.outcomes.split_first() else { continue };
        let not_reached = |of: &Outcome| outside("around 1 %", DROPPED, &of.dropped, of.queue);
        let judged = rest.iter().map(|outcome| {
            let by = theory::difference(&outcome.difference, &first.difference);
            let judge = || {
                theory::within(&by, (-0.1, 0.1), || {
                    let [few, many] = [first, outcome].map(|of| theory::show(&of.dropped, 1.0, 2));
                    format!("the cause was not determined; {few} and {many} % are dropped")
                })
            };
            let verdict = not_reached(first).or_else(|| not_reached(outcome)).unwrap_or_else(judge);
            (format!("{} with {}", theory::show(&by, 1.0, 2), outcome.x), verdict)
        });
        let (shown, verdicts): (Vec<_>, Vec<_>) = judged.unzip();
        if verdicts.is_empty() {
            continue;
        }
        let few = theory::show(&first.difference, 1.0, 2);
        let (name, flows) = (&curve.name, first.x);
        findings.beside(curve.is_beside(), |findings| {
            findings.claim(
                format!("{name}: difference over the mean, of more flows less that of {flows}"),
                "stable from 4 to 12 flows (each within a tenth of the mean)",
                format!("{} ({few} with {flows})", shown.join(", ")),
                Verdict::all(verdicts),
            );
        });
    }
    Ok(findings)
}
