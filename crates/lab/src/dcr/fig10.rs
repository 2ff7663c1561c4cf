//! Fig. 10: one flow, no congestion, over the delay of the radio.

use super::COMBINATIONS;
use super::radio::{
    COLUMNS, Curve, Outcome, Place, all_senders, claim_over, notes, picture, sweep, without,
};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig10",
    what: "One flow over a radio that retransmits, frame error 1 to 5 %, 5 to 400 ms",
    source: "DCR 4.1, Fig. 10; the error rates are from Fig. 9's, as the paper gives none",
    seconds: 240,
    body,
    ..Experiment::STUDY
};

/// The error rates in per cent, each with the name of its picture.
const ERRORS: [(u32, &str); 3] = [(1, "fig10-1"), (2, "fig10-2"), (5, "fig10")];
/// The delays, in ms. DCR 4.1: from a few ms in a LAN to several hundred of a satellite.
const DELAYS: [u32; 6] = [5, 20, 50, 100, 200, 400];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(COLUMNS);
    for (error, name) in run.points(&ERRORS) {
        let places = run.points(&DELAYS.map(|delay| Place::plain(error, delay)));
        let curves = sweep(run, &mut findings, all_senders(), &places)?;
        claims(&mut findings, error, &curves);
        let title =
            format!("Goodput of one flow over a radio of 1 Mbit/s, {error} % of frames hit");
        let at = |place: &Place| place.delay;
        findings.picture(name, picture(title, "delay of the radio, ms", at, &curves, |_| true));
    }
    notes(&mut findings);
    Ok(findings)
}

fn claims(findings: &mut Findings, error: u32, curves: &[Curve]) {
    for curve in curves {
        let (sender, outcomes) = curve;
        let Some(share) = kept(outcomes) else { continue };
        if sender.waits() {
            findings.beside(sender.is_beside(), |findings| {
                if let Some(plain) = without(curves, sender) {
                    claim_robust(findings, curve, plain, &share);
                    let place = format!("with {error} % hit at the longest delay");
                    claim_over(findings, &place, ("more", 1.0), curve, plain);
                }
            });
        } else if sender.is_paper() && sender.combination == COMBINATIONS[0] {
            let described = outcomes.last().map(Outcome::describe).unwrap_or_default();
            let what = format!("{}: {}", sender.name(), over_shortest(error));
            let claimed = "degrades significantly (below 0.9)";
            findings.mean(what, claimed, (&share, 2), Bound::Below(0.9), || {
                format!("at that delay it has {described}")
            });
        } else {
            let share = theory::show(&share, 1.0, 2);
            let name = sender.name();
            findings.note(format!(
                "without DCR and with {error} % hit, {name} keeps {share} of its goodput at the longest delay"
            ));
        }
    }
}

fn over_shortest(error: u32) -> String {
    format!("goodput with {error} % hit at the longest delay over that at the shortest")
}

/// Returns the goodput at the longest delay divided by that at the shortest.
fn kept(outcomes: &[Outcome]) -> Option<Interval> {
    Some(theory::ratio(&outcomes.last()?.goodput, &outcomes.first()?.goodput))
}

/// DCR 4.1: "TCP-DCR on the other hand is more robust in the face of large wireless delays": it
/// keeps more of its goodput than the sender without DCR.
fn claim_robust(
    findings: &mut Findings,
    (sender, outcomes): &Curve,
    (_, plain): &Curve,
    share: &Interval,
) {
    let (Some(last), Some(without)) = (outcomes.last(), kept(plain)) else { return };
    let [own, other] = [share, &without].map(|share| theory::show(share, 1.0, 2));
    let ratio = theory::ratio(share, &without);
    findings.claim(
        format!(
            "{}: {}, over the same without DCR",
            sender.name(),
            over_shortest(last.place.error)
        ),
        "more robust (above 1)",
        format!("{} ({own} over {other})", theory::show(&ratio, 1.0, 2)),
        theory::above(&ratio, 1.0, || {
            format!("at that delay it has {}; {}", last.describe(), last.lost_twice())
        }),
    );
}
