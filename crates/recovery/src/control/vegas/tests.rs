use airtcp_types::Instant;

use super::*;
use crate::judge::Cause;
use crate::testkit::{SMSS, ack_view};

const BASE: Duration = Duration::from_millis(100);

fn vegas(segments: u64) -> Vegas {
    Vegas::new(&ControlParams {
        byte_counting_limit: 1,
        ..ControlParams::new(ByteCount(SMSS), ByteCount(segments * SMSS))
    })
}

/// Processes a window's ACKs, one per segment, on a path that holds `holds` segments; the first ACK
/// starts the round trip.
fn round(control: &mut Vegas, now: &mut Instant, holds: u64) {
    let segments = control.window().0 / SMSS;
    // The segments in excess of what the path holds wait in a queue.
    let rtt = BASE * segments.max(holds) as u32 / holds as u32;
    for number in 0..segments {
        *now += rtt / segments as u32;
        let ack = ack_view(*now, ByteCount(SMSS));
        let view = AckView { rtt: Some(rtt), srtt: rtt, round_start: number == 0, ..ack };
        control.on_ack(&view);
    }
}

fn segments(control: &Vegas) -> u64 {
    control.window().0 / SMSS
}

#[test]
fn slow_start_doubles_every_other_round_and_ends_when_a_segment_waits() {
    let (mut control, mut now) = (vegas(2), Instant::ZERO);
    let mut windows = Vec::new();
    while control.windows.in_slow_start() {
        round(&mut control, &mut now, 20);
        windows.push(segments(&control));
    }
    assert_eq!(windows[..6], [2, 4, 4, 8, 8, 16], "{windows:?}");
    let over = *windows.last().unwrap();
    assert!((20..=22).contains(&over), "what the path holds and one more: {windows:?}");
}

#[test]
fn vegas_keeps_two_to_four_segments_queued_from_any_start() {
    for (start, holds) in [(2, 20), (60, 20), (30, 5), (2, 1)] {
        let (mut control, mut now) = (vegas(start), Instant::ZERO);
        // The path was once idle.
        let idle = AckView { rtt: Some(BASE), ..ack_view(now, ByteCount(0)) };
        control.on_ack(&idle);
        for _ in 0..200 {
            round(&mut control, &mut now, holds);
        }
        let waits = segments(&control) - holds;
        assert!((2..=4).contains(&waits), "{start} on {holds}: {waits}");
        let before = segments(&control);
        for _ in 0..10 {
            round(&mut control, &mut now, holds);
        }
        assert_eq!(segments(&control), before, "and it stays");
    }
}

#[test]
fn a_loss_halves_and_a_time_out_leaves_one() {
    let mut control = vegas(40);
    let flight_size = ByteCount(40 * SMSS);
    let reduce = NoticeKind::Reduce { flight_size, cause: Cause::Congestion };
    control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, reduce));
    assert_eq!((segments(&control), control.state().mode), (20, "congestion-avoidance"));
    let timeout = NoticeKind::Timeout { flight_size, first: true };
    control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, timeout));
    assert_eq!((segments(&control), control.state().mode), (1, "slow-start"));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let (mut control, now) = (vegas(10), Instant::ZERO);
    for _ in 0..20 {
        let view =
            AckView { cwnd_limited: false, round_start: true, ..ack_view(now, ByteCount(SMSS)) };
        control.on_ack(&view);
    }
    assert_eq!(segments(&control), 10);
}

#[test]
fn a_queue_never_opens_a_window_of_less_than_two_segments() {
    let (mut control, now) = (vegas(1), Instant::ZERO);
    control.windows.cwnd = ByteCount(SMSS * 19 / 10);
    let before = control.window();
    for waits in 1..10 {
        let ack = ack_view(now, ByteCount(SMSS / 2));
        let rtt = Some(BASE * waits);
        control.on_ack(&AckView { rtt, round_start: true, ece: true, ..ack });
        assert_eq!(control.window(), before, "{waits}");
    }
}
