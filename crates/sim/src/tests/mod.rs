//! Short runs of whole scenarios.

use std::time::Duration;

use airtcp_basestation::{Policy, StationConfig};
use airtcp_recovery::{Profile, RtoForm};
use airtcp_types::{ByteCount, Crossing, Event, EventKind, Instant, NodeId, Observer, Packet};

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

mod chain;
mod links;
mod memory;
mod rrtp;
mod states;
mod udp;

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

#[test]
fn a_clamp_is_a_window_for_each_round_trip() {
    let flow = flow("newreno/reno", BULK);
    let profile = Profile { cwnd_clamp: Some(5), ..Profile::paper() };
    let scenario =
        one(dumbbell("rate 100mbit delay 50ms"), FlowSpec { profile, timestamps: false, ..flow });
    let goodput = run(&scenario, None).unwrap().flows[0].goodput;
    let limit = 5.0 * 1_460.0 * 8.0 / 0.1;
    assert!((0.95 * limit..=limit).contains(&goodput), "{goodput} of {limit}");
}

#[test]
fn a_transfer_takes_as_long_as_the_initial_window_and_the_least_time_out_say() {
    let finished = |profile, link: &str| {
        let size = Some(ByteCount(8 * 1_460));
        let flow = FlowSpec { profile, ..flow("newreno/reno", App::Bulk { size }) };
        run(&one(dumbbell(link), FlowSpec { timestamps: false, ..flow }), None).unwrap().flows[0]
            .finished
            .unwrap()
    };
    // A round trip for the handshake, then windows of 1, 2, 4 and the rest; or all data in one
    // window.
    let window = |initial_window| Profile { initial_window, ..Profile::paper() };
    let link = "rate 100mbit delay 50ms";
    assert_eq!((finished(window(8), link) * 10.0) as u32, 1);
    assert_eq!((finished(window(1), link) * 10.0) as u32, 4);
    // Packet 9 is the last segment: packet 1 is the SYN, and the handshake's ACK carries the first
    // segment.
    let floor = |secs| {
        let floor = Duration::from_secs(secs);
        Profile { rto: RtoForm::Rfc { floor }, ..window(8) }
    };
    let lossy = "rate 100mbit delay 50ms drop 9";
    let [one, three] = [1, 3].map(|secs| finished(floor(secs), lossy));
    assert!((1.9..2.1).contains(&(three - one)), "{one} {three}");
}

#[test]
fn a_flow_that_stops_leaves_the_link_to_the_other() {
    let stop = Some(Duration::from_secs(4));
    // CUBIC leaves RRTP so little that sending the written data would take seconds.
    let beside = Duration::from_secs(5);
    for (sender, start) in [("rack/cubic", Duration::ZERO), ("rrtp", beside)] {
        let stops = FlowSpec { stop, ..flow(sender, BULK) };
        let stays = FlowSpec { start, ..flow("rack/cubic", BULK) };
        let scenario = Scenario {
            warm_up: Duration::from_secs(6),
            flows: vec![stops, stays],
            ..Scenario::new("stop", dumbbell("rate 10mbit delay 10ms limit 20"))
        };
        let result = run(&scenario, None).unwrap();
        let [stopped, stayed] = result.flows.as_slice() else { panic!("there are two") };
        assert!(stopped.bytes > 1_000_000 && stopped.broken == 0, "{sender}: {stopped:?}");
        assert_eq!(stopped.goodput, 0.0, "{sender}");
        assert!(stayed.goodput > 9e6, "{sender}: {}", stayed.goodput);
    }
}

#[test]
fn a_stopped_flow_starts_nothing_and_ends_what_it_has_started() {
    let (size, stop) = (ByteCount(10_000), Duration::from_millis(1_010));
    let none = Duration::ZERO;
    let link = "rate 10mbit delay 10ms";
    for app in [
        App::PingPong { size, count: None },
        App::RequestResponse { request: size, response: size, think: none, count: None },
        App::ShortFlows { size: (size, size), gap: none, pareto: false, users: 1 },
    ] {
        let until = |duration| {
            let stops = FlowSpec { stop: Some(stop), ..flow("rack/cubic", app.clone()) };
            let result = run(&Scenario { duration, ..one(dumbbell(link), stops) }, None).unwrap();
            assert_eq!(result.flows[0].broken, 0, "{app:?}");
            (result.flows[0].bytes, result.flows[0].exchanges.count)
        };
        let (bytes, exchanges) = until(Duration::from_secs(5));
        assert_eq!((bytes, exchanges), until(Duration::from_secs(2)), "{app:?}");
        assert!(exchanges > until(stop).1, "{app:?}: the one under way ends after the stop");
    }
}

#[test]
fn a_stop_before_the_start_is_refused() {
    let stop = Some(Duration::from_secs(1));
    let late =
        FlowSpec { count: 3, stagger: Duration::from_millis(500), stop, ..flow("rack/reno", BULK) };
    let error = run(&one(dumbbell("rate 10mbit"), late), None).unwrap_err().to_string();
    assert!(error.contains("stops before its last copy starts"), "{error}");
}

#[test]
fn strategies_change_at_both_ends_while_a_flow_runs() {
    let (request, response) = (ByteCount(1), ByteCount(200_000));
    let answers = App::RequestResponse { request, response, think: Duration::ZERO, count: None };
    for app in [BULK, answers] {
        let goodput = |changes| {
            let scenario = one(
                dumbbell("rate 100mbit delay 50ms"),
                FlowSpec { changes, ..flow("sack/fixed:4", app.clone()) },
            );
            let scenario = Scenario { warm_up: Duration::from_secs(6), ..scenario };
            run(&scenario, None).unwrap().flows[0].goodput
        };
        let to = |at, text: &str| Change {
            at: Duration::from_secs(at),
            combination: text.parse().unwrap(),
        };
        let stays = goodput(Vec::new());
        assert!(goodput(vec![to(5, "rack/fixed:16")]) > 3.0 * stays, "{app:?}");
        // The last change in time applies, whatever the order in the list.
        let back = goodput(vec![to(4, "sack/fixed:4"), to(2, "rack/fixed:16")]);
        assert!((0.9..1.1).contains(&(back / stays)), "{app:?}: {back} {stays}");
    }
}

#[test]
fn a_change_that_cannot_be_is_an_error() {
    let change = |at, text: &str| {
        vec![Change { at: Duration::from_secs(at), combination: text.parse().unwrap() }]
    };
    let refused = |flow| run(&one(dumbbell("rate 10mbit"), flow), None).unwrap_err();
    let plain = FlowSpec { sack: false, ..flow("newreno/reno", BULK) };
    let error = refused(FlowSpec { changes: change(1, "fack/reno"), ..plain.clone() });
    assert!(matches!(error, SimError::Host { .. }), "{error}");
    let error = refused(FlowSpec { changes: change(0, "newreno/cubic"), ..plain }).to_string();
    assert!(error.contains("change before its last copy starts"), "{error}");
}

/// Bytes that crossed the link before the measured interval and waited behind a hole do not count.
#[test]
fn goodput_is_never_more_than_the_link_carries() {
    // A queue of fifteen seconds, with a loss shortly before the measured interval.
    let link = "rate 780kbit delay 100ms limit 1000 drop 300";
    for warm_up in [3, 4, 5, 6, 8] {
        let scenario = one(dumbbell(link), flow("rack/cubic", BULK));
        let (warm_up, end) = (Duration::from_secs(warm_up), Duration::from_secs(warm_up + 20));
        let result = run(&Scenario { warm_up, duration: end, ..scenario }, None).unwrap();
        // Part of a packet may have been sent before the interval.
        let limit = (780e3 * 20.0 / 8.0 / 1500.0 + 1.0) * 1448.0 * 8.0 / 20.0;
        let goodput = result.flows[0].goodput;
        assert!((0.9 * limit..=limit).contains(&goodput), "{warm_up:?}: {goodput} of {limit}");
    }
}

#[test]
fn an_observer_changes_nothing_and_sees_every_packet() {
    #[derive(Default)]
    struct Count(u64);
    impl Observer for Count {
        fn on_packet(&mut self, _: Instant, node: NodeId, crossing: Crossing, _: &Packet) {
            // The hosts of a dumbbell with one flow and no access wires.
            self.0 += u64::from(crossing == Crossing::Out && [3, 4].contains(&node.0));
        }
    }
    let bottleneck = "rate 10mbit delay 10ms 2ms limit 17 loss 1%";
    let scenario = one(dumbbell(bottleneck), flow("sack/cubic", BULK));
    let simulation = Simulation::new(&scenario).unwrap();
    let names = simulation.nodes();
    assert_eq!((names[3].0.as_str(), names[4].0.as_str()), ("left-1", "right-1"));
    let mut count = Count::default();
    let watched = simulation.run(Some(&mut count)).unwrap();
    assert_eq!(watched, run(&scenario, None).unwrap());
    assert_eq!(count.0, watched.packets);
}

#[test]
fn seeds_matter_and_repeat() {
    let scenario = one(dumbbell("rate 10mbit delay 10ms loss 1%"), flow("sack/cubic", BULK));
    let json = |seed| {
        let result = run(&Scenario { seed, ..scenario.clone() }, None).unwrap();
        serde_json::to_string(&result).unwrap()
    };
    assert_eq!(json(1), json(1));
    assert_ne!(json(1), json(2));
}

#[test]
fn a_transfer_of_a_size_finishes_with_every_byte() {
    for way in [FlowDirection::LeftToRight, FlowDirection::RightToLeft] {
        let size = ByteCount(1_000_000);
        let wire = Wire::both("rate 8mbit delay 5ms loss 2%".parse().unwrap());
        let spec = FlowSpec {
            way,
            start: Duration::from_secs(1),
            ..flow("sack/reno", App::Bulk { size: Some(size) })
        };
        let result = run(&one(Topology::Chain { wires: vec![wire] }, spec), None).unwrap();
        let flow = &result.flows[0];
        assert_eq!((flow.bytes, flow.broken), (size.0, 0));
        let finished = flow.finished.unwrap();
        assert!((1.0..8.0).contains(&finished), "a second at least: {finished}");
        assert!(
            flow.retransmissions
                >= result.links[usize::from(way == FlowDirection::RightToLeft)]
                    .counters
                    .channel_lost
        );
    }
}

#[test]
fn exchanges_take_their_round_trips() {
    // 20 ms for both directions; a request and its response are one packet each.
    let wire = || Wire::both("delay 10ms".parse().unwrap());
    let asks = App::RequestResponse {
        request: ByteCount(300),
        response: ByteCount(1_000),
        think: Duration::from_millis(50),
        count: Some(20),
    };
    let pings = App::PingPong { size: ByteCount(1), count: Some(20) };
    for (app, bytes) in [(asks, 20 * 1_300), (pings, 20 * 2)] {
        let result =
            run(&one(Topology::Chain { wires: vec![wire()] }, flow("sack/reno", app)), None);
        let flow = result.unwrap().flows.remove(0);
        assert_eq!((flow.bytes, flow.exchanges.count), (bytes, 20));
        // The first exchange includes the handshake.
        assert!((flow.exchanges.min - 0.020).abs() < 1e-6, "{:?}", flow.exchanges);
        assert!((flow.exchanges.max - 0.040).abs() < 1e-6, "{:?}", flow.exchanges);
        assert!(flow.finished.is_some());
    }
}

#[test]
fn a_host_that_wakes_late_adds_its_delay_at_both_ends() {
    let wire = || Wire::both("delay 10ms".parse().unwrap());
    // One exchange after the handshake; in later ones a timer may already have woken the host.
    let pings = App::PingPong { size: ByteCount(1), count: Some(1) };
    let spec =
        FlowSpec { wake_up_delay: Duration::from_millis(2), ..flow("sack/reno", pings.clone()) };
    for topology in [Topology::Chain { wires: vec![wire()] }, dumbbell("delay 10ms")] {
        // In a chain, a flow without a wake-up delay shares the hosts.
        let flows = vec![spec.clone(), flow("sack/reno", pings.clone())];
        let is_shared = matches!(topology, Topology::Chain { .. });
        let result = run(&Scenario { flows, ..Scenario::new("late", topology) }, None).unwrap();
        let took = result.flows.iter().map(|flow| flow.exchanges.mean).collect::<Vec<_>>();
        assert!((took[0] - 0.048).abs() < 1e-6, "{took:?}");
        assert!((took[1] - if is_shared { 0.048 } else { 0.040 }).abs() < 1e-6, "{took:?}");
    }
}

#[test]
fn a_host_that_wakes_late_sends_at_its_wake_ups_alone() {
    /// When each end of the chain sent.
    #[derive(Default)]
    struct Sent([Vec<Instant>; 2]);
    impl Observer for Sent {
        fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, _: &Packet) {
            // Node 1 is the link between them.
            if crossing == Crossing::Out && node != NodeId(1) {
                self.0[node.0 as usize / 2].push(now);
            }
        }
    }
    let late = Duration::from_millis(2);
    let wire = Wire::both("rate 10mbit delay 10ms limit 50 loss 1%".parse().unwrap());
    let spec = FlowSpec { wake_up_delay: late, ..flow("rack/bbr3", BULK) };
    let mut sent = Sent::default();
    run(&one(Topology::Chain { wires: vec![wire] }, spec), Some(&mut sent)).unwrap();
    for mut times in sent.0 {
        let packets = times.len();
        times.dedup();
        assert!(times.len() > 500 && packets > times.len(), "{packets} at {} times", times.len());
        assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= late));
    }
}

#[test]
fn short_flows_come_and_go() {
    let app = App::ShortFlows {
        size: (ByteCount(1_000), ByteCount(20_000)),
        gap: Duration::from_millis(500),
        pareto: true,
        users: 10,
    };
    let scenario = one(dumbbell("rate 10mbit delay 10ms loss 1%"), flow("sack/cubic", app));
    let result = run(&Scenario { samples: true, ..scenario }, None).unwrap();
    let flow = &result.flows[0];
    let transfers = flow.exchanges.count;
    assert!((100..=220).contains(&transfers), "ten users, ten seconds: {transfers}");
    assert!((1_000 * transfers..=20_000 * (transfers + 10)).contains(&flow.bytes));
    assert_eq!(flow.samples.as_ref().unwrap().exchanges.len() as u64, transfers);
    assert_eq!(flow.broken, 0);
}

#[test]
fn a_connection_that_is_given_up_is_counted_as_broken() {
    let wire = Wire::both("rate 1mbit delay 5ms down 1s 10000s".parse().unwrap());
    let scenario = one(Topology::Chain { wires: vec![wire] }, flow("sack/reno", BULK));
    let result = run(&Scenario { duration: Duration::from_secs(3_000), ..scenario }, None).unwrap();
    assert_eq!(result.flows[0].broken, 1);
    assert_eq!(Aggregate::of(&[result]).flows[0].broken.mean, 1.0);
}

/// An explicit receive buffer does not have to grow: all of it is advertised as soon as windows are
/// scaled, which they are not in a SYN.
#[test]
fn a_receive_buffer_is_there_from_the_start() {
    let received = |receive_buffer| {
        let spec = FlowSpec { receive_buffer, ..flow("sack/fixed:600", BULK) };
        let scenario = one(dumbbell("rate 100mbit delay 100ms limit 1000"), spec);
        // The handshake and two windows, each half a round trip later.
        let scenario = Scenario { duration: Duration::from_millis(690), ..scenario };
        run(&scenario, None).unwrap().flows[0].bytes
    };
    let (grows, fixed) = (received(None), received(Some(ByteCount::from_mib(1))));
    assert!(grows <= 3 * 65_536, "{grows}");
    assert!(fixed > 600_000, "{fixed}");
}

/// An application reads the data that an ACK acknowledges before the ACK is sent.
#[test]
fn an_immediate_reader_always_offers_the_whole_buffer() {
    #[derive(Debug, Default)]
    struct Windows(std::collections::BTreeMap<u16, u32>);
    impl Observer for Windows {
        fn on_packet(&mut self, _: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
            let tcp = &packet.data[20..];
            if (node.0, crossing, tcp[13]) == (4, Crossing::Out, 0x10) {
                *self.0.entry(u16::from_be_bytes([tcp[14], tcp[15]])).or_default() += 1;
            }
        }
    }
    let spec =
        FlowSpec { receive_buffer: Some(ByteCount::from_kib(60)), ..flow("sack/reno", BULK) };
    let link = "rate 10mbit delay 10ms limit 1000 drop every 97 only forth only payload";
    let mut windows = Windows::default();
    run(&one(dumbbell(link), spec), Some(&mut windows)).unwrap();
    // Except for the data above a hole.
    let (least, _) = windows.0.first_key_value().unwrap();
    assert!(*least >= 60 * 1024 - 1448, "{windows:?}");
    assert!(windows.0[&(60 * 1024)] > 1000, "{windows:?}");
}

/// Delayed packets look lost: their retransmissions are spurious, and no others are.
#[test]
fn spurious_retransmissions_are_counted_separately() {
    let result_of = |errors: &str| {
        let link = format!("rate 10mbit delay 10ms limit 1000 {errors}");
        let spec =
            FlowSpec { receive_buffer: Some(ByteCount::from_kib(60)), ..flow("sack/reno", BULK) };
        run(&one(dumbbell(&link), spec), None).unwrap().flows.remove(0)
    };
    let reordered = result_of("delayed 1% 8ms 0ms only forth");
    assert!(reordered.retransmissions > 20, "{reordered:?}");
    assert_eq!(reordered.spurious, reordered.retransmissions);
    let lossy = result_of("drop every 97 only forth only payload");
    assert!(lossy.retransmissions > 20, "{lossy:?}");
    // The rescue retransmission of RFC 6675 section 5 (4), which is sent without evidence of a
    // loss.
    assert_eq!(lossy.spurious, 1);
}

/// The number of idle flows, ten or ten thousand, does not change the number of calls.
#[test]
fn idle_flows_cost_nothing() {
    let touches = |idle: u32, seconds| {
        let app = App::RequestResponse {
            request: ByteCount(10),
            response: ByteCount(10),
            think: Duration::from_secs(1_000_000_000),
            count: None,
        };
        let silent = FlowSpec {
            count: idle,
            stagger: Duration::from_secs(4) / idle,
            ..flow("sack/reno", app)
        };
        let mut scenario = one(dumbbell("rate 10mbit delay 10ms limit 17"), silent);
        // A late flow is independent of the earlier ones.
        let late = FlowSpec { start: Duration::from_secs(5), ..flow("sack/reno", BULK) };
        scenario.flows.push(late);
        let duration = Duration::from_secs(seconds);
        run(&Scenario { duration, ..scenario }, None).unwrap().events
    };
    let by_bulk = |idle| touches(idle, 8) - touches(idle, 6);
    assert_eq!(by_bulk(10), by_bulk(10_000));
}

#[test]
fn an_invalid_scenario_is_refused_with_the_position() {
    type Change<'a> = &'a dyn Fn(&mut Scenario);
    let good = one(dumbbell("rate 10mbit"), flow("sack/reno", BULK));
    let message = |change: Change<'_>| {
        let mut scenario = good.clone();
        change(&mut scenario);
        run(&scenario, None).unwrap_err().to_string()
    };
    let cases: [(Change<'_>, &str); 9] = [
        (&|s| s.flows.clear(), "scenario: there are no flows: add one"),
        (&|s| s.duration = Duration::ZERO, "scenario: the duration is zero: choose a longer one"),
        (
            &|s| s.warm_up = s.duration,
            "scenario: the warm-up is as long as the duration: make it shorter",
        ),
        (
            &|s| s.flows[0].count = 100_000,
            "scenario: 100000 flows: at most 60000 fit this topology",
        ),
        (
            &|s| s.flows[0].start = s.duration,
            "flow `sack/reno`: a copy starts after the end of the run: start it earlier",
        ),
        (
            &|s| s.flows[0].mtu = 60,
            "flow `sack/reno`: its mtu is below 88 bytes: choose a larger one",
        ),
        (
            &|s| s.flows[0].app = App::Bulk { size: Some(ByteCount(0)) },
            "flow `sack/reno`: it transfers nothing: choose a size",
        ),
        (
            &|s| s.topology = dumbbell("loss 1%"),
            "flow `sack/reno`: its path has neither rate nor delay: add one to a link",
        ),
        (
            &|s| s.topology = dumbbell("trace no.such"),
            "link `bottleneck`: trace no.such: the scenario does not contain this trace",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(message(change), expected);
    }
}

#[test]
fn time_may_pass_by_any_part_of_a_link() {
    for link in ["delay 0ms 5ms", "paths 0ms 15ms", "half 100us", "rate 1mbit", "delay 1ms"] {
        let app = App::Bulk { size: Some(ByteCount(100_000)) };
        let result = run(&one(dumbbell(link), flow("sack/reno", app)), None);
        let result = result.unwrap();
        assert!(result.flows[0].bytes > 0 && result.end > 0.0, "{link}");
    }
}

#[test]
fn a_scenario_is_random_if_its_seeds_differ() {
    let kb = |count| ByteCount::from_kib(count);
    let requests = |think| App::RequestResponse {
        request: kb(1),
        response: kb(20),
        think: Duration::from_millis(think),
        count: None,
    };
    let short = |largest, gap| App::ShortFlows {
        size: (kb(5), kb(largest)),
        gap: Duration::from_millis(gap),
        pareto: false,
        users: 2,
    };
    let quiet = "rate 2mbit delay 10ms limit 8 drop every 97";
    let cases = [
        (quiet, BULK, false),
        ("rate 2mbit delay 10ms codel", BULK, false),
        ("rate 2mbit delay 10ms limit 8 loss 1%", BULK, true),
        ("rate 2mbit delay 10ms 2ms", BULK, true),
        (quiet, App::PingPong { size: kb(2), count: None }, false),
        (quiet, requests(0), false),
        (quiet, requests(5), true),
        (quiet, short(5, 0), false),
        (quiet, short(50, 0), true),
        (quiet, short(5, 10), true),
    ];
    for (link, app, is_random) in cases {
        // Several flows on a link show whether the random ports and sequence numbers of a host have
        // an effect.
        for (combination, draws) in [
            ("rack/cubic", false),
            ("le:echo/westwood/hack+dcr:timer", false),
            ("newreno/reno/rr", false),
            // Both draw when they probe for bandwidth.
            ("rack/bbr", true),
            ("rack/bbr3/spike", true),
        ] {
            let second = FlowSpec { count: 2, ..flow(combination, BULK) };
            let flows = vec![flow(combination, app.clone()), second];
            let scenario = Scenario { flows, ..one(dumbbell(link), flow(combination, BULK)) };
            let mut results = run_seeds(&scenario, 1..3, None, |_| {}).unwrap();
            results.iter_mut().for_each(|result| result.seed = 0);
            let what = format!("{link}, {app:?}, {combination}");
            assert_eq!(scenario.is_random(), is_random || draws, "{what}");
            assert_eq!(results[0] != results[1], is_random || draws, "{what}");
        }
    }
}

fn wireless(radio: &str, policy: Policy) -> Topology {
    Topology::Wireless {
        access: Wire::default(),
        bottleneck: Wire::both("rate 100mbit delay 20ms limit 1000".parse().unwrap()),
        station: StationConfig { radio: radio.parse().unwrap(), policy, ..Default::default() },
        radios: Radios::Shared,
    }
}

fn mobiles(radio: &str, policy: Policy) -> Scenario {
    let flow = FlowSpec { mark_aware: policy == Policy::TcpEcn, ..flow("sack/cubic", BULK) };
    one(wireless(radio, policy), flow)
}

#[test]
fn a_radio_carries_what_its_air_time_allows() {
    let scenario = Scenario { warm_up: Duration::from_secs(2), ..mobiles("", Policy::Plain) };
    let bound = airtcp_link::RadioSpec::default().bound(1_448, 1_500, 52, 2).bits_per_sec() as f64;
    for way in [FlowDirection::LeftToRight, FlowDirection::RightToLeft] {
        let mut scenario = scenario.clone();
        scenario.flows[0].way = way;
        let result = run(&scenario, None).unwrap();
        let share = result.flows[0].goodput / bound;
        assert!((0.9..=1.0).contains(&share), "{way:?}: {share}");
        let station = result.station.unwrap();
        assert_eq!((station.radio[0].residual_loss, station.radio[0].reordered), (0.0, 0.0));
        assert_eq!(station.memory.flows, station.memory.cached, "plain knows no flow");
    }
}

#[test]
fn mobiles_share_the_air_and_a_seed_repeats() {
    let radio = "error 40% tries 2 queue 200";
    let mut scenario = mobiles(radio, Policy::TcpEcn);
    scenario.flows[0].count = 3;
    let json = |seed| {
        let result = run(&Scenario { seed, ..scenario.clone() }, None).unwrap();
        (serde_json::to_string(&result).unwrap(), result)
    };
    let (text, result) = json(1);
    assert_eq!(text, json(1).0);
    assert_ne!(text, json(2).0);
    assert!(result.flows.iter().all(|flow| flow.bytes > 100_000 && flow.broken == 0));
    let station = result.station.unwrap();
    let forth = &station.radio[0];
    // A pass of two tries fails with probability 0.4 squared; there are up to three passes.
    assert!((0.01..0.3).contains(&forth.reordered), "{}", forth.reordered);
    assert!((0.002..0.007).contains(&forth.residual_loss), "{}", forth.residual_loss);
    assert!(station.counters.hidden > 0, "{:?}", station.counters);
    let memory = station.memory;
    assert!(memory.queued <= 200 * 1_500 && memory.flows > 0 && memory.cached == 0);
    assert!(memory.all >= memory.queued.max(memory.flows));
    assert!(memory.all <= memory.queued + memory.flows);
}

#[test]
fn a_mobile_can_have_a_radio_to_itself() {
    let run = |radios| {
        let mut scenario = mobiles("plain rate 1mbit delay 5ms error 10%", Policy::Plain);
        let Topology::Wireless { station, radios: whose, .. } = &mut scenario.topology else {
            panic!("it has one")
        };
        (station.arq, *whose) = (airtcp_link::Arq::Head, radios);
        scenario.flows[0].count = 3;
        scenario.warm_up = Duration::from_secs(2);
        let simulation = Simulation::new(&scenario).unwrap();
        let names = simulation.nodes().iter().map(|(name, _)| name.clone());
        let stations: Vec<_> = names.filter(|name| name.contains("station")).collect();
        (stations, simulation.run(None).unwrap())
    };
    let (stations, result) = run(Radios::Own);
    assert_eq!(stations, ["station-1", "station-2", "station-3"]);
    // 0.9 of the tries carry 1448 of 1500 bytes: 0.87, with a standard deviation of 0.012.
    let each: Vec<_> = result.flows.iter().map(|flow| flow.goodput / 1e6).collect();
    assert!(each.iter().all(|mbit| (0.8..0.93).contains(mbit)), "{each:?}");
    let own = result.station.unwrap();
    let (stations, result) = run(Radios::Shared);
    assert_eq!(stations, ["station"]);
    assert!(result.flows.iter().map(|flow| flow.goodput).sum::<f64>() < 0.93e6);
    // The results of several stations are summed.
    let shared = result.station.unwrap();
    let tries = |station: &StationResult| station.radio[0].air.tries;
    assert!((2 * tries(&shared)..4 * tries(&shared)).contains(&tries(&own)));
    assert!(own.memory.queued > shared.memory.queued);
}

/// The mobile leaves and returns: no data sent to it is lost.
#[test]
fn packets_wait_for_a_mobile_that_left() {
    let path = "at 0s 100 at 3s 100 at 5s 400 at 13s 400 at 15s 100";
    let run = |policy| {
        let scenario = Scenario { duration: Duration::from_secs(18), ..mobiles(path, policy) };
        run(&scenario, None).unwrap()
    };
    let [plain, ecn] = [Policy::Plain, Policy::TcpEcn].map(run);
    let station = ecn.station.unwrap();
    assert!(station.counters.frozen + station.counters.made > 0 && station.counters.held > 0);
    assert_eq!(station.radio[0].counters.disconnected, 0);
    assert!(station.memory.held > 1_500);
    let station = plain.station.unwrap();
    assert!(station.radio[0].counters.disconnected > 0 && plain.flows[0].timeouts > Some(0));
    assert!(ecn.flows[0].goodput > plain.flows[0].goodput);
}

/// The radio reorders; a Reno sender retransmits what the third duplicate ACK asks for.
#[test]
fn delayed_duplicate_acks_spare_a_sender_retransmissions_in_vain() {
    let [plain, delayed] = [Policy::Plain, Policy::DelayedDupack].map(|policy| {
        let topology = wireless("error 40% tries 2 queue 20", policy);
        run(&one(topology, flow("newreno/reno", BULK)), None).unwrap()
    });
    let [none, counters] =
        [&plain, &delayed].map(|result| result.station.as_ref().unwrap().counters);
    assert!(counters.hidden > 0 && counters.hidden < counters.delayed, "{counters:?}");
    assert_eq!(none.delayed, 0);
    let [often, seldom] = [&plain, &delayed].map(|result| result.flows[0].spurious);
    assert!(seldom < often, "{seldom:?} {often:?}");
}

#[test]
fn an_observer_of_a_station_sees_its_events_and_changes_nothing() {
    #[derive(Default)]
    struct Fates(u64);
    impl Observer for Fates {
        fn on_event(&mut self, node: NodeId, event: &Event) {
            let is_fate = matches!(event.kind, EventKind::Packet { .. });
            self.0 += u64::from(node == NodeId(2) && is_fate);
        }
    }
    let scenario = mobiles("error 40% tries 2", Policy::TcpEcn);
    let simulation = Simulation::new(&scenario).unwrap();
    let names = simulation.nodes();
    assert_eq!(names[2], ("station".to_owned(), NodeKind::BaseStation));
    assert_eq!((names[4].0.as_str(), names[5].0.as_str()), ("fixed-1", "mobile-1"));
    let mut fates = Fates::default();
    let watched = simulation.run(Some(&mut fates)).unwrap();
    assert_eq!(watched, run(&scenario, None).unwrap());
    let station = watched.station.unwrap();
    assert!(fates.0 >= station.radio[0].air.passed_again + station.counters.hidden, "{}", fates.0);
}

#[test]
fn a_station_that_cannot_be_is_refused() {
    let scenario = mobiles("", Policy::TcpEcn);
    let Topology::Wireless { access, bottleneck, station, radios } = scenario.topology.clone()
    else {
        panic!("it has one")
    };
    let station = StationConfig { arq: airtcp_link::Arq::Off, ..station };
    let off = Scenario {
        topology: Topology::Wireless { access, bottleneck: bottleneck.clone(), station, radios },
        ..scenario.clone()
    };
    let error = run(&off, None).unwrap_err().to_string();
    assert!(error.starts_with("station: policy tcp-ecn hides"), "{error}");
    let topology = Topology::Chain { wires: vec![bottleneck] };
    let error = run(&Scenario { topology, ..scenario }, None).unwrap_err().to_string();
    assert!(error.contains("add a `[station]`"), "{error}");
}
