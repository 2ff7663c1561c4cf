//! Fig. 5: packets alternate between two paths.

use super::single::{Curve, Sweep};
use super::{MTU_WITH_TIMESTAMPS, SHORTER, flow};
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
    let longer = isolated.iter().filter(|curve| LONGER.contains(&curve.combination));
    let longer = longer.map(|curve| {
        let kept = theory::show(&curve.least(is_far), 1.0, 2);
        format!("{} keeps {kept}", curve.combination)
    });
    let longer = longer.collect::<Vec<_>>().join(", ");
    for curve in curves.iter().filter(|curve| curve.waits()) {
        findings.beside(curve.is_beside(), |findings| {
            claim_near(curve, findings);
            claim_far(curve, &longer, findings);
            let plain = curve.without(&curves).into_iter();
            plain.for_each(|plain| claim_gain(curve, plain, findings));
        });
    }
    let others = isolated.iter().filter(|curve| !LONGER.contains(&curve.combination));
    findings.beside(true, |findings| {
        others.for_each(|curve| claim_far(curve, &longer, findings));
    });
    findings.note(SHORTER);
    findings.note("nothing is random here, so all runs are identical");
    Ok(findings)
}

/// Runs the largest difference in the paper's profile with longer waits, and without two possible
/// obstacles: a queue that
/// overflows, because one recovery after an overflow retransmits every late packet; and Karn's
/// rule, which excludes these packets from RTT samples.
fn isolated(run: &Run, findings: &mut Findings) -> Result<Vec<Curve>, LabError> {
    let paper = Profile::paper();
    let (sack, rack) = (flow(SACK, &paper), flow(RACK, &paper));
    let longer = LONGER.map(|sender| flow(sender, &paper));
    let stamped = FlowSpec { timestamps: true, mtu: MTU_WITH_TIMESTAMPS, ..rack.clone() };
    [
        (&UNCROWDED, SACK, "paper, queue of 3000", &sack),
        (&UNCROWDED, RACK, "paper, queue of 3000", &rack),
        (&FARTHEST, RACK, "paper, timestamps", &stamped),
        (&UNCROWDED, RACK, "paper, timestamps, queue of 3000", &stamped),
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

fn claim_far(curve: &Curve, longer: &str, findings: &mut Findings) {
    let (name, far) = (curve.name(), curve.least(is_far));
    let what = format!("{name}: least goodput, paths apart by more than a round trip, {OVER}");
    findings.mean(what, "not drastic (0.5 or more)", (&far, 2), Bound::Above(0.5), || {
        let why = if curve.is_held(is_far) {
            "the receiver's window is what limits it; the paper's receiver offers a large one from the start".to_owned()
        } else if curve.combination == RACK && curve.profile.starts_with(Profile::paper().name) {
            "rack reduces in the first round trip, and with a window of two or three packets the late ones are retransmitted \
             again; by Karn's rule they tell no round-trip time, and SRTT, which is the wait, stays too short: it \
             does not with timestamps, and a longer queue alone is no help"
                .to_owned()
        } else {
            format!("with a wait of two and three smoothed round trips, in the paper's profile: {longer}")
        };
        format!("{}: {why}", curve.describe(is_far))
    });
}

fn claim_gain(curve: &Curve, plain: &Curve, findings: &mut Findings) {
    let gains = curve.goodputs.iter().zip(&plain.goodputs).skip(1);
    let gains = gains.map(|(with, without)| theory::ratio(with, without));
    let least = gains.min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap_or_default();
    let (name, plain) = (curve.name(), plain.combination);
    let what = format!("{name}: least goodput on two paths, over that of {plain}");
    findings.mean(what, "significantly better (above 1)", (&least, 2), Bound::Above(1.0), || {
        format!(
            "without DCR, {plain} does as well or better on these paths; guess: rack waits for late packets by itself, and \
             for packets that are later still neither waits long enough"
        )
    });
}
