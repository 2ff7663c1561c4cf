//! Fig. 5: packets alternate between two paths.

use super::single::{Curve, Sweep};
use super::{A_LITTLE, MTU_WITH_TIMESTAMPS, PAPERS, SHORTER, flow, papers};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig5",
    what: "One flow over two alternating paths that differ by 0 to 200 ms",
    source: "DCR 3.1, Fig. 5; the rate is that of Fig. 4, as the paper gives none",
    seconds: 405,
    body,
    ..Experiment::STUDY
};

const SWEEP: Sweep = Sweep {
    name: "fig5",
    title: "Goodput of one flow on 8 Mbit/s over two alternating paths",
    x: "difference of the paths, ms",
    points: &[0, 20, 50, 100, 150, 200],
    forth: |more| format!("rate 8mbit limit 50 paths 50ms {}ms", 50 + more),
};
/// The ends of the sweep.
const FARTHEST: Sweep = Sweep { points: &[0, 200], ..SWEEP };
/// The same with a queue that only slow start can fill: DCR 3.1 has no congestion in this
/// experiment.
const UNCROWDED: Sweep =
    Sweep { forth: |more| format!("rate 8mbit limit 3000 paths 50ms {}ms", 50 + more), ..FARTHEST };
const SACK: &str = "sack/reno/dcr:timer";
const RACK: &str = "rack/reno/dcr:timer";
/// The wait is twice and three times the smoothed round-trip time.
const LONGER: [&str; 2] = ["sack/reno/dcr:timer:2", "sack/reno/dcr:timer:3"];
/// The round-trip time of the shorter path, in ms. The paper sees a degradation beyond it.
const SHORTER_RTT: u32 = 104;
const OVER: &str = "over its own on one path";

fn body(run: &Run) -> Result<Findings, LabError> {
    let (mut findings, curves) = SWEEP.run(run)?;
    let isolated = isolated(run, &mut findings)?;
    let kept = |of: &[&Curve]| {
        let each = of.iter().map(|curve| {
            format!("{} {}", curve.name(), theory::show(&curve.least(is_far), 1.0, 2))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let (longer, rest): (Vec<&Curve>, Vec<&Curve>) =
        isolated.iter().partition(|curve| LONGER.contains(&curve.combination));
    let of_rack = rest.iter().copied().filter(|curve| curve.combination == RACK);
    let of_rack: Vec<&Curve> = of_rack.collect();
    let isolating = Isolating { longer: kept(&longer), of_rack: kept(&of_rack) };
    for curve in curves.iter().filter(|curve| curve.waits()) {
        findings.beside(curve.is_beside(), |findings| {
            claim_near(curve, findings);
            claim_far(curve, &isolating, findings);
            let plain = curve.without(&curves).into_iter();
            plain.for_each(|plain| claim_gain(curve, plain, findings));
        });
    }
    findings.beside(true, |findings| {
        rest.iter().for_each(|curve| claim_far(curve, &isolating, findings));
    });
    findings.note(SHORTER);
    findings.note("nothing is random here, so all runs are identical");
    Ok(findings)
}

/// What the variants keep at the largest difference, described.
struct Isolating {
    longer: String,
    of_rack: String,
}

/// Runs the largest difference in the paper's profile with longer waits, and without two possible
/// obstacles: a queue that overflows, because one recovery after an overflow retransmits every late
/// packet; and Karn's rule, which excludes these packets from RTT samples.
fn isolated(run: &Run, findings: &mut Findings) -> Result<Vec<Curve>, LabError> {
    let paper = papers();
    let (sack, rack) = (flow(SACK, &paper), flow(RACK, &paper));
    let longer = LONGER.map(|sender| flow(sender, &paper));
    let stamped = FlowSpec { timestamps: true, mtu: MTU_WITH_TIMESTAMPS, ..rack.clone() };
    [
        (&UNCROWDED, SACK, "ns-2.26, queue of 3000", &sack),
        (&UNCROWDED, RACK, "ns-2.26, queue of 3000", &rack),
        (&FARTHEST, RACK, "ns-2.26, timestamps", &stamped),
        (&UNCROWDED, RACK, "ns-2.26, timestamps, queue of 3000", &stamped),
        (&FARTHEST, LONGER[0], paper.name, &longer[0]),
        (&FARTHEST, LONGER[1], paper.name, &longer[1]),
    ]
    .into_iter()
    .map(|(sweep, sender, profile, flow)| sweep.curve(run, sender, profile, flow, findings))
    .collect()
}

fn claim_near(curve: &Curve, findings: &mut Findings) {
    let is_near = |apart| apart < SHORTER_RTT;
    let (name, near) = (curve.name(), curve.least(is_near));
    let what = format!("{name}: least goodput, paths apart by less than a round trip, {OVER}");
    findings.mean(what, "0.9 or more", (&near, 2), Bound::Above(0.9), || {
        let why = "recoveries, in which nothing is delayed, repair every second packet";
        format!("{}; guess: {why}", curve.describe(is_near))
    });
}

const fn is_far(apart: u32) -> bool {
    apart > SHORTER_RTT
}

/// DCR 3.1: beyond a round trip DCR starts to degrade a little, and the degradation is not drastic.
fn claim_far(curve: &Curve, isolating: &Isolating, findings: &mut Findings) {
    let Isolating { longer, of_rack } = isolating;
    let (name, far) = (curve.name(), curve.least(is_far));
    let what = format!("{name}: least goodput, paths apart by more than a round trip, {OVER}");
    let verdict = A_LITTLE.verdict(&far, || {
        let why = if curve.is_held(is_far) {
            "the receiver's window is what limits it; the paper's receiver offers a large one from the start".to_owned()
        } else if curve.combination == RACK && curve.profile.starts_with(PAPERS) {
            format!(
                "of their goodput on one path these variants keep: {of_rack}; guess: by Karn's rule late packets that were retransmitted give no RTT \
                 sample, and SRTT, which is the wait, stays too short without timestamps"
            )
        } else {
            format!(
                "of their goodput on one path these variants, which wait for two and three smoothed round trips, keep: {longer}"
            )
        };
        format!("{}: {why}", curve.describe(is_far))
    });
    findings.claim(what, A_LITTLE.claimed(), theory::show(&far, 1.0, 2), verdict);
}

fn claim_gain(curve: &Curve, plain: &Curve, findings: &mut Findings) {
    let least = curve.least_over(plain);
    let (name, plain) = (curve.name(), plain.combination);
    let what = format!("{name}: least goodput on two paths, over that of {plain}");
    findings.mean(what, "significantly better (above 1.1)", (&least, 2), Bound::Above(1.1), || {
        format!(
            "without DCR, {plain} does as well or better on these paths; guess: rack waits for late packets by itself, and \
             for packets that are later still neither waits long enough"
        )
    });
}
