use std::collections::BTreeSet;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, Rate, SendRule, TxNo};

use crate::testkit::{
    Bottleneck, Net, RTT, SMSS, ack, ms, named, pump, segments, sender, sender_of, supply,
};
use crate::{Ack, NoticeKind, Phase, Profile, RtoForm, Sender};

fn ten_out(combination: &str) -> Sender {
    let mut sender = sender(combination);
    assert_eq!(pump(&mut sender, Instant::ZERO, &supply(10)).0.len(), 10);
    sender
}

#[test]
fn three_later_arrivals_make_a_loss_even_in_one_ack() {
    let mut sender = ten_out("le/reno");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 3)]));
    assert_eq!(sender.stats().segments_lost, 0);
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    assert_eq!(sender.stats().segments_lost, 1);

    // One ACK that reports three deliveries and two holes.
    let mut sender = ten_out("le/reno");
    sender.on_ack(ms(100), &ack(0, &[segments(3, 6), segments(1, 2)]));
    let (sent, _) = pump(&mut sender, ms(100), &supply(10));
    assert_eq!(sender.stats().segments_lost, 2);
    assert_eq!(named(&sent)[0], (0, SendRule::FastRetransmit));
}

#[test]
fn a_lost_repair_is_found_and_repaired_without_a_time_out() {
    for combination in ["le/reno", "le/fixed:32", "le:echo/cubic"] {
        let mut net = Net::new(sender(combination), 300, 200);
        net.losses.extend([(100, 0), (100, 1)]);
        net.run();
        assert_eq!((net.sender.stats().timeouts, net.sendings(100)), (0, 3), "{combination}");
    }
}

#[test]
fn up_to_29_of_32_are_recovered_without_a_time_out() {
    // LE, Fig. 4.
    for lost in 1..=29 {
        let profile = Profile { initial_window: 32, ..Profile::paper() };
        let mut net = Net::new(sender_of("le/reno".parse().unwrap(), profile), 400, 200);
        net.losses.extend((0..lost).map(|segment| (segment, 0)));
        net.run();
        let stats = net.sender.stats();
        assert_eq!((stats.timeouts, stats.segments_retransmitted), (0, lost), "{lost} lost");
    }
}

/// Returns `lost` random segments of a window of `window`.
fn drawn(seed: u64, lost: u64, window: u64) -> BTreeSet<u64> {
    let mut random = Stream::new(seed, lost);
    let mut segments = BTreeSet::new();
    while (segments.len() as u64) < lost {
        segments.insert(random.below(window));
    }
    segments
}

#[test]
fn one_event_of_losses_is_one_cut_whatever_limits_the_flight() {
    // A window of 32 segments, limited by the window of the sender or of the peer, or by the
    // application. If no new data follows, the last three have to arrive so that all losses are
    // found.
    for (limit, initial_window, rwnd, segments, among) in [
        ("cwnd", 32, 400, 400, 32),
        ("the peer's window", 64, 32, 400, 32),
        ("the application", 64, 400, 32, 29),
    ] {
        let profile = Profile { initial_window, rto: RtoForm::RFC, ..Profile::paper() };
        for (lost, seed) in (1..=29).flat_map(|lost| (0..10).map(move |seed| (lost, seed))) {
            let sender = sender_of("le/reno".parse().unwrap(), profile.clone());
            let mut net = Net::new(sender, segments, rwnd);
            net.bottleneck =
                Some(Bottleneck::new(Rate::from_bits_per_sec(10_000_000), ByteCount(1_000 * SMSS)));
            net.losses.extend(drawn(seed, lost, among).into_iter().map(|segment| (segment, 0)));
            net.run();
            let stats = net.sender.stats();
            assert_eq!(stats.reductions, 1, "{limit}, {lost} lost, seed {seed}");
            // The proof of LE 2.2 assumes that two new segments are sent on the first two duplicate
            // ACKs: the peer's window may permit none.
            let may_time_out = limit == "the peer's window" && lost > 16;
            assert!(stats.timeouts == 0 || may_time_out, "{limit}, {lost} lost, seed {seed}");
        }
    }
}

#[test]
fn after_30_losses_of_32_limited_transmit_finds_the_rest() {
    let run = |rwnd| {
        let profile = Profile { initial_window: 32, ..Profile::paper() };
        let mut net = Net::new(sender_of("le/reno".parse().unwrap(), profile), 400, rwnd);
        net.losses.extend((0..30).map(|segment| (segment, 0)));
        net.run();
        (net.sender.stats().reductions, net.sender.stats().timeouts)
    };
    assert_eq!(run(400), (1, 0), "limited transmit");
    assert_eq!(run(32), (0, 1), "the peer's window lets nothing out");
}

/// Returns the reductions if the retransmission of segment 0, sent with the reduction, is lost, or
/// if only originals from before it are.
fn cuts(at: u64, repair_is_lost: bool) -> u64 {
    let mut sender = ten_out("le/fixed:10");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    // Three new segments are sent with the retransmission.
    pump(&mut sender, ms(100), &supply(20));
    let arrived = [segments(10, 13), segments(1, 4)];
    let answer = if repair_is_lost { ack(0, &arrived) } else { ack(4, &arrived[..1]) };
    sender.on_ack(ms(at), &answer);
    assert!(sender.stats().segments_lost > 1);
    sender.stats().reductions
}

#[test]
fn the_next_cut_is_for_what_left_after_the_last_and_more_than_a_round_trip_later() {
    // LE 2.2.3: "greater than an RTT". SRTT is 100 ms, and the first reduction is at 100 ms.
    assert_eq!(cuts(200, true), 1);
    assert_eq!(cuts(201, true), 2);
    assert_eq!(cuts(201, false), 1);
    assert_eq!(cuts(900, false), 1);
}

#[test]
fn after_a_time_out_the_next_cut_is_beyond_the_recovery_point() {
    let profile = Profile { initial_window: 10, ..Profile::paper() };
    let (mut sender, at) = timed_out("le/fixed:10", profile);
    // More than a round trip after the time-out, the first retransmission is found lost.
    sender.on_ack(after(at, 101), &ack(0, &[segments(1, 4)]));
    let (sent, _) = pump(&mut sender, after(at, 101), &supply(20));
    assert_eq!(named(&sent)[0].0, 0);
    assert_eq!((sender.stats().reductions, sender.phase()), (0, Phase::Loss));
    sender.on_ack(after(at, 202), &ack(10, &[]));
    pump(&mut sender, after(at, 202), &supply(20));
    assert_eq!(sender.phase(), Phase::Open);
    sender.on_ack(after(at, 303), &ack(13, &[segments(14, 17)]));
    assert_eq!(sender.stats().reductions, 1);
}

#[test]
fn the_window_grows_while_a_hole_is_open() {
    let window = |combination: &str| {
        let mut sender = sender(combination);
        let (cwnd, ssthresh) = (ByteCount(10 * SMSS), Some(ByteCount(10 * SMSS)));
        sender.notify_control(Instant::ZERO, NoticeKind::TakeOver { cwnd, ssthresh });
        pump(&mut sender, Instant::ZERO, &supply(100));
        for upto in [4, 6] {
            sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
            pump(&mut sender, ms(100), &supply(100));
        }
        sender.control_window()
    };
    // Five segments were delivered, which is the window after the reduction.
    assert_eq!(window("le/reno"), ByteCount(6 * SMSS));
    assert_eq!(window("sack/reno"), ByteCount(5 * SMSS));
    // Not in slow start, which a hole is about to end.
    let mut sender = ten_out("le/reno");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 3)]));
    assert_eq!(sender.control_window(), ByteCount(10 * SMSS));
}

#[test]
fn the_echo_of_a_repair_is_a_sample_of_its_round_trip() {
    let latest = |echoed: Option<u64>| {
        let mut sender = ten_out("le:echo/fixed:10");
        sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
        pump(&mut sender, ms(100), &supply(20));
        sender.on_ack(ms(230), &Ack { echoed: echoed.map(TxNo), ..ack(4, &[]) });
        sender.rtt().latest().unwrap()
    };
    assert_eq!(latest(Some(10)), Duration::from_millis(130), "the repair left at 100 ms");
    assert_eq!(latest(Some(0)), RTT, "a late original");
    assert_eq!(latest(None), RTT, "Karn");
}

#[test]
fn the_window_falls_once_a_round_trip_and_no_recovery_is_on() {
    let mut sender = ten_out("le/reno");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    pump(&mut sender, ms(100), &supply(10));
    assert_eq!((sender.stats().reductions, sender.phase()), (1, Phase::Open));
    sender.on_ack(ms(199), &ack(4, &[segments(5, 8)]));
    assert_eq!((sender.stats().reductions, sender.stats().segments_lost), (1, 2));
    sender.on_ack(ms(201), &ack(8, &[]));
    pump(&mut sender, ms(201), &supply(20));
    sender.on_ack(ms(301), &ack(10, &[segments(11, 14)]));
    assert_eq!((sender.stats().reductions, sender.stats().segments_lost), (2, 3));
}

#[test]
fn a_late_original_is_not_taken_for_its_repair() {
    let lost_by = |at, echo| {
        let mut sender = ten_out("le/fixed:10");
        sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
        // Three new segments are sent with the retransmission, and they are later than the
        // original.
        pump(&mut sender, ms(100), &supply(20));
        let lost = sender.stats().segments_lost;
        let sacked = [segments(4, 5)];
        sender.on_ack(ms(at), &Ack { echo: Some(ms(echo)), ..ack(1, &sacked[..0]) });
        // Taken for the retransmission, it would be the first of three deliveries after segments 4
        // to 9.
        sender.on_ack(ms(at), &ack(1, &[segments(10, 12)]));
        sender.stats().segments_lost - lost
    };
    assert_eq!(lost_by(200, 100), 6, "the repair, and two that left after it");
    assert_eq!(lost_by(200, 0), 0, "the time stamp is the original's");
}

#[test]
fn a_repair_that_is_reported_as_a_duplicate_has_arrived() {
    let lost_by = |dsack| {
        let mut sender = ten_out("le/fixed:10");
        sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
        // Three new segments are sent with the retransmission.
        pump(&mut sender, ms(100), &supply(20));
        let lost = sender.stats().segments_lost;
        sender.on_ack(ms(120), &Ack { echo: Some(ms(0)), ..ack(4, &[]) });
        // Below SND.UNA, where the board has no transmission.
        sender.on_ack(ms(200), &Ack { dsack, ..ack(4, &[]) });
        sender.on_ack(ms(201), &ack(4, &[segments(10, 12)]));
        sender.stats().segments_lost - lost
    };
    assert_eq!(lost_by(Some(segments(0, 1))), 6, "the repair, and two that left after it");
    assert_eq!(lost_by(Some(segments(1, 2))), 0, "what was sent once is the network's own");
    assert_eq!(lost_by(None), 0, "nothing reports that the repair arrived");
}

#[test]
fn the_echoed_number_finds_losses_that_times_cannot_show() {
    let lost_by = |echoed| {
        let mut sender = ten_out("le:echo/fixed:10");
        sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
        pump(&mut sender, ms(100), &supply(20));
        let lost = sender.stats().segments_lost;
        sender.on_ack(ms(250), &Ack { echoed: Some(TxNo(echoed)), ..ack(1, &[]) });
        sender.on_ack(ms(250), &Ack { echoed: Some(TxNo(12)), ..ack(1, &[segments(10, 12)]) });
        sender.stats().segments_lost - lost
    };
    assert_eq!(lost_by(10), 6, "the repair");
    assert_eq!(lost_by(0), 0, "the original");
    assert_eq!(lost_by(9_999), 6, "a number never given counts for nothing");
}

#[test]
fn a_burst_is_repaired_in_a_round_trip() {
    let mut net = Net::new(sender("le/fixed:40"), 400, 100);
    net.losses.extend((100..110).map(|segment| (segment, 0)));
    net.run();
    let repairs: Vec<_> = net.sent.iter().filter(|(_, t)| t.rule.is_retransmission()).collect();
    assert_eq!((repairs.len(), net.sender.stats().timeouts), (10, 0));
    assert!(repairs[9].0.since(repairs[0].0) <= RTT);
}

/// Returns a sender whose ten segments were all lost, just after its retransmission timer expired,
/// and the time.
fn timed_out(combination: &str, profile: Profile) -> (Sender, Instant) {
    let mut sender = sender_of(combination.parse().unwrap(), profile);
    let mut now = Instant::ZERO;
    pump(&mut sender, now, &supply(10));
    while sender.stats().timeouts == 0 {
        now = sender.poll_timeout().unwrap();
        sender.on_timeout(now);
        pump(&mut sender, now, &supply(10));
    }
    (sender, now)
}

fn after(at: Instant, millis: u64) -> Instant {
    at + Duration::from_millis(millis)
}

#[test]
fn a_lost_repair_after_a_time_out_opens_no_window() {
    for combination in ["le/bbr", "le/bbr3", "rack/bbr", "rack/bbr3"] {
        let profile = Profile { initial_window: 10, ..Profile::modern() };
        let (mut sender, at) = timed_out(combination, profile);
        sender.on_ack(after(at, 100), &ack(1, &[]));
        let mut sent = 1;
        for millis in 100..150 {
            sender.on_timeout(after(at, millis));
            sent += pump(&mut sender, after(at, millis), &supply(10)).0.len() as u64;
        }
        let before = sender.cwnd();
        sender.on_ack(after(at, 230), &ack(1, &[segments(2, sent)]));
        let most = before + ByteCount(3 * SMSS);
        assert!(sender.cwnd() <= most, "{combination}: {before} to {}", sender.cwnd());
        assert_eq!(sender.phase(), Phase::Loss, "{combination}");
    }
}

#[test]
fn an_old_mark_after_a_time_out_reduces_nothing() {
    for combination in ["le/reno", "le/cubic", "rack/reno"] {
        let profile = Profile { initial_window: 10, ..Profile::paper() };
        let (mut sender, at) = timed_out(combination, profile);
        for una in 1..=9 {
            let now = after(at, 101 * una);
            sender.on_ack(now, &Ack { ece: true, ..ack(una, &[]) });
            pump(&mut sender, now, &supply(10));
        }
        assert_eq!(sender.stats().reductions, 0, "{combination}");
    }
}

#[test]
fn an_old_mark_after_a_loss_is_no_second_cut() {
    for combination in ["le/reno", "sack/reno", "rack/reno"] {
        for ece in [false, true] {
            let mut sender = sender(combination);
            pump(&mut sender, Instant::ZERO, &supply(20));
            sender.on_ack(ms(100), &Ack { ece, ..ack(0, &[segments(1, 4)]) });
            pump(&mut sender, ms(100), &supply(20));
            // A millisecond more than a round trip later.
            sender.on_ack(ms(201), &Ack { ece: true, ..ack(4, &[]) });
            assert_eq!(sender.stats().reductions, 1, "{combination} {ece}");
        }
    }
}

#[test]
fn a_spurious_time_out_makes_no_second_cut_of_the_one_before() {
    let mut sender = ten_out("le/reno");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    pump(&mut sender, ms(100), &supply(10));
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    pump(&mut sender, rto, &supply(10));
    sender.on_ack(after(rto, 10), &Ack { echo: Some(ms(100)), ..ack(4, &[]) });
    assert_eq!((sender.stats().timeouts, sender.stats().undos), (1, 1));
    // Segment 4 was sent before the reduction.
    sender.on_ack(after(rto, 20), &ack(4, &[segments(5, 8)]));
    assert_eq!(sender.stats().reductions, 1);
}

#[test]
fn with_dcr_what_left_before_a_reduction_waits_no_longer() {
    for combination in ["le/fixed:10/dcr:timer", "rack/fixed:10/dcr:timer"] {
        let profile = Profile { initial_window: 10, ..Profile::paper() };
        let mut sender = sender_of(combination.parse().unwrap(), profile);
        pump(&mut sender, Instant::ZERO, &supply(10));
        sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
        pump(&mut sender, ms(100), &supply(10));
        sender.on_timeout(ms(200));
        pump(&mut sender, ms(200), &supply(10));
        // The retransmission arrives late, and then three segments of the first window.
        sender.on_ack(ms(310), &ack(4, &[segments(5, 8)]));
        let (sent, _) = pump(&mut sender, ms(310), &supply(10));
        assert_eq!(named(&sent)[0].0, 4, "{combination}");
    }
}

#[test]
fn with_dcr_nothing_waits_after_a_time_out() {
    for combination in ["le/fixed:10/dcr:timer", "rack/fixed:10/dcr:timer"] {
        let profile = Profile { initial_window: 10, ..Profile::paper() };
        let (mut sender, at) = timed_out(combination, profile);
        sender.on_ack(after(at, 110), &ack(0, &[segments(1, 4)]));
        let mut sent = pump(&mut sender, after(at, 110), &supply(10)).0;
        for millis in 110..=130 {
            sender.on_timeout(after(at, millis));
            sent.extend(pump(&mut sender, after(at, millis), &supply(10)).0);
        }
        assert!(named(&sent).iter().any(|(segment, _)| *segment == 0), "{combination}: {sent:?}");
    }
}

#[test]
fn a_loss_found_late_restarts_no_timer() {
    let mut sender = ten_out("le/fixed:10");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    pump(&mut sender, ms(100), &supply(10));
    let rto = sender.poll_timeout();
    sender.on_ack(ms(250), &ack(0, &[segments(5, 8), segments(1, 4)]));
    assert!(!pump(&mut sender, ms(250), &supply(10)).0.is_empty());
    assert_eq!((sender.poll_timeout(), sender.stats().reductions), (rto, 1));
}
