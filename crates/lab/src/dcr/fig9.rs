//! Fig. 9: one flow, no congestion, and more and more frames of the radio are hit.

use airtcp_recovery::Profile;

use super::COMBINATIONS;
use super::radio::{
    Air, COLUMNS, Curve, Outcome, Place, Sender, claim_over, notes, picture, without,
};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig9",
    what: "One flow over a radio that retransmits, frame error 0 to 20 %",
    source: "DCR 4.1, Fig. 9",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 130,
    seeds: 10,
    body,
};

/// DCR 4.1.
const DELAY: u32 = 20;
/// %. The paper's text has no figures.
const ERRORS: [u32; 6] = [0, 1, 2, 5, 10, 20];
/// What is run over 802.11 as well, in the paper's profile.
const CONTENDING: usize = 2;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(COLUMNS);
    let paper = COMBINATIONS.map(|combination| Sender::new(combination, Profile::paper()));
    let modern = COMBINATIONS.map(|combination| Sender::new(combination, Profile::modern()));
    let plain = sweep(run, paper.iter().chain(&modern), Air::Plain, &mut findings)?;
    let contending = sweep(run, paper.iter().take(CONTENDING), Air::Wifi, &mut findings)?;
    for curve in plain.iter().filter(|(sender, _)| sender.waits()) {
        let (sender, outcomes) = curve;
        claim_close(&mut findings, sender, outcomes);
        if let (Some(own), Some(beside)) = (outcomes.last(), without(&plain, sender)) {
            // DCR 4.1: significantly better than SACK. Where no frame is hit it has nothing to be better at.
            let place = format!("with {} % hit", own.place.error);
            claim_over(&mut findings, &place, "significantly better (above 1.1)", curve, beside);
        }
    }
    if let Some((sender, outcomes)) = plain.first() {
        claim_falls(&mut findings, sender, outcomes);
    }
    let drawn = |curves: &[Curve]| -> Vec<_> {
        curves.iter().map(|(sender, outcomes)| (sender.name(), outcomes.clone())).collect()
    };
    let title = "Goodput of one flow over a radio of 1 Mbit/s and 20 ms";
    let at = |place: &Place| place.error;
    findings.picture("fig9", picture(title, "frames hit, %", at, &drawn(&plain)));
    let title = "The same over 802.11 at 1 Mbit/s";
    findings.picture("fig9-802.11", picture(title, "frames hit, %", at, &drawn(&contending)));
    notes(&mut findings);
    report_contention(&mut findings, &contending);
    Ok(findings)
}

fn sweep<'a>(
    run: &Run,
    senders: impl Iterator<Item = &'a Sender>,
    radio: Air,
    findings: &mut Findings,
) -> Result<Vec<Curve>, LabError> {
    let mut curves = Vec::new();
    for sender in senders {
        let mut outcomes = Vec::new();
        for error in run.points(&ERRORS) {
            let place = Place { radio, error, delay: DELAY };
            outcomes.push(sender.run(run, place, findings)?);
        }
        curves.push((sender.clone(), outcomes));
    }
    Ok(curves)
}

/// DCR 4.1: even at high channel error rates close to what it has without.
fn claim_close(findings: &mut Findings, sender: &Sender, outcomes: &[Outcome]) {
    let (Some(first), Some(last)) = (outcomes.first(), outcomes.last()) else { return };
    let (name, error) = (sender.name(), last.place.error);
    let share = theory::ratio(&last.goodput, &first.goodput);
    findings.claim(
        format!("{name}: goodput with {error} % hit over its own without errors"),
        "close (0.9 or more)",
        theory::show(&share, 1.0, 2),
        theory::above(&share, 0.9, || {
            format!("retransmissions use the radio's time, and it carries {:.2} of its capacity without errors: it has {}",
                last.bound / first.bound, last.describe())
        }),
    );
    let worst = outcomes.iter().map(Outcome::of_bound);
    let worst = worst.min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap_or_default();
    findings.claim(
        format!("{name}: least goodput over the radio's capacity at that error rate"),
        "close (0.9 or more)",
        theory::show(&worst, 1.0, 3),
        theory::above(&worst, 0.9, || format!("at {error} % it has {}", last.describe())),
    );
}

/// DCR 4.1: SACK cannot use the radio's rate, least of all at high error rates.
fn claim_falls(findings: &mut Findings, sender: &Sender, outcomes: &[Outcome]) {
    let Some(last) = outcomes.last() else { return };
    let share = last.of_bound();
    findings.claim(
        format!(
            "{}: goodput with {} % of frames hit, over the radio's capacity",
            sender.name(),
            last.place.error
        ),
        "not efficient (below 0.9)",
        theory::show(&share, 1.0, 2),
        theory::below(&share, 0.9, || format!("it has {}", last.describe())),
    );
}

fn report_contention(findings: &mut Findings, curves: &[Curve]) {
    let shares = curves.iter().filter_map(|(sender, outcomes)| {
        let share = theory::show(&outcomes.first()?.of_bound(), 1.0, 2);
        Some(format!("{} has {share}", sender.combination))
    });
    let shares = shares.collect::<Vec<_>>().join(", and ");
    findings.notes.push(format!(
        "over 802.11, which is not the paper's radio, data and ACKs share the channel and collide, which is repaired as an error \
         is: of its bound, without frame errors, {shares}"
    ));
}
