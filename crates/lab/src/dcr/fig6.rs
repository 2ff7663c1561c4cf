//! Fig. 6: late packets and congestion together.

use super::mixed::{Case, Queue, Sweep};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig6",
    what: "Six flows with DCR and six without, 10 % late, by queue size",
    source: "DCR 3.1, Fig. 6",
    seconds: 125,
    body,
    ..Experiment::STUDY
};

fn body(run: &Run) -> Result<Findings, LabError> {
    let case = |queue| Case { x: queue, flows: 6, late: 10, queue: Queue::Packets(queue) };
    let sweep = Sweep {
        name: "fig6",
        title: "Twelve flows on 10 Mbit/s, 10 % of packets late",
        x: "queue, packets",
        cases: [10, 20, 40, 80, 160].map(case).to_vec(),
        is_over_drops: true,
        isolates_undo: false,
    };
    let (mut findings, curves) = sweep.run(run)?;
    for curve in &curves {
        let (first, last) = (&curve.outcomes[0], &curve.outcomes[curve.outcomes.len() - 1]);
        let shown = |at: &super::mixed::Outcome| {
            let [ratio, dropped] = [(&at.ratio, 2), (&at.dropped, 2)]
                .map(|(interval, decimals)| theory::show(interval, 1.0, decimals));
            format!("{ratio} at {dropped} % dropped")
        };
        findings.beside(curve.is_beside(), |findings| {
            findings.claim(
                format!("{}: ratio of their goodputs, most congestion and least", curve.name),
                "less with more congestion",
                format!("{}; {}", shown(first), shown(last)),
                theory::below(&theory::ratio(&first.ratio, &last.ratio), 1.0, theory::unknown),
            )
        });
    }
    Ok(findings)
}
