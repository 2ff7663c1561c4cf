//! Whole connections over links with policers, bursts and changes.

use super::*;

/// The share of payload in an IP packet of 1,500 bytes, with timestamps.
const PAYLOAD: f64 = 1448.0 / 1500.0;

fn chain(forth: &str, back: &str) -> Topology {
    let wire = Wire { forth: forth.parse().unwrap(), back: back.parse().unwrap() };
    Topology::Chain { wires: vec![wire] }
}

fn over(topology: Topology, warm_up: u64, duration: u64) -> Scenario {
    let [warm_up, duration] = [warm_up, duration].map(Duration::from_secs);
    Scenario { warm_up, duration, ..one(topology, flow("rack/cubic", BULK)) }
}

#[test]
fn a_rate_that_changes_is_filled_before_and_after() {
    for (before, after) in [(8e6, 2e6), (2e6, 8e6)] {
        let (first, then) = (before / 1e6, after / 1e6);
        let forth = format!("rate {first}mbit delay 10ms limit 40 at 10s rate {then}mbit");
        let goodput = |warm_up, duration| {
            let scenario = over(chain(&forth, "delay 10ms"), warm_up, duration);
            run(&scenario, None).unwrap().flows[0].goodput
        };
        let share = goodput(5, 20) / (PAYLOAD * (before + 2.0 * after) / 3.0);
        assert!((0.95..=1.01).contains(&share), "{before} to {after}: {share}");
        let share = goodput(13, 20) / (PAYLOAD * after);
        assert!((0.95..=1.01).contains(&share), "{before} to {after}: {share}");
    }
}

#[test]
fn a_delay_that_changes_shows_in_every_exchange_from_then_on() {
    let size = ByteCount(100);
    let pings = flow("rack/cubic", App::PingPong { size, count: None });
    let forth = "delay 10ms at 1s delay 40ms at 2s delay 5ms";
    let scenario = Scenario {
        duration: Duration::from_secs(3),
        samples: true,
        ..one(chain(forth, "delay 10ms"), pings)
    };
    let result = run(&scenario, None).unwrap();
    let exchanges = result.flows[0].samples.clone().unwrap().exchanges;
    // The first exchange waits for the handshake, and an exchange that starts before a change may
    // end after it.
    for (begin, expected) in [(0.1, 0.020), (1.0, 0.050), (2.0, 0.015)] {
        let within = |(at, _): &&(f64, f64)| *at >= begin && *at < begin + 0.8;
        let took: Vec<f64> = exchanges.iter().filter(within).map(|(_, took)| *took).collect();
        assert!(took.len() > 10, "{exchanges:?}");
        assert!(took.iter().all(|took| (took - expected).abs() < 1e-9), "{begin}: {took:?}");
    }
    assert!(!scenario.is_random());
}

#[test]
fn loss_that_begins_later_leaves_what_was_before_to_every_seed_alike() {
    let forth = "rate 8mbit delay 10ms limit 40 at 2s loss 3%";
    let until = |seed, duration| {
        let scenario = Scenario { seed, ..over(chain(forth, "delay 10ms"), 0, duration) };
        assert!(scenario.is_random());
        run(&scenario, None).unwrap()
    };
    let [one, other] = [1, 2].map(|seed| until(seed, 4));
    assert!(one.links[0].counters.channel_lost > 20);
    assert_ne!(one.flows, other.flows);
    assert_eq!(until(1, 4), one);
}

#[test]
fn a_policed_flow_gets_the_policed_rate_and_its_drops_are_counted_separately() {
    let link = "police rate 4mbit burst 60kb rate 40mbit delay 10ms limit 400";
    let result = run(&over(chain(link, "delay 10ms"), 5, 20), None).unwrap();
    let (own, link) = (&result.flows[0], &result.links[0]);
    // The bucket may be full at the start of the 15 s that count.
    let most = PAYLOAD * (4e6 + 60.0 * 1024.0 * 8.0 / 15.0);
    assert!((0.5 * most..=most).contains(&own.goodput), "{}", own.goodput / most);
    assert!(link.counters.policed > 10, "{:?}", link.counters);
    assert_eq!(link.drops.iter().collect::<Vec<_>>(), [(&"policed", &link.counters.policed)]);
    // A policer has no queue: packets wait only for the rate behind it, which is ten times as fast.
    assert!(own.rtt.min >= 0.02 && own.rtt.max < 0.05, "{:?}", own.rtt);
    let json = serde_json::to_value(&result.links).unwrap();
    assert_eq!(json[0]["counters"]["policed"], link.counters.policed);
    assert!(json[1]["counters"].get("policed").is_none(), "{json}");
    let sum = Aggregate::of(std::slice::from_ref(&result));
    assert_eq!(sum.links[0].policed.mean, link.counters.policed as f64);
}

#[test]
fn the_losses_of_a_finished_transfer_are_the_drops_of_the_policer() {
    let link = "police rate 4mbit burst 60kb rate 40mbit delay 10ms limit 400";
    let app = App::Bulk { size: Some(ByteCount(5_000_000)) };
    let scenario = over(chain(link, "delay 10ms"), 0, 30);
    let flows = vec![FlowSpec { app, ..scenario.flows[0].clone() }];
    let result = run(&Scenario { flows, ..scenario }, None).unwrap();
    assert!(result.links[0].counters.policed > 10);
    assert_eq!(result.flows[0].lost, result.links[0].counters.policed, "nothing else is lost");
}

/// Counts the packets that arrive at a node, and the instants of arrival.
struct Arrivals {
    node: NodeId,
    packets: u64,
    instants: u64,
    last: Option<Instant>,
}

impl Observer for Arrivals {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, _: &Packet) {
        if (node, crossing) == (self.node, Crossing::In) {
            self.packets += 1;
            self.instants += u64::from(self.last.replace(now) != Some(now));
        }
    }
}

#[test]
fn acks_alone_can_be_gathered_into_bursts() {
    let [plain, gathered] = ["delay 10ms", "delay 10ms aggregate 8ms bytes 10kb"].map(|back| {
        let scenario = over(chain("rate 8mbit delay 10ms limit 60", back), 2, 8);
        let simulation = Simulation::new(&scenario).unwrap();
        let node = simulation.nodes().iter().position(|(name, _)| name == "left").unwrap();
        let node = NodeId(node as u32);
        let mut arrivals = Arrivals { node, packets: 0, instants: 0, last: None };
        let result = simulation.run(Some(&mut arrivals)).unwrap();
        let share = result.flows[0].goodput / (8e6 * PAYLOAD);
        assert!((0.95..=1.0).contains(&share), "{back}: {share}");
        (arrivals.packets as f64 / arrivals.instants as f64, result.flows[0].rtt)
    });
    // An ACK for every other packet, which takes 3 ms.
    assert!(plain.0 < 1.1 && gathered.0 > 2.5, "{plain:?} {gathered:?}");
    assert!(gathered.1.min < plain.1.min + 0.008 + 1e-9, "{plain:?} {gathered:?}");
}

#[test]
fn a_change_that_never_comes_is_refused() {
    let late = "rate 8mbit delay 10ms at 5s rate 1mbit at 10s rate 8mbit";
    let place = |scenario: Scenario| match run(&scenario, None) {
        Err(SimError::Senseless { place, what }) => {
            assert!(what.starts_with("it changes at 10s, and the run ends at 10s"), "{what}");
            place
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(place(over(chain("delay 10ms", late), 0, 10)), "link `wire-1`");
    assert_eq!(place(over(dumbbell(late), 0, 10)), "link `bottleneck`");
    let plain = over(dumbbell("delay 10ms"), 0, 10);
    let access = Some(Wire::both(late.parse().unwrap()));
    let own = FlowSpec { access, name: "own".to_owned(), ..plain.flows[0].clone() };
    let with = Scenario { flows: vec![own], ..plain };
    assert_eq!(place(with), "link `access` of flow `own`");
    assert!(run(&over(dumbbell(late), 0, 11), None).is_ok());
}
