//! RRTP beside TCP, over the same links.

use airtcp_recovery::Profile;

use super::*;

/// The share of payload in an IP packet of 1,500 bytes: 28 bytes are IP and UDP headers, 28 are
/// RRTP's.
const PAYLOAD: f64 = 1444.0 / 1500.0;

fn chain(link: &str) -> Topology {
    Topology::Chain { wires: vec![Wire::both(link.parse().unwrap())] }
}

#[test]
fn either_kind_fills_a_link_with_seeds_and_without() {
    let link = "rate 2mbit delay 20ms limit 30 loss 1%";
    for sender in [
        "rrtp",
        "rrtp+rate=2mbit+rtt=40ms",
        "rrtp:wireless-last-hop",
        "rrtp:wireless-last-hop+rate=2mbit+rtt=40ms+loss=1%",
    ] {
        let scenario = Scenario {
            duration: Duration::from_secs(20),
            warm_up: Duration::from_secs(5),
            ..one(chain(link), flow(sender, BULK))
        };
        let result = run(&scenario, None).unwrap();
        let own = &result.flows[0];
        let limit = 2e6 * PAYLOAD;
        assert!((0.8 * limit..=1.01 * limit).contains(&own.goodput), "{sender}: {}", own.goodput);
        assert_eq!((own.combination.as_str(), own.broken), (sender, 0));
        let rrtp = own.rrtp.unwrap();
        // The receiver missed the packets that were lost, apart from those in flight.
        let forth = &result.links[0].counters;
        let lost = (forth.channel_lost + forth.queue_dropped) as f64;
        assert!((own.lost as f64 - lost).abs() <= 0.05 * lost + 5.0, "{} {lost}", own.lost);
        assert!(rrtp.wireless_losses > rrtp.congestive_losses, "{rrtp:?}");
        assert!(own.segments_sent >= rrtp.packets_received && own.retransmissions > 0);
        assert!(own.rtt.count > 10 && own.rtt.min >= 0.04 && own.rtt.mean < 0.3, "{:?}", own.rtt);
    }
}

#[test]
fn a_file_arrives_whole_and_says_when() {
    let link = "rate 2mbit delay 20ms limit 30 loss 2% corrupt 1% duplicate 1%";
    for way in [FlowDirection::LeftToRight, FlowDirection::RightToLeft] {
        let sent = FlowSpec { way, ..flow("rrtp", App::Bulk { size: Some(ByteCount(300_000)) }) };
        let scenario = Scenario { duration: Duration::from_secs(40), ..one(chain(link), sent) };
        let result = run(&scenario, None).unwrap();
        let own = &result.flows[0];
        assert_eq!((own.bytes, own.broken), (300_000, 0));
        let took = own.finished.expect("it has come");
        // Not faster than the link, and the connection ends well before the run.
        assert!((300_000.0 * 8.0 / 2e6..5.0).contains(&took), "{took}");
        assert!(result.end < 25.0, "{}", result.end);
    }
}

#[test]
fn rrtp_shares_a_bottleneck_with_tcp_and_a_seed_repeats() {
    let tcp = FlowSpec { count: 2, ..flow("sack/reno", BULK) };
    for topology in [
        dumbbell("rate 5mbit delay 10ms limit 20 loss 0.5%"),
        chain("rate 5mbit delay 10ms limit 20 loss 0.5%"),
    ] {
        let flows = vec![FlowSpec { count: 2, ..flow("rrtp", BULK) }, tcp.clone()];
        let scenario =
            Scenario { duration: Duration::from_secs(10), flows, ..one(topology, tcp.clone()) };
        let json = |seed| {
            let result = run(&Scenario { seed, ..scenario.clone() }, None).unwrap();
            (serde_json::to_string(&result).unwrap(), result)
        };
        let (text, result) = json(1);
        assert_eq!(text, json(1).0);
        assert_ne!(text, json(2).0);
        assert!(result.flows.iter().all(|flow| flow.bytes > 200_000), "{:?}", result.flows);
        assert_eq!(result.flows.iter().filter(|flow| flow.rrtp.is_some()).count(), 2);
    }
}

#[test]
fn a_dead_link_breaks_the_connection() {
    let link = "rate 2mbit delay 20ms limit 30 down 1s 1000s";
    let scenario =
        Scenario { duration: Duration::from_secs(60), ..one(chain(link), flow("rrtp", BULK)) };
    let result = run(&scenario, None).unwrap();
    assert_eq!(result.flows[0].broken, 2, "both ends have seen nobody");
}

#[test]
fn applications_that_rrtp_does_not_carry_are_refused() {
    let app = App::PingPong { size: ByteCount(100), count: None };
    let error = run(&one(chain("delay 1ms"), flow("rrtp", app)), None).unwrap_err().to_string();
    assert!(error.starts_with("flow `rrtp`: rrtp supports only bulk"), "{error}");
}

#[test]
fn settings_of_tcp_are_refused_for_rrtp() {
    let paper = Profile::paper();
    for (key, sent) in [
        ("profile", FlowSpec { profile: paper, ..flow("rrtp", BULK) }),
        ("timestamps", FlowSpec { timestamps: false, ..flow("rrtp", BULK) }),
        ("sack", FlowSpec { sack: false, ..flow("rrtp", BULK) }),
        ("pacing", FlowSpec { pacing: true, ..flow("rrtp", BULK) }),
        ("path_memory", FlowSpec { path_memory: true, ..flow("rrtp", BULK) }),
        ("mark_aware", FlowSpec { mark_aware: true, ..flow("rrtp", BULK) }),
    ] {
        let error = run(&one(chain("delay 1ms"), sent), None).unwrap_err().to_string();
        let expected = format!("flow `rrtp`: `{key}` is an option of TCP, ");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn the_smallest_packets_pass_and_smaller_ones_are_refused() {
    let with = |mtu| {
        let size = Some(ByteCount(3_000));
        let sent = FlowSpec { mtu, ..flow("rrtp", App::Bulk { size }) };
        run(&one(chain("rate 1mbit delay 5ms limit 50"), sent), None)
    };
    assert_eq!(with(92).unwrap().flows[0].bytes, 3_000);
    for mtu in [88, 91] {
        let error = with(mtu).unwrap_err().to_string();
        assert!(error.starts_with("flow `rrtp`: its mtu is below 92 bytes"), "{error}");
    }
}

#[test]
fn hundreds_may_begin_at_once_on_one_host() {
    let flows =
        vec![FlowSpec { count: 600, ..flow("rrtp", App::Bulk { size: Some(ByteCount(2_000)) }) }];
    let scenario = Scenario {
        duration: Duration::from_secs(20),
        flows,
        ..one(chain("rate 10mbit delay 10ms limit 1000"), flow("rrtp", BULK))
    };
    let result = run(&scenario, None).unwrap();
    assert!(result.flows.iter().all(|flow| flow.bytes == 2_000 && flow.broken == 0));
}

#[test]
fn the_user_time_out_is_how_long_it_waits() {
    let link = "rate 2mbit delay 20ms limit 30 down 1s 1000s";
    let ends_with = |user_timeout| {
        let sent = FlowSpec { user_timeout, ..flow("rrtp", BULK) };
        let scenario = Scenario { duration: Duration::from_secs(20), ..one(chain(link), sent) };
        let result = run(&scenario, None).unwrap();
        (result.flows[0].broken, result.end)
    };
    let (broken, end) = ends_with(Some(Duration::from_secs(5)));
    assert_eq!(broken, 2, "both ends have given up");
    assert!(end < 10.0, "{end}");
    assert_eq!(ends_with(None).0, 0, "the default is longer than the run");
}

#[test]
fn a_copy_that_the_network_made_is_not_spurious() {
    let result = |link| {
        let sent = flow("rrtp", BULK);
        let result = run(&one(chain(link), sent), None).unwrap();
        let flow = result.flows[0].clone();
        assert_eq!((flow.timeouts, flow.reductions, flow.recoveries), (None, None, None));
        (flow.spurious, flow.retransmissions)
    };
    let (spurious, retransmissions) = result("rate 2mbit delay 20ms limit 30 duplicate 10%");
    assert_eq!(spurious, 0, "of {retransmissions}");
    // Late packets are detected as lost, and retransmitted.
    let (spurious, retransmissions) = result("rate 2mbit delay 20ms 60ms limit 30");
    assert!((1..=retransmissions).contains(&spurious), "{spurious} of {retransmissions}");
}

#[test]
fn thirty_flows_that_begin_together_share_evenly() {
    // Each flow starts when the queue is full of the others' packets, and at first takes this for
    // the path's delay.
    for loss in ["0%", "1%", "5%"] {
        let flows =
            vec![FlowSpec { count: 30, stagger: Duration::from_millis(33), ..flow("rrtp", BULK) }];
        let mut indices = Vec::new();
        for seed in 1..=5 {
            let scenario = Scenario {
                seed,
                duration: Duration::from_secs(60),
                warm_up: Duration::from_secs(30),
                flows: flows.clone(),
                ..one(
                    dumbbell(&format!("rate 11mbit delay 5ms limit 50 loss {loss}")),
                    flow("rrtp", BULK),
                )
            };
            indices.push(run(&scenario, None).unwrap().jain);
        }
        assert!(indices.iter().all(|index| *index >= 0.97), "{loss}: {indices:?}");
    }
}
