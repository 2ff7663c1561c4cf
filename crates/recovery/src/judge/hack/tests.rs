use std::time::Duration;

use airtcp_types::{ByteCount, Instant, SendRule, SeqRange};

use crate::testkit::{RTT, SMSS, ack, ms, named, pump, segments, sender, seq, supply};
use crate::{Ack, Phase, Sender};

fn ten_out(combination: &str) -> Sender {
    let mut sender = sender(combination);
    assert_eq!(pump(&mut sender, Instant::ZERO, &supply(100)).0.len(), 10);
    sender
}

#[test]
fn a_corrupted_segment_is_repaired_and_the_window_stays() {
    for combination in ["sack/reno/hack", "newreno/reno/hack", "rack/cubic/hack", "le/cubic/hack"] {
        let mut sender = ten_out(combination);
        let (cwnd, rto) = (sender.cwnd(), sender.poll_timeout());
        assert!(sender.on_special_ack(ms(101), seq(3)));
        assert_eq!(sender.pipe(), ByteCount(9 * SMSS), "it is out of the network");
        let (sent, _) = pump(&mut sender, ms(101), &supply(100));
        assert_eq!(named(&sent), [(3, SendRule::Repair)], "{combination}");
        assert_eq!((sender.cwnd(), sender.phase()), (cwnd, Phase::Open));
        assert_eq!(sender.poll_timeout(), rto, "{combination}: it does not restart the timer");
        let samples = (sender.rtt().latest(), sender.rtt().min());
        assert_eq!(samples, (Some(RTT), Some(RTT)), "{combination}: it is no sample");
        assert_eq!((sender.stats().reductions, sender.stats().corrupted), (0, 1));
        sender.board().audit().unwrap();
    }
}

#[test]
fn repeated_sack_blocks_of_a_corruption_are_no_congestion() {
    for combination in ["sack/reno/hack", "fack/reno/hack", "rack/reno/hack", "le/reno/hack"] {
        for first in [0, 3] {
            let mut sender = ten_out(combination);
            sender.on_ack(ms(100), &ack(first, &[]));
            pump(&mut sender, ms(100), &supply(100));
            assert!(sender.on_special_ack(ms(101), seq(first)));
            pump(&mut sender, ms(101), &supply(100));
            for upto in first + 2..=10 {
                sender.on_ack(ms(102), &ack(first, &[segments(first + 1, upto)]));
                pump(&mut sender, ms(102), &supply(100));
            }
            sender.on_timeout(ms(190));
            assert_eq!(sender.stats().reductions, 0, "{combination} {first}");
            assert_eq!(sender.stats().segments_retransmitted, 1, "{combination} {first}");
        }
    }
}

#[test]
fn without_sack_the_fast_retransmit_is_needless_and_stays() {
    let mut sender = ten_out("newreno/reno/hack");
    assert!(sender.on_special_ack(ms(100), seq(0)));
    pump(&mut sender, ms(100), &supply(100));
    for _ in 0..3 {
        sender.on_ack(ms(101), &ack(0, &[]));
    }
    assert_eq!(sender.stats().reductions, 1);
}

#[test]
fn other_losses_are_congestion() {
    let mut sender = ten_out("sack/reno/hack");
    assert!(sender.on_special_ack(ms(100), seq(0)));
    pump(&mut sender, ms(100), &supply(100));
    sender.on_ack(ms(101), &ack(0, &[segments(1, 2), segments(3, 8)]));
    assert_eq!(sender.stats().reductions, 1);
}

#[test]
fn a_repair_that_is_lost_is_congestion_where_the_detection_sees_it() {
    for combination in ["rack/reno/hack", "le/reno/hack"] {
        let mut sender = ten_out(combination);
        assert!(sender.on_special_ack(ms(100), seq(0)));
        pump(&mut sender, ms(100), &supply(100));
        sender.on_ack(ms(101), &ack(0, &[segments(1, 10)]));
        pump(&mut sender, ms(101), &supply(100));
        assert_eq!(sender.stats().reductions, 0, "{combination}");
        sender.on_ack(ms(205), &ack(0, &[segments(1, 14)]));
        assert_eq!(sender.stats().reductions, 1, "{combination}");
    }
}

#[test]
fn a_repair_that_is_corrupted_again_is_repaired_again() {
    let mut sender = ten_out("sack/reno/hack");
    assert!(sender.on_special_ack(ms(100), seq(0)));
    pump(&mut sender, ms(100), &supply(100));
    // The network duplicates a special ACK, and later the retransmission is corrupted.
    assert!(!sender.on_special_ack(ms(101), seq(0)));
    assert!(sender.on_special_ack(ms(200), seq(0)));
    let (sent, _) = pump(&mut sender, ms(200), &supply(100));
    assert_eq!(named(&sent), [(0, SendRule::Repair)]);
}

/// Returns the last instant before the retransmission timer would expire.
fn just_before_rto(sender: &Sender) -> Instant {
    let at = sender.poll_timeout().unwrap();
    assert!(sender.combination().to_string().starts_with("sack"), "no other timer is on");
    at - Duration::from_millis(1)
}

#[test]
fn the_repair_of_the_oldest_segment_restarts_the_timer() {
    let mut sender = ten_out("sack/reno/hack");
    // Corrupted repeatedly, and reported each time just before the timer would expire.
    for _ in 0..5 {
        let now = just_before_rto(&sender);
        assert!(sender.on_special_ack(now, seq(0)));
        assert_eq!(named(&pump(&mut sender, now, &supply(10)).0), [(0, SendRule::Repair)]);
        assert_eq!(sender.poll_timeout(), Some(now + sender.rtt().rto()));
    }
    // The last retransmission is dropped.
    let at = sender.poll_timeout().unwrap();
    sender.on_timeout(at);
    assert_eq!(sender.stats().timeouts, 1);
}

#[test]
fn repairs_do_not_delay_the_time_out_of_a_dropped_head() {
    for head_is_notified in [false, true] {
        let mut sender = ten_out("sack/reno/hack");
        if head_is_notified {
            // Its retransmission is dropped.
            assert!(sender.on_special_ack(ms(100), seq(0)));
            pump(&mut sender, ms(100), &supply(10));
        }
        let at = sender.poll_timeout().unwrap();
        for (now, corrupted) in (110..at.as_millis()).step_by(20).zip((1..10).cycle()) {
            if sender.on_special_ack(ms(now), seq(corrupted)) {
                pump(&mut sender, ms(now), &supply(10));
            }
            assert_eq!(sender.poll_timeout(), Some(at), "{now} ms");
        }
        assert!(sender.stats().corrupted > 5);
        sender.on_timeout(at);
        assert_eq!(sender.stats().timeouts, 1);
    }
}

#[test]
fn a_special_ack_of_the_original_leaves_the_probe_in_flight() {
    let mut sender = ten_out("rack/reno/hack");
    let probe_at = sender.poll_timeout().unwrap();
    sender.on_timeout(probe_at);
    let (sent, _) = pump(&mut sender, probe_at, &supply(10));
    assert_eq!(named(&sent), [(9, SendRule::ProbeAgain)]);
    let after = |millis| probe_at + Duration::from_millis(millis);
    assert!(sender.on_special_ack(after(50), seq(9)), "the original");
    assert!(!sender.on_special_ack(after(60), seq(9)), "the same word, sent twice");
    assert_eq!(named(&pump(&mut sender, after(60), &supply(10)).0), [], "the probe may arrive");
    assert!(sender.on_special_ack(after(100), seq(9)), "the probe");
    let (sent, _) = pump(&mut sender, after(100), &supply(10));
    assert_eq!(named(&sent), [(9, SendRule::Repair)]);
}

#[test]
fn losses_of_an_undone_time_out_are_no_congestion() {
    for combination in ["sack/reno/hack", "rack/reno/hack", "le/reno/hack", "fack/reno/hack"] {
        let mut sender = ten_out(combination);
        let mut at = Instant::ZERO;
        while sender.stats().timeouts == 0 {
            at = sender.poll_timeout().unwrap();
            sender.on_timeout(at);
            pump(&mut sender, at, &supply(100));
        }
        let after = |millis| at + Duration::from_millis(millis);
        sender.on_special_ack(after(50), seq(3));
        // The ACK of the original, which was late.
        sender.on_ack(after(51), &Ack { echo: Some(Instant::ZERO), ..ack(1, &[]) });
        assert_eq!(sender.stats().undos, 1, "{combination}");
        sender.on_ack(after(52), &ack(3, &[]));
        for upto in 5..=10 {
            sender.on_ack(after(53), &ack(3, &[segments(4, upto)]));
        }
        let (sent, _) = pump(&mut sender, after(100), &supply(100));
        sender.on_timeout(after(160));
        assert_eq!(sender.stats().reductions, 0, "{combination}");
        let repairs = [sent, pump(&mut sender, after(160), &supply(100)).0].concat();
        let repaired = repairs.iter().any(|sent| sent.range.start == seq(3));
        assert!(repaired, "{combination}: {repairs:?}");
    }
}

#[test]
fn after_a_time_out_a_reported_corruption_does_not_open_the_window() {
    // `le` may reduce again one SRTT after a time-out; until then, and as long as it does not, BBR
    // keeps one segment.
    for combination in ["le/bbr/hack", "le/bbr3/hack", "le/reno/hack", "rack/bbr/hack"] {
        let mut sender = sender(combination);
        let mut now = Instant::ZERO;
        pump(&mut sender, now, &supply(10));
        while sender.stats().timeouts == 0 {
            now = sender.poll_timeout().expect("a deadline");
            sender.on_timeout(now);
            pump(&mut sender, now, &supply(10));
        }
        let cwnd = sender.cwnd();
        assert!(sender.on_special_ack(now + RTT + RTT / 2, seq(0)), "{combination}");
        assert_eq!((sender.cwnd(), sender.phase()), (cwnd, Phase::Loss), "{combination}");
    }
}

#[test]
fn a_segment_that_is_always_corrupted_is_left_to_the_time_out() {
    let mut sender = ten_out("sack/reno/hack");
    for step in 1..=200 {
        let now = ms(100 * step);
        sender.on_timeout(now);
        sender.on_special_ack(now, seq(0));
        pump(&mut sender, now, &supply(100));
    }
    assert!(sender.backoff() > 3, "{}", sender.backoff());
    assert!(sender.stats().segments_retransmitted < 60, "{:?}", sender.stats());
}

#[test]
fn repairs_of_a_spurious_time_out_do_not_report_later_repairs() {
    for combination in ["sack/reno/hack", "rack/reno/hack", "le/reno/hack", "fack/reno/hack"] {
        let mut sender = ten_out(combination);
        for corrupted in [0, 3] {
            assert!(sender.on_special_ack(ms(100), seq(corrupted)), "{combination}");
            pump(&mut sender, ms(100), &supply(10));
        }
        let mut at = ms(100);
        while sender.stats().timeouts == 0 {
            at = sender.poll_timeout().unwrap();
            sender.on_timeout(at);
            pump(&mut sender, at, &supply(10));
        }
        // The ACK of the retransmission of 0, not of what the time-out sent: that of 3 is in
        // flight.
        let after = |millis| at + Duration::from_millis(millis);
        sender.on_ack(after(50), &Ack { echo: Some(ms(100)), ..ack(3, &[]) });
        assert_eq!(sender.stats().undos, 1, "{combination}");
        // Not of 9, which rack's probe retransmitted: it is not known which of the two arrived.
        for upto in 5..=9 {
            sender.on_ack(after(51), &ack(3, &[segments(4, upto)]));
        }
        assert_eq!(sender.stats().reductions, 0, "{combination}");
    }
}

#[test]
fn impossible_special_acks_are_ignored() {
    let mut sender = ten_out("sack/reno/hack");
    assert!(!sender.on_special_ack(ms(50), seq(0)), "sooner than a round trip");
    sender.on_ack(ms(100), &ack(1, &[segments(4, 5)]));
    let inside = seq(2) + 1;
    for number in [seq(0), inside, seq(4), seq(10), seq(99)] {
        assert!(!sender.on_special_ack(ms(101), number), "{number:?}");
    }
    assert_eq!(SeqRange::new(seq(2), seq(3)).len(), ByteCount(SMSS));
    assert!(!ten_out("sack/reno").on_special_ack(ms(100), seq(0)), "no judge knows of it");
}

#[test]
fn where_another_judge_waits_the_cause_is_known_first() {
    let mut sender = ten_out("sack/reno/hack+dcr:timer");
    assert!(sender.on_special_ack(ms(100), seq(0)));
    let (sent, _) = pump(&mut sender, ms(100), &supply(100));
    assert_eq!(named(&sent), [(0, SendRule::Repair)]);
}
