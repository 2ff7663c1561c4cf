//! Fig. 12: DCR against Westwood, over the radio's delay and its error rate.

use super::papers;
use super::radio::{COLUMNS, Outcome, Place, Sender, notes, picture, sweep};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig12",
    what: "DCR and Westwood over a radio of 5 to 400 ms, frame error 1 to 20 %",
    source: "DCR 4.2, Fig. 12",
    seconds: 110,
    body,
    ..Experiment::STUDY
};

/// The delays, in ms.
const DELAYS: [u32; 4] = [5, 20, 100, 400];
/// The error rates, in per cent. The paper's text has no figures.
const ERRORS: [u32; 3] = [1, 5, 20];
/// Our limits of low and high, because the paper's text has no figures: low is up to this error and
/// delay, high is from these on.
const LOW: (u32, u32) = (1, 20);
const HIGH: (u32, u32) = (5, 100);
/// The paper's `WestwoodNR`, which has no SACK.
const WESTWOOD: &str = "newreno/westwood";
const PICTURES: [&str; 3] = ["fig12-low-error", "fig12-middle-error", "fig12-high-error"];

fn senders() -> Vec<Sender> {
    let (paper, modern) = (papers(), Profile::modern());
    vec![
        Sender::new("sack/reno/dcr:timer", paper.clone()),
        Sender::new("sack/reno/dcr:count", paper.clone()),
        Sender::new(WESTWOOD, paper),
        Sender::new("sack/reno/dcr:timer", modern.clone()),
        Sender::new("rack/reno/dcr:timer", modern.clone()),
        Sender::new(WESTWOOD, modern),
    ]
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(COLUMNS);
    let (errors, delays) = (run.points(&ERRORS), run.points(&DELAYS));
    let at = |error: u32| delays.iter().map(move |delay| Place::plain(error, *delay));
    let places: Vec<_> = errors.iter().flat_map(|error| at(*error)).collect();
    let curves = sweep(run, &mut findings, senders(), &places)?;
    for (sender, outcomes) in curves.iter().filter(|(sender, _)| sender.waits()) {
        let westwood = curves
            .iter()
            .find(|(other, _)| other.profile == sender.profile && other.combination == WESTWOOD);
        let pairs = westwood.iter().flat_map(|(_, theirs)| outcomes.iter().zip(theirs));
        let pairs: Vec<_> = pairs.collect();
        findings.beside(sender.is_beside(), |findings| claims(findings, sender, &pairs));
    }
    for (name, error) in PICTURES.into_iter().zip(ERRORS).filter(|(_, e)| errors.contains(e)) {
        let title =
            format!("Goodput of one flow over a radio of 1 Mbit/s, {error} % of frames hit");
        let (x, at) = ("delay of the radio, ms", |place: &Place| place.delay);
        let drawn = picture(title, x, at, &curves, |place| place.error == error);
        findings.picture(name, drawn);
    }
    notes(&mut findings);
    findings.note(format!(
        "the paper gives no figures for low and high: low is up to {} % and {} ms here, high from {} % and {} ms on; a claim fails if it \
         fails at the lowest or the highest point, which every reading includes, and is otherwise decided if all points agree; \
         nothing is claimed if one is high and the other low. newreno ignores the negotiated SACK",
        LOW.0, LOW.1, HIGH.0, HIGH.1
    ));
    Ok(findings)
}

/// DCR 4.2: alike at low error rates and low delays; DCR is better at high ones.
fn claims(findings: &mut Findings, sender: &Sender, pairs: &[(&Outcome, &Outcome)]) {
    let low: fn(&Place) -> bool = |place| place.error <= LOW.0 && place.delay <= LOW.1;
    let high: fn(&Place) -> bool = |place| place.error >= HIGH.0 && place.delay >= HIGH.1;
    for (which, is_of, claimed, bound) in [
        ("low", low, "similar (0.9 to 1.1)", Bound::Within(0.9, 1.1)),
        ("high", high, "better (above 1)", Bound::Above(1.0)),
    ] {
        let judged = pairs.iter().filter(|(own, _)| is_of(&own.place)).map(|(own, theirs)| {
            let ratio = theory::ratio(&own.goodput, &theirs.goodput);
            let Place { error, delay, .. } = own.place;
            let verdict = bound.verdict(&ratio, || {
                format!(
                    "with {error} % hit at {delay} ms it has {}; {WESTWOOD} has {}; {}",
                    own.describe(),
                    theirs.describe(),
                    own.lost_twice()
                )
            });
            let shown = format!("{} with {error} % at {delay} ms", theory::show(&ratio, 1.0, 2));
            (shown, verdict)
        });
        let (shown, verdicts): (Vec<_>, Vec<_>) = judged.unzip();
        // The points are in ascending order.
        let extreme = if which == "low" { verdicts.first() } else { verdicts.last() };
        let Some(extreme) = extreme else { continue };
        let verdict = theory::agreed_beyond(extreme, &verdicts);
        let name = sender.name();
        let what = format!("{name}: goodput over that of {WESTWOOD}, {which} error and delay");
        findings.claim(what, claimed, shown.join(", "), verdict);
    }
}
