//! RRTP, Table 5.1: thirty flows on 11 Mbit/s, Jain's index.

use std::time::Duration;

use airtcp_sim::{FlowSpec, Interval, Scenario, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use super::network::{NEW_RENO, RENO, SETUP, flow, named};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, feed, simulate, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table5.1",
    what: "Thirty flows of RRTP, Reno or NewReno share 11 Mbit/s, error 0 to 5 %: Jain's index over 60 and 240 s",
    source: "RRTP (Wang 2009) 5.1, Table 5.1; delay, queue and time are not stated",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 120,
    seeds: 10,
    body,
};

/// Per cent, and what the thesis prints for RRTP and Reno.
const TABLE: [(f64, f64, f64); 5] =
    [(0.0, 1.0, 0.98), (0.1, 1.0, 0.99), (0.5, 0.99, 0.98), (1.0, 0.99, 0.97), (5.0, 0.98, 0.97)];
const SENDERS: [&str; 3] = ["rrtp", RENO, NEW_RENO];
const COUNT: u32 = 30;
/// Table 4.3's wireless LAN.
const LINK: &str = "rate 11mbit delay 5ms limit 50";
const SECONDS: [u64; 2] = [60, 240];
const LEAST: f64 = 0.97;

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    sender: &'a str,
    /// Per cent.
    error: f64,
    seconds: u64,
    jain: f64,
    goodputs: Vec<f64>,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new(["sender", "error, %", "seconds", "Jain's index", "thesis", "sum, Mbit/s"]);
    let table = if run.is_small { &TABLE[..1] } else { &TABLE[..] };
    let mut series = Vec::new();
    for sender in SENDERS {
        for seconds in if run.is_small { &[6][..] } else { &SECONDS[..] } {
            let mut points = Vec::new();
            for (error, rrtp, reno) in table {
                let scenario = scenario(sender, *error, *seconds)?;
                let (mut indices, mut sums) = (Vec::new(), Vec::new());
                for result in simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))? {
                    let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
                    indices.push(result.jain);
                    sums.push(goodputs.iter().sum());
                    findings.record(&Record {
                        seed: result.seed,
                        sender,
                        error: *error,
                        seconds: *seconds,
                        jain: result.jain,
                        goodputs,
                    })?;
                }
                let index = Interval::of(&indices);
                let printed = match sender {
                    RENO => Some(*reno),
                    NEW_RENO => None,
                    _ => Some(*rrtp),
                };
                let name = if sender == "rrtp" { "RRTP" } else { named(sender) };
                findings.table.row([
                    name.to_owned(),
                    error.to_string(),
                    seconds.to_string(),
                    theory::show(&index, 1.0, 4),
                    printed.map_or("-".to_owned(), |figure| figure.to_string()),
                    theory::show(&Interval::of(&sums), 1e-6, 3),
                ]);
                if let Some(figure) = printed {
                    let least = indices.iter().copied().fold(1.0, f64::min);
                    findings.claim(
                        format!("{COUNT} flows of {name}, error {error} %, the second half of {seconds} s"),
                        format!("0.97 or more ({figure} in the thesis)"),
                        theory::show(&index, 1.0, 4),
                        theory::above(&index, LEAST, || reason(sender, least)),
                    );
                }
                points.push(draw::interval(*error, &index, 1.0));
            }
            let name =
                format!("{}, {seconds} s", if sender == "rrtp" { "RRTP" } else { named(sender) });
            series.push(draw::series(name, Style::LineAndMarks, points));
        }
    }
    findings.notes.push(SETUP.to_owned());
    findings.notes.push(format!(
        "the link is \"{LINK}\", Table 4.3's wireless LAN; each flow begins at a time of its own in the first second"
    ));
    findings.picture(
        "table5.1",
        Figure {
            title: "Thirty flows on 11 Mbit/s".to_owned(),
            x: draw::linear("error, %"),
            y: draw::linear("Jain's index"),
            series,
        },
    );
    Ok(findings)
}

fn reason(sender: &str, least: f64) -> String {
    match sender {
        RENO => format!(
            "the least of the runs is {least:.4}. Hypothesis: a window is three segments on average, so that most losses are \
             time-outs"
        ),
        _ => format!("the least of the runs is {least:.4}"),
    }
}

fn scenario(sender: &str, error: f64, seconds: u64) -> Result<Scenario, LabError> {
    let wire =
        Wire { forth: feed::spec(&format!("{LINK} loss {error}%"))?, back: feed::spec(LINK)? };
    let flows =
        (1..=COUNT).map(|number| FlowSpec { name: format!("flow {number}"), ..flow(sender) });
    Ok(Scenario {
        warm_up: Duration::from_secs(seconds / 2),
        duration: Duration::from_secs(seconds),
        flows: flows.collect(),
        ..Scenario::new(
            "table5.1",
            Topology::Dumbbell { access: Wire::default(), bottleneck: wire },
        )
    })
}
