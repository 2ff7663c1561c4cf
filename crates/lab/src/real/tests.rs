use airtcp_testbed::{or_skip, requirements};
use airtcp_trace::figure::Point;

use super::*;
use crate::timeline::BIN;

const MS: Duration = Duration::from_millis(1);

fn ours(text: &str) -> Tcp {
    Tcp::Ours(text.parse().unwrap(), Profile::modern())
}

/// Returns a flow of ours, a kernel flow with an additional delay of 40 ms, and 20 kB of ours from
/// 300 ms on.
fn course() -> Course {
    let words = ("rate 10mbit delay 10ms limit 100 police rate 5mbit burst 20kb", "delay 10ms");
    let mut course = Course::to_linux(&ours("rack/cubic"), words, (200 * MS, 4_000 * MS)).unwrap();
    let kernel = Flow::new(Tcp::Kernel(Some("reno")));
    course.flows.push(Flow { delay: 40 * MS, ..kernel });
    let short = Flow::new(ours("rack/reno"));
    course.flows.push(Flow { start: 300 * MS, size: Some(ByteCount(20_000)), ..short });
    course
}

fn check(done: &Done) {
    let [ours, kernel, short] = &done.flows[..] else { panic!("{done:?}") };
    let both = ours.goodput + kernel.goodput;
    assert!(ours.goodput > 0.0 && kernel.goodput > 0.0 && both < 8e6, "{done:?}");
    assert!(ours.start_up > 0.0 && ours.segments > ours.retransmissions, "{done:?}");
    assert!(ours.rtt.samples > 0 && kernel.rtt.samples > 0, "{done:?}");
    // The delay of the link in both directions, and 40 ms more.
    assert!(ours.rtt.min >= 0.02 && kernel.rtt.min >= 0.06, "{done:?}");
    assert!(ours.rtt.min < kernel.rtt.min, "{done:?}");
    // The handshake alone takes a round trip.
    assert!(short.finished.is_some_and(|time| time > 0.04), "{done:?}");
    assert!(ours.finished.is_none(), "{done:?}");
    // The timeline counts all bytes that arrived, including duplicates.
    let sum = |points: Vec<Point>| points.iter().map(|point| point.y).sum::<f64>();
    let (all, bits) = (sum(done.timeline.throughput()) * BIN * 1e6, done.flows.iter());
    let bits: f64 = bits.map(|flow| flow.goodput * 3.8 + flow.start_up * 0.2).sum();
    assert!((bits * 0.99..bits * 1.5).contains(&all), "{all} of {bits}");
    assert!(done.timeline.rtt().iter().all(|point| point.y >= 20.0), "{:?}", done.timeline);
    let policed = [done.at_warm_up.policed, done.link.policed];
    assert!(policed[0] < policed[1] && done.at_warm_up.received < done.link.received, "{done:?}");
}

#[test]
fn flows_of_all_kinds_share_a_real_bottleneck() {
    let Some(()) = or_skip(requirements()) else { return };
    check(&course().run(&Run::default()).unwrap());
}

#[test]
fn the_same_course_runs_in_virtual_time() {
    let done = course().simulate(&Run::default(), 1).unwrap();
    check(&done);
    assert_eq!(
        format!("{done:?}"),
        format!("{:?}", course().simulate(&Run::default(), 1).unwrap())
    );
}

#[test]
fn no_strategy_stands_for_a_control_of_the_kernel_that_we_do_not_have() {
    let mut course = course();
    course.flows[1].sender = Tcp::Kernel(Some("none"));
    assert!(matches!(course.simulate(&Run::default(), 1), Err(LabError::Combination(_))));
}

#[test]
fn a_percentile_is_a_sample() {
    assert_eq!(Rtt::of(Vec::new()), Rtt::default());
    let rtt = Rtt::of((1..=20).rev().map(f64::from).collect());
    assert_eq!((rtt.samples, rtt.min, rtt.mean, rtt.p95), (20, 1.0, 10.5, 19.0));
    assert_eq!(Rtt::of(vec![3.0]).p95, 3.0);
}
