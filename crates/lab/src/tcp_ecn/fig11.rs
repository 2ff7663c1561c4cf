//! Fig. 11: goodput over the radio's error rate.

use airtcp_basestation::Policy;

use super::course::Course;
use super::policies::{self, Bench, NOTES, Order, picture};
use super::senders::SENDERS;
use super::tries::{LOSING, NS_2, PAPER, REORDERING, Tries};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig11",
    what: "One pair by frame error rate, 500 ms: plain, snoop, tcp-ecn",
    source: "TCP-ECN 7.2, Fig. 11",
    seconds: 240,
    body,
    ..Experiment::STUDY
};

/// The tries, and the per cent of frames with errors.
const SWEEPS: [(Tries, &[u32]); 4] =
    [(PAPER, &[0, 10, 20, 30]), (REORDERING, &[20, 30]), (LOSING, &[20]), (NS_2, &[0, 10, 20, 30])];
/// The lowest error rate that the paper calls high, in per cent.
const HIGH: u32 = 30;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = policies::findings("frames hit, %");
    let mut bench = Bench { run, findings: &mut findings, x: |course| course.error.to_string() };
    let mut all = Vec::new();
    for sender in &SENDERS {
        for (tries, errors) in SWEEPS {
            for error in run.points(errors) {
                let course = Course { error, ..Course::PAPER.with_tries(tries) };
                let point = bench.point(sender, &course)?;
                let place = format!("{error} % hit");
                // TCP-ECN 7.2.1.2: both policies are above Reno at all error rates, and Snoop falls
                // off at high ones.
                for above in [Policy::TcpEcn, Policy::Snoop].into_iter().filter(|_| error > 0) {
                    point.claim(bench.findings, &place, above, Order::Above, Policy::Plain);
                }
                if error >= HIGH {
                    point.claim(
                        bench.findings,
                        &place,
                        Policy::TcpEcn,
                        Order::Above,
                        Policy::Snoop,
                    );
                }
                all.push(point);
            }
        }
    }
    for (name, tries) in [("fig11", PAPER), ("fig11-fewer-tries", REORDERING), ("fig11-ns-2", NS_2)]
    {
        let of = Course::PAPER.with_tries(tries);
        let is_of = |course: &Course| Course { error: of.error, ..*course } == of;
        let title = format!("Goodput, {} tries", of.radio());
        let drawn = picture(title, "frames hit, %", &all, is_of, |course| course.error.into());
        findings.picture(name, drawn);
    }
    findings.notes.extend(NOTES.map(str::to_owned));
    Ok(findings)
}
