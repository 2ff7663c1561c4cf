//! The page of a simulation with a trace and states.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use airtcp_report::html;
use airtcp_sim::{App, FlowSpec, Scenario, Simulation, State, Topology, Wire};
use airtcp_trace::{NodeInfo, NodeKind, Recorder, plot};
use serde_json::Value;

/// Writes a trace and the states of flows over a lossy link.
fn simulate(directory: &Path, flows: u32, bytes: usize) {
    let bottleneck = Wire::both("rate 10mbit delay 10ms limit 30 loss 1%".parse().unwrap());
    let access = Wire::both("rate 100mbit delay 1ms".parse().unwrap());
    let mut scenario = Scenario::new("lossy", Topology::Dumbbell { access, bottleneck });
    scenario.duration = Duration::from_secs(10);
    let mut flow = FlowSpec::new("rack/cubic".parse().unwrap());
    flow.count = flows;
    flow.app = App::Bulk { size: Some(bytes.into()) };
    scenario.flows.push(flow);
    let kind = |kind| match kind {
        airtcp_sim::NodeKind::Host => NodeKind::Host,
        airtcp_sim::NodeKind::Link => NodeKind::Link,
        _ => NodeKind::Other,
    };
    let simulation = Simulation::new(&scenario).unwrap();
    let info = |(name, of): &(String, _)| NodeInfo { name: name.clone(), kind: kind(*of) };
    let nodes: Vec<_> = simulation.nodes().iter().map(info).collect();
    let title = "<script>alert('a title')</script>";
    let mut recorder =
        Recorder::create(&directory.join("trace"), title, &nodes, Duration::ZERO).unwrap();
    let mut states = String::new();
    let interval = Duration::from_millis(100);
    let mut on_state =
        |state: &State| writeln!(states, "{}", serde_json::to_string(state).unwrap()).unwrap();
    simulation.run_with_states(Some(&mut recorder), interval, &mut on_state).unwrap();
    recorder.finish().unwrap();
    fs::write(directory.join("states.jsonl"), states).unwrap();
}

/// The data of the charts, with their titles.
fn charts(page: &str) -> Vec<(String, Value)> {
    let parts = page.split("<figure class=\"chart\"><figcaption>").skip(1);
    let chart = |part: &str| {
        let (title, rest) = part.split_once("</figcaption>").unwrap();
        let (_, data) = rest.split_once("\"application/json\">").unwrap();
        let data = data.split_once("</script>").unwrap().0;
        (title.to_owned(), serde_json::from_str(data).unwrap())
    };
    parts.map(chart).collect()
}

fn points(charts: &[(String, Value)], title: &str, series: &str) -> usize {
    let found = charts.iter().filter(|(name, _)| name == title);
    let found = found.flat_map(|(_, data)| data["series"].as_array().unwrap());
    let mut found = found.filter(|one| one["name"].as_str().unwrap().contains(series));
    let one = found.next().unwrap_or_else(|| panic!("no series {series} in {title}"));
    let points = one["x"].as_array().unwrap().len();
    assert_eq!(one["seen"], points as u64, "{title}, {series}: nothing is reduced");
    points
}

#[test]
fn the_series_have_the_points_of_the_records() {
    let dir = tempfile::tempdir().unwrap();
    simulate(dir.path(), 2, 500_000);
    let page = html("A simulation", &[dir.path()]).unwrap();
    let charts = charts(&page);

    let states = fs::read_to_string(dir.path().join("states.jsonl")).unwrap();
    let states: Vec<Value> =
        states.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_first =
        states.iter().filter(|state| state["host"] == "left-1" && state["cwnd"].is_u64());
    assert_eq!(points(&charts, "Congestion window", "left-1"), of_first.count());
    let queue =
        states.iter().filter(|state| state["link"] == "bottleneck" && state["way"] == "forth");
    assert_eq!(points(&charts, "Queues", "bottleneck forth"), queue.count());

    let trace = plot::read(&dir.path().join("trace")).unwrap();
    let (mut new, mut again, mut dropped, mut samples) = (0, 0, 0, 0);
    trace
        .marks(&[1], |_, _, mark| match mark {
            plot::Mark::Data { kind: plot::Kind::Retransmitted, .. } => again += 1,
            plot::Mark::Data { .. } => new += 1,
            plot::Mark::Dropped { .. } => dropped += 1,
            plot::Mark::Rtt { .. } => samples += 1,
            _ => {}
        })
        .unwrap();
    assert!(again > 0 && dropped > 0);
    let graph = "Time-sequence graph";
    assert_eq!(points(&charts, graph, "segments"), new);
    assert_eq!(points(&charts, graph, "retransmissions"), again);
    assert_eq!(points(&charts, graph, "dropped"), dropped);
    assert_eq!(points(&charts, "Round-trip time", "samples"), samples);
    // One group for the trace, and one for the run's states.
    let groups: std::collections::BTreeSet<_> =
        charts.iter().filter_map(|(_, data)| data["group"].as_str()).collect();
    assert_eq!(groups.len(), 2, "{groups:?}");
}

#[test]
fn the_page_is_the_same_again_and_runs_no_script_of_a_record() {
    let dir = tempfile::tempdir().unwrap();
    simulate(dir.path(), 1, 50_000);
    let page = || html("A simulation", &[dir.path()]).unwrap();
    let first = page();
    assert_eq!(first, page());
    assert!(!first.contains("<script>alert"));
    assert!(first.contains("&lt;script&gt;alert(&#39;a title&#39;)"));
}

#[test]
fn twenty_flows_are_below_six_megabytes() {
    let dir = tempfile::tempdir().unwrap();
    simulate(dir.path(), 20, 2_000_000);
    let page = html("Twenty flows", &[dir.path()]).unwrap();
    assert!(page.len() < 6_000_000, "{}", page.len());
    let graphs = charts(&page).iter().filter(|(title, _)| title == "Time-sequence graph").count();
    assert_eq!(graphs, 20);
}
