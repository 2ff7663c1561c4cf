//! Fig. 5: packets take two paths in turn.

use super::SHORTER;
use super::single::Sweep;
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig5",
    what: "One flow whose packets take two paths in turn, of 50 ms and of 0 to 200 ms more",
    source: "DCR 3.1, Fig. 5; the rate is that of Fig. 4, as the paper gives none",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 320,
    seeds: 10,
    body,
};

const SWEEP: Sweep = Sweep {
    name: "fig5",
    title: "Goodput of one flow on 8 Mbit/s over two paths in turn",
    x: "difference of the paths, ms",
    points: &[0, 20, 50, 100, 150, 200],
    forth: |more| format!("rate 8mbit limit 50 paths 50ms {}ms", 50 + more),
};
/// The round trip of the shorter path, in ms, beyond which the paper sees a degradation.
const SHORTER_RTT: u32 = 104;

fn body(run: &Run) -> Result<Findings, LabError> {
    let (mut findings, curves) = SWEEP.run(run)?;
    for curve in curves.iter().filter(|curve| curve.waits()) {
        let name = curve.name();
        let near = curve.least(|apart| apart < SHORTER_RTT);
        findings.claim(
            format!("{name}: least goodput, paths apart by less than a round trip, over its own on one path"),
            "0.9 or more",
            theory::show(&near, 1.0, 2),
            theory::above(&near, 0.9, || {
                format!(
                    "{}; hypothesis: recoveries, in which nothing waits, repair every second packet",
                    curve.told(|apart| apart < SHORTER_RTT)
                )
            }),
        );
        let far = curve.least(|apart| apart > SHORTER_RTT);
        findings.claim(
            format!("{name}: the same, apart by more"),
            "not drastic (0.5 or more)",
            theory::show(&far, 1.0, 2),
            theory::above(&far, 0.5, || {
                let why = if curve.is_held(|apart| apart > SHORTER_RTT) {
                    "the receiver's window is what limits it; the paper's receiver offers a large one from the start"
                } else {
                    "hypothesis: packets are late by more than it waits, and each reduction is needless"
                };
                format!("{}: {why}", curve.told(|apart| apart > SHORTER_RTT))
            }),
        );
        let without = curves.iter().find(|plain| {
            plain.profile == curve.profile
                && !plain.waits()
                && curve.combination.starts_with(plain.combination)
        });
        let Some(plain) = without else { continue };
        let gains = curve.goodputs.iter().zip(&plain.goodputs).skip(1);
        let gains = gains.map(|(with, without)| theory::ratio(with, without));
        let least = gains.min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap_or_default();
        findings.claim(
            format!("{name}: least goodput on two paths over that of {} there", plain.combination),
            "significantly better (above 1)",
            theory::show(&least, 1.0, 2),
            theory::above(&least, 1.0, || {
                format!(
                    "without DCR, {} does as well or better there; hypothesis: rack waits for late packets by itself, and \
                     for packets later than that neither waits long enough",
                    plain.combination
                )
            }),
        );
    }
    findings.notes.push(SHORTER.to_owned());
    findings.notes.push("nothing is random here, and all runs are alike".to_owned());
    Ok(findings)
}
