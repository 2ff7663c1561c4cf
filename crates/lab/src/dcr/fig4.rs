//! Fig. 4: one flow with a share of late packets.

use super::single::{Curve, Sweep};
use super::{DRASTIC, MTU_WITH_TIMESTAMPS, SHORTER, flow, papers};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig4",
    what: "One flow on 8 Mbit/s, 0 to 30 % of its packets late by N(25, 8) ms",
    source: "DCR 3.1, Fig. 4",
    seconds: 375,
    body,
    ..Experiment::STUDY
};

const SWEEP: Sweep = Sweep {
    name: "fig4",
    title: "Goodput of one flow on 8 Mbit/s, packets late by N(25, 8) ms",
    x: "late packets, %",
    points: &[0, 2, 5, 10, 20, 30],
    forth: |late| format!("rate 8mbit delay 50ms limit 50 delayed {late}% 25ms 8ms"),
};

/// The ends of the sweep, and the point before.
const LATE: Sweep = Sweep { points: &[0, 20, 30], ..SWEEP };
const STAMPED: &str = "ns-2.26, timestamps";

/// Runs the paper's senders with timestamps, to isolate the effect of PAWS (RFC 7323 section 5).
fn stamped(run: &Run, findings: &mut Findings) -> Result<Vec<Curve>, LabError> {
    ["sack/reno/dcr:timer", "sack/reno/dcr:count"]
        .into_iter()
        .map(|sender| {
            let bare = flow(sender, &papers());
            let flow = FlowSpec { timestamps: true, mtu: MTU_WITH_TIMESTAMPS, ..bare };
            LATE.curve(run, sender, STAMPED, &flow, findings)
        })
        .collect()
}

/// Returns the reason why goodput falls, from the same sender without timestamps if it was run.
fn why(curve: &Curve, bare: Option<&Curve>, stamped: Option<&Curve>) -> String {
    let described = match stamped {
        None => curve.describe(|_| true),
        Some(stamped) => format!(
            "{}; the paper's profile with timestamps keeps {}",
            curve.describe(|_| true),
            theory::show(&stamped.least(|_| true), 1.0, 2)
        ),
    };
    let repairs =
        "guess: recoveries, in which nothing is delayed, and slow start retransmit late packets";
    let Some(bare) = bare else {
        return format!("{described}; it has no timestamps; {repairs}");
    };
    let (with, without) = (curve.least(|_| true), bare.least(|_| true));
    let shown = theory::show(&without, 1.0, 2);
    if without.bounds().0 > with.bounds().1 {
        let how = if curve.refuses(|_| true) {
            "a needless repair raises TS.Recent, and PAWS (RFC 7323 5.3) then refuses late originals that were sent before it"
        } else {
            "not because of PAWS, which refuses nothing; how was not determined"
        };
        format!("{described}; without timestamps it keeps {shown}: {how}")
    } else {
        format!(
            "{described}; not timestamps: without them it keeps {shown}, no more than by chance; {repairs}"
        )
    }
}

/// DCR 3.1: DCR performs significantly better than SACK.
fn claim_better(findings: &mut Findings, curve: &Curve, without: &Curve) {
    let least = curve.least_over(without);
    let what = format!(
        "{}: least goodput with late packets over that of {}",
        curve.name(),
        without.combination
    );
    findings.beside(curve.is_beside(), |findings| {
        let claimed = "significantly better (above 1.1)";
        findings.mean(what, claimed, (&least, 2), Bound::Above(1.1), theory::unknown);
    });
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let (mut findings, curves) = SWEEP.run(run)?;
    let stamped = stamped(run, &mut findings)?;
    let plain = curves[0].goodputs[0];
    for curve in &curves {
        let name = curve.name();
        if curve.waits() {
            let least = curve.least(|_| true);
            let bare = curves.iter().find(|other| {
                other.combination == curve.combination
                    && !other.is_paper()
                    && !other.has_timestamps()
            });
            let bare = bare.filter(|_| curve.has_timestamps());
            let stamped = stamped.iter().find(|other| other.combination == curve.combination);
            let what = format!("{name}: least goodput over its own without late packets");
            let bound = Bound::Above(0.9);
            // The paper compares with SACK without late packets.
            findings.beside(true, |findings| {
                findings
                    .mean(what, "0.9 or more", (&least, 2), bound, || why(curve, bare, stamped));
            });
            let without = curve.without(&curves).into_iter();
            without.for_each(|without| claim_better(&mut findings, curve, without));
        }
        if curve.waits() && curve.is_paper() {
            let least = curve.goodputs.iter().min_by(|a, b| a.mean.total_cmp(&b.mean));
            let share = theory::ratio(least.unwrap_or(&plain), &plain);
            let what = format!("{name}: least goodput over that of sack/reno without late packets");
            let bound = Bound::Above(0.9);
            findings.beside(curve.is_beside(), |findings| {
                findings.mean(what, "0.9 or more (\"close\")", (&share, 2), bound, || {
                    why(curve, None, None)
                });
            });
        }
        if curve.combination == "sack/reno" && curve.is_paper() {
            let share = curve.shares[curve.shares.len() - 1];
            findings.claim(
                format!("{name}: goodput with 30 % late over that without"),
                DRASTIC.claimed(),
                theory::show(&share, 1.0, 2),
                DRASTIC.verdict(&share, theory::unknown),
            );
        }
        if !curve.waits() {
            let most = theory::show(&curve.shares[curve.shares.len() - 1], 1.0, 2);
            findings.note(format!("without DCR, {name} keeps {most} of its goodput at 30 % late"));
        }
    }
    findings.note(SHORTER);
    findings.note(
        "without late packets nothing is random, so all runs are identical; sack/reno in the modern profile has time-outs even \
         so. Guess: it loses repairs, which are sent while the window shrinks slowly and the queue is full",
    );
    Ok(findings)
}
