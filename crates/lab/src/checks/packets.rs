//! The simulator against real packets.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Interval, Scenario, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use crate::real::{Course, Tcp};
use crate::{
    Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, feed, simulate, theory,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/packets",
    what: "The simulator against real packets: our sender, over the same links, to our receiver and to Linux'",
    source: "the same stack over the same link in virtual and in real time: a ratio of 1",
    kind: Kind::SelfCheck,
    ground: Ground::Real,
    seconds: 700,
    seeds: 10,
    body,
};

const COMBINATION: &str = "sack/reno";
/// One bandwidth-delay product waits before the link.
const LINK: &str = "rate 20mbit delay 10ms limit 34";
const BACK: &str = "rate 20mbit delay 10ms limit 1000";

/// A name, and what is done to data besides.
const CASES: [(&str, &str); 5] = [
    ("no loss", ""),
    ("loss 0.5 %", "loss 0.5%"),
    ("loss 2 %", "loss 2%"),
    ("reordering", "delayed 2% 5ms 1ms"),
    ("bursts", "burst 0.2% 4"),
];
const WARM_UP: Duration = Duration::from_secs(1);
const END: Duration = Duration::from_secs(6);
/// What the interval of the ratio lies within or overlaps.
const RATIO: (f64, f64) = (0.9, 1.1);
/// A link that is late by more than a tenth of its round-trip time, in seconds, is another link.
const LATE: f64 = 0.002;

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    case: &'a str,
    /// `simulator`, or who received.
    ground: &'a str,
    goodput: f64,
    lost: u64,
    queue_dropped: u64,
    reordered: u64,
    /// Seconds that 99 % of the packets were not exceeding, where time is real.
    lateness: Option<f64>,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new(["link", "simulator, Mbit/s", "receiver", "packets, Mbit/s", "ratio"]);
    let mut series = Vec::new();
    let ours = Tcp::Ours(combination(), Profile::modern());
    let receivers = [("ours", ours.clone()), ("Linux", Tcp::Kernel(None))];
    let mut simulated = Vec::new();
    for (case, words) in CASES {
        let scenario = scenario(words)?;
        let mut goodputs = Vec::new();
        for result in simulate::seeds(run, |_| scenario.clone())? {
            let goodput = result.flows[0].goodput;
            let sum = |of: fn(&airtcp_link::Counters) -> u64| {
                let forth = result.links.iter().filter(|link| link.way == "forth");
                forth.map(|link| of(&link.counters)).sum()
            };
            findings.record(&Record {
                seed: result.seed,
                case,
                ground: "simulator",
                goodput,
                lost: sum(|c| c.channel_lost),
                queue_dropped: sum(|c| c.queue_dropped),
                reordered: sum(|c| c.reordered),
                lateness: None,
            })?;
            goodputs.push(goodput);
        }
        simulated.push(goodputs);
    }
    for (receiver, tcp) in receivers {
        let mut points = Vec::new();
        for (number, (case, words)) in CASES.into_iter().enumerate() {
            let (mut goodputs, mut lateness) = (Vec::new(), Vec::new());
            for seed in 1..=run.seeds {
                let done = Course {
                    sender: ours.clone(),
                    receiver: tcp.clone(),
                    forth: feed::spec(&format!("{LINK} {words} seed {seed}"))?,
                    back: feed::spec(BACK)?,
                    warm_up: WARM_UP,
                    end: END,
                };
                let done = done.run()?;
                findings.record(&Record {
                    seed,
                    case,
                    ground: receiver,
                    goodput: done.goodput,
                    lost: done.link.channel_lost,
                    queue_dropped: done.link.queue_dropped,
                    reordered: done.link.reordered,
                    lateness: Some(done.lateness),
                })?;
                goodputs.push(done.goodput);
                lateness.push(done.lateness);
            }
            let (packets, simulator) = (Interval::of(&goodputs), Interval::of(&simulated[number]));
            let ratio = theory::ratio(&packets, &simulator);
            findings.table.row([
                case.to_owned(),
                theory::show(&simulator, 1e-6, 3),
                receiver.to_owned(),
                theory::show(&packets, 1e-6, 3),
                theory::show(&ratio, 1.0, 3),
            ]);
            let (low, high) = ratio.bounds();
            let off = format!("packets get {:+.1} %", (ratio.mean - 1.0) * 100.0);
            let late = Interval::of(&lateness).mean;
            let verdict = if low <= RATIO.1 && high >= RATIO.0 {
                Verdict::Holds
            } else if late > LATE {
                // Another link than the one described: its delay is what the machine makes of it.
                Verdict::NotComparable(format!(
                    "{off}, and the link was late by {:.1} ms (99th percentile): this machine is busy; run it idle",
                    late * 1e3
                ))
            } else {
                Verdict::DoesNotHold(format!("{off}, late by {:.1} ms", late * 1e3))
            };
            let what = format!("packets over simulator, {case}, receiver {receiver}");
            findings.claim(what, "0.9 to 1.1", theory::show(&ratio, 1.0, 3), verdict);
            points.push(draw::interval((number + 1) as f64, &ratio, 1.0));
        }
        series.push(draw::series(format!("receiver {receiver}"), Style::Marks, points));
    }
    let names: Vec<_> = CASES.iter().zip(1..).map(|((name, _), n)| format!("{n} {name}")).collect();
    findings.picture(
        "packets",
        Figure {
            title: "Goodput of real packets over the simulator's".to_owned(),
            x: draw::linear(&names.join(", ")),
            y: draw::linear("ratio, 95 %"),
            series,
        },
    );
    Ok(findings)
}

fn combination() -> airtcp_recovery::Combination {
    COMBINATION.parse().expect("a name of the registry")
}

fn scenario(words: &str) -> Result<Scenario, LabError> {
    let wire = Wire { forth: feed::spec(&format!("{LINK} {words}"))?, back: feed::spec(BACK)? };
    Ok(Scenario {
        warm_up: WARM_UP,
        duration: END,
        flows: vec![FlowSpec::new(combination())],
        ..Scenario::new("packets", Topology::Chain { wires: vec![wire] })
    })
}
