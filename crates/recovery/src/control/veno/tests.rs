use airtcp_types::Instant;

use super::*;
use crate::testkit::{SMSS, ack_view};

const BASE: Duration = Duration::from_millis(100);

/// Returns a control in congestion avoidance, with a window of `segments` segments.
fn veno(segments: u64) -> Veno {
    let mut control = Veno::new(&ControlParams {
        byte_counting_limit: 1,
        ..ControlParams::new(ByteCount(SMSS), ByteCount(2 * SMSS))
    });
    let window = ByteCount(segments * SMSS);
    let notice = NoticeKind::TakeOver { cwnd: window, ssthresh: Some(window) };
    control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, notice));
    control
}

/// Processes an ACK of a segment after `rtt`. The time-out's estimator samples older segments, and
/// has a longer RTT.
fn ack(control: &mut Veno, rtt: Duration) {
    let ack = ack_view(Instant::ZERO, ByteCount(SMSS));
    control.on_ack(&AckView { rtt: Some(rtt), srtt: rtt * 3 / 2, ..ack });
}

/// Makes `rtt` the average, without changing the window.
fn settle(control: &mut Veno, rtt: Duration) {
    let ack = ack_view(Instant::ZERO, ByteCount(SMSS));
    let view = AckView { rtt: Some(rtt), srtt: rtt * 3 / 2, cwnd_limited: false, ..ack };
    (0..200).for_each(|_| control.on_ack(&view));
}

/// Returns the RTT with `backlog` of the window's segments in the queue.
fn waiting(control: &Veno, backlog: u64) -> Duration {
    let window = segments(control);
    BASE * window as u32 / (window - backlog) as u32
}

fn segments(control: &Veno) -> u64 {
    control.window().0 / SMSS
}

fn reduce(control: &mut Veno) {
    let notice = NoticeKind::Reduce { flight_size: control.window(), cause: Cause::Congestion };
    control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, notice));
}

#[test]
fn a_loss_costs_a_fifth_while_fewer_than_three_segments_wait_and_half_otherwise() {
    for (backlog, left) in [(0, 32), (2, 32), (4, 20), (20, 20)] {
        let mut control = veno(40);
        settle(&mut control, BASE);
        let rtt = waiting(&control, backlog);
        settle(&mut control, rtt);
        reduce(&mut control);
        assert_eq!(segments(&control), left, "{backlog} segments waited");
        assert_eq!(control.state().mode, "congestion-avoidance");
    }
}

#[test]
fn a_single_late_ack_is_no_backlog() {
    let mut control = veno(40);
    settle(&mut control, BASE);
    // 40 (1 - 100 / 150) = 13 segments. The average moves by an eighth of the difference only:
    // 40 (1 - 100 / 106.25) = 2.4.
    ack(&mut control, BASE * 3 / 2);
    reduce(&mut control);
    assert_eq!(segments(&control), 32);
}

#[test]
fn a_mark_is_no_random_loss() {
    let mut control = veno(40);
    settle(&mut control, BASE);
    let notice = NoticeKind::Reduce { flight_size: control.window(), cause: Cause::Mark };
    control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, notice));
    assert_eq!(segments(&control), 20);
}

#[test]
fn what_was_not_measured_since_the_last_loss_halves() {
    let mut control = veno(40);
    reduce(&mut control);
    assert_eq!(segments(&control), 20);
    ack(&mut control, BASE);
    reduce(&mut control);
    assert_eq!(segments(&control), 16, "and a round-trip time that is the least is no backlog");
    reduce(&mut control);
    assert_eq!(segments(&control), 8, "the least time of before a loss is forgotten");
}

#[test]
fn a_window_that_was_not_used_is_no_backlog() {
    let mut control = veno(40);
    settle(&mut control, BASE);
    settle(&mut control, BASE * 3 / 2);
    let flight_size = ByteCount(8 * SMSS);
    let notice = NoticeKind::Reduce { flight_size, cause: Cause::Congestion };
    control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, notice));
    // 8 (1 - 100 / 150) = 2.7 segments, where 40 would give 13; 6.4 of the 8 remain.
    assert_eq!(control.window(), ByteCount(6400));
}

#[test]
fn the_window_grows_half_as_fast_once_three_segments_wait() {
    let grows = |backlog: u64| {
        let mut control = veno(40);
        settle(&mut control, BASE);
        let rtt = waiting(&control, backlog);
        settle(&mut control, rtt);
        let acks = std::iter::repeat_with(|| ack(&mut control, rtt)).take(200).count();
        (acks, segments(&control))
    };
    // 40 ACKs for the first segment, 41 for the next: 200 add four, at half speed two.
    assert_eq!([grows(0), grows(2)], [(200, 44); 2]);
    assert_eq!([grows(4), grows(20)], [(200, 42); 2]);
}

#[test]
fn slow_start_and_a_time_out_are_as_in_reno() {
    let mut control = veno(40);
    ack(&mut control, BASE);
    let timeout = NoticeKind::Timeout { flight_size: ByteCount(40 * SMSS), first: true };
    control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, timeout));
    assert_eq!((segments(&control), control.state().mode), (1, "slow-start"));
    assert_eq!(control.state().ssthresh, Some(ByteCount(20 * SMSS)));
    ack(&mut control, BASE);
    for _ in 0..18 {
        ack(&mut control, BASE * 10);
    }
    assert_eq!((segments(&control), control.state().mode), (20, "congestion-avoidance"));
}
