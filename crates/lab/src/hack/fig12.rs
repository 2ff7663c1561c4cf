//! Figures 12 to 19: bursts of corruption.

use super::course::{Course, HACK, HACK_SACK, HEADERS, SACK, each_profile};
use super::factor::NOT_ISOLATED;
use super::figure::{self, Sweep};
use super::notified::Notified;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/fig12",
    what: "HACK and SACK under bursts of 2 to 10 corrupted packets, 300 ms",
    source: "HACK 5.2, Fig. 12 to 19",
    seconds: 10,
    body,
    ..Experiment::STUDY
};

/// The number of packets in a burst.
const BURSTS: [u32; 9] = [2, 3, 4, 5, 6, 7, 8, 9, 10];
/// The per cent of packets at which a burst starts, and the paper's figures according to their
/// captions, which contradict its text: the first figure is for intact headers.
const SHARES: [(f64, [&str; 2]); 4] = [
    (2.0, ["fig16", "fig12"]),
    (5.0, ["fig17", "fig13"]),
    (10.0, ["fig18", "fig14"]),
    (15.0, ["fig19", "fig15"]),
];

/// Returns the courses with bursts over the long path.
pub(super) fn courses(run: &Run) -> impl Iterator<Item = (&'static str, Vec<Course>)> {
    let bursts = if run.is_small { &BURSTS[3..4] } else { &BURSTS[..] };
    let shares = if run.is_small { &SHARES[1..2] } else { &SHARES[..] };
    shares.iter().flat_map(move |(share, names)| {
        HEADERS.into_iter().zip(names).map(move |(header, name)| {
            let course = |burst| Course { share: *share, burst, header, ..Course::LONG };
            (*name, bursts.iter().copied().map(course).collect())
        })
    })
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = figure::findings("bursts, % | header hit, % | packets in a burst");
    let mut unfinished = 0;
    each_profile(&mut findings, |profile, findings| {
        let mut notified = Notified::default();
        for (name, courses) in courses(run) {
            let sweep = Sweep::measure(run, courses, profile, findings)?;
            let Course { share, header, .. } = sweep.courses[0];
            sweep.rows(findings, |course| {
                [course.share.to_string(), course.header.to_string(), course.burst.to_string()]
            });
            unfinished +=
                sweep.all().iter().flat_map(|o| o.iter()).map(|o| o.unfinished).sum::<u64>();
            if header == 0 {
                notified.add(&sweep, findings)?;
            }
            let place = format!("bursts {share} %, header hit {header} %");
            let why =
                if header > 0 { sweep.unread(findings)?.why() } else { NOT_ISOLATED.to_owned() };
            sweep.claim_above(findings, [HACK, SACK], &place, &why);
            sweep.claim_above(findings, [HACK_SACK, HACK], &place, NOT_ISOLATED);
            if sweep.is_papers() {
                let title =
                    format!("Bursts of corruption {share} %, 300 ms, header hit {header} %");
                let drawn =
                    sweep.throughput(title, "packets in a burst", |course| f64::from(course.burst));
                findings.picture(name, drawn);
            }
        }
        notified.claim(findings, profile);
        Ok(())
    })?;
    if unfinished > 0 {
        findings.note(format!("{unfinished} transfers were given up after 250 hours."));
    }
    Ok(findings)
}
