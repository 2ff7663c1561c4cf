//! Flows that are alike.

use std::time::Duration;

use airtcp_sim::{FlowSpec, Interval, Scenario, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use crate::{
    Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, feed, simulate, theory,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/fairness",
    what: "Flows that are alike and share a bottleneck: Jain's index",
    source: "Chiu and Jain 1989: additive increase and multiplicative decrease go to equal shares",
    kind: Kind::SelfCheck,
    ground: Ground::Simulated,
    seconds: 40,
    seeds: 10,
    body,
};

const COMBINATIONS: [&str; 2] = ["sack/reno", "sack/cubic"];
const COUNTS: [u32; 4] = [2, 4, 8, 16];
/// A queue of one bandwidth-delay product.
const BOTTLENECK: &str = "rate 20mbit delay 18ms limit 67";
const AT_LEAST: f64 = 0.95;

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    combination: &'a str,
    flows: u32,
    jain: f64,
    goodputs: Vec<f64>,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(["sender", "flows", "Jain's index", "sum, Mbit/s"]);
    let mut series = Vec::new();
    for combination in COMBINATIONS {
        let mut points = Vec::new();
        for count in COUNTS {
            let scenario = scenario(combination, count, run.is_small)?;
            let (mut indices, mut sums) = (Vec::new(), Vec::new());
            for result in simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))? {
                let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
                indices.push(result.jain);
                sums.push(goodputs.iter().sum());
                let (seed, jain) = (result.seed, result.jain);
                findings.record(&Record { seed, combination, flows: count, jain, goodputs })?;
            }
            let index = Interval::of(&indices);
            let shown = theory::show(&index, 1.0, 4);
            findings.table.row([
                combination.to_owned(),
                count.to_string(),
                shown.clone(),
                theory::show(&Interval::of(&sums), 1e-6, 3),
            ]);
            let verdict = Verdict::of(index.mean >= AT_LEAST, || {
                let least = indices.iter().copied().fold(1.0, f64::min);
                format!("the least of the runs is {least:.4}")
            });
            findings.claim(
                format!("{count} flows of {combination}"),
                "0.95 or more",
                shown,
                verdict,
            );
            points.push(draw::interval(f64::from(count), &index, 1.0));
        }
        series.push(draw::series(combination, Style::LineAndMarks, points));
    }
    findings.picture(
        "fairness",
        Figure {
            title: "Fairness between flows that are alike".to_owned(),
            x: draw::linear("flows"),
            y: draw::linear("Jain's index"),
            series,
        },
    );
    Ok(findings)
}

fn scenario(combination: &str, count: u32, is_small: bool) -> Result<Scenario, LabError> {
    let (warm_up, end) = if is_small { (5, 15) } else { (20, 120) };
    let access = Wire::both(feed::spec("rate 1gbit delay 1ms limit 10000")?);
    let bottleneck = Wire::both(feed::spec(BOTTLENECK)?);
    let flow = |number| FlowSpec {
        name: format!("flow {number}"),
        ..FlowSpec::new(combination.parse().expect("a name of the registry"))
    };
    Ok(Scenario {
        warm_up: Duration::from_secs(warm_up),
        duration: Duration::from_secs(end),
        flows: (1..=count).map(flow).collect(),
        ..Scenario::new("fairness", Topology::Dumbbell { access, bottleneck })
    })
}
