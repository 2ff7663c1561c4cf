//! Figures 7 to 11: random corruption.

use super::course::{Course, HACK, HACK_SACK, HEADERS, NEWRENO, Outcome, RACK, SACK, each_profile};
use super::factor::NOT_ISOLATED;
use super::figure::{self, Sweep};
use super::notified::Notified;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/fig7",
    what: "HACK and SACK under random corruption of 2 to 15 %, 10 and 300 ms",
    source: "HACK 5.1, Fig. 7 to 11",
    seconds: 10,
    body,
    ..Experiment::STUDY
};

/// The per cent of corrupted packets.
pub(super) const SHARES: [f64; 7] = [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0];
/// The picture whose set-up the paper uses to count slow starts.
const SLOW_STARTS_OF: &str = "fig9";
const X: &str = "corrupted packets, %";
/// The paper's figures for each path; the first is for intact headers.
const PATHS: [(Course, [&str; 2]); 2] =
    [(Course::SHORT, ["fig8", "fig7"]), (Course::LONG, ["fig10", "fig9"])];

/// Returns the courses with corruption of single packets on both paths.
pub(super) fn courses(run: &Run) -> impl Iterator<Item = (&'static str, Vec<Course>)> {
    let shares = if run.is_small { &SHARES[2..3] } else { &SHARES[..] };
    PATHS.into_iter().flat_map(move |(path, names)| {
        HEADERS.into_iter().zip(names).map(move |(header, name)| {
            let course = |share| Course { share, header, ..path };
            (name, shares.iter().copied().map(course).collect())
        })
    })
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = figure::findings("delay, ms | header hit, % | corrupted, %");
    each_profile(&mut findings, |profile, findings| {
        let mut notified = Notified::default();
        for (name, courses) in courses(run) {
            let sweep = Sweep::measure(run, courses, profile, findings)?;
            let Course { delay, header, .. } = sweep.courses[0];
            sweep.rows(findings, |course| {
                [course.delay.to_string(), course.header.to_string(), course.share.to_string()]
            });
            if header == 0 {
                notified.add(&sweep, findings)?;
            }
            let place = format!("{delay} ms, header hit {header} %");
            for pair in [[SACK, NEWRENO], [HACK, NEWRENO], [HACK_SACK, SACK], [HACK_SACK, HACK]] {
                sweep.claim_above(findings, pair, &place, NOT_ISOLATED);
            }
            if sweep.is_papers() {
                let title = format!("{delay} ms, header hit in {header} % of corrupted packets");
                findings.picture(name, sweep.throughput(title, X, |course| course.share));
            }
            if name == SLOW_STARTS_OF {
                slow_starts(&sweep, findings)?;
            }
        }
        notified.claim(findings, profile);
        Ok(())
    })?;
    Ok(findings)
}

/// HACK 5.1: SACK and HACK have fewer slow starts than NewReno.
fn slow_starts(sweep: &Sweep<'_>, findings: &mut Findings) -> Result<(), LabError> {
    if sweep.is_papers() {
        let title = "Slow starts, 300 ms, header hit 95 %".to_owned();
        let axes = [X, "time-outs of a transfer"];
        let drawn = sweep.draw(title, axes, |course| course.share, (|of| &of.timeouts, 1.0));
        findings.picture("fig11", drawn);
    }
    let rack = sweep.beside(&RACK, sweep.profile, findings, Clone::clone)?;
    let points = rack.len() as f64;
    // Per transfer, over all points.
    let sum = |of: &[Outcome], value: fn(&Outcome) -> f64| of.iter().map(value).sum::<f64>();
    let each = |of: &[Outcome]| -> Vec<f64> {
        let seed = |seed: usize| of.iter().map(|o| o.timeouts_each[seed]).sum::<f64>() / points;
        (0..of[0].timeouts_each.len()).map(seed).collect()
    };
    let (rack, newreno) = (Interval::of(&each(&rack)).mean, each(&sweep.newreno));
    for (name, outcomes) in [("SACK", &sweep.sack), ("HACK", &sweep.hack)] {
        let own = each(outcomes);
        let verdict = theory::less(&own, &newreno, || {
            let [[holes, repairs], [holes_newreno, repairs_newreno]] = [outcomes, &sweep.newreno]
                .map(|of| {
                    [sum(of, |o| o.of_holes), sum(of, |o| o.of_repairs)].map(|sum| sum / points)
                });
            format!(
                "of {name}'s, {holes:.2} in a recovery wait for data that was not retransmitted, of NewReno's, which retransmits at each partial \
                 ACK, {holes_newreno:.2}; {repairs:.2} and {repairs_newreno:.2} wait for data that was corrupted twice. RACK, which detects lost \
                 retransmissions, has {rack:.2} in total"
            )
        });
        let [own, other] = [&own, &newreno].map(|of| Interval::of(of).mean);
        let place = format!("300 ms, header hit 95 %, {}", sweep.profile.name);
        let what = format!("time-outs of {name} and of NewReno, {place}");
        findings.claim(what, "fewer", format!("{own:.2} and {other:.2} a transfer"), verdict);
    }
    Ok(())
}
