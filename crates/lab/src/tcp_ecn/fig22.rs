//! Figs. 22 and 23: errors on the radio, and the mobile is out of reach for a while.

use airtcp_basestation::Policy;

use super::course::Course;
use super::fig20::AWAY;
use super::policies::{self, Bench, NOTES, Order, Point};
use super::progress;
use super::senders::SENDERS;
use super::tries::{NS_2, PAPER, REORDERING, Tries};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig22",
    what: "Mobile out of reach for 21.5 and 33.56 s, by frame error rate",
    source: "TCP-ECN 7.4, Fig. 22 and 23",
    seconds: 130,
    body,
    ..Experiment::STUDY
};

/// Fig. 23: the tries, and the per cent of frames with errors.
const SWEEPS: [(Tries, &[u32]); 3] =
    [(PAPER, &[0, 10, 20, 30]), (REORDERING, &[0, 30]), (NS_2, &[0, 30])];
const DRAWN: usize = 1;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = policies::findings("frames hit, %");
    let mut bench = Bench { run, findings: &mut findings, at: |course| course.error.into() };
    let mut all = Vec::new();
    let mut drawn = None;
    let usual = Course { gone: Some(33.56), seconds: 150, ..Course::PAPER };
    for (number, sender) in SENDERS.iter().enumerate() {
        let fig22 = Course { error: 15, gone: Some(21.5), ..usual };
        let (point, progress) = bench.watched(sender, &fig22)?;
        claims(bench.findings, &point);
        if number == DRAWN {
            drawn = Some(progress::picture(&fig22, &progress, 0));
        }
        let course = |Course { tries, .. }, error| Course { error, ..usual.with_tries(tries) };
        all.extend(bench.sweeps(sender, &SWEEPS, course, |findings, points| {
            points.iter().for_each(|point| claims(findings, point));
            claim_flat(findings, points, sender.name);
            Ok(())
        })?);
    }
    let pictures = [("fig23", PAPER), ("fig23-fewer-tries", REORDERING)];
    let labels = ("Goodput over 150 s, gone for 33.56 s", "frames hit, %");
    bench.pictures(&pictures, labels, &all);
    if let Some(drawn) = drawn {
        findings.picture("fig22", drawn);
        findings.note(format!("Fig. 22 is of {}, first seed", SENDERS[DRAWN].name));
    }
    findings.notes.extend(NOTES.map(str::to_owned));
    findings.note(AWAY);
    Ok(findings)
}

/// TCP-ECN 7.4.2: TCP-ECN is above the others.
fn claims(findings: &mut Findings, point: &Point) {
    let Course { error, gone, .. } = point.course;
    let place = format!("{error} % hit, gone for {} s", gone.unwrap_or_default());
    for below in [Policy::Plain, Policy::Snoop] {
        point.claim(findings, &place, Policy::TcpEcn, Order::Above, below);
    }
}

/// TCP-ECN 7.4.2: almost uniform throughput in spite of the varying error rate.
fn claim_flat(findings: &mut Findings, points: &[Point], sender: &str) {
    let [first, .., last] = points else { return };
    let [none, most] = [first, last].map(|point| &point.of(Policy::TcpEcn).goodput);
    let ratio = theory::ratio(most, none);
    let verdict = theory::within(&ratio, (0.9, 1.1), || {
        format!(
            "{} Mbit/s without errors and {} with; guess: tries take air time; {} % are lost and {} % reordered after them",
            theory::show(none, 1e-6, 3),
            theory::show(most, 1e-6, 3),
            theory::show(&last.of(Policy::TcpEcn).lost, 1.0, 3),
            theory::show(&last.of(Policy::TcpEcn).reordered, 1.0, 3),
        )
    });
    let what = format!(
        "tcp-ecn: goodput at {} % over that at {} %, {} tries, {sender}",
        last.course.error,
        first.course.error,
        last.course.radio()
    );
    findings.beside(first.is_beside(), |findings| {
        findings.claim(what, "almost the same (0.9 to 1.1)", theory::show(&ratio, 1.0, 2), verdict);
    });
}
