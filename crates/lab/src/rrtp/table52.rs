//! RRTP, Table 5.2: five protocols on one link of 54 Mbit/s.

use std::time::Duration;

use airtcp_sim::{Interval, Scenario, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use super::network::{NEW_RENO, RENO, SETUP, VEGAS, WESTWOOD, flow, named};
use crate::{
    Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, feed, simulate, theory,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table5.2",
    what: "Shares of Reno, NewReno, Vegas, Westwood and RRTP, error 0 to 5 %",
    source: "RRTP (Wang 2009) 5.2, Table 5.2; delay, queue and time are not stated",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 120,
    seeds: 10,
    body,
};

/// Per cent, and hundredths of Mbit/s, which is what the thesis prints.
const TABLE: [(f64, [u32; 5]); 5] = [
    (0.0, [896, 896, 896, 896, 896]),
    (0.1, [628, 633, 837, 738, 882]),
    (0.5, [408, 422, 509, 721, 789]),
    (1.0, [298, 302, 306, 586, 697]),
    (5.0, [116, 116, 97, 223, 245]),
];
const SENDERS: [&str; 5] = [RENO, NEW_RENO, VEGAS, WESTWOOD, "rrtp"];
/// Those that fill a queue until it drops.
const LOSS_BASED: [&str; 3] = [RENO, NEW_RENO, WESTWOOD];
/// The queues: as many packets as the path holds both ways (54 Mbit/s x 20 ms / 8 / 1440), a quarter, and four times that.
const QUEUES: [u64; 3] = [94, 24, 376];
const RATE: f64 = 54e6;

#[derive(Serialize)]
struct Record {
    seed: u64,
    /// Per cent.
    error: f64,
    queue: u64,
    /// bit/s of payload, in the table's order.
    goodputs: Vec<f64>,
    queue_dropped: u64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "error, %",
        "queue, packets",
        "sender",
        "Mbit/s",
        "of the fair share",
        "thesis, Mbit/s",
    ]);
    let (table, queues) =
        if run.is_small { (&TABLE[..1], &QUEUES[..1]) } else { (&TABLE[..], &QUEUES[..]) };
    let mut lines = vec![Vec::new(); SENDERS.len()];
    for queue in queues {
        for (error, printed) in table {
            // What is lost at random hides the queue's size, and its own is the thesis' first row.
            if *error > 0.0 && *queue != QUEUES[0] {
                continue;
            }
            let shares = measure(run, *error, *queue, printed, &mut findings)?;
            if *queue == QUEUES[0] {
                for (line, share) in lines.iter_mut().zip(&shares) {
                    line.push(draw::interval(*error, share, 1e-6));
                }
            }
        }
    }
    let sums = TABLE.map(|(error, printed)| {
        format!("{error} %: {:.1}", f64::from(printed.iter().sum::<u32>()) / 100.0)
    });
    findings.notes.push(SETUP.to_owned());
    findings.notes.push(format!(
        "the thesis' rows add up to (Mbit/s of 54) {}: from 0.5 % on the link is half empty, so that each flow is limited \
         by its losses and not by the others; and its first row shows Vegas equal to Reno, which contradicts its text",
        sums.join(", ")
    ));
    let series = SENDERS.iter().zip(lines);
    let series =
        series.map(|(sender, line)| draw::series(short(sender), Style::LineAndMarks, line));
    findings.picture(
        "table5.2",
        Figure {
            title: "Five protocols on 54 Mbit/s".to_owned(),
            x: draw::linear("error, %"),
            y: draw::linear("goodput, Mbit/s"),
            series: series.collect(),
        },
    );
    Ok(findings)
}

fn short(sender: &str) -> &'static str {
    if sender == "rrtp" { "RRTP" } else { named(sender) }
}

fn measure(
    run: &Run,
    error: f64,
    queue: u64,
    printed: &[u32; 5],
    findings: &mut Findings,
) -> Result<Vec<Interval>, LabError> {
    let scenario = scenario(error, queue, run.is_small)?;
    let mut goodputs = vec![Vec::new(); SENDERS.len()];
    for result in simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))? {
        for (runs, flow) in goodputs.iter_mut().zip(&result.flows) {
            runs.push(flow.goodput);
        }
        findings.record(&Record {
            seed: result.seed,
            error,
            queue,
            goodputs: result.flows.iter().map(|flow| flow.goodput).collect(),
            queue_dropped: result.links.iter().map(|link| link.counters.queue_dropped).sum(),
        })?;
    }
    let fair = RATE / SENDERS.len() as f64;
    let mut all = Vec::new();
    for ((sender, runs), thesis) in SENDERS.iter().zip(&goodputs).zip(printed) {
        let goodput = Interval::of(runs);
        let share = theory::scaled(&goodput, 1.0 / fair);
        findings.table.row([
            error.to_string(),
            queue.to_string(),
            short(sender).to_owned(),
            theory::show(&goodput, 1e-6, 2),
            theory::show(&share, 1.0, 2),
            format!("{:.2}", f64::from(*thesis) / 100.0),
        ]);
        let place = format!("error {error} %, queue {queue}: {}", short(sender));
        if error == 0.0 {
            let told = || "it is delay-based, and yields while others fill the queue".to_owned();
            let starves = format!("{place}, of its fair share of 10.8 Mbit/s");
            let shown = theory::show(&share, 1.0, 2);
            let verdict = match LOSS_BASED.contains(sender) {
                true => {
                    theory::above(&share, 0.4, || "the others take it: see the table".to_owned())
                }
                false => theory::above(&share, 0.4, told),
            };
            findings.claim(starves, "0.4 or more", shown, verdict);
        }
        all.push(goodput);
    }
    let sum: f64 = all.iter().map(|goodput| goodput.mean).sum();
    if error == 0.0 {
        let share = sum / RATE;
        findings.claim(
            format!("error {error} %, queue {queue}: all together, of the link"),
            "0.83 (44.8 of 54 Mbit/s)",
            format!("{share:.3}"),
            Verdict::of((share / (44.8 / 54.0) - 1.0).abs() < 0.1, || {
                "five flows that fill a queue keep the link busy: the rest is headers, 3 to 4 %"
                    .to_owned()
            }),
        );
    }
    Ok(all)
}

fn scenario(error: f64, queue: u64, is_small: bool) -> Result<Scenario, LabError> {
    let (warm_up, end) = if is_small { (2, 6) } else { (20, 80) };
    let link = format!("rate 54mbit delay 10ms limit {queue}");
    let wire =
        Wire { forth: feed::spec(&format!("{link} loss {error}%"))?, back: feed::spec(&link)? };
    Ok(Scenario {
        warm_up: Duration::from_secs(warm_up),
        duration: Duration::from_secs(end),
        flows: SENDERS.iter().map(|sender| flow(sender)).collect(),
        ..Scenario::new(
            "table5.2",
            Topology::Dumbbell { access: Wire::default(), bottleneck: wire },
        )
    })
}
