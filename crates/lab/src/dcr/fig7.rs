//! Fig. 7: a mixed workload, and more and more late packets.

use super::mixed::{Case, Queue, Sweep};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, Verdict, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig7",
    what: "Six flows with DCR and six without, 1.5 % dropped, over the share of late packets",
    source: "DCR 3.1, Fig. 7",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 530,
    seeds: 10,
    body,
};

fn body(run: &Run) -> Result<Findings, LabError> {
    let case = |late| Case { x: late, flows: 6, late, queue: Queue::ForDrops(1.5) };
    let sweep = Sweep {
        name: "fig7",
        title: "Twelve flows on 10 Mbit/s, 1.5 % of packets dropped",
        x: "late packets, %",
        cases: [0, 5, 10, 20, 30].map(case).to_vec(),
    };
    let (mut findings, curves) = sweep.run(run)?;
    for outcome in curves.iter().flat_map(|curve| curve.outcomes.iter().map(move |o| (curve, o))) {
        let (curve, outcome) = outcome;
        let (low, high) = outcome.ratio.bounds();
        let (claimed, holds) = match outcome.case.late {
            0 => ("1 (equal)", low <= 1.1 && high >= 0.9),
            _ => ("2 to 3", low <= 3.3 && high >= 1.8),
        };
        let verdict = Verdict::of(holds, || {
            if curve.is_modern() {
                return "flows beside it lose little to late packets, other than in the paper's profile: undo takes their \
                        reductions back, and rack waits for late packets by itself"
                    .to_owned();
            }
            let dropped = theory::show(&outcome.dropped, 1.0, 2);
            format!("with {dropped} % dropped, the queue nearest to 1.5 % among those tried")
        });
        let what = format!("{}: ratio at {} % late", curve.name, outcome.case.late);
        findings.claim(what, claimed, theory::show(&outcome.ratio, 1.0, 2), verdict);
    }
    Ok(findings)
}
