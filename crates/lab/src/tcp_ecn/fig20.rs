//! Figs. 20 and 21: the mobile is out of reach for a while, and the radio has no other losses.

use airtcp_basestation::Policy;

use super::course::Course;
use super::policies::{self, Bench, FREEZE_BIT, NOTES, Order, Point, picture};
use super::progress::{self, Progress};
use super::senders::SENDERS;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig20",
    what: "Mobile out of reach for 5 to 40 s, no errors: plain, snoop, tcp-ecn",
    source: "TCP-ECN 7.3, Fig. 20 and 21",
    seconds: 60,
    body,
    ..Experiment::STUDY
};

/// The times out of reach, in seconds, including that of Fig. 20.
const GONE: [f64; 5] = [5.0, 10.0, 20.0, FIG20, 40.0];
const FIG20: f64 = 31.4;
/// The length of the intervals before and after the outage in which the received data is compared,
/// in seconds.
const BESIDE: f64 = 20.0;
const DRAWN: usize = 1;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = policies::findings("gone, s");
    let mut bench = Bench { run, findings: &mut findings, at: gone };
    let mut all = Vec::new();
    let mut drawn = None;
    for (number, sender) in SENDERS.iter().enumerate() {
        for away in run.points(&GONE) {
            let course = Course { error: 0, gone: Some(away), seconds: 150, ..Course::PAPER };
            let (point, progress) = bench.watched(sender, &course)?;
            let place = format!("gone for {away} s");
            point.claim(bench.findings, &place, Policy::TcpEcn, Order::Above, Policy::Plain);
            point.claim(bench.findings, &place, Policy::Snoop, Order::Same, Policy::Plain);
            if away == FIG20 {
                claim_resumed(&mut bench, &point, &progress, sender.name);
                if number == DRAWN {
                    drawn = Some(progress::picture(&course, &progress, 0));
                }
            }
            all.push(point);
        }
    }
    let title = "Goodput over 150 s".to_owned();
    findings.picture("fig21", picture(title, "gone, s", &all, |_| true, gone));
    if let Some(drawn) = drawn {
        findings.picture("fig20", drawn);
        findings.note(format!("Fig. 20 is of {}, first seed", SENDERS[DRAWN].name));
    }
    findings.notes.extend(NOTES.map(str::to_owned));
    findings.note(AWAY);
    Ok(findings)
}

pub(super) const AWAY: &str = "The mobile leaves after 40 s (our choice), at the speed at which it would cross the 382.5 m between the coverage of \
     the paper's two base stations in that time, and returns to the same base station; the paper's moves to the other one.";

pub(super) fn gone(course: &Course) -> f64 {
    course.gone.unwrap_or_default()
}

/// TCP-ECN 7.3.2: the sender resumes where it left off; without TCP-ECN its window has shrunk.
fn claim_resumed(
    bench: &mut Bench<'_>,
    point: &Point,
    [plain, _, ecn]: &[Vec<Progress>; 3],
    sender: &str,
) {
    let Some((leaves, back)) = point.course.away(bench.run) else { return };
    let share = |progress: &Progress| {
        progress.grown(back, back + BESIDE) / progress.grown(leaves - BESIDE, leaves).max(1.0)
    };
    let of = |seeds: &[Progress]| Interval::of(&seeds.iter().map(share).collect::<Vec<_>>());
    let [plain, ecn] = [of(plain), of(ecn)];
    let what = |whose: &str| format!("{whose}: bytes in 20 s after it over 20 s before, {sender}");
    let timeouts = theory::show(&point.of(Policy::TcpEcn).timeouts, 1.0, 1);
    bench.findings.beside(point.is_beside(), |findings| {
        findings.mean(
            what("tcp-ecn"),
            "as before or more (above 0.9)",
            (&ecn, 2),
            Bound::Above(0.9),
            || format!("{timeouts} time-outs. Guess: {FREEZE_BIT}"),
        );
        findings.mean(
            what("plain"),
            "slower (below 0.9)",
            (&plain, 2),
            Bound::Below(0.9),
            theory::unknown,
        );
    });
}
