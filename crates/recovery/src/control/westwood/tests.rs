use super::*;
use crate::judge::Cause;
use crate::testkit::{RTT, SMSS, ack_view};

const REDUCE: NoticeKind =
    NoticeKind::Reduce { flight_size: ByteCount(50 * SMSS), cause: Cause::Congestion };

fn made(entry: &Entry<dyn CongestionControl>) -> Box<dyn CongestionControl> {
    let params = ControlParams {
        byte_counting_limit: 8,
        ..ControlParams::new(ByteCount(SMSS), ByteCount(50 * SMSS))
    };
    (entry.make)(None, &params).unwrap()
}

fn hear(control: &mut dyn CongestionControl, at: Instant, segments: u64) {
    control.on_ack(&ack_view(at, ByteCount(segments * SMSS)));
}

/// Returns ssthresh in segments after a loss.
fn reduced(control: &mut dyn CongestionControl, at: Instant) -> u64 {
    control.on_notice(&Notice::new(at, ByteCount::ZERO, REDUCE));
    control.state().ssthresh.unwrap().0 / SMSS
}

/// A segment every 5 ms for 5 s: 200 kB/s, which is 20 segments in 100 ms.
fn steady(entry: &Entry<dyn CongestionControl>) -> (Box<dyn CongestionControl>, Instant) {
    let mut control = made(entry);
    let mut now = Instant::ZERO;
    for _ in 0..1_000 {
        now += Duration::from_millis(5);
        hear(&mut *control, now, 1);
    }
    (control, now)
}

#[test]
fn the_reduction_is_to_bandwidth_times_the_smallest_round_trip() {
    for entry in [WESTWOOD, WESTWOOD_PLUS] {
        let (mut control, now) = steady(&entry);
        let bandwidth = control.bandwidth().unwrap().bits_per_sec();
        assert!((1_580_000..=1_620_000).contains(&bandwidth), "{entry:?}: {bandwidth} bit/s");
        let segments = reduced(&mut *control, now);
        assert!((19..=20).contains(&segments), "{entry:?}: {segments} over {RTT:?}");
        assert_eq!(control.window(), control.state().ssthresh.unwrap());
    }
}

#[test]
fn acks_of_one_instant_are_one_sample() {
    let mut control = made(&WESTWOOD);
    let mut now = Instant::ZERO;
    for _ in 0..250 {
        now += Duration::from_millis(20);
        (0..4).for_each(|_| hear(&mut *control, now, 1));
    }
    assert!((19..=20).contains(&reduced(&mut *control, now)));
}

#[test]
fn compressed_acks_mislead_westwood_and_not_westwood_plus() {
    // The 20 ACKs of each round trip arrive within 2 ms, as after a queue on the reverse path.
    let compressed = |entry| {
        let mut control = made(&entry);
        let mut now = Instant::ZERO;
        for _ in 0..50 {
            for _ in 0..20 {
                now += Duration::from_micros(100);
                hear(&mut *control, now, 1);
            }
            let segments = control.window();
            assert!(segments >= ByteCount(SMSS));
            now += Duration::from_millis(98);
        }
        reduced(&mut *control, now - Duration::from_millis(98))
    };
    let (per_ack, per_round) = (compressed(WESTWOOD), compressed(WESTWOOD_PLUS));
    assert!((18..=22).contains(&per_round), "{per_round}");
    assert!(per_ack > per_round + 2, "{per_ack} and {per_round}");
}

#[test]
fn silence_is_a_sample_and_idle_time_is_none() {
    let (mut silent, now) = steady(&WESTWOOD);
    assert!(reduced(&mut *silent, now + Duration::from_secs(2)) < 5);

    let (mut idle, now) = steady(&WESTWOOD);
    let later = now + Duration::from_secs(2);
    let time = Duration::from_secs(2);
    idle.on_notice(&Notice::new(
        later,
        ByteCount::ZERO,
        NoticeKind::Idle { time, restart: false, app_limited: false },
    ));
    hear(&mut *idle, later + RTT, 1);
    assert!((18..=20).contains(&reduced(&mut *idle, later + RTT)));
}

#[test]
fn a_time_out_leaves_one_segment_and_the_estimate() {
    let (mut control, now) = steady(&WESTWOOD_PLUS);
    let notice = NoticeKind::Timeout { flight_size: ByteCount(50 * SMSS), first: true };
    control.on_notice(&Notice::new(now, ByteCount::ZERO, notice));
    assert_eq!(control.window(), ByteCount(SMSS));
    assert!((19..=20).contains(&(control.state().ssthresh.unwrap().0 / SMSS)));
}

#[test]
fn without_a_measurement_it_halves() {
    for entry in [WESTWOOD, WESTWOOD_PLUS] {
        assert_eq!(reduced(&mut *made(&entry), Instant::ZERO), 25);
    }
}
