//! Fig. 12: goodput over the wired side's delay.

use airtcp_basestation::Policy;

use super::course::Course;
use super::policies::{self, Bench, NOTES, Order, Point, picture};
use super::senders::SENDERS;
use super::tries::{NS_2, PAPER, REORDERING, Tries};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig12",
    what: "One pair by wired delay, frame error 20 %: plain, snoop, tcp-ecn",
    source: "TCP-ECN 7.2.1.2, Fig. 12",
    seconds: 300,
    body,
    ..Experiment::STUDY
};

/// The tries, and the one-way delays in ms. The paper has the points only in its picture.
const SWEEPS: [(Tries, &[u32]); 3] =
    [(PAPER, &[100, 200, 500]), (REORDERING, &[100, 500]), (NS_2, &[100, 200, 500])];
/// The share of the payload that the radio carries from which the radio is the limit.
const FULL: f64 = 0.8;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = policies::findings("wired delay, ms");
    let mut bench = Bench { run, findings: &mut findings, x: |course| course.delay.to_string() };
    let mut all = Vec::new();
    for sender in &SENDERS {
        for (tries, delays) in SWEEPS {
            let mut own = Vec::new();
            for delay in run.points(delays) {
                let course = Course { delay, ..Course::PAPER.with_tries(tries) };
                let point = bench.point(sender, &course)?;
                let place = format!("{delay} ms");
                for above in [Policy::TcpEcn, Policy::Snoop] {
                    point.claim(bench.findings, &place, above, Order::Above, Policy::Plain);
                }
                own.push(point);
            }
            if tries != REORDERING {
                claim_proportion(run, bench.findings, &own, sender.name)?;
            }
            all.extend(own);
        }
    }
    for (name, tries) in [("fig12", PAPER), ("fig12-fewer-tries", REORDERING), ("fig12-ns-2", NS_2)]
    {
        let of = Course::PAPER.with_tries(tries);
        let is_of = |course: &Course| Course { delay: of.delay, ..*course } == of;
        let title = format!("Goodput, 20 % of frames hit, {} tries", of.radio());
        let drawn = picture(title, "wired delay, ms", &all, is_of, |course| course.delay.into());
        findings.picture(name, drawn);
    }
    findings.notes.extend(NOTES.map(str::to_owned));
    Ok(findings)
}

/// TCP-ECN 7.2.1.2: goodput decreases in proportion to the delay with all three policies.
fn claim_proportion(
    run: &Run,
    findings: &mut Findings,
    points: &[Point],
    sender: &str,
) -> Result<(), LabError> {
    let [first, .., last] = points else { return Ok(()) };
    for policy in [Policy::Plain, Policy::Snoop, Policy::TcpEcn] {
        let of = |point: &Point| {
            theory::scaled(&point.of(policy).goodput, f64::from(point.course.delay))
        };
        let ratio = theory::ratio(&of(last), &of(first));
        let shares = [first.of_radio(run, policy)?, last.of_radio(run, policy)?];
        let [least, most] = [first, last].map(|point| point.course.delay);
        let verdict = theory::within(&ratio, (0.9, 1.1), || {
            let cause = if ratio.mean > 1.0 && shares[0].mean >= FULL {
                format!("guess: at {least} ms the radio is the limit, not the delay")
            } else {
                theory::unknown()
            };
            let [short, long] = shares.map(|share| theory::show(&share, 1.0, 2));
            format!("{short} of what the radio carries at {least} ms, {long} at {most} ms: {cause}")
        });
        let what = format!(
            "{}: goodput times delay, {most} over {least} ms, {} tries, {sender}",
            policy.name(),
            first.course.radio()
        );
        findings.beside(first.is_beside(), |findings| {
            let shown = theory::show(&ratio, 1.0, 2);
            findings.claim(what, "in proportion (0.9 to 1.1)", shown, verdict);
        });
    }
    Ok(())
}
