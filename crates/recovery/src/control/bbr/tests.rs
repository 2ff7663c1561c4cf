use std::collections::BTreeMap;

use super::*;
use crate::control::Loss;
use crate::testkit::{Bottleneck, Net, RTT, SMSS, ack_view, rate_sample, sender};

/// 10 Mbit/s over 100 ms: 125 segments.
const RATE: Rate = Rate::from_bits_per_sec(10_000_000);
const BDP: ByteCount = ByteCount(125 * SMSS);

fn path(combination: &str, queue: ByteCount) -> Net {
    let mut net = Net::new(sender(combination), 1_000_000, 1_000_000);
    net.bottleneck = Some(Bottleneck::new(RATE, queue));
    net.pump();
    net
}

fn run_until(net: &mut Net, millis: u64) {
    while net.now < Instant::from_millis(millis) {
        assert!(net.step(), "{:?}", net.sender);
    }
}

fn mode(net: &Net) -> &'static str {
    net.sender.control_state().mode
}

fn params() -> ControlParams {
    let params = ControlParams::new(ByteCount(SMSS), ByteCount(10 * SMSS));
    ControlParams { rtt: Some(RTT), ..params }
}

fn notice(bbr: &mut Bbr, pipe: ByteCount, kind: NoticeKind) {
    let now = bbr.totals.at;
    bbr.on_notice(&Notice::new(now, pipe, kind));
}

const REDUCE: NoticeKind =
    NoticeKind::Reduce { flight_size: ByteCount(10 * SMSS), cause: Cause::Congestion };

fn lost(segments: u64, cause: Cause) -> NoticeKind {
    NoticeKind::Lost(Loss {
        start: airtcp_types::ExtSeq(1),
        bytes: ByteCount(segments * SMSS),
        cause,
        sent_at: Instant::ZERO,
        tx_in_flight: ByteCount::ZERO,
        prior_delivered: ByteCount::ZERO,
        lost_since_sent: ByteCount::ZERO,
        app_limited: false,
    })
}

/// Processes an ACK of `segments` after `pause`, of all that was sent since the last one; `pipe`
/// are still in flight.
fn hear(bbr: &mut Bbr, pause: Duration, segments: u64, pipe: u64) {
    let [bytes, pipe] = [segments, pipe].map(|segments| ByteCount(segments * SMSS));
    let prior = bbr.totals.delivered;
    bbr.on_ack(&AckView {
        delivered_total: prior + bytes,
        pipe,
        prior_pipe: pipe + bytes,
        rate: Some(rate_sample(bytes, prior)),
        ..ack_view(bbr.totals.at + pause, bytes)
    });
}

/// Returns a control in `ProbeBw`, at 100 segments per round trip.
fn steady() -> Bbr {
    let mut bbr = Bbr::new(&params());
    for _ in 0..8 {
        hear(&mut bbr, RTT, 100, 100);
    }
    assert_eq!(bbr.state().mode, "probe-bw");
    bbr
}

#[test]
fn startup_ends_three_rounds_after_the_last_growth_and_the_queue_is_drained() {
    let mut net = path("rack/bbr", BDP * 4);
    let mut last_growth = None;
    let mut best = Rate::ZERO;
    while mode(&net) == "startup" {
        assert!(net.step());
        let rate = net.sender.delivery_rate().map_or(Rate::ZERO, |(rate, _)| rate);
        if rate > best.scale(FULL_BW_GROWTH) {
            (best, last_growth) = (rate, Some(net.now));
        }
    }
    // Growth by less than a quarter does not count.
    assert!(best > RATE.scale(0.8) && best < RATE.scale(1.05), "{best}");
    let rounds = net.now.since(last_growth.unwrap()).as_secs_f64() / RTT.as_secs_f64();
    // RTTs are longer by then: nearly three times the rate fills the queue.
    assert!((3.0..12.0).contains(&rounds), "{rounds} rounds");
    assert_eq!(mode(&net), "drain");
    while mode(&net) == "drain" {
        assert!(net.step());
    }
    assert_eq!(mode(&net), "probe-bw");
    assert!(net.sender.pipe() <= BDP + ByteCount(12 * SMSS), "{}", net.sender.pipe());
    assert_eq!(net.sender.stats().segments_lost, 0);
}

#[test]
fn bbr_fills_the_path_and_keeps_the_queue_short() {
    let mut net = path("rack/bbr", BDP * 4);
    run_until(&mut net, 3_000);
    let before = net.sender.delivered();
    let mut most = ByteCount::ZERO;
    while net.now < Instant::from_millis(8_000) {
        assert!(net.step());
        most = most.max(net.sender.pipe());
    }
    let rate = Rate::from_bytes_over(net.sender.delivered() - before, Duration::from_secs(5));
    assert!(rate > RATE.scale(0.97), "{rate}");
    // A probe adds a quarter of the bandwidth-delay product.
    assert!(most < BDP.scale(1.5), "{most}");
    assert!(net.sender.cwnd() >= BDP * 2 && net.sender.cwnd() < BDP.scale(2.3));
}

#[test]
fn the_gain_cycles_and_no_flow_begins_with_the_phase_that_drains() {
    let mut net = path("rack/bbr", BDP * 4);
    run_until(&mut net, 3_000);
    let mut gains = BTreeMap::new();
    while net.now < Instant::from_millis(8_000) {
        assert!(net.step());
        let rate = net.sender.pacing_rate().unwrap().bits_per_sec() as f64;
        let gain = rate / MARGIN / RATE.bits_per_sec() as f64;
        *gains.entry((gain * 20.0).round() as u64).or_insert(0u32) += 1;
    }
    let share = |twentieth| f64::from(gains.get(&twentieth).copied().unwrap_or_default());
    assert!(share(25) > 0.0 && share(15) > 0.0 && share(20) > share(25), "{gains:?}");

    let phase = |seed| {
        let mut bbr = Bbr::new(&ControlParams { seed, ..params() });
        bbr.enter_probe_bw();
        let Mode::ProbeBw { phase, .. } = bbr.mode else { unreachable!("it was entered") };
        phase
    };
    let phases: std::collections::BTreeSet<u8> = (0..200).map(phase).collect();
    assert_eq!(Vec::from_iter(phases), [0, 2, 3, 4, 5, 6, 7]);
    assert_eq!(phase(3), phase(3));
}

#[test]
fn random_loss_does_not_reduce_the_rate() {
    let mut net = path("rack/bbr", BDP * 4);
    let mut random = Stream::new(7, 0);
    let lost = (10..20_000).filter(|_| random.chance(0.05));
    net.losses = lost.map(|segment| (segment, 0)).collect();
    run_until(&mut net, 3_000);
    let before = net.sender.delivered();
    run_until(&mut net, 9_000);
    let rate = Rate::from_bytes_over(net.sender.delivered() - before, Duration::from_secs(6));
    assert!(rate > RATE.scale(0.85), "{rate}");
    assert_eq!(net.sender.stats().timeouts, 0);
}

#[test]
fn after_ten_seconds_the_pipe_is_emptied_for_200_ms() {
    let mut net = path("rack/bbr", BDP * 4);
    while mode(&net) != "probe-rtt" {
        assert!(net.step());
    }
    let begin = net.now;
    assert!(begin > Instant::ZERO + MIN_RTT_WINDOW && begin < Instant::from_millis(10_200));
    while mode(&net) == "probe-rtt" {
        assert!(net.sender.cwnd() <= ByteCount(4 * SMSS));
        assert!(net.step());
    }
    // And until no more than that is in flight.
    let time = net.now.since(begin);
    assert!(time >= PROBE_RTT_TIME && time < PROBE_RTT_TIME + RTT * 2, "{time:?}");
    assert!(net.sender.cwnd() > BDP * 2, "the window is what it was");
    // Data sent in the meantime gives no bandwidth samples.
    for _ in 0..400 {
        assert!(net.step());
        let paced = net.sender.pacing_rate().unwrap();
        assert!(paced > RATE.scale(0.7), "{paced}");
    }
}

#[test]
fn bbr_follows_a_rate_reduced_to_a_tenth_and_restored() {
    let mut net = path("rack/bbr", BDP * 4);
    run_until(&mut net, 4_000);
    // The old maximum lasts ten rounds, of two seconds each once the window waits in the queue.
    for (until, rate) in [(30_000, RATE.scale(0.1)), (40_000, RATE)] {
        net.bottleneck = Some(Bottleneck::new(rate, BDP * 4));
        run_until(&mut net, until - 2_000);
        let before = net.sender.delivered();
        run_until(&mut net, until);
        let got = Rate::from_bytes_over(net.sender.delivered() - before, Duration::from_secs(2));
        assert!(got > rate.scale(0.85), "{got} of {rate}");
        let paced = net.sender.pacing_rate().unwrap();
        assert!(paced < rate.scale(1.4), "{paced} over {rate}");
    }
}

#[test]
fn the_first_round_of_recovery_conserves_packets() {
    let mut bbr = steady();
    let before = bbr.window();
    notice(&mut bbr, ByteCount(99 * SMSS), lost(1, Cause::Congestion));
    notice(&mut bbr, ByteCount(99 * SMSS), REDUCE);
    assert_eq!(bbr.window(), before, "only the ACK changes the window");
    let hear_in_round = |bbr: &mut Bbr, pipe| {
        // All within the round: the acknowledged data was sent before the recovery started.
        let prior = bbr.totals.delivered;
        bbr.on_ack(&AckView {
            delivered_total: prior + ByteCount(2 * SMSS),
            pipe: ByteCount(pipe * SMSS),
            rate: Some(rate_sample(ByteCount(100 * SMSS), ByteCount::ZERO)),
            ..ack_view(bbr.totals.at, ByteCount(2 * SMSS))
        });
    };
    hear_in_round(&mut bbr, 96);
    assert_eq!(bbr.window(), ByteCount(98 * SMSS));
    hear_in_round(&mut bbr, 96);
    assert_eq!(bbr.window(), ByteCount(98 * SMSS));
    // A round later it grows by the delivered bytes, so twice as many are sent.
    hear(&mut bbr, RTT, 40, 58);
    assert_eq!(bbr.window(), ByteCount(138 * SMSS));
    notice(&mut bbr, ByteCount::ZERO, NoticeKind::RecoveryOver);
    hear(&mut bbr, Duration::from_millis(1), 1, 100);
    assert!(bbr.window() >= before - ByteCount(8 * SMSS), "{}", bbr.window());
}

#[test]
fn a_timeout_leaves_one_segment_more_than_is_in_flight_and_its_end_or_undo_restores_the_window() {
    for end in [NoticeKind::RecoveryOver, NoticeKind::Undo { resumes: false }] {
        let mut bbr = steady();
        let before = bbr.window();
        let timeout = NoticeKind::Timeout { flight_size: BDP, first: true };
        notice(&mut bbr, ByteCount::ZERO, timeout);
        assert_eq!(bbr.window(), ByteCount(SMSS));
        hear(&mut bbr, RTT, 1, 0);
        assert_eq!(bbr.window(), ByteCount(4 * SMSS), "BBR's minimum window");
        notice(&mut bbr, ByteCount::ZERO, end);
        hear(&mut bbr, Duration::from_millis(1), 1, 3);
        assert!(bbr.window() >= before - ByteCount(8 * SMSS), "{}", bbr.window());
    }
}

#[test]
fn a_loss_that_is_no_congestion_changes_nothing() {
    let mut bbr = steady();
    let before = bbr.window();
    for round in 0..20 {
        notice(&mut bbr, ByteCount(50 * SMSS), lost(50, Cause::Random));
        assert_eq!(bbr.losses, ByteCount::ZERO, "round {round}");
        hear(&mut bbr, RTT, 100, 100);
    }
    assert_eq!(bbr.long_term.rate(), None);
    assert!(bbr.window() >= before - ByteCount(2 * SMSS));
    // The same losses, from a queue or a policer.
    for _ in 0..8 {
        notice(&mut bbr, ByteCount(50 * SMSS), lost(50, Cause::Congestion));
        hear(&mut bbr, RTT, 100, 100);
    }
    assert_eq!(bbr.state().mode, "policed");
    let rate = Rate::from_bytes_over(ByteCount(100 * SMSS), RTT);
    assert_eq!(bbr.pacing_rate().unwrap(), rate.scale(MARGIN));
    // 48 rounds later it probes again.
    for _ in 0..48 {
        hear(&mut bbr, RTT, 100, 100);
    }
    assert_eq!(bbr.state().mode, "probe-bw");
}

#[test]
fn idle_time_probes_no_round_trip_and_ends_at_the_bandwidth() {
    let mut bbr = steady();
    let mut restart = |idle: Duration| {
        let now = bbr.totals.at + idle;
        let kind = NoticeKind::Idle { time: idle, restart: true, app_limited: true };
        bbr.on_notice(&Notice::new(now, ByteCount::ZERO, kind));
        bbr.totals.at = now;
        let rate = Rate::from_bytes_over(ByteCount(100 * SMSS), RTT).scale(MARGIN);
        assert_eq!(bbr.pacing_rate(), Some(rate));
        // The filter has expired, and this ACK is its new sample.
        hear(&mut bbr, RTT * 2, 1, 0);
        assert_eq!(bbr.state().mode, "probe-bw");
    };
    restart(Duration::from_secs(3));
    restart(Duration::from_secs(30));
}

#[test]
fn the_first_round_trip_time_sets_the_first_rate() {
    let known = Bbr::new(&params()).pacing_rate().unwrap();
    let window = ByteCount(10 * SMSS);
    assert_eq!(known, Rate::from_bytes_over(window, RTT).scale(HIGH_GAIN * MARGIN));
    let mut bbr = Bbr::new(&ControlParams { rtt: None, ..params() });
    assert_eq!(
        bbr.pacing_rate().unwrap(),
        Rate::from_bytes_over(window, NOMINAL_RTT).scale(HIGH_GAIN * MARGIN)
    );
    hear(&mut bbr, RTT, 1, 9);
    assert!(bbr.pacing_rate().unwrap() <= known.scale(1.01));
}

#[test]
fn bbr_continues_from_another_control_and_with_other_segment_sizes() {
    let mut bbr = Bbr::new(&params());
    let kind = NoticeKind::TakeOver { cwnd: BDP, ssthresh: Some(BDP) };
    notice(&mut bbr, ByteCount::ZERO, kind);
    assert_eq!(bbr.window(), BDP);
    assert_eq!(bbr.state().ssthresh, None);
    let rate = Rate::from_bytes_over(BDP, RTT).scale(HIGH_GAIN * MARGIN);
    assert_eq!(bbr.pacing_rate(), Some(rate));
    notice(&mut bbr, ByteCount::ZERO, NoticeKind::SegmentSize(BDP * 2));
    assert_eq!(bbr.window(), BDP * 2);
}

#[test]
fn aggregated_acks_get_a_larger_window() {
    let window = |acks: u32| {
        let mut bbr = Bbr::new(&params());
        for _ in 0..20 * acks {
            // 100 segments per round trip, in `acks` ACKs.
            let bytes = ByteCount(100 / u64::from(acks) * SMSS);
            let total = bbr.totals.delivered + bytes;
            let sample = rate_sample(ByteCount(100 * SMSS), total - ByteCount(100 * SMSS));
            bbr.on_ack(&AckView {
                delivered_total: total,
                pipe: ByteCount(100 * SMSS),
                rate: Some(sample),
                ..ack_view(bbr.totals.at + RTT / acks, bytes)
            });
        }
        bbr.window()
    };
    // Everything that arrives at once exceeds what the bandwidth explains.
    assert_eq!(window(1) - window(10), ByteCount(90 * SMSS));
}

#[test]
fn below_1200_kbit_s_single_segments_leave() {
    let mut bbr = steady();
    bbr.pacing_rate = Rate::from_bits_per_sec(1_199_999);
    assert_eq!(bbr.send_quantum(), Some(ByteCount(SMSS)));
    bbr.pacing_rate = Rate::from_bits_per_sec(1_200_000);
    assert_eq!(bbr.send_quantum(), Some(ByteCount(2 * SMSS)));
    bbr.pacing_rate = Rate::from_bits_per_sec(40_000_000);
    assert_eq!(bbr.send_quantum(), Some(ByteCount(5 * SMSS)));
    bbr.pacing_rate = Rate::from_bits_per_sec(40_000_000_000);
    assert_eq!(bbr.send_quantum(), Some(ByteCount(65 * SMSS)));
}

#[test]
fn bbr_reports_its_path_model() {
    let model = steady().path_model().unwrap();
    // A hundred segments per round trip.
    let rate = Rate::from_bytes_over(ByteCount(100 * SMSS), RTT);
    assert_eq!((model.bw, model.max_bw, model.min_rtt), (rate, rate, Some(RTT)));
    assert!([0.75, 1.0, 1.25].contains(&model.pacing_gain), "{}", model.pacing_gain);
    assert_eq!((model.cwnd_gain, model.state), (2.0, "probe-bw"));
    assert!(model.full_bw_reached);
}
