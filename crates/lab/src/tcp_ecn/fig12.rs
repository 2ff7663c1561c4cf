//! Fig. 12: goodput over the wired side's delay.

use airtcp_basestation::Policy;

use super::course::Course;
use super::policies::{Order, Point, Swept};
use super::tries::{NS_2, PAPER, REORDERING, Tries};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig12",
    what: "One pair by wired delay, frame error 20 %: plain, snoop, tcp-ecn",
    source: "TCP-ECN 7.2.1.2, Fig. 12",
    seconds: 300,
    body: |run| SWEPT.run(run),
    ..Experiment::STUDY
};

/// The tries, and the one-way delays in ms. The paper has the points only in its picture.
const SWEEPS: [(Tries, &[u32]); 3] =
    [(PAPER, &[100, 200, 500]), (REORDERING, &[100, 500]), (NS_2, &[100, 200, 500])];
/// The share of the payload that the radio carries from which the radio is the limit.
const FULL: f64 = 0.8;

const SWEPT: Swept<u32> = Swept {
    x: "wired delay, ms",
    at: |course| course.delay.into(),
    course: |base, delay| Course { delay, ..base },
    sweeps: &SWEEPS,
    title: "Goodput, 20 % of frames hit",
    pictures: &[("fig12", PAPER), ("fig12-fewer-tries", REORDERING), ("fig12-ns-2", NS_2)],
    judge: |run, findings, points| {
        for point in points {
            let place = format!("{} ms", point.course.delay);
            for above in [Policy::TcpEcn, Policy::Snoop] {
                point.claim(findings, &place, above, Order::Above, Policy::Plain);
            }
        }
        claim_proportion(run, findings, points)
    },
};

/// TCP-ECN 7.2.1.2: goodput decreases in proportion to the delay with all three policies.
fn claim_proportion(run: &Run, findings: &mut Findings, points: &[Point]) -> Result<(), LabError> {
    let [first, .., last] = points else { return Ok(()) };
    if first.course.tries == REORDERING {
        return Ok(());
    }
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
            "{}: goodput times delay, {most} over {least} ms, {} tries, {}",
            policy.name(),
            first.course.radio(),
            first.sender.name
        );
        findings.beside(first.is_beside(), |findings| {
            let shown = theory::show(&ratio, 1.0, 2);
            findings.claim(what, "in proportion (0.9 to 1.1)", shown, verdict);
        });
    }
    Ok(())
}
