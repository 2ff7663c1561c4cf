//! Whole runs, short ones.

use std::time::Duration;

use crate::*;

fn dumbbell(bottleneck: &str) -> Topology {
    Topology::Dumbbell {
        access: Wire::default(),
        bottleneck: Wire::both(bottleneck.parse().unwrap()),
    }
}

fn flow(combination: &str, app: App) -> FlowSpec {
    FlowSpec { app, ..FlowSpec::new(combination.parse().unwrap()) }
}

fn one(topology: Topology, flow: FlowSpec) -> Scenario {
    Scenario { flows: vec![flow], ..Scenario::new("test", topology) }
}

const BULK: App = App::Bulk { size: None };

#[test]
fn one_flow_fills_a_lossless_bottleneck() {
    // 10 Mbit/s and 20 ms are 17 packets of 1500 bytes.
    let scenario = one(dumbbell("rate 10mbit delay 10ms limit 17"), flow("sack/reno", BULK));
    let scenario = Scenario { warm_up: Duration::from_secs(2), ..scenario };
    let result = run(&scenario, None).unwrap();
    let limit = 10e6 * 1448.0 / 1500.0;
    assert!(result.flows[0].goodput > 0.98 * limit, "{}", result.flows[0].goodput / limit);
}
