//! Fig. 8: a mixed workload of more and more flows.

use super::mixed::{Case, Queue, Sweep};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, Verdict, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig8",
    what: "Two to six flows with DCR and as many without, 1 % dropped, 1 % of packets late",
    source: "DCR 3.1, Fig. 8",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 350,
    seeds: 10,
    body,
};

fn body(run: &Run) -> Result<Findings, LabError> {
    let case = |flows| Case { x: 2 * flows, flows, late: 1, queue: Queue::ForDrops(1.0) };
    let sweep = Sweep {
        name: "fig8",
        title: "Flows on 10 Mbit/s, 1 % of packets late and 1 % dropped",
        x: "flows",
        cases: [2, 3, 4, 5, 6].map(case).to_vec(),
        isolates_undo: false,
    };
    let (mut findings, curves) = sweep.run(run)?;
    for curve in &curves {
        let means = curve.outcomes.iter().map(|outcome| outcome.difference.mean);
        let (least, most) = means
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), mean| {
                (least.min(mean), most.max(mean))
            });
        findings.claim(
            format!("{}: difference over the mean, least and most", curve.name),
            "stable (within 0.2)",
            format!("{least:.2} to {most:.2}"),
            Verdict::of(most - least <= 0.2, || {
                let dropped = |at: usize| theory::show(&curve.outcomes[at].dropped, 1.0, 2);
                let last = curve.outcomes.len() - 1;
                format!(
                    "hypothesis: drops go from {} to {} %, as no queue tried gives 1 % for all",
                    dropped(0),
                    dropped(last)
                )
            }),
        );
    }
    Ok(findings)
}
