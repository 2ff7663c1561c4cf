//! Figures 7 to 11: random corruption.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;

use super::course::{Course, HEADERS, Outcome, RACK};
use super::factor::{Factor, NOT_ISOLATED};
use super::figure::{Sweep, throughput};
use super::notified::Notified;
use crate::{Experiment, Findings, LabError, Run, draw, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/fig7",
    what: "HACK and SACK under random corruption of 2 to 15 %, 10 and 300 ms",
    source: "HACK 5.1, Fig. 7 to 11",
    seconds: 7,
    body,
    ..Experiment::STUDY
};

/// Per cent of packets.
pub(super) const SHARES: [f64; 7] = [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0];
/// The paper's figures of each path, of which the first is for headers that are never hit.
const PATHS: [(Course, [&str; 2]); 2] =
    [(Course::SHORT, ["fig8", "fig7"]), (Course::LONG, ["fig10", "fig9"])];

/// Corruption of single packets on both paths.
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
    let mut findings = Findings::new([
        "profile",
        "delay, ms",
        "header hit, %",
        "corrupted, %",
        "NewReno, kbit/s",
        "SACK",
        "HACK",
        "HACK + SACK",
        "time-outs of each",
    ]);
    let mut notified = Notified::default();
    for profile in [Profile::paper(), Profile::modern()] {
        for (name, courses) in courses(run) {
            let sweep = Sweep::measure(run, &courses, &profile, &mut findings)?;
            let Course { delay, header, .. } = courses[0];
            sweep.rows(&courses, &profile, &mut findings, |course| {
                [course.delay.to_string(), course.header.to_string(), course.share.to_string()]
            });
            if header == 0 {
                notified.add(run, &courses, &profile, &mut findings, &sweep.both)?;
            }
            let place = format!("{delay} ms, header hit {header} %, {}", profile.name);
            let Sweep { newreno, sack, hack, both } = &sweep;
            for (what, factor) in [
                ("SACK over NewReno", Factor::of(sack, newreno)),
                ("HACK over NewReno", Factor::of(hack, newreno)),
                ("HACK + SACK over SACK", Factor::of(both, sack)),
                ("HACK + SACK over HACK", Factor::of(both, hack)),
            ] {
                factor.claim_above(&mut findings, format!("{what}, {place}"), NOT_ISOLATED);
            }
            if name == SLOW_STARTS_OF {
                slow_starts(run, &courses, &profile, &sweep, &mut findings)?;
            }
            if profile.name == Profile::paper().name {
                let title = format!("{delay} ms, header hit in {header} % of corrupted packets");
                let xs: Vec<f64> = courses.iter().map(|course| course.share).collect();
                let x = "corrupted packets, %";
                let axes = [x, "throughput, kbit/s"];
                findings.picture(name, sweep.draw(title, axes, &xs, throughput));
                if name == SLOW_STARTS_OF {
                    let title = "Slow starts, 300 ms, header hit 95 %".to_owned();
                    let point = |x, outcome: &Outcome| draw::interval(x, &outcome.timeouts, 1.0);
                    let axes = [x, "time-outs of a transfer"];
                    findings.picture("fig11", sweep.draw(title, axes, &xs, point));
                }
            }
        }
    }
    notified.claim(&mut findings);
    Ok(findings)
}

/// The picture with whose set-up the paper counts slow starts.
const SLOW_STARTS_OF: &str = "fig9";
/// HACK 5.1: SACK and HACK have fewer slow starts than NewReno.
fn slow_starts(
    run: &Run,
    courses: &[Course],
    profile: &Profile,
    sweep: &Sweep,
    findings: &mut Findings,
) -> Result<(), LabError> {
    let rack = |course: &Course| course.measure(run, &RACK, profile, findings);
    let rack: Vec<_> = courses.iter().map(rack).collect::<Result<_, _>>()?;
    let [rack, newreno] = [&rack, &sweep.newreno].map(|outcomes| Timeouts::of(outcomes));
    for (name, outcomes) in [("SACK", &sweep.sack), ("HACK", &sweep.hack)] {
        let own = Timeouts::of(outcomes);
        let verdict = theory::less(&own.each, &newreno.each, || {
            format!(
                "of {name}'s, {:.2} in a recovery wait for data that was not retransmitted, of NewReno's, which retransmits at each partial \
                 ACK, {:.2}; {:.2} and {:.2} wait for data that was corrupted twice. RACK, which detects lost \
                 retransmissions, has {:.2} in total",
                own.of_holes,
                newreno.of_holes,
                own.of_repairs,
                newreno.of_repairs,
                rack.mean()
            )
        });
        findings.claim(
            format!(
                "time-outs of {name} and of NewReno, 300 ms, header hit 95 %, {}",
                profile.name
            ),
            "fewer",
            format!("{:.2} and {:.2} a transfer", own.mean(), newreno.mean()),
            verdict,
        );
    }
    Ok(())
}

/// Time-outs of a transfer, over several points.
struct Timeouts {
    /// Of each seed.
    each: Vec<f64>,
    of_repairs: f64,
    of_holes: f64,
}

impl Timeouts {
    fn of(outcomes: &[Outcome]) -> Self {
        let points = outcomes.len() as f64;
        let seeds = outcomes.first().map_or(0, |outcome| outcome.timeouts_each.len());
        let seed = |seed| outcomes.iter().map(|o| o.timeouts_each[seed]).sum::<f64>() / points;
        Self {
            each: (0..seeds).map(seed).collect(),
            of_repairs: outcomes.iter().map(|o| o.of_repairs).sum::<f64>() / points,
            of_holes: outcomes.iter().map(|o| o.of_holes).sum::<f64>() / points,
        }
    }

    fn mean(&self) -> f64 {
        Interval::of(&self.each).mean
    }
}
