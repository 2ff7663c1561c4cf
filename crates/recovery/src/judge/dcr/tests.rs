use std::time::Duration;

use airtcp_types::{ByteCount, Instant, SendRule};

use crate::testkit::{Net, RTT, SMSS, ack, ms, named, pump, segments, sender, sender_of, supply};
use crate::{Combination, NoticeKind, Phase, Profile, RtoForm, Sender};

/// Returns a sender with ten segments outstanding in congestion avoidance.
fn ten_out(combination: &str) -> Sender {
    let mut sender = sender(combination);
    let (cwnd, ssthresh) = (ByteCount(10 * SMSS), Some(ByteCount(10 * SMSS)));
    let notice = NoticeKind::TakeOver { cwnd, ssthresh };
    sender.notify_control(Instant::ZERO, notice);
    assert_eq!(pump(&mut sender, Instant::ZERO, &supply(100)).0.len(), 10);
    sender
}

#[test]
fn the_response_waits_a_round_trip_from_the_first_duplicate() {
    for combination in
        ["sack/reno/dcr:timer", "fack/reno/dcr:timer", "le/reno/dcr:timer", "rack/reno/dcr:timer"]
    {
        let mut sender = ten_out(combination);
        for upto in 2..=8 {
            let now = ms(100 + 2 * (upto - 2));
            sender.on_ack(now, &ack(0, &[segments(1, upto)]));
            let (sent, _) = pump(&mut sender, now, &supply(100));
            // Each releases one new segment.
            assert_eq!(named(&sent), [(8 + upto, SendRule::LimitedTransmit)], "{combination}");
        }
        assert_eq!((sender.phase(), sender.stats().segments_lost), (Phase::Open, 0));
        sender.on_timeout(ms(199));
        assert_eq!((sender.phase(), sender.stats().segments_lost), (Phase::Open, 0));
        sender.on_timeout(ms(200));
        assert_eq!((sender.stats().reductions, sender.stats().segments_lost), (1, 1));
        let (sent, _) = pump(&mut sender, ms(200), &supply(100));
        assert_eq!(named(&sent)[0], (0, SendRule::FastRetransmit), "{combination}");
    }
}

#[test]
fn a_hole_that_fills_in_time_costs_nothing_and_the_window_has_grown() {
    for combination in ["sack/reno/dcr:timer", "newreno/reno/dcr:timer", "rack/reno/dcr:timer"] {
        let mut sender = ten_out(combination);
        let without = combination.starts_with("newreno");
        for upto in 2..=13 {
            let block = [segments(1, upto)];
            sender.on_ack(ms(100), &ack(0, if without { &[] } else { &block }));
            pump(&mut sender, ms(100), &supply(100));
        }
        sender.on_ack(ms(150), &ack(13, &[]));
        sender.on_timeout(ms(250));
        let stats = sender.stats();
        assert_eq!((stats.reductions, stats.segments_retransmitted), (0, 0), "{combination}");
        assert_eq!(sender.cwnd(), ByteCount(11 * SMSS), "{combination}");
    }
}

#[test]
fn a_hole_that_fills_lets_growth_out_though_another_is_open() {
    let mut sender = ten_out("sack/reno/dcr:timer");
    for upto in 2..=8 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
        pump(&mut sender, ms(100), &supply(100));
    }
    for upto in 10..=16 {
        sender.on_ack(ms(110), &ack(0, &[segments(9, upto), segments(1, 8)]));
        pump(&mut sender, ms(110), &supply(100));
    }
    // DCR 2.2: a duplicate ACK releases one segment, whatever the window has grown by.
    assert_eq!(sender.cwnd(), ByteCount(10 * SMSS));
    sender.on_ack(ms(120), &ack(8, &[segments(9, 16)]));
    assert_eq!(sender.cwnd(), ByteCount(11 * SMSS));
    assert_eq!((sender.phase(), sender.stats().segments_lost), (Phase::Open, 0));
}

#[test]
fn a_later_hole_waits_a_round_trip_from_its_detection() {
    // The holes at 0 and at 2 are found together, and the first is filled.
    let cuts = |until| {
        let mut sender = ten_out("sack/reno/dcr:timer");
        sender.on_ack(ms(100), &ack(0, &[segments(1, 2)]));
        sender.on_ack(ms(150), &ack(0, &[segments(3, 10), segments(1, 2)]));
        sender.on_ack(ms(160), &ack(2, &[segments(3, 10)]));
        for now in (160..=until).step_by(10) {
            sender.on_timeout(ms(now));
        }
        sender.stats().reductions
    };
    // SRTT is 106 ms by then.
    assert_eq!((cuts(250), cuts(260)), (0, 1), "a round trip after it was found");
}

#[test]
fn the_wait_of_a_later_hole_starts_again_at_the_first_duplicate_for_it() {
    // As above, and a duplicate follows when the hole at 2 is the oldest.
    let cuts = |until| {
        let mut sender = ten_out("sack/reno/dcr:timer");
        sender.on_ack(ms(100), &ack(0, &[segments(1, 2)]));
        sender.on_ack(ms(150), &ack(0, &[segments(3, 9), segments(1, 2)]));
        sender.on_ack(ms(160), &ack(2, &[segments(3, 9)]));
        sender.on_ack(ms(200), &ack(2, &[segments(3, 10)]));
        for now in (200..=until).step_by(10) {
            sender.on_timeout(ms(now));
        }
        sender.stats().reductions
    };
    // SRTT is 124 ms by then.
    assert_eq!((cuts(320), cuts(330)), (0, 1), "a round trip after the duplicate");
}

#[test]
fn all_deferred_losses_are_repaired_with_the_first() {
    let mut sender = ten_out("sack/reno/dcr:timer");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 2)]));
    sender.on_ack(ms(150), &ack(0, &[segments(3, 10), segments(1, 2)]));
    sender.on_timeout(ms(200));
    assert_eq!((sender.stats().reductions, sender.stats().segments_lost), (1, 2));
}

#[test]
fn a_running_retransmission_timer_does_not_shorten_the_wait_of_a_later_hole() {
    let rto = RtoForm::Rfc { floor: Duration::from_millis(20) };
    let profile = Profile { rto, initial_window: 10, ..Profile::paper() };
    let mut sender = sender_of("sack/fixed:20/dcr:timer".parse().unwrap(), profile);
    // A stable path, so that the time-out is hardly longer than the RTT of 100 ms.
    let mut now = 0;
    for round in 0..40 {
        pump(&mut sender, ms(now), &supply(10 * round + 10));
        now += 100;
        sender.on_ack(ms(now), &ack(10 * round + 10, &[]));
    }
    let (first, second) = (400, 410);
    pump(&mut sender, ms(now), &supply(first + 10));
    pump(&mut sender, ms(now + 80), &supply(first + 20));
    let ten = segments(first + 1, first + 10);
    sender.on_ack(ms(now + 100), &ack(first, &[ten]));
    // The second hole is found when the timer, restarted for the first one, has 20 ms left. Both
    // arrive 90 ms late.
    sender.on_ack(ms(now + 180), &ack(first, &[segments(second + 1, second + 10), ten]));
    sender.on_ack(ms(now + 190), &ack(second, &[segments(second + 1, second + 10)]));
    for late in 190..270 {
        sender.on_timeout(ms(now + late));
    }
    sender.on_ack(ms(now + 270), &ack(second + 10, &[]));
    let stats = sender.stats();
    assert_eq!((stats.timeouts, stats.reductions, stats.segments_retransmitted), (0, 0, 0));
}

#[test]
fn the_wait_is_a_parameter() {
    for (judge, until) in [("dcr:timer:0.5", 150), ("dcr:timer", 200), ("dcr:timer:1.5", 250)] {
        let mut sender = ten_out(&format!("sack/reno/{judge}"));
        assert_eq!(sender.combination().to_string(), format!("sack/reno/{judge}"));
        sender.on_ack(ms(100), &ack(0, &[segments(1, 8)]));
        sender.on_timeout(ms(until - 1));
        assert_eq!(sender.stats().reductions, 0, "{judge}");
        sender.on_timeout(ms(until));
        assert_eq!(sender.stats().reductions, 1, "{judge}");
    }
    let mut sender = ten_out("sack/reno/dcr:count:0.5");
    for upto in 2..=6 {
        assert_eq!(sender.stats().reductions, 0, "{upto}");
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
    }
    assert_eq!(sender.stats().reductions, 1, "half of the window of ten");
    for refused in ["0", "11", "x", ""] {
        let combination = format!("sack/reno/dcr:timer:{refused}");
        assert!(combination.parse::<Combination>().is_err(), "{combination}");
    }
}

#[test]
fn a_window_of_duplicates_is_enough_for_the_counting_form() {
    let mut sender = ten_out("sack/reno/dcr:count");
    for upto in 2..=11 {
        assert_eq!(sender.stats().reductions, 0, "{upto}");
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
        pump(&mut sender, ms(100), &supply(100));
    }
    assert_eq!(sender.stats().reductions, 1);
}

#[test]
fn in_slow_start_three_duplicates_are_enough() {
    let mut sender = sender("sack/reno/dcr:timer");
    pump(&mut sender, Instant::ZERO, &supply(100));
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    assert_eq!(sender.stats().reductions, 1);
}

#[test]
fn no_time_out_comes_before_the_ack_of_the_repair() {
    // RFC 6298's form with a small floor on a steady path: the time-out is hardly above SRTT.
    for judge in ["dcr:timer", "dcr:count"] {
        for detection in ["sack", "newreno", "rack", "le", "fack", "reno"] {
            let rto = RtoForm::Rfc { floor: Duration::from_millis(20) };
            let profile = Profile { rto, initial_window: 10, ..Profile::paper() };
            let combination = format!("{detection}/reno/{judge}");
            let mut net = Net::new(sender_of(combination.parse().unwrap(), profile), 2_000, 400);
            // A first loss in slow start ends it; the second is the loss under test.
            net.losses.extend([(150, 0), (1_200, 0)]);
            net.run();
            let stats = net.sender.stats();
            assert_eq!(stats.timeouts, 0, "{combination}");
            assert_eq!(stats.reductions, 2, "{combination}");
            let at = |sending: usize| {
                let of =
                    net.sent.iter().filter(|(_, t)| t.range.start == crate::testkit::seq(1_200));
                of.clone().nth(sending).unwrap().0
            };
            assert!(at(1).since(at(0)) >= RTT * 2 - Duration::from_millis(5), "{combination}");
        }
    }
}

#[test]
fn deferred_segments_are_not_sent_for_lack_of_other_data() {
    let mut sender = ten_out("sack/reno/dcr:timer");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 6)]));
    // There is no new data: RFC 6675's rule 3 would send segment 0, and its rule 4 segment 9.
    let (sent, _) = pump(&mut sender, ms(100), &supply(10));
    assert_eq!(named(&sent), []);
    // The deferral is over.
    sender.on_timeout(ms(200));
    let (sent, _) = pump(&mut sender, ms(200), &supply(10));
    assert_eq!(named(&sent)[0], (0, SendRule::FastRetransmit));
}

#[test]
fn a_wait_that_a_timer_begins_ends_before_the_time_out_too() {
    let rto = RtoForm::Rfc { floor: Duration::from_millis(20) };
    let profile = Profile { rto, initial_window: 10, ..Profile::paper() };
    let mut sender = sender_of("rack/reno/dcr:timer".parse().unwrap(), profile);
    let (cwnd, ssthresh) = (ByteCount(10 * SMSS), Some(ByteCount(10 * SMSS)));
    sender.notify_control(Instant::ZERO, NoticeKind::TakeOver { cwnd, ssthresh });
    // A stable path, so that the time-out is hardly longer than the RTT.
    let (mut now, mut acked, mut next) = (0, 0, 0);
    for _ in 0..40 {
        let (sent, _) = pump(&mut sender, ms(now), &supply(10_000));
        (acked, next) = (next, next + sent.len() as u64);
        now += 100;
        if now < 4_000 {
            sender.on_ack(ms(now), &ack(next, &[]));
        }
    }
    // The ACK advances SND.UNA and shows a hole, for which two segments are not enough: RACK's
    // timer finds the loss, a quarter of a round trip after the retransmission timer was started.
    sender.on_ack(ms(now), &ack(acked + 1, &[segments(acked + 2, acked + 3)]));
    pump(&mut sender, ms(now), &supply(next));
    while sender.stats().segments_lost == 0 {
        let at = sender.poll_timeout().unwrap();
        sender.on_timeout(at);
    }
    assert_eq!((sender.stats().timeouts, sender.stats().reductions), (0, 1));
}
