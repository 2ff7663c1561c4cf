//! Flows over parts of a chain.

use super::*;

fn chain(texts: &[&str]) -> Topology {
    Topology::Chain { wires: texts.iter().map(|text| Wire::both(text.parse().unwrap())).collect() }
}

fn over(wires: Option<(usize, usize)>, sender: &str) -> FlowSpec {
    FlowSpec { wires, ..flow(sender, BULK) }
}

#[test]
fn a_flow_shares_only_the_wires_that_it_crosses() {
    let wire = "rate 10mbit delay 5ms limit 40";
    let flows = vec![
        over(None, "udp+rate=6mbit"),
        over(Some((1, 1)), "udp+rate=3mbit"),
        FlowSpec { way: FlowDirection::RightToLeft, ..over(Some((2, 3)), "rack/cubic") },
        over(Some((2, 2)), "rack/cubic"),
        over(Some((3, 3)), "udp+rate=1mbit"),
    ];
    let warm_up = Duration::from_secs(2);
    let scenario = Scenario { warm_up, flows, ..Scenario::new("lot", chain(&[wire; 3])) };
    let simulation = Simulation::new(&scenario).unwrap();
    let names: Vec<_> = simulation.nodes().iter().map(|(name, _)| name.as_str()).collect();
    let expected =
        ["left", "wire-1", "router-1", "host-1", "wire-2", "router-2", "host-2", "wire-3", "right"];
    assert_eq!(names, expected);
    let result = simulation.run(None).unwrap();
    let goodput: Vec<f64> = result.flows.iter().map(|flow| flow.goodput / 1e6).collect();
    // One flow has the rest of wire 2, and one the reverse direction to itself.
    assert!((5.5..5.9).contains(&goodput[0]) && (2.9..3.0).contains(&goodput[1]), "{goodput:?}");
    assert!(goodput[2] > 8.0 && (3.3..3.9).contains(&goodput[3]), "{goodput:?}");
    assert!((0.9..1.0).contains(&goodput[4]), "{goodput:?}");
}

#[test]
fn a_round_trip_is_that_of_the_wires_between_the_hosts() {
    let wires = ["rate 10mbit delay 5ms"; 3];
    for (wires_of, delay) in [((1, 1), 0.01), ((2, 2), 0.01), ((2, 3), 0.02), ((1, 3), 0.03)] {
        let flow = over(Some(wires_of), "sack/fixed:2");
        let trip = run(&one(chain(&wires), flow), None).unwrap().flows[0].rtt.min;
        assert!((delay..1.2 * delay).contains(&trip), "{wires_of:?}: {trip}");
    }
}

#[test]
fn a_flow_over_all_wires_by_number_is_one_over_the_chain() {
    let wires = ["rate 10mbit delay 5ms loss 1%", "delay 3ms 1ms"];
    let all = |wires_of| run(&one(chain(&wires), over(wires_of, "rack/cubic")), None).unwrap();
    assert_eq!(all(Some((1, 2))), all(None));
}

#[test]
fn wires_that_are_not_there_are_refused() {
    let refused = |topology, wires| {
        run(&one(topology, over(Some(wires), "rack/reno")), None).unwrap_err().to_string()
    };
    for wires in [(0, 1), (2, 1), (1, 3)] {
        let error = refused(chain(&["delay 1ms", "delay 1ms"]), wires);
        assert!(error.contains("of 1 to 2"), "{error}");
    }
    assert!(refused(dumbbell("rate 10mbit"), (1, 1)).contains("all of a dumbbell"));
    let free = refused(chain(&["limit 5", "delay 1ms"]), (1, 1));
    assert!(free.contains("neither rate nor delay"), "{free}");
}
