//! Fig. 13: goodput over loss on the wired side.

use airtcp_basestation::Policy;

use super::course::Course;
use super::policies::{self, Bench, NOTES, Order, picture};
use super::senders::SENDERS;
use super::tries::{NS_2, PAPER, REORDERING};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig13",
    what: "One pair by wired loss, frame error 20 %: plain, snoop, tcp-ecn",
    source: "TCP-ECN 7.2.1.2, Fig. 13",
    seconds: 60,
    body,
    ..Experiment::STUDY
};

/// The loss of data packets, in per cent. The paper has the points only in its picture.
const LOSSES: [f64; 3] = [0.1, 1.0, 5.0];
/// The lowest loss that counts as high, in per cent.
const HIGH: f64 = 5.0;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = policies::findings("wired loss, %");
    let mut bench = Bench { run, findings: &mut findings, x: |course| course.loss.to_string() };
    let mut all = Vec::new();
    for sender in &SENDERS {
        for tries in [PAPER, REORDERING, NS_2] {
            for loss in run.points(&LOSSES) {
                let course = Course { loss, ..Course::PAPER.with_tries(tries) };
                let point = bench.point(sender, &course)?;
                let (findings, place) = (&mut *bench.findings, format!("{loss} % lost"));
                for below in [Policy::Plain, Policy::Snoop] {
                    point.claim(findings, &place, Policy::TcpEcn, Order::Above, below);
                }
                if loss >= HIGH {
                    point.claim(findings, &place, Policy::Snoop, Order::Below, Policy::Plain);
                    point.claim(findings, &place, Policy::TcpEcn, Order::Same, Policy::Plain);
                }
                all.push(point);
            }
        }
    }
    for (name, tries) in [("fig13", PAPER), ("fig13-fewer-tries", REORDERING), ("fig13-ns-2", NS_2)]
    {
        let of = Course::PAPER.with_tries(tries);
        let is_of = |course: &Course| Course { loss: of.loss, ..*course } == of;
        let title = format!("Goodput, 20 % of frames hit, {} tries", of.radio());
        let drawn = picture(title, "wired loss, %", &all, is_of, |course| course.loss);
        findings.picture(name, drawn);
    }
    findings.notes.extend(NOTES.map(str::to_owned));
    Ok(findings)
}
