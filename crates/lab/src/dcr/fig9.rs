//! Fig. 9: one flow without congestion, with an increasing frame error rate of the radio.

use super::radio::{
    Air, COLUMNS, Curve, Outcome, Place, Sender, all_senders, claim_over, notes, picture, sweep,
    without,
};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig9",
    what: "One flow over a radio that retransmits, frame error 0 to 20 %",
    source: "DCR 4.1, Fig. 9",
    seconds: 130,
    body,
    ..Experiment::STUDY
};

/// The radio's one-way delay in ms, from DCR 4.1.
const DELAY: u32 = 20;
/// The error rates, in per cent. The paper's text has no figures.
const ERRORS: [u32; 6] = [0, 1, 2, 5, 10, 20];
/// The number of senders that also run over 802.11, in the paper's profile.
const CONTENDING: usize = 2;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(COLUMNS);
    let places = |radio| run.points(&ERRORS.map(|error| Place { radio, error, delay: DELAY }));
    let plain = sweep(run, &mut findings, all_senders(), &places(Air::Plain))?;
    let contenders = all_senders().take(CONTENDING);
    let contending = sweep(run, &mut findings, contenders, &places(Air::Wifi))?;
    for curve in plain.iter().filter(|(sender, _)| sender.waits()) {
        let (sender, outcomes) = curve;
        findings.beside(sender.is_beside(), |findings| {
            claim_close(findings, sender, outcomes);
            if let (Some(own), Some(plain)) = (outcomes.last(), without(&plain, sender)) {
                // DCR 4.1: significantly better than SACK. Without frame errors there is nothing
                // to improve.
                let place = format!("with {} % hit", own.place.error);
                claim_over(findings, &place, ("significantly better", 1.1), curve, plain);
            }
        });
    }
    if let Some((sender, outcomes)) = plain.first() {
        claim_falls(&mut findings, sender, outcomes);
    }
    for (name, title, curves) in [
        ("fig9", "Goodput of one flow over a radio of 1 Mbit/s and 20 ms", &plain),
        ("fig9-802.11", "The same over 802.11 at 1 Mbit/s", &contending),
    ] {
        let drawn = picture(title, "frames hit, %", |place| place.error, curves, |_| true);
        findings.picture(name, drawn);
    }
    notes(&mut findings);
    if let Some((_, outcomes)) = plain.first() {
        note_capacity(&mut findings, outcomes);
    }
    report_contention(&mut findings, &contending);
    Ok(findings)
}

/// DCR 4.1: even at high channel error rates, goodput is close to that without errors. In the
/// paper's model errors happen before the link, so a frame with errors takes no air time. Here it
/// does, so each goodput is divided by what the radio carries.
fn claim_close(findings: &mut Findings, sender: &Sender, outcomes: &[Outcome]) {
    let (Some(first), Some(last)) = (outcomes.first(), outcomes.last()) else { return };
    let (name, error) = (sender.name(), last.place.error);
    let share = theory::ratio(&last.of_bound(), &first.of_bound());
    let what = format!(
        "{name}: goodput with {error} % hit over its own without errors, each over the radio's capacity"
    );
    findings.mean(what, "close (0.9 or more)", (&share, 2), Bound::Above(0.9), || {
        format!("at {error} % it has {}", last.describe())
    });
    let worst = outcomes.iter().map(Outcome::of_bound);
    let worst = worst.min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap_or_default();
    let what = format!("{name}: least goodput over the radio's capacity at that error rate");
    findings.mean(what, "close (0.9 or more)", (&worst, 3), Bound::Above(0.9), || {
        format!("at {error} % it has {}", last.describe())
    });
}

/// DCR 4.1: SACK cannot use the radio's rate, especially at high error rates.
fn claim_falls(findings: &mut Findings, sender: &Sender, outcomes: &[Outcome]) {
    let Some(last) = outcomes.last() else { return };
    let (share, name, error) = (last.of_bound(), sender.name(), last.place.error);
    let what = format!("{name}: goodput with {error} % of frames hit, over the radio's capacity");
    findings.mean(what, "not efficient (below 0.9)", (&share, 2), Bound::Below(0.9), || {
        format!("it has {}", last.describe())
    });
}

fn note_capacity(findings: &mut Findings, outcomes: &[Outcome]) {
    let (Some(first), Some(last)) = (outcomes.first(), outcomes.last()) else { return };
    findings.note(format!(
        "with {} % hit the radio carries {:.2} of its capacity without errors, because retransmissions take air time; in the \
         paper errors happen before the link, and take none",
        last.place.error,
        last.bound / first.bound
    ));
}

fn report_contention(findings: &mut Findings, curves: &[Curve]) {
    let shares = curves.iter().filter_map(|(sender, outcomes)| {
        let share = theory::show(&outcomes.first()?.of_bound(), 1.0, 2);
        Some(format!("{} has {share}", sender.combination))
    });
    let shares = shares.collect::<Vec<_>>().join(", and ");
    findings.note(format!(
        "over 802.11, which is not the paper's radio, data and ACKs share the channel and collide, which is repaired as an error \
         is: of its bound, without frame errors, {shares}"
    ));
}
