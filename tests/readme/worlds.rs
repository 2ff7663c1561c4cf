//! Probes the simulator, the trace and the lab for the features in the table of capabilities.

use std::fs;
use std::time::Duration;

use airtcp_sim::{Aggregate, Scenario, Simulation, toml};
use airtcp_trace::{NodeInfo, NodeKind, Recorder};

fn scenario(text: &str) -> Scenario {
    let source = toml::Source { name: "scenario.toml", text, settings: &[] };
    source.read(|_| Err("there is no trace".to_owned())).unwrap()
}

const DUMBBELL: &str = r#"
duration = "2s"
[bottleneck]
forth = "rate 10mbit delay 5ms limit 50"
[[flow]]
bulk = { size = "100kB" }
[[flow]]
ping_pong = { size = "100B" }
"#;

const OTHERS: &str = r#"
request_response = { request = "100B", response = "10kB" }
[[flow]]
short_flows = { smallest = "10kB", gap = "100ms", users = 2 }
"#;

/// Returns whether a file with every topology and application runs, and its runs aggregate.
pub(crate) fn runs_every_part() -> bool {
    let chain = DUMBBELL
        .replace("[bottleneck]", "[[wire]]")
        .replace(r#"ping_pong = { size = "100B" }"#, OTHERS);
    [DUMBBELL, &chain].iter().all(|text| {
        let runs = airtcp_sim::run_seeds(&scenario(text), 1..4, None, |_| {}).unwrap();
        let moved = |run: &airtcp_sim::RunResult| run.flows.iter().all(|flow| flow.bytes > 0);
        runs.iter().all(moved)
            && Aggregate::of(&runs).flows.iter().all(|flow| flow.goodput.half_width.is_some())
    })
}

/// Returns whether the rate of a link in a file changes at a given time.
pub(crate) fn links_change() -> bool {
    let bytes = |text: &str| {
        let endless = text.replace(r#"size = "100kB""#, "");
        airtcp_sim::run(&scenario(&endless), None).unwrap().flows[0].bytes
    };
    let changed = DUMBBELL.replace("limit 50", "limit 50 at 1s rate 1mbit");
    bytes(&changed) * 3 < bytes(DUMBBELL) * 2
}

/// Returns whether RRTP shares a link with TCP in a file.
pub(crate) fn carries_rrtp() -> bool {
    let text = DUMBBELL.replace(r#"ping_pong = { size = "100B" }"#, r#"strategies = "rrtp""#);
    let run = airtcp_sim::run(&scenario(&text), None).unwrap();
    run.flows.iter().all(|flow| flow.bytes > 0) && run.flows.iter().any(|flow| flow.rrtp.is_some())
}

/// Returns whether a recorder writes every kind of file.
pub(crate) fn records_every_file() -> bool {
    let scenario = scenario(DUMBBELL);
    let info = |(name, kind): &(String, airtcp_sim::NodeKind)| {
        let kind = match kind {
            airtcp_sim::NodeKind::Host => NodeKind::Host,
            airtcp_sim::NodeKind::Link => NodeKind::Link,
            airtcp_sim::NodeKind::Router | airtcp_sim::NodeKind::BaseStation => NodeKind::Other,
        };
        NodeInfo { name: name.clone(), kind }
    };
    let simulation = Simulation::new(&scenario).unwrap();
    let nodes: Vec<_> = simulation.nodes().iter().map(info).collect();
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(directory.path(), "a run", &nodes, Duration::ZERO).unwrap();
    simulation.run(Some(&mut recorder)).unwrap();
    let files = recorder.finish().unwrap().files;
    let has = |ending: &str| {
        files.iter().any(|file| {
            file.to_string_lossy().ends_with(ending) && fs::metadata(file).unwrap().len() > 0
        })
    };
    [".pcapng", ".sqlog", "_tsg.xpl", ".svg"].into_iter().all(has)
}

/// Returns whether the lab has experiments that check the tools.
pub(crate) fn lab_has_self_checks() -> bool {
    let names: Vec<_> = airtcp_lab::EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
    ["self/loss", "self/mathis", "self/packets", "dcr/table16"]
        .iter()
        .all(|name| names.contains(name))
}

/// Returns whether a sweep of two shards writes every kind of file.
pub(crate) fn sweeps_in_shards() -> bool {
    let scenario = "duration = \"200ms\"\nwire = [\"rate 1mbit delay 5ms loss 1%\"]\n[[flow]]\n";
    let axes = [("flow.0.count".to_owned(), vec!["1".to_owned(), "2".to_owned()])];
    let load = |_: &str| Err("there is no trace".to_owned());
    let sweep = airtcp_lab::Sweep::vary("scenario.toml", scenario, &axes, Some(2), load).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for shard in ["2/2", "1/2"] {
        sweep.run(shard.parse().unwrap(), directory.path(), None, |_| ()).unwrap();
    }
    let files = sweep.merge(directory.path()).unwrap().files;
    let has = |name: &str| files.iter().any(|file| file.ends_with(name));
    ["records.csv", "records.jsonl", "means.csv", "goodput.svg"].iter().all(|name| has(name))
}
