//! Fig. 13: fairness with congestion as the only event.

use super::mixed::{Case, Queue, Sweep};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig13",
    what: "Six flows with DCR and six without, congestion only, by queue size",
    source: "DCR 5.1, Fig. 13",
    seconds: 125,
    body,
    ..Experiment::STUDY
};

fn body(run: &Run) -> Result<Findings, LabError> {
    let case = |queue| Case { x: queue, flows: 6, late: 0, queue: Queue::Packets(queue) };
    let sweep = Sweep {
        name: "fig13",
        title: "Twelve flows on 10 Mbit/s, congestion only",
        x: "queue, packets",
        cases: [20, 40, 60, 100, 160].map(case).to_vec(),
        is_over_drops: false,
        isolates_undo: false,
    };
    let (mut findings, curves) = sweep.run(run)?;
    for curve in &curves {
        for outcome in &curve.outcomes {
            let dropped = theory::show(&outcome.dropped, 1.0, 2);
            let is_beside = curve.is_beside() || curve.is_timer();
            findings.beside(is_beside, |findings| findings.mean(format!("{}: ratio, {} packets", curve.name, outcome.x), "very close (0.9 to 1.1)", (&outcome.ratio, 2), Bound::Within(0.9, 1.1), || {
                    format!(
                        "with {dropped} % dropped; guess: a response that comes a round trip later leaves more of the \
                         drops to the others"
                    )
                }));
        }
    }
    Ok(findings)
}
