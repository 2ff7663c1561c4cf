//! Table 20 with real packets to Linux' receiver, with Linux' sender beside ours.

use super::transfer::{self, BACK, Outcome, POINTS, Sender};
use crate::paper::{self, LINUX_2_4};
use crate::prelude::*;
use crate::real::{Course, Tcp};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/table20-real",
    what: "dcr/table20 with real packets to a Linux receiver, with Linux reno",
    source: "DCR 6, Fig. 20 (\"Table 20\")",
    ground: Ground::Real,
    seconds: 480,
    seeds: 2,
    body,
    ..Experiment::STUDY
};

/// Returns the senders with their deviations: all of the paper's for the combination that resembles
/// the paper's sender, and the extremes for the others, because every run takes half a minute.
fn senders() -> [(&'static str, Tcp, &'static [u32]); 3] {
    let ours = |text| Tcp::ours(text, paper::profile(LINUX_2_4));
    [
        ("sack/reno/dcr:count, linux-2.4", ours(transfer::AS_THE_PAPER), &[0, 1, 2, 3]),
        ("sack/reno, linux-2.4", ours("sack/reno"), &[0, 3]),
        ("Linux reno", Tcp::Kernel(Some("reno")), &[0, 3]),
    ]
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let senders = senders();
    let mut findings = transfer::table();
    let mut runs = Vec::new();
    // A small run has only the first.
    for (deviation, ..) in POINTS.into_iter().take(if run.is_small { 1 } else { POINTS.len() }) {
        for seed in 1..=run.seeds {
            for (sender, tcp, _) in senders.iter().filter(|(.., at)| at.contains(&deviation)) {
                runs.push(transfer(run, (sender, tcp), deviation, seed, &mut findings)?);
            }
        }
    }
    let sender = |(name, ..): &(&str, Tcp, &[u32])| {
        let at = |deviation: u32| {
            let case = |run: &&Fields| run.is("sender", *name) && run.is("deviation", deviation);
            outcome(deviation, runs.iter().filter(case).collect())
        };
        let outcomes = POINTS.iter().filter_map(|(deviation, ..)| at(*deviation)).collect();
        let combination = name.split(',').next().unwrap_or(name).to_owned();
        Sender { name: (*name).to_owned(), combination, outcomes }
    };
    transfer::show(&mut findings, &senders.iter().map(sender).collect::<Vec<_>>(), "table20-real");
    findings.note(
        "The senders take turns. A run whose link was late by more than a tenth of the round-trip time with more than one \
         packet in a hundred is made again, up to three times in all, and one that is late then counts only where no \
         other is in time. Other profiles and senders are in dcr/table20.",
    );
    Ok(findings)
}

/// Returns the outcome of the runs that were on time, or of all runs if none was.
fn outcome(deviation: u32, mut runs: Vec<&Fields>) -> Option<Outcome> {
    let all = runs.len();
    let is_in_time = |run: &&Fields| run.is("is_in_time", true);
    let unfit = (!runs.iter().any(is_in_time))
        .then(|| format!("the link was late in all {all} runs: use an idle machine"));
    if unfit.is_none() {
        runs.retain(is_in_time);
    }
    let of =
        |field| Interval::of(&runs.iter().filter_map(|run| run.number(field)).collect::<Vec<_>>());
    let (goodput, disordered) = (of("goodput"), of("disordered"));
    (all > 0).then_some(Outcome { deviation, goodput, disordered, unfit })
}

/// Returns the goodput in bit/s, the per cent of reordered packets, and the 99th percentile of the
/// link's packet lateness in seconds.
fn transfer(
    run: &Run,
    (sender, tcp): (&str, &Tcp),
    deviation: u32,
    seed: u64,
    findings: &mut Findings,
) -> Result<Fields, LabError> {
    let forth = format!("{} seed {seed}", transfer::forth(deviation));
    let times = (Duration::ZERO, transfer::time(run));
    let course = Course::to_linux(tcp, (&forth, BACK), times)?;
    let place = fields! { sender, deviation };
    findings.transfer(run, seed, &place, &course, |done| {
        let share = done.link.reordered as f64 / done.link.forwarded.max(1) as f64;
        fields! {
            goodput: done.goodput(),
            retransmissions: done.retransmissions(),
            disordered: share * 100.0,
            dropped: done.link.queue_dropped,
            lateness: done.lateness,
            is_in_time: done.is_in_time(&course),
        }
    })
}
