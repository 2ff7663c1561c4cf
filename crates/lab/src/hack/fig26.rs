//! Figures 26 to 31: transfers that the receiver's window limits.

use super::course::{Course, HACK, HACK_SACK, Outcome, SACK, each_profile};
use super::factor::{Factor, NOT_ISOLATED};
use super::figure::{self, Sweep};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/fig26",
    what: "hack/fig12 with windows of 16 and 64 KB, 95 % of headers corrupted",
    source: "HACK 5.3, Fig. 26 to 31",
    seconds: 9,
    body,
    ..Experiment::STUDY
};

/// The window in KiB, and the paper's figure for each share.
const WINDOWS: [(u64, [&str; 3]); 2] =
    [(16, ["fig26", "fig27", "fig28"]), (64, ["fig29", "fig30", "fig31"])];
/// The per cent of packets at which a burst starts.
const SHARES: [f64; 3] = [2.0, 5.0, 10.0];
/// The number of packets in a burst.
const BURSTS: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

fn courses(run: &Run) -> impl Iterator<Item = (u64, &'static str, Vec<Course>)> {
    let bursts = if run.is_small { &BURSTS[4..5] } else { &BURSTS[..] };
    let shares = if run.is_small { &SHARES[1..2] } else { &SHARES[..] };
    WINDOWS.iter().flat_map(move |(kib, names)| {
        shares.iter().zip(names).map(move |(share, name)| {
            let window = Some(ByteCount::from_kib(*kib));
            let course =
                |burst| Course { share: *share, burst, header: 95, window, ..Course::LONG };
            (*kib, *name, bursts.iter().copied().map(course).collect())
        })
    })
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = figure::findings("window, KB | bursts, % | packets in a burst");
    each_profile(&mut findings, |profile, findings| {
        // For each window, the outcomes at all points.
        let mut wholes: Vec<(u64, [Vec<Outcome>; 2])> = Vec::new();
        for (kib, name, courses) in courses(run) {
            let sweep = Sweep::measure(run, courses, profile, findings)?;
            let share = sweep.courses[0].share;
            sweep.rows(findings, |course| {
                [kib.to_string(), course.share.to_string(), course.burst.to_string()]
            });
            let place = format!("window {kib} KB, bursts {share} %");
            if sweep.is_papers() {
                let title = format!("Window {kib} KB, bursts {share} %, header hit 95 %");
                let drawn =
                    sweep.throughput(title, "packets in a burst", |course| f64::from(course.burst));
                findings.picture(name, drawn);
            }
            let why = sweep.unread(findings)?.why();
            sweep.claim_above(findings, [HACK, SACK], &place, &why);
            sweep.claim_above(findings, [HACK_SACK, HACK], &place, NOT_ISOLATED);
            if wholes.last().is_none_or(|(of, _)| *of != kib) {
                wholes.push((kib, [const { Vec::new() }; 2]));
            }
            if let Some((_, [sack, hack])) = wholes.last_mut() {
                sack.extend(sweep.sack);
                hack.extend(sweep.hack);
            }
        }
        let mut factors = wholes.iter().map(|(_, [sack, hack])| Factor::of(hack, sack).mean);
        if let (Some(small), Some(large)) = (factors.next(), factors.next()) {
            let measured = [small, large].map(|factor| theory::show(&factor, 1.0, 2)).join(" and ");
            findings.claim(
                format!("HACK over SACK with windows of 16 and of 64 KB, {}", profile.name),
                "more with 16",
                format!("{measured} times"),
                theory::above(&theory::ratio(&small, &large), 1.0, || NOT_ISOLATED.to_owned()),
            );
        }
        Ok(())
    })?;
    Ok(findings)
}
