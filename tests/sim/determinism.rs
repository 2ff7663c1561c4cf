//! One scenario and one seed give the same bytes on any number of threads.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::time::Duration;

use airtcp_basestation::{Policy, StationConfig};
use airtcp_link::Arq;
use airtcp_recovery::{Combination, Profile};
use airtcp_sim::{App, FlowDirection, FlowSpec, Radios, Scenario, Topology, Wire, run_seeds};
use airtcp_types::ByteCount;
use airtcp_types::rng::Stream;

const SCENARIOS: u64 = 1_000;
/// The most data packets of a scenario, without retransmissions.
const PACKETS: u64 = 10_000;

fn pick<'a, T: ?Sized>(random: &mut Stream, from: &[&'a T]) -> &'a T {
    from[random.below(from.len() as u64) as usize]
}

/// A link on which a connection survives, whatever its other impairments.
fn link(random: &mut Stream) -> String {
    let rate = pick(random, &["200kbit", "2mbit", "10mbit", "100mbit"]);
    let delay =
        pick(random, &["0ms", "1ms", "20ms 5ms", "50ms 10ms distribution normal inorder", "300ms"]);
    let queue =
        pick(random, &["limit 5", "limit 30", "limit 1000", "limit 100 codel", "limit 50 32kb"]);
    let errors = pick(
        random,
        &[
            "",
            "",
            "loss 0.5%",
            "loss gemodel 1% 30% 50% 0.1%",
            "burst 0.5% 4",
            "drop every 37",
            "corrupt 1% header 50%",
            "biterror 1e-6",
            "duplicate 2%",
            "delayed 3% 25ms 8ms",
            "paths 0ms 15ms",
            "down 1s 2s",
        ],
    );
    let medium = pick(random, &["", "", "", "half 100us"]);
    format!("rate {rate} delay {delay} {queue} {errors} {medium}")
}

fn wire(random: &mut Stream) -> Wire {
    let mut spec = || link(random).parse().expect("a link");
    Wire { forth: spec(), back: spec() }
}

fn station(random: &mut Stream) -> StationConfig {
    let errors = pick(random, &["", "error 20%", "error 40% tries 2", "biterror 1e-5 rts"]);
    let path = pick(random, &["", "at 0s 100 at 10s 300 at 15s 200", "down 3s 4s every 20s"]);
    let policies = [Policy::Plain, Policy::TcpEcn, Policy::Snoop, Policy::DelayedDupack];
    let arqs = [Arq::Mac, Arq::MacLink, Arq::Head];
    StationConfig {
        radio: format!("{errors} {path}").parse().expect("a radio"),
        policy: policies[random.below(4) as usize],
        arq: arqs[random.below(3) as usize],
        ..StationConfig::default()
    }
}

fn app(random: &mut Stream, packets: u64) -> App {
    let size = |packets: u64| ByteCount(packets * 1_400);
    match random.below(4) {
        0 => App::Bulk { size: Some(size(packets)) },
        1 => App::RequestResponse {
            request: ByteCount(300),
            response: size(packets / 10 + 1),
            think: Duration::from_millis(random.below(200)),
            count: Some(10),
        },
        2 => App::ShortFlows {
            size: (ByteCount(100), size(packets / 50 + 1)),
            gap: Duration::from_secs(20),
            pareto: random.chance(0.5),
            users: 3,
        },
        _ => App::PingPong { size: ByteCount(64), count: Some(packets / 2 + 1) },
    }
}

fn scenario(seed: u64) -> Scenario {
    let mut random = Stream::new(seed, 0);
    let topology = if random.chance(0.5) {
        let access = if random.chance(0.5) { Wire::default() } else { wire(&mut random) };
        let bottleneck = wire(&mut random);
        match random.chance(0.5) {
            true => {
                let station = station(&mut random);
                let radios = [Radios::Shared, Radios::Own][random.below(2) as usize];
                Topology::Wireless { access, bottleneck, station, radios }
            }
            false => Topology::Dumbbell { access, bottleneck },
        }
    } else {
        let wires = 1 + random.below(3);
        Topology::Chain { wires: (0..wires).map(|_| wire(&mut random)).collect() }
    };
    let combinations = Combination::all();
    let specs = 1 + random.below(3);
    let flows = (0..specs).map(|_| {
        let combination = combinations[random.below(combinations.len() as u64) as usize].clone();
        // Most are short, a few as long as allowed.
        let share = random.next_f64().powi(6);
        let packets = (PACKETS as f64 * share) as u64 / specs + 1;
        FlowSpec {
            count: 1 + random.below(2) as u32,
            profile: if random.chance(0.5) { Profile::modern() } else { Profile::paper() },
            way: if random.chance(0.5) {
                FlowDirection::LeftToRight
            } else {
                FlowDirection::RightToLeft
            },
            app: app(&mut random, packets / 2 + 1),
            start: Duration::from_millis(random.below(3_000)),
            stagger: Duration::from_millis(random.below(500)),
            mtu: if random.chance(0.8) { 1500 } else { 576 },
            timestamps: random.chance(0.7),
            sack: random.chance(0.8),
            pacing: random.chance(0.3),
            receive_buffer: random.chance(0.3).then_some(ByteCount::from_kib(32)),
            ..FlowSpec::new(combination.into())
        }
    });
    Scenario {
        duration: Duration::from_secs(60),
        seed,
        flows: flows.collect(),
        samples: seed.is_multiple_of(10),
        ..Scenario::new(format!("random-{seed}"), topology)
    }
}

/// The JSON of two runs, with the scenario's seed and the next.
fn json(scenario: &Scenario, threads: usize) -> String {
    let seeds = scenario.seed..scenario.seed + 2;
    let runs = run_seeds(scenario, seeds, NonZero::new(threads), |_| ())
        .unwrap_or_else(|error| panic!("seed {}: {error}", scenario.seed));
    serde_json::to_string(&runs).expect("JSON")
}

#[test]
fn random_scenarios_give_the_same_bytes_on_one_thread_and_on_two() {
    let mut distinct = BTreeSet::new();
    for seed in 0..SCENARIOS {
        let scenario = scenario(seed);
        let one = json(&scenario, 1);
        assert_eq!(one, json(&scenario, 2), "seed {seed}");
        distinct.insert(one);
    }
    assert_eq!(distinct.len() as u64, SCENARIOS, "different scenarios give different results");
}
