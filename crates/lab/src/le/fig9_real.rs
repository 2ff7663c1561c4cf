//! Figure 9 at 10 % loss with real packets: our senders to a Linux receiver.

use super::controls;
use super::testbed;
use crate::paper::{self, LINUX_2_6};
use crate::prelude::*;
use crate::real::{Course, Tcp, late};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig9-real",
    what: "le/fig9 at 10 % loss and 7 Mbit/s with real packets to a Linux receiver",
    source: "LE 5.1 and 5.2, Fig. 9",
    ground: Ground::Real,
    seconds: 420,
    seeds: 5,
    body,
    ..Experiment::STUDY
};

/// The rate at which LE with RR is closest to the paper's 6 Mbit/s in le/fig9.
const MBIT: &str = "7";

fn body(run: &Run) -> Result<Findings, LabError> {
    let form = "westwood-plus";
    let [fack, le] = ["fack", "le"].map(|detection| format!("{detection}/{form}"));
    let senders = [fack.as_str(), &le, testbed::FACK_RR, testbed::LE_RR];
    let mut findings = Findings::new("sender | goodput, Mbit/s | retransmissions | late runs");
    let mut runs = Vec::new();
    // The senders take turns.
    for seed in 1..=run.seeds {
        for sender in senders {
            runs.push(transfer(run, sender, seed, &mut findings)?);
        }
    }
    let of = |sender: &str, field: &str| -> Vec<f64> {
        let own = runs.iter().filter(|run| run.is("sender", sender));
        own.filter_map(|run| run.number(field)).collect()
    };
    for sender in senders {
        let show =
            |field, unit, decimals| theory::show(&Interval::of(&of(sender, field)), unit, decimals);
        let late = of(sender, "late").iter().sum::<f64>().to_string();
        let (goodput, again) = (show("goodput", 1e-6, 2), show("retransmissions", 1.0, 0));
        findings.table.row([sender.to_owned(), goodput, again, late]);
    }
    let late_runs: f64 = senders.iter().flat_map(|sender| of(sender, "late")).sum();
    for stated in testbed::with_westwood(form).iter().chain([&testbed::with_rr()]) {
        let goodput = |sender: &str| {
            let values = of(sender, "goodput");
            (!values.is_empty()).then(|| theory::scaled(&Interval::of(&values), 1e-6))
        };
        let Some(figure) = stated.figure(goodput) else { continue };
        let verdict = match late_runs {
            0.0 => stated.bound.verdict(&figure, theory::unknown),
            _ => late(late_runs as u64, runs.len() as u64),
        };
        let (what, shown) = (stated.what(), theory::show(&figure, 1.0, 2));
        findings.claim(format!("{what}, 10 % lost, {MBIT} Mbit/s"), stated.claimed, shown, verdict);
    }
    let line = |sender: &&str| {
        let runs = (1..).zip(of(sender, "goodput"));
        let points = runs.map(|(run, goodput)| draw::point(f64::from(run), goodput * 1e-6));
        draw::series(*sender, Style::Marks, points.collect())
    };
    let title = "Fig. 9 with real packets: 10 % loss, 7 Mbit/s, round trip of 20 ms";
    findings.plot(
        "fig9-real",
        title,
        (draw::linear("run"), draw::goodput()),
        senders.iter().map(line),
    );
    findings.note(
        "Our sender has the profile linux-2.6, the receiver is Linux. A transfer takes 20 s; one whose link was late is made again, up to \
         three times in all.",
    );
    Ok(findings)
}

fn transfer(
    run: &Run,
    sender: &str,
    seed: u64,
    findings: &mut Findings,
) -> Result<Fields, LabError> {
    let back = testbed::link(MBIT);
    let forth = format!("{back} loss 10% only payload seed {seed}");
    let end = Duration::from_secs(if run.is_small { 1 } else { 20 });
    let tcp = Tcp::Ours(controls::combine(sender), paper::profile(LINUX_2_6));
    let course = Course::to_linux(&tcp, (&forth, &back), (Duration::ZERO, end))?;
    findings.transfer(run, seed, &fields! { sender }, &course, |done| {
        fields! {
            goodput: done.goodput(),
            retransmissions: done.retransmissions(),
            lateness: done.lateness,
            late: u64::from(!done.is_in_time(&course)),
        }
    })
}
