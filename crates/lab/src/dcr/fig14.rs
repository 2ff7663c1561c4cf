//! Figs. 14 and 15: delivery times of packets, and RTT samples, with congestion as the only event.

use airtcp_sim::RunResult;

use super::PAPERS;
use super::congested::{RANDOM_WAIT, network};
use super::delivery::Delivery;
use crate::paper::Printed;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig14",
    what: "Delivery times and RTT samples in the scenarios of dcr/table16",
    source: "DCR 5.2 and 5.3, Fig. 14 and 15",
    seconds: 60,
    body,
    ..Experiment::STUDY
};

const DCR: &str = "sack/reno/dcr:count";
const SACK: &str = "sack/reno";
/// The paper's number of a scenario and its senders, each with the printed mean delivery time of
/// retransmitted packets, in ms.
const SCENARIOS: [(u32, &[(&str, f64)]); 3] =
    [(1, &[(DCR, 207.0)]), (2, &[(SACK, 178.0)]), (3, &[(DCR, 201.0), (SACK, 182.0)])];

/// The time of a packet on the bottleneck, and the time on the whole path without queues: 12 ms and
/// three times the former. In ms.
const PACKET: f64 = 0.832;
const EMPTY: f64 = 12.0 + 3.0 * PACKET;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | scenario | sender | delivery, ms | of packets sent again, ms | RTT, ms",
    );
    let numbers = SCENARIOS.map(|(number, _)| number);
    let axes = vec![Axis::new("profile", [PAPERS, "modern"]), Axis::new("scenario", numbers)];
    let grid = Grid::run(run, axes, |point, seed| {
        let number = point.number("scenario") as u32;
        let (result, delivery) = one(run, &point.text("profile"), number, seed)?;
        Ok([DCR, SACK].iter().fold(Fields::default(), |fields, sender| {
            let all = result.flows.iter().zip(&delivery.flows);
            let flows: Vec<_> = all.filter(|(flow, _)| flow.combination == *sender).collect();
            let times = |is_again| {
                let all = flows.iter().flat_map(|(_, segments)| &segments.delivered);
                mean(all.filter(|one| one.is_again == is_again).map(|one| one.took))
            };
            fields
                .with(format!("{sender} delivery"), times(false))
                .with(format!("{sender} again"), times(true))
                .with(format!("{sender} rtt"), mean(flows.iter().map(|(flow, _)| flow.rtt.mean)))
        }))
    })?;
    grid.record(&mut findings, &["profile", "scenario"])?;
    for row in grid.all().rows(&["profile", "scenario"]) {
        for sender in [DCR, SACK].into_iter().filter(|of| row.mean(&format!("{of} rtt")).n > 0) {
            let show = |what| row.show(&format!("{sender} {what}"), 1e3, 1);
            let [delivery, again, rtt] = ["delivery", "again", "rtt"].map(show);
            let [profile, scenario] = ["profile", "scenario"].map(|axis| row.text(axis));
            findings.table.row([profile, scenario, sender.to_owned(), delivery, again, rtt]);
        }
    }
    judge(&mut findings, &grid.all().at("profile", PAPERS));
    draw_one(run, &mut findings)?;
    Ok(findings)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn one(
    run: &Run,
    profile: &str,
    number: u32,
    seed: u64,
) -> Result<(RunResult, Delivery), LabError> {
    let (_, senders) = SCENARIOS[number as usize - 1];
    let senders: Vec<&str> = senders.iter().map(|(sender, _)| *sender).collect();
    let profile = profile.parse().expect("a profile");
    let network = network(&senders, &profile, RANDOM_WAIT)?;
    let duration = Duration::from_secs(if run.is_small { 5 } else { 200 });
    let scenario = Scenario { duration, samples: true, ..network };
    simulate::once_watched(simulate::staggered(&scenario, seed), seed, Delivery::new)
}

fn judge(findings: &mut Findings, paper: &Slice<'_>) {
    let of = |number: u32, sender: &str, what: &str| {
        theory::scaled(&paper.at("scenario", number).mean(&format!("{sender} {what}")), 1e3)
    };
    for (number, senders) in SCENARIOS {
        for (sender, figure) in senders {
            let place = format!("scenario {number}, {sender}");
            let [again, usual] = ["again", "delivery"].map(|what| of(number, sender, what));
            let why = "the paper shows one flow of one run; the cause of the difference was not determined";
            let what = "mean delivery time of packets sent again, ms";
            let printed = Printed { what, figure: *figure, decimals: 0 };
            findings.printed(&printed, &place, &again, why);
            let why = || {
                let queue = (usual.mean - EMPTY) / PACKET;
                format!(
                    "{queue:.0} packets are before one in the queue here, 44 in the paper's Table 16"
                )
            };
            let what = format!("that of the others, ms, {place}");
            findings.mean(
                what,
                "around 50 (45 to 55)",
                (&usual, 0),
                Bound::Within(45.0, 55.0),
                why,
            );
        }
    }
    let [late, early] = [of(1, DCR, "again"), of(2, SACK, "again")];
    let rtt = of(2, SACK, "rtt");
    let extra = theory::ratio(&theory::difference(&late, &early), &rtt);
    let shown = || {
        format!(
            "a lost packet takes {:.0} ms longer, at an RTT of {:.0} ms",
            late.mean - early.mean,
            rtt.mean
        )
    };
    findings.mean("delay that DCR in all flows adds to the delivery of a retransmission, in RTTs of SACK in all flows", "up to about 1 (0 to 1.1)", (&extra, 2), Bound::Within(0.0, 1.1), shown);
    for (what, field) in [("delivery time of packets not sent again", "delivery"), ("RTT", "rtt")] {
        let ratio = theory::ratio(&of(1, DCR, field), &of(2, SACK, field));
        let why = theory::unknown;
        findings.mean(
            format!("{what}, all DCR over all SACK"),
            "the same (0.9 to 1.1)",
            (&ratio, 2),
            Bound::Within(0.9, 1.1),
            why,
        );
    }
}

/// Draws the first 20 s of a flow of each kind, with seed 1.
fn draw_one(run: &Run, findings: &mut Findings) -> Result<(), LabError> {
    let [mut times, mut samples] = [const { Vec::new() }; 2];
    for (number, senders) in SCENARIOS {
        let (result, delivery) = one(run, PAPERS, number, 1)?;
        for (sender, _) in senders {
            let mut flows = result.flows.iter().zip(&delivery.flows);
            let Some((flow, of)) = flows.find(|(flow, _)| flow.combination == *sender) else {
                continue;
            };
            let took = of.delivered.iter().map(|one| (one.at, one.took)).collect();
            let rtts = flow.samples.as_ref().map_or(Vec::new(), |samples| samples.rtt.clone());
            for (series, of) in [(&mut times, took), (&mut samples, rtts)] {
                let early = of.into_iter().filter(|(at, _)| *at < 20.0);
                let points = early.map(|(at, took)| draw::point(at, took * 1e3)).collect();
                let name = format!("scenario {number}: {sender}");
                series.push(draw::series(name, Style::Marks, points));
            }
        }
    }
    for (name, y, series) in [("fig14", "delivery time, ms", times), ("fig15", "RTT, ms", samples)]
    {
        let title = format!("One flow of twelve on 10 Mbit/s, {PAPERS} profile");
        findings.plot(name, title, (draw::linear("time, s"), draw::log(&draw::less(y))), series);
    }
    Ok(())
}
