//! Fig. 5: packets take two paths in turn.

use super::SHORTER;
use super::single::Sweep;
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, Verdict, theory};

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
            Verdict::of(near.mean >= 0.9, || {
                "hypothesis: recoveries, in which nothing waits, repair every second packet; with timestamps PAWS then refuses the \
                 originals, as in dcr/fig4"
                    .to_owned()
            }),
        );
        let far = curve.least(|apart| apart > SHORTER_RTT);
        findings.claim(
            format!("{name}: the same, apart by more"),
            "not drastic (0.5 or more)",
            theory::show(&far, 1.0, 2),
            Verdict::of(far.mean >= 0.5, || {
                "traced without timestamps: no reduction but the first, and the receiver's window, 64 KiB, is full: its buffer grows by \
                 what is read in order in a round trip of the shorter path, and what waits for the longer one does not \
                 count; the paper's receiver offers a large window from the start"
                    .to_owned()
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
            Verdict::of(least.bounds().0 > 1.0, || {
                "without DCR it does as well or better: rack waits for late packets by itself, and for packets later than that \
                 neither waits long enough"
                    .to_owned()
            }),
        );
    }
    findings.notes.push(SHORTER.to_owned());
    findings.notes.push("nothing is random here, and all runs are alike".to_owned());
    Ok(findings)
}
