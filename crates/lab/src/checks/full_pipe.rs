//! Checks the goodput of one flow over a link without loss.

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/full-pipe",
    what: "Link utilization of one flow without loss, with a queue of one BDP",
    source: "a window of one to two BDP keeps the link busy; payload per packet",
    seconds: 10,
    seeds: 1,
    body,
    ..Experiment::CHECK
};

const COMBINATIONS: [&str; 2] = ["sack/reno", "sack/cubic"];
/// The rates of the bottleneck, in Mbit/s.
const RATES: [u64; 2] = [10, 50];
/// 18 ms of the bottleneck and 1 ms of each access wire, in both directions.
const RTT: f64 = 0.040;
const MTU: u64 = 1_500;
/// The payload of a packet, without IP and TCP headers and timestamps.
const MSS: u64 = 1_448;
/// The minimum share of the payload limit.
const AT_LEAST: f64 = 0.98;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender | link, Mbit/s | goodput, Mbit/s | limit | share, %");
    let axes = vec![Axis::new("combination", COMBINATIONS), Axis::new("mbit", RATES)];
    let grid = Grid::run(run, axes, |point, seed| {
        let rate = point.number("mbit") as u64;
        let bits = (rate * 1_000_000) as f64;
        let queue = (bits * RTT / 8.0 / MTU as f64).ceil() as u64;
        let scenario = scenario(&point.text("combination"), rate, queue, run.is_small)?;
        let result = simulate::once(scenario, seed)?;
        let dropped = result.links.iter().map(|link| link.counters.queue_dropped).sum::<u64>();
        let flow = &result.flows[0];
        Ok(fields! {
            rate: rate * 1_000_000,
            queue_packets: queue,
            goodput: flow.goodput,
            limit: bits * MSS as f64 / MTU as f64,
            dropped,
            timeouts: flow.timeouts.unwrap_or(0),
        })
    })?;
    grid.record(&mut findings, &["combination"])?;
    for row in grid.all().rows(&["combination", "mbit"]) {
        let (combination, rate) = (row.text("combination"), row.text("mbit"));
        let limit = row.mean("limit").mean;
        let share = row.mean("goodput").mean / limit;
        let shown = format!("{:.2}", share * 100.0);
        let verdict = Verdict::of(share >= AT_LEAST, || {
            format!("{:.2} % of the limit is not used", (1.0 - share) * 100.0)
        });
        let what = format!("{combination} on {rate} Mbit/s, share of the payload limit");
        findings.claim(what, "98 % or more", format!("{shown} %"), verdict);
        let (goodput, limit) = (row.show("goodput", 1e-6, 3), format!("{:.3}", limit / 1e6));
        findings.table.row([combination, rate, goodput, limit, shown]);
    }
    Ok(findings)
}

fn scenario(
    combination: &str,
    rate: u64,
    queue: u64,
    is_small: bool,
) -> Result<Scenario, LabError> {
    // A cycle of Reno's sawtooth takes 9 s at the higher rate.
    let (warm_up, end) = if is_small { (5, 15) } else { (20, 120) };
    let access = Wire::both(feed::spec("rate 1gbit delay 1ms limit 10000")?);
    let bottleneck = Wire {
        forth: feed::spec(&format!("rate {rate}mbit delay 18ms limit {queue}"))?,
        back: feed::spec(&format!("rate {rate}mbit delay 18ms limit 1000"))?,
    };
    let combination = combination.parse().expect("a name of the registry");
    Ok(Scenario {
        warm_up: Duration::from_secs(warm_up),
        duration: Duration::from_secs(end),
        flows: vec![FlowSpec::new(combination)],
        ..Scenario::new("full-pipe", Topology::Dumbbell { access, bottleneck })
    })
}
