//! Table 20: a file of 33 MB over 10 ms, in virtual time.

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Interval, RunResult, Scenario, Topology, Wire};
use serde::Serialize;

use super::transfer::{self, BACK, Outcome, POINTS, Sender};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, feed, simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/table20",
    what: "33 MB over 10 Mbit/s, standard deviation of the delay 0 to 3 ms",
    source: "DCR 6, Fig. 20 (\"Table 20\")",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 40,
    seeds: 10,
    body,
};

const COMBINATIONS: [&str; 5] = [
    "sack/reno",
    transfer::AS_THE_PAPER,
    "sack/reno/dcr:timer",
    "rack/reno",
    "rack/reno/dcr:timer",
];

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    combination: &'a str,
    profile: &'a str,
    /// ms.
    deviation: u32,
    /// bit/s.
    goodput: f64,
    retransmissions: u64,
    spurious: u64,
    reductions: u64,
    timeouts: u64,
    /// Per cent.
    disordered: f64,
    dropped: u64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let (mut senders, mut records) = (Vec::new(), Vec::new());
    for profile in [Profile::paper(), Profile::modern()] {
        for combination in COMBINATIONS {
            let mut outcomes = Vec::new();
            for (deviation, ..) in POINTS {
                let runs = runs(run, combination, &profile, deviation)?;
                let of = |value: fn(&Record<'_>) -> f64| {
                    Interval::of(&runs.iter().map(value).collect::<Vec<_>>())
                };
                let (goodput, disordered) = (of(|r| r.goodput), of(|r| r.disordered));
                outcomes.push(Outcome { deviation, goodput, disordered, unfit: None });
                records.extend(runs);
            }
            let name = format!("{combination}, {}", profile.name);
            senders.push(Sender { name, combination: combination.to_owned(), outcomes });
        }
    }
    let keep = |findings: &mut Findings| records.iter().try_for_each(|r| findings.record(r));
    transfer::findings(
        senders,
        keep,
        "table20",
        "hypothesis: more packets are late by more than a smoothed round trip",
    )
}

fn runs<'a>(
    run: &Run,
    combination: &'a str,
    profile: &Profile,
    deviation: u32,
) -> Result<Vec<Record<'a>>, LabError> {
    let wire = Wire { forth: feed::spec(&transfer::forth(deviation))?, back: feed::spec(BACK)? };
    let flow = FlowSpec {
        profile: profile.clone(),
        ..FlowSpec::new(combination.parse().expect("a name of the registry"))
    };
    let scenario = Scenario {
        duration: transfer::time(run),
        flows: vec![flow],
        ..Scenario::new("table20", Topology::Chain { wires: vec![wire] })
    };
    let results = simulate::seeds(run, |_| scenario.clone())?;
    let record = |result: &RunResult| {
        let flow = &result.flows[0];
        let forth = result.links.iter().find(|link| link.way == "forth");
        let counters = forth.map(|link| link.counters).unwrap_or_default();
        Record {
            seed: result.seed,
            combination,
            profile: profile.name,
            deviation,
            goodput: flow.goodput,
            retransmissions: flow.retransmissions,
            spurious: flow.spurious,
            reductions: flow.reductions.unwrap_or(0),
            timeouts: flow.timeouts.unwrap_or(0),
            disordered: counters.reordered as f64 / counters.forwarded.max(1) as f64 * 100.0,
            dropped: counters.queue_dropped,
        }
    };
    Ok(results.iter().map(record).collect())
}
