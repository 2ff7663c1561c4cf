//! Figs. 10, 15 and 16: the progress of streams at an error rate of 0.2, with one pair and with
//! two.

use airtcp_basestation::Policy;

use super::course::Course;
use super::policies::{self, Bench, NOTES, Order, Point};
use super::progress::picture;
use super::senders::SENDERS;
use super::tries::{NS_2, PAPER, REORDERING, Tries};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig10",
    what: "One and two pairs over 250 s, frame error 20 %: plain, snoop, tcp-ecn",
    source: "TCP-ECN 7.2, Fig. 10, 15 and 16",
    seconds: 150,
    body,
    ..Experiment::STUDY
};

/// The pictures, of the second sender, Reno with an unlimited window: name, pairs, tries, mobile.
const PICTURES: [(&str, u32, Tries, usize); 5] = [
    ("fig10", 1, PAPER, 0),
    ("fig15", 2, PAPER, 0),
    ("fig16", 2, PAPER, 1),
    ("fig10-fewer-tries", 1, REORDERING, 0),
    ("fig10-ns-2", 1, NS_2, 0),
];
const DRAWN: usize = 1;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = policies::findings("frames hit, %");
    let mut bench = Bench { run, findings: &mut findings, at: |course| course.error.into() };
    let mut drawn = Vec::new();
    for (number, sender) in SENDERS.iter().enumerate() {
        for tries in [PAPER, REORDERING, NS_2] {
            let mut both = Vec::new();
            for pairs in [1, 2] {
                let course = Course { pairs, ..Course::PAPER.with_tries(tries) };
                let (point, progress) = bench.watched(sender, &course)?;
                claims(bench.findings, &point);
                if number == DRAWN {
                    drawn.push((course, progress));
                }
                both.push(point);
            }
            if let [one, two] = both.as_slice() {
                claim_little_change(bench.findings, one, two, sender.name);
            }
        }
    }
    for (name, pairs, tries, mobile) in PICTURES {
        let wanted = Course { pairs, ..Course::PAPER.with_tries(tries) };
        if let Some((course, progress)) = drawn.iter().find(|(course, _)| *course == wanted) {
            findings.picture(name, picture(course, progress, mobile));
        }
    }
    findings.notes.extend(NOTES.map(str::to_owned));
    findings.note(format!("the pictures are of {}, first seed", SENDERS[DRAWN].name));
    Ok(findings)
}

/// TCP-ECN 7.2.1.2: the curves of TCP-ECN and Snoop coincide, and both are markedly above Reno's.
fn claims(findings: &mut Findings, point: &Point) {
    let place = "20 % hit";
    point.claim(findings, place, Policy::TcpEcn, Order::Same, Policy::Snoop);
    for above in [Policy::TcpEcn, Policy::Snoop] {
        point.claim(findings, place, above, Order::MarkedlyAbove, Policy::Plain);
    }
}

/// TCP-ECN 7.2.2.2: with two pairs there is little variation.
fn claim_little_change(findings: &mut Findings, one: &Point, two: &Point, sender: &str) {
    for policy in [Policy::TcpEcn, Policy::Snoop] {
        let ratio = theory::ratio(&two.of(policy).goodput, &one.of(policy).goodput);
        let what = format!(
            "{}: a pair of two over one alone, {} tries, {sender}",
            policy.name(),
            one.course.radio()
        );
        let verdict = theory::within(&ratio, (0.9, 1.1), || {
            let [one, two] = [one, two].map(|p| theory::show(&p.of(policy).goodput, 1e-6, 2));
            format!(
                "a pair alone has {one} Mbit/s, and each of two {two}; guess: they share the radio and its queue"
            )
        });
        let shown = theory::show(&ratio, 1.0, 2);
        findings.beside(one.is_beside(), |findings| {
            findings.claim(what, "little variation (0.9 to 1.1)", shown, verdict);
        });
    }
}
