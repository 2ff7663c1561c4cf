//! Compares simulations with known results.

use std::time::Duration;

use airtcp_recovery::{Profile, RtoForm};
use airtcp_sim::{FlowResult, FlowSpec, Interval, Scenario, Topology, Wire, run, run_seeds};

/// Payload bytes of a 1500-byte packet with timestamps.
const PAYLOAD: f64 = 1448.0;

fn dumbbell(forth: &str, back: &str) -> Topology {
    let [forth, back] = [forth, back].map(|text| text.parse().expect("a link"));
    Topology::Dumbbell { access: Wire::default(), bottleneck: Wire { forth, back } }
}

fn flow(combination: &str) -> FlowSpec {
    FlowSpec::new(combination.parse().expect("a combination"))
}

fn scenario(topology: Topology, flow: FlowSpec, seconds: u64, warm_up: u64) -> Scenario {
    Scenario {
        duration: Duration::from_secs(seconds),
        warm_up: Duration::from_secs(warm_up),
        flows: vec![flow],
        ..Scenario::new("theory", topology)
    }
}

/// The BDP of 10 Mbit/s and 40 ms is 33 packets.
const PIPE: &str = "rate 10mbit delay 20ms limit 33";

#[test]
fn one_flow_fills_a_lossless_bottleneck() {
    for combination in ["sack/reno", "newreno/reno", "sack/cubic"] {
        let scenario = scenario(dumbbell(PIPE, PIPE), flow(combination), 60, 10);
        let goodput = run(&scenario, None).expect("a sound scenario").flows[0].goodput;
        let share = goodput / (10e6 * PAYLOAD / 1500.0);
        assert!((0.98..=1.0).contains(&share), "{combination}: {share}");
    }
}

#[test]
fn equal_flows_have_equal_shares() {
    for count in [2, 8] {
        let flow = FlowSpec { count, stagger: Duration::from_millis(137), ..flow("sack/reno") };
        let scenario = scenario(dumbbell(PIPE, PIPE), flow, 120, 20);
        let result = run(&scenario, None).expect("a sound scenario");
        assert!(result.jain >= 0.95, "{count} flows: {}", result.jain);
    }
}

/// Segments that arrive per round-trip time, by the argument of Mathis, Semke, Mahdavi and Ott 1997
/// without its simplifications.
///
/// The window grows from w segments by one per round (b = 1) for w rounds up to 2 w, is halved, and
/// stays for the round until the retransmission is acknowledged. That makes 1.5 w^2 + w segments in
/// w + 1 rounds, one of them lost. The paper's law, sqrt(1.5 / p), neglects that round and the lost
/// segment.
fn cycle(loss: f64) -> f64 {
    let window = ((1.0 + 6.0 / loss).sqrt() - 1.0) / 3.0;
    (1.0 - loss) / (loss * (window + 1.0))
}

const SECONDS: u64 = 100;
const WARM_UP: u64 = 5;

/// The goodput of a flow, relative to the cycle without the time that it spends in time-outs.
fn over_the_cycle(flow: &FlowResult, loss: f64) -> f64 {
    // RFC 6675 does not detect the loss of a retransmission, and waits for the timer. The timer's
    // floor is far above this round-trip time and its variance.
    let RtoForm::Rfc { floor } = Profile::paper().rto else { panic!("another form") };
    let counted = SECONDS as f64 / (SECONDS + WARM_UP) as f64;
    let held = flow.timeouts.unwrap_or(0) as f64 * counted * floor.as_secs_f64() / SECONDS as f64;
    let in_round = flow.goodput / 8.0 / PAYLOAD * flow.rtt.mean;
    in_round / (cycle(loss) * (1.0 - held))
}

/// A flow under random loss follows the law. Only two differences remain: windows are whole
/// segments, and losses are random and not at the end of equal cycles.
#[test]
fn a_flow_under_random_loss_obeys_the_law_of_mathis() {
    for loss in [0.005, 0.01, 0.02] {
        // Every segment is acknowledged, and the flow never fills 100 Mbit/s.
        let profile = Profile { delayed_acks: false, ..Profile::paper() };
        let forth = format!("rate 100mbit delay 20ms loss {}%", loss * 100.0);
        let topology = dumbbell(&forth, "rate 100mbit delay 20ms");
        let flow = FlowSpec { profile, ..flow("sack/reno") };
        let scenario = scenario(topology, flow, WARM_UP + SECONDS, WARM_UP);
        let runs = run_seeds(&scenario, 1..11, None, |_| ()).expect("a sound scenario");
        let ratios: Vec<_> = runs.iter().map(|run| over_the_cycle(&run.flows[0], loss)).collect();
        let ratio = Interval::of(&ratios);
        assert!((0.9..=1.1).contains(&ratio.mean), "at a loss of {loss}: {ratio:?}");
    }
}
