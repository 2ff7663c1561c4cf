//! Checks the fairness between identical flows.

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/fairness",
    what: "Jain's index of identical flows that share a bottleneck",
    source: "Chiu and Jain 1989: additive increase and multiplicative decrease converge to equal shares",
    seconds: 40,
    seeds: 10,
    body,
    ..Experiment::CHECK
};

const COMBINATIONS: [&str; 2] = ["sack/reno", "sack/cubic"];
const COUNTS: [u32; 4] = [2, 4, 8, 16];
/// A queue of one bandwidth-delay product.
const BOTTLENECK: &str = "rate 20mbit delay 18ms limit 67";
const AT_LEAST: f64 = 0.95;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender | flows | Jain's index | total goodput, Mbit/s");
    let axes = vec![Axis::new("combination", COMBINATIONS), Axis::new("flows", COUNTS)];
    let grid = Grid::run(run, axes, |point, seed| {
        let count = point.number("flows") as u32;
        let scenario = scenario(&point.text("combination"), count, run.is_small)?;
        let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
        let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
        Ok(fields! { jain: result.jain, goodputs })
    })?;
    grid.record(&mut findings, &["combination", "flows"])?;
    for row in grid.all().rows(&["combination", "flows"]) {
        let (combination, count) = (row.text("combination"), row.text("flows"));
        let indices = row.values("jain");
        let shown = row.show("jain", 1.0, 4);
        let verdict = Verdict::of(row.mean("jain").mean >= AT_LEAST, || {
            let least = indices.iter().copied().fold(1.0, f64::min);
            format!("the minimum of the runs is {least:.4}")
        });
        let what = format!("{count} flows of {combination}");
        findings.claim(what, "0.95 or more", shown.clone(), verdict);
        findings.table.row([combination, count, shown, row.show("goodputs", 1e-6, 3)]);
    }
    let lines = grid.all().lines("combination", "flows", ("jain", 1.0));
    let title = "Fairness between flows of the same sender";
    findings.plot("fairness", title, (draw::linear("flows"), draw::linear("Jain's index")), lines);
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
