//! Table 20 with real packets, to Linux' receiver, and Linux' sender beside ours.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use serde::Serialize;

use super::transfer::{self, BACK, Outcome, POINTS, Sender};
use crate::real::{Course, Flow, Tcp};
use crate::{Experiment, Findings, Ground, LabError, Run, feed};

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

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    sender: &'a str,
    /// ms.
    deviation: u32,
    /// bit/s.
    goodput: f64,
    retransmissions: u64,
    /// Per cent.
    disordered: f64,
    dropped: u64,
    /// Seconds that 99 % of the packets were not exceeding.
    lateness: f64,
    is_in_time: bool,
}

/// Who sends, and at which deviations: all of the paper's for what is as the paper's sender, and
/// for what it is compared with the ends, as every run takes half a minute.
fn senders() -> [(&'static str, Tcp, &'static [u32]); 3] {
    let ours = |text| Tcp::ours(text, Profile::paper());
    [
        ("sack/reno/dcr:count, paper", ours(transfer::AS_THE_PAPER), &[0, 1, 2, 3]),
        ("sack/reno, paper", ours("sack/reno"), &[0, 3]),
        ("Linux reno", Tcp::Kernel(Some("reno")), &[0, 3]),
    ]
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let senders = senders();
    let mut done = senders.each_ref().map(|(name, ..)| Sender {
        name: (*name).to_owned(),
        combination: name.split(',').next().unwrap_or(name).to_owned(),
        outcomes: Vec::new(),
    });
    let mut records = Vec::new();
    // A small form only has the first.
    let points = POINTS.into_iter().take(if run.is_small { 1 } else { POINTS.len() });
    for (deviation, ..) in points {
        let runs = measure(run, &senders, deviation)?;
        for sender in &mut done {
            let of_sender = runs.iter().filter(|record| record.sender == sender.name);
            sender.outcomes.extend(outcome(deviation, of_sender));
        }
        records.extend(runs);
    }
    let keep = |findings: &mut Findings| records.iter().try_for_each(|r| findings.record(r));
    let mut findings = transfer::findings(
        done.into(),
        keep,
        "table20-real",
        "hypothesis: more packets are late by more than a smoothed round trip",
    )?;
    findings.note(
        "The senders take turns. A run whose link was late by more than a tenth of the round-trip time with more than one \
         packet in a hundred is made again, up to three times in all, and one that is late then counts only where no \
         other is in time. The modern profile, and more senders, are in dcr/table20.",
    );
    Ok(findings)
}

/// Of those runs that were in time, or of all if none was.
fn outcome<'a>(
    deviation: u32,
    runs: impl Iterator<Item = &'a Record<'a>> + Clone,
) -> Option<Outcome> {
    let all = runs.clone().count();
    let in_time: Vec<_> = runs.clone().filter(|record| record.is_in_time).collect();
    let unfit = in_time
        .is_empty()
        .then(|| format!("the link was late in all {all} runs: use an idle machine"));
    let counted = if in_time.is_empty() { runs.collect() } else { in_time };
    let of = |value: fn(&Record<'_>) -> f64| {
        Interval::of(&counted.iter().map(|record| value(record)).collect::<Vec<_>>())
    };
    let (goodput, disordered) = (of(|r| r.goodput), of(|r| r.disordered));
    (all > 0).then_some(Outcome { deviation, goodput, disordered, unfit })
}

/// Every run of every sender that has this point.
fn measure(
    run: &Run,
    senders: &[(&'static str, Tcp, &'static [u32])],
    deviation: u32,
) -> Result<Vec<Record<'static>>, LabError> {
    let end = transfer::time(run);
    let mut records = Vec::new();
    for seed in 1..=run.seeds {
        for (sender, tcp, _) in senders.iter().filter(|(.., at)| at.contains(&deviation)) {
            let course = Course {
                flows: vec![Flow::new(tcp.clone())],
                receiver: Tcp::Kernel(None),
                forth: feed::spec(&format!("{} seed {seed}", transfer::forth(deviation)))?,
                back: feed::spec(BACK)?,
                warm_up: Duration::ZERO,
                end,
            };
            let done = course.run_in_time(run)?;
            let share = done.link.reordered as f64 / done.link.forwarded.max(1) as f64;
            records.push(Record {
                seed,
                sender,
                deviation,
                goodput: done.goodput(),
                retransmissions: done.retransmissions(),
                disordered: share * 100.0,
                dropped: done.link.queue_dropped,
                lateness: done.lateness,
                is_in_time: done.is_in_time(&course),
            });
        }
    }
    Ok(records)
}
