use super::*;
use crate::judge::Cause;
use crate::testkit::{SMSS, ack_view};

const fn segments(count: u64) -> ByteCount {
    ByteCount(count * SMSS)
}

fn cubic(initial: u64) -> Cubic {
    form(initial, false)
}

fn form(initial: u64, rfc: bool) -> Cubic {
    let params = ControlParams {
        byte_counting_limit: 8,
        ..ControlParams::new(segments(1), segments(initial))
    };
    Cubic::new(&params, rfc)
}

fn at(seconds: f64) -> Instant {
    Instant::from_nanos((seconds * 1e9) as u64)
}

fn reduce(cubic: &mut Cubic, now: Instant) {
    let notice = NoticeKind::Reduce { flight_size: cubic.window(), cause: Cause::Congestion };
    cubic.on_notice(&Notice::new(now, ByteCount::ZERO, notice));
}

/// Processes a window of single-segment ACKs per round trip, from one time to the other; returns
/// the window in segments.
fn run(cubic: &mut Cubic, from: f64, to: f64, rtt: f64) -> f64 {
    let mut now = from;
    while now < to {
        let count = cubic.window().0 / SMSS;
        for ack in 0..count {
            let when = at(now + rtt * ack as f64 / count as f64);
            let srtt = Duration::from_secs_f64(rtt);
            cubic.on_ack(&AckView { srtt, ..ack_view(when, segments(1)) });
        }
        now += rtt;
    }
    cubic.window().0 as f64 / SMSS as f64
}

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

#[test]
fn after_a_reduction_the_window_is_the_cubic_function() {
    let mut cubic = cubic(100);
    reduce(&mut cubic, at(0.0));
    // Section 4.6.
    assert_eq!((cubic.window(), cubic.state().ssthresh), (segments(70), Some(segments(70))));
    // Section 4.2: K = cbrt((100 - 70) / 0.4) = 4.217 s; at K the window is W_max, at 2 K it is
    // 100 + 0.4 * 4.217^3 = 130. The window is the target of one round trip later.
    near(run(&mut cubic, 0.0, 2.0, 0.1), 100.0 + 0.4 * (2.1f64 - 4.217).powi(3), 0.8);
    near(run(&mut cubic, 2.0, 4.2, 0.1), 100.0, 0.5);
    near(run(&mut cubic, 4.2, 8.4, 0.1), 130.0, 1.5);
}

#[test]
fn on_a_short_path_it_is_as_fast_as_reno() {
    // Section 4.3: alpha = 3 * 0.3 / 1.7 = 0.529 per round trip, and in the RFC's form 1 from
    // cwnd_prior = 100 on, which takes 57 round trips. W_cubic(1 s) would be 87.
    for (rfc, expected) in [(false, 70.0 + 0.529 * 100.0), (true, 100.0 + (100.0 - 30.0 / 0.529))] {
        let mut cubic = form(100, rfc);
        reduce(&mut cubic, at(0.0));
        near(run(&mut cubic, 0.0, 1.0, 0.01), expected, 2.0);
    }
}

#[test]
fn while_a_judge_waits_what_is_sacked_lets_it_grow() {
    let grown = |grows_with_hole| {
        let mut cubic = cubic(100);
        reduce(&mut cubic, at(0.0));
        for ack in 0..200 {
            let view = ack_view(at(0.5 + 0.001 * f64::from(ack)), segments(1));
            let view = AckView { acked: ByteCount::ZERO, grows_with_hole, ..view };
            cubic.on_ack(&view);
        }
        cubic.window() - segments(70)
    };
    assert_eq!(grown(false), ByteCount::ZERO);
    assert!(grown(true) >= segments(1), "DCR 2.2");
}

#[test]
fn fast_convergence_lowers_the_plateau() {
    let mut cubic = cubic(100);
    reduce(&mut cubic, at(0.0));
    near(cubic.w_max, 100.0, 0.0);
    // Section 4.7: a second loss below W_max: W_max = 70 * (1 + 0.7) / 2.
    reduce(&mut cubic, at(0.1));
    near(cubic.w_max, 59.5, 1e-9);
    assert_eq!(cubic.window(), segments(49));
}

#[test]
fn after_a_time_out_the_stage_begins_at_its_plateau() {
    let mut cubic = cubic(100);
    let timeout = NoticeKind::Timeout { flight_size: segments(100), first: true };
    cubic.on_notice(&Notice::new(at(0.0), ByteCount::ZERO, timeout));
    assert_eq!((cubic.window(), cubic.state().ssthresh), (segments(1), Some(segments(70))));
    run(&mut cubic, 0.0, 0.75, 0.1);
    let stage = cubic.stage.unwrap();
    // Section 4.8: K = 0, and W_max is the window at the start of the stage.
    near(stage.k, 0.0, 0.0);
    near(stage.w_max, 70.0, 1e-9);
}

#[test]
fn undo_restores_everything() {
    let mut cubic = cubic(100);
    reduce(&mut cubic, at(0.0));
    run(&mut cubic, 0.0, 2.0, 0.1);
    let before = cubic.clone();
    reduce(&mut cubic, at(2.0));
    assert_ne!(cubic.window(), before.window());
    cubic.on_notice(&Notice::new(at(2.1), ByteCount::ZERO, NoticeKind::Undo { resumes: false }));
    assert_eq!((cubic.window(), cubic.state()), (before.window(), before.state()));
    assert_eq!((cubic.w_max, cubic.cwnd_prior), (before.w_max, before.cwnd_prior));
    let (stage, old) = (cubic.stage.unwrap(), before.stage.unwrap());
    assert_eq!((stage.start, stage.k, stage.w_est), (old.start, old.k, old.w_est));
}

#[test]
fn time_without_use_of_the_window_does_not_count() {
    // Section 5.8: once with a silence, once with ACKs of a flow that has little to send.
    let after = |pause: &dyn Fn(&mut Cubic)| {
        let mut cubic = cubic(100);
        reduce(&mut cubic, at(0.0));
        run(&mut cubic, 0.0, 1.0, 0.1);
        pause(&mut cubic);
        cubic.window().0 as f64 / SMSS as f64
    };
    let straight = after(&|cubic| {
        run(cubic, 1.0, 1.5, 0.1);
    });
    let silent = after(&|cubic| {
        let idle =
            NoticeKind::Idle { time: Duration::from_secs(20), restart: false, app_limited: false };
        cubic.on_notice(&Notice::new(at(21.0), ByteCount::ZERO, idle));
        run(cubic, 21.0, 21.5, 0.1);
    });
    let unlimited = after(&|cubic| {
        for step in 1..=200 {
            let now = at(1.0 + f64::from(step) / 10.0);
            let view = AckView { cwnd_limited: false, ..ack_view(now, segments(1)) };
            cubic.on_ack(&view);
        }
        run(cubic, 21.0, 21.5, 0.1);
    });
    near(silent, straight, 1.0);
    near(unlimited, straight, 1.0);
}

#[test]
fn acks_without_news_do_not_stop_the_clock() {
    // The peer sends data of its own: every segment of it repeats the same ACK.
    let mut cubic = cubic(100);
    reduce(&mut cubic, at(0.0));
    let mut cwnd = 0.0;
    for round in 0..42 {
        let from = f64::from(round) / 10.0;
        cwnd = run(&mut cubic, from, from + 0.1, 0.1);
        let view = AckView { cwnd_limited: false, ..ack_view(at(from + 0.1), ByteCount::ZERO) };
        cubic.on_ack(&view);
    }
    near(cwnd, 100.0, 1.0);
}

#[test]
fn a_smaller_segment_leaves_the_windows_and_the_plateau_where_they_are() {
    let mut cubic = cubic(100);
    reduce(&mut cubic, at(0.0));
    let (window, plateau) = (cubic.window(), cubic.w_max * SMSS as f64);
    cubic.on_notice(&Notice::new(
        at(0.0),
        ByteCount::ZERO,
        NoticeKind::SegmentSize(ByteCount(SMSS / 2)),
    ));
    assert_eq!(cubic.window(), window);
    assert_eq!(cubic.w_max * (SMSS / 2) as f64, plateau);
    let ack = AckView { srtt: Duration::from_millis(100), ..ack_view(at(0.1), segments(1)) };
    cubic.on_ack(&ack);
    assert!(cubic.window() >= window && cubic.window() < window + segments(1));
}
