//! Figures 26 to 31: windows that limit.

use airtcp_recovery::Profile;
use airtcp_types::ByteCount;

use super::course::{Course, Outcome};
use super::factor::{Factor, NOT_ISOLATED};
use super::figure::{Sweep, throughput};
use crate::{Experiment, Findings, LabError, Run, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/fig26",
    what: "hack/fig12 with windows of 16 and 64 KB, 95 % of headers corrupted",
    source: "HACK 5.3, Fig. 26 to 31",
    seconds: 6,
    body,
    ..Experiment::STUDY
};

/// KiB, and the paper's figures at each share.
const WINDOWS: [(u64, [&str; 3]); 2] =
    [(16, ["fig26", "fig27", "fig28"]), (64, ["fig29", "fig30", "fig31"])];
/// Per cent of packets at which a burst starts.
const SHARES: [f64; 3] = [2.0, 5.0, 10.0];
/// Packets in a burst.
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
    let mut findings = Findings::new([
        "profile",
        "window, KB",
        "bursts, %",
        "packets in a burst",
        "NewReno, kbit/s",
        "SACK",
        "HACK",
        "HACK + SACK",
        "time-outs of each",
    ]);
    for profile in [Profile::paper(), Profile::modern()] {
        // Of each window all points.
        let mut wholes: Vec<(u64, [Vec<Outcome>; 3])> = Vec::new();
        for (kib, name, courses) in courses(run) {
            let sweep = Sweep::measure(run, &courses, &profile, &mut findings)?;
            let share = courses[0].share;
            sweep.rows(&courses, &profile, &mut findings, |course| {
                [kib.to_string(), course.share.to_string(), course.burst.to_string()]
            });
            let place = format!("window {kib} KB, bursts {share} %, {}", profile.name);
            if profile.name == Profile::paper().name {
                let title = format!("Window {kib} KB, bursts {share} %, header hit 95 %");
                let xs: Vec<f64> = courses.iter().map(|course| f64::from(course.burst)).collect();
                let axes = ["packets in a burst", "throughput, kbit/s"];
                findings.picture(name, sweep.draw(title, axes, &xs, throughput));
            }
            let why = sweep.unread(run, &courses, &profile, &mut findings)?.why();
            let Sweep { sack, hack, both, .. } = sweep;
            let what = format!("HACK over SACK, {place}");
            Factor::of(&hack, &sack).claim_above(&mut findings, what, &why);
            let what = format!("HACK + SACK over HACK, {place}");
            Factor::of(&both, &hack).claim_above(&mut findings, what, NOT_ISOLATED);
            if wholes.last().is_none_or(|(of, _)| *of != kib) {
                wholes.push((kib, [Vec::new(), Vec::new(), Vec::new()]));
            }
            if let Some((_, whole)) = wholes.last_mut() {
                whole.iter_mut().zip([sack, hack, both]).for_each(|(all, some)| all.extend(some));
            }
        }
        let mut factors = wholes.iter().map(|(_, [sack, hack, _])| Factor::of(hack, sack).mean);
        if let (Some(small), Some(large)) = (factors.next(), factors.next()) {
            let measured = [small, large].map(|factor| theory::show(&factor, 1.0, 2)).join(" and ");
            findings.claim(
                format!("HACK over SACK with windows of 16 and of 64 KB, {}", profile.name),
                "more with 16",
                format!("{measured} times"),
                theory::above(&theory::ratio(&small, &large), 1.0, || NOT_ISOLATED.to_owned()),
            );
        }
    }
    Ok(findings)
}
