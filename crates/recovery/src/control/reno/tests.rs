use super::*;
use crate::judge::Cause;
use crate::testkit::{SMSS, ack_view, ms};

const fn segments(count: u64) -> ByteCount {
    ByteCount(count * SMSS)
}

fn reno(initial: u64, limit: u32) -> Reno {
    let params = ControlParams {
        byte_counting_limit: limit,
        ..ControlParams::new(segments(1), segments(initial))
    };
    Reno::new(&params)
}

fn hear(reno: &mut Reno, arrived: u64) -> ByteCount {
    reno.on_ack(&ack_view(ms(0), segments(arrived)));
    reno.window()
}

fn reduce(reno: &mut Reno, flight_size: ByteCount) {
    let notice = NoticeKind::Reduce { flight_size, cause: Cause::Congestion };
    reno.on_notice(&Notice::new(ms(0), ByteCount::ZERO, notice));
}

#[test]
fn slow_start_counts_bytes_up_to_the_limit() {
    // RFC 3465 section 2.2: L segments per ACK, whatever a stretch ACK covers.
    let mut modern = reno(10, 8);
    assert_eq!(hear(&mut modern, 1), segments(11));
    assert_eq!(hear(&mut modern, 2), segments(13));
    assert_eq!(hear(&mut modern, 40), segments(21));
    assert_eq!(hear(&mut reno(2, 2), 40), segments(4));
}

// Shows: RFC5681-3.1-11, RFC5681-3.1-12
#[test]
fn after_a_time_out_an_ack_counts_for_one_segment() {
    // RFC 3465 section 2.3.
    let mut reno = reno(20, 8);
    let timeout = NoticeKind::Timeout { flight_size: segments(20), first: true };
    reno.on_notice(&Notice::new(ms(0), ByteCount::ZERO, timeout));
    // RFC 5681 section 3.1: the loss window is one segment, ssthresh half of FlightSize.
    assert_eq!((reno.window(), reno.state().ssthresh), (segments(1), Some(segments(10))));
    let view = AckView { phase: Phase::Loss, ..ack_view(ms(0), segments(5)) };
    reno.on_ack(&view);
    assert_eq!(reno.window(), segments(2));
}

// Shows: RFC9293-MUST-19, RFC5681-3.1-1, RFC5681-3.1-8, RFC5681-3.1-9
#[test]
fn congestion_avoidance_adds_a_segment_per_window() {
    let mut reno = reno(20, 8);
    reduce(&mut reno, segments(20));
    assert_eq!((reno.window(), reno.state().mode), (segments(10), "congestion-avoidance"));
    (0..9).for_each(|_| assert_eq!(hear(&mut reno, 1), segments(10)));
    assert_eq!(hear(&mut reno, 1), segments(11));
    (0..10).for_each(|_| assert_eq!(hear(&mut reno, 1), segments(11)));
    assert_eq!(hear(&mut reno, 1), segments(12));
    // A stretch ACK of many windows still adds one segment, and little of the rest is kept.
    assert_eq!(hear(&mut reno, 1_000), segments(13));
    hear(&mut reno, 1);
    assert!(hear(&mut reno, 1) <= segments(14));
}

#[test]
fn bytes_beyond_the_threshold_count_for_avoidance() {
    let mut reno = reno(10, 8);
    reduce(&mut reno, segments(10));
    let timeout = NoticeKind::Timeout { flight_size: segments(10), first: false };
    reno.on_notice(&Notice::new(ms(0), ByteCount::ZERO, timeout));
    // From 1 to the threshold of 5 in one ACK of 8; the remaining 4 count.
    assert_eq!(hear(&mut reno, 8), segments(5));
    assert_eq!(reno.counted, segments(4));
    assert_eq!(hear(&mut reno, 1), segments(6));
}

// Shows: RFC5681-3.1-6, RFC5681-3.2-7, RFC5681-4.3-1
#[test]
fn a_reduction_halves_what_was_in_use_and_has_a_floor() {
    // RFC 5681 section 3.1, equation 4; limited transmit is not counted.
    let mut reno = reno(10, 8);
    reduce(&mut reno, segments(12));
    assert_eq!((reno.window(), reno.state().ssthresh), (segments(5), Some(segments(5))));
    reduce(&mut reno, segments(3));
    assert_eq!((reno.window(), reno.state().ssthresh), (segments(2), Some(segments(2))));
}

#[test]
fn nothing_grows_in_recovery_unlimited_or_on_duplicates() {
    let mut reno = reno(10, 8);
    let view = ack_view(ms(0), segments(1));
    for still in [
        AckView { phase: Phase::Recovery, ..view },
        AckView { cwnd_limited: false, ..view },
        AckView { acked: ByteCount::ZERO, ..view },
    ] {
        reno.on_ack(&still);
        assert_eq!(reno.window(), segments(10));
    }
}

#[test]
fn undo_restores_and_restart_bounds() {
    let mut reno = reno(10, 100);
    assert_eq!(hear(&mut reno, 30), segments(40));
    reduce(&mut reno, segments(40));
    reno.on_notice(&Notice::new(ms(0), ByteCount::ZERO, NoticeKind::Undo { resumes: false }));
    assert_eq!((reno.window(), reno.state().ssthresh), (segments(40), None));
    // A second undo has nothing to restore.
    reno.on_notice(&Notice::new(ms(0), ByteCount::ZERO, NoticeKind::Undo { resumes: false }));
    assert_eq!(reno.window(), segments(40));
    let idle = |restart| NoticeKind::Idle {
        time: std::time::Duration::from_secs(9),
        restart,
        app_limited: false,
    };
    reno.on_notice(&Notice::new(ms(0), ByteCount::ZERO, idle(false)));
    assert_eq!(reno.window(), segments(40));
    reno.on_notice(&Notice::new(ms(0), ByteCount::ZERO, idle(true)));
    assert_eq!(reno.window(), segments(10));
}
