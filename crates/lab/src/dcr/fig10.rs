//! Fig. 10: one flow, no congestion, over the delay of the radio.

use super::COMBINATIONS;
use super::radio::{
    COLUMNS, Outcome, Place, Sender, all_senders, claim_over, notes, picture, sweep, without,
};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig10",
    what: "One flow over a radio that retransmits, frame error 5 %, 5 to 400 ms",
    source: "DCR 4.1, Fig. 10; the error rate is from the middle of Fig. 9's, as the paper gives none",
    seconds: 80,
    body,
    ..Experiment::STUDY
};

/// The error rate, in per cent.
const ERROR: u32 = 5;
/// The delays, in ms. DCR 4.1: from a few ms in a LAN to several hundred of a satellite.
const DELAYS: [u32; 6] = [5, 20, 50, 100, 200, 400];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(COLUMNS);
    let places = run.points(&DELAYS.map(|delay| Place::plain(ERROR, delay)));
    let curves = sweep(run, &mut findings, all_senders(), &places)?;
    for curve in &curves {
        let (sender, outcomes) = curve;
        let Some(share) = kept(outcomes) else { continue };
        if sender.waits() {
            claim_robust(&mut findings, sender, outcomes, &share);
            if let Some(beside) = without(&curves, sender) {
                let place = "at the longest delay";
                claim_over(&mut findings, place, "more (above 1.1)", curve, beside);
            }
        } else if sender.is_paper() && sender.combination == COMBINATIONS[0] {
            let described = outcomes.last().map(Outcome::describe).unwrap_or_default();
            findings.mean(
                format!(
                    "{}: goodput at the longest delay over that at the shortest",
                    sender.name()
                ),
                "degrades significantly (below 0.5)",
                (&share, 2),
                Bound::Below(0.5),
                || format!("at that delay it has {described}"),
            );
        } else {
            let share = theory::show(&share, 1.0, 2);
            let name = sender.name();
            findings.note(format!(
                "without DCR, {name} keeps {share} of its goodput at the longest delay"
            ));
        }
    }
    let title = "Goodput of one flow over a radio of 1 Mbit/s, 5 % of frames hit";
    let at = |place: &Place| place.delay;
    findings.picture("fig10", picture(title, "delay of the radio, ms", at, &curves, |_| true));
    notes(&mut findings);
    Ok(findings)
}

/// Returns the goodput at the longest delay divided by that at the shortest.
fn kept(outcomes: &[Outcome]) -> Option<Interval> {
    Some(theory::ratio(&outcomes.last()?.goodput, &outcomes.first()?.goodput))
}

/// DCR 4.1: DCR is more robust in the face of large delays.
fn claim_robust(findings: &mut Findings, sender: &Sender, outcomes: &[Outcome], share: &Interval) {
    let described = outcomes.last().map(Outcome::describe).unwrap_or_default();
    findings.claim(
        format!("{}: goodput at the longest delay over that at the shortest", sender.name()),
        "robust (0.9 or more)",
        theory::show(share, 1.0, 2),
        theory::above(share, 0.9, || {
            let twice = 10_000 / (ERROR * ERROR);
            format!(
                "at that delay it has {described}; hypothesis: without a queue on the radio the wait of one round trip \
                 allows one repair, and one frame in {twice} is lost twice"
            )
        }),
    );
}
