//! Tests of several senders after those of quiche's BBRv3 (`bbr3_simulator_test.cc`), with quiche's
//! links, volumes, limits and names.
//!
//! Each sender has a link of 10 Mbit/s and about 2 ms. All share one of 4 Mbit/s and 30 ms with a
//! queue of two BDPs.

use std::time::Duration;

use airtcp_sim::{App, FlowSpec, Scenario, Topology, Wire, run};
use airtcp_types::{ByteCount, Rate};

use super::{mbit, secs};

const MIB: u64 = 1024 * 1024;
const BOTTLENECK: Rate = mbit(4);

fn size(bytes: u64) -> App {
    App::Bulk { size: Some(ByteCount(bytes)) }
}

/// A flow with its own access links. quiche's receivers have none, so each side gets half the
/// delay.
fn flow(number: usize, combination: &str, bytes: u64, start: Duration) -> FlowSpec {
    let delay = [1987, 1993, 1997, 1999, 2003, 2011][number] * 500;
    let access = format!("rate 10mbit delay {delay}ns").parse().expect("a link");
    FlowSpec {
        app: size(bytes),
        start,
        access: Some(Wire::both(access)),
        ..FlowSpec::new(combination.parse().expect("a combination"))
    }
}

/// Returns when each flow has arrived, counted from the start of the run.
#[track_caller]
fn finish(flows: Vec<FlowSpec>, most: Duration) -> Vec<Duration> {
    // 72 ms at 4 Mbit/s are 24 packets.
    let bottleneck = Wire::both("rate 4mbit delay 30ms limit 48".parse().expect("a link"));
    let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
    let starts: Vec<_> = flows.iter().map(|flow| flow.start).collect();
    let scenario = Scenario { duration: most, flows, ..Scenario::new("quiche", topology) };
    let result = run(&scenario, None).expect("a sound scenario");
    let ends = starts.iter().zip(&result.flows).map(|(start, flow)| {
        let finished = flow.finished.unwrap_or_else(|| panic!("not in {most:?}: {flow:?}"));
        *start + Duration::from_secs_f64(finished)
    });
    ends.collect()
}

/// Starts the second sender when the first has sent a tenth. Both must finish in three times the
/// time that one alone would take.
#[track_caller]
fn beside(other: &str, bytes: u64) {
    let alone = BOTTLENECK.time_for(ByteCount(bytes));
    let start = finish(vec![flow(0, "rack/bbr3", bytes / 10, Duration::ZERO)], alone)[0];
    let flows = vec![flow(0, "rack/bbr3", bytes, Duration::ZERO), flow(1, other, bytes, start)];
    finish(flows, start + alone * 3);
}

#[test]
fn bbr2_vs_bbr2() {
    beside("rack/bbr3", 10 * MIB);
}

#[test]
fn multiple_bbr2s() {
    let alone = BOTTLENECK.time_for(ByteCount(10 * MIB));
    let flows = (0..6).map(|number| flow(number, "rack/bbr3", 10 * MIB, secs(2) * number as u32));
    finish(flows.collect(), secs(10) + alone * 6 * 11 / 10);
}

#[test]
fn bbr2_vs_bbr1() {
    beside("rack/bbr", 10 * MIB);
}

#[test]
fn bbr2_vs_reno() {
    beside("rack/reno", 10 * MIB);
}

#[test]
fn bbr2_vs_cubic() {
    beside("rack/cubic", 50 * MIB);
}
