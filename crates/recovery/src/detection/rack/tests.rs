use std::collections::BTreeSet;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, SendRule};

use crate::testkit::{Net, RTT, SMSS, ack, ms, named, pump, segments, sender, sender_of, supply};
use crate::{Ack, Phase, Profile, Sender};

/// Returns a sender with ten segments outstanding at time zero; the RTT is 100 ms.
fn ten_out() -> Sender {
    let mut sender = sender("rack/reno");
    assert_eq!(pump(&mut sender, Instant::ZERO, &supply(10)).0.len(), 10);
    sender
}

// Shows: RFC8985-3.3.2-1
#[test]
fn three_segments_above_a_hole_are_a_loss_at_once() {
    let mut sender = ten_out();
    for upto in 2..=3 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
        assert_eq!(sender.phase(), Phase::Open);
    }
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    assert_eq!(sender.phase(), Phase::Recovery);
    let (sent, _) = pump(&mut sender, ms(100), &supply(10));
    assert_eq!(named(&sent)[0], (0, SendRule::FastRetransmit));
}

// Shows: RFC8985-3.3.2-2, RFC8985-4-2, RFC8985-6.2-2
#[test]
fn one_segment_above_a_hole_is_a_loss_after_a_quarter_round_trip() {
    let mut sender = ten_out();
    sender.on_ack(ms(100), &ack(0, &[segments(1, 2)]));
    assert_eq!(sender.poll_timeout(), Some(ms(125)));
    sender.on_timeout(ms(125));
    assert_eq!((sender.phase(), sender.stats().segments_lost), (Phase::Recovery, 1));
    let (sent, _) = pump(&mut sender, ms(125), &supply(10));
    assert_eq!(named(&sent), [(0, SendRule::FastRetransmit)]);
}

#[test]
fn where_reordering_was_seen_three_segments_wait_too() {
    let mut sender = ten_out();
    // Segment 0 arrives late, and was sent once.
    sender.on_ack(ms(100), &ack(0, &[segments(1, 3)]));
    sender.on_ack(ms(101), &ack(3, &[]));
    sender.on_ack(ms(102), &ack(3, &[segments(4, 9)]));
    assert_eq!(sender.phase(), Phase::Open);
    sender.on_timeout(sender.poll_timeout().unwrap());
    assert_eq!((sender.phase(), sender.stats().segments_lost), (Phase::Recovery, 1));
    assert_eq!(sender.reordering(), 3, "0 came after 2");
}

// Shows: RFC8985-3.3.2-3, RFC8985-4-3
#[test]
fn a_reported_duplicate_widens_the_window_until_sixteen_recoveries_pass() {
    let mut sender = ten_out();
    let duplicate = Ack { dsack: Some(segments(0, 1)), ..ack(1, &[]) };
    sender.on_ack(ms(100), &duplicate);
    // Once per round trip.
    sender.on_ack(ms(101), &duplicate);
    let (mut now, mut first) = (ms(102), 10);
    sender.on_ack(now, &ack(first, &[]));
    // The first of two segments is lost: how long RACK waits once the second was delivered.
    let waits = (0..18).map(|_| {
        pump(&mut sender, now, &supply(first + 2));
        let arrived = now + RTT;
        sender.on_ack(arrived, &ack(first, &[segments(first + 1, first + 2)]));
        let late = sender.poll_timeout().unwrap();
        sender.on_timeout(late);
        assert_eq!(sender.phase(), Phase::Recovery);
        pump(&mut sender, late, &supply(first + 2));
        (now, first) = (late + RTT, first + 2);
        sender.on_ack(now, &ack(first, &[]));
        late.since(arrived).as_millis()
    });
    // Twice a quarter of 100 ms; then once.
    assert_eq!(waits.collect::<Vec<_>>(), [&[50; 16][..], &[25; 2]].concat());
}

// Shows: RFC8985-9.2
#[test]
fn a_recovery_sends_lost_segments_and_new_data_only() {
    let rules = |combination: &str| {
        let mut all = BTreeSet::new();
        for seed in 0..30 {
            let mut draw = Stream::new(seed, 0);
            let mut net = Net::new(sender(combination), 200, 60);
            net.losses
                .extend((0..200).filter(|_| draw.next_u64().is_multiple_of(8)).map(|n| (n, 0)));
            net.run();
            all.extend(net.sent.iter().map(|(_, transmit)| transmit.rule.name()));
        }
        all
    };
    // NextSeg 3 and 4 of RFC 6675.
    let of_6675 = [SendRule::Unsacked, SendRule::Rescue].map(SendRule::name);
    let (sack, rack) = (rules("sack/cubic"), rules("rack/cubic"));
    assert!(of_6675.iter().all(|rule| sack.contains(rule)), "{sack:?}");
    assert!(of_6675.iter().all(|rule| !rack.contains(rule)), "{rack:?}");
    assert!(rack.contains(SendRule::Repair.name()), "{rack:?}");
}

#[test]
fn a_lost_repair_is_found_and_repaired_without_a_time_out() {
    let mut net = Net::new(sender("rack/cubic"), 300, 200);
    net.losses.extend([(100, 0), (100, 1)]);
    net.run();
    assert_eq!((net.sender.stats().timeouts, net.sendings(100)), (0, 3));
}

#[test]
fn a_late_original_is_not_taken_for_its_repair() {
    let mut sender = ten_out();
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    pump(&mut sender, ms(100), &supply(10));
    let lost = sender.stats().segments_lost;
    // The retransmission was sent at 100 ms; the original arrives at 110 ms.
    sender.on_ack(ms(110), &ack(4, &[]));
    sender.on_timeout(ms(130));
    assert_eq!(sender.stats().segments_lost, lost);
}

// Shows: RFC8985-7.3-5
#[test]
fn a_lost_tail_is_probed_and_repaired_without_a_time_out() {
    for lost in 1..=5 {
        let mut net = Net::new(sender("rack/cubic"), 50, 100);
        net.losses.extend((50 - lost..50).map(|segment| (segment, 0)));
        net.run();
        let stats = net.sender.stats();
        assert_eq!((stats.timeouts, stats.probes), (0, 1), "{lost}");
        assert_eq!(stats.segments_retransmitted, lost, "{lost}");
    }
}

// Shows: RFC8985-7.2-1, RFC8985-7.2-3, RFC8985-7.3-3, RFC8985-7.3-6
#[test]
fn the_probe_leaves_two_round_trips_after_the_last_and_takes_new_data_first() {
    let mut sender = sender("rack/cubic");
    pump(&mut sender, Instant::ZERO, &supply(4));
    assert_eq!(sender.poll_timeout(), Some(ms(200)));
    sender.on_timeout(ms(200));
    let (sent, _) = pump(&mut sender, ms(200), &supply(5));
    assert_eq!(named(&sent), [(4, SendRule::Probe)]);
    // One probe, and then the retransmission timer, which was restarted.
    assert_eq!(sender.poll_timeout(), Some(ms(200) + sender.rtt().rto()));
}

// Shows: RFC8985-7.2-1
#[test]
fn an_ack_of_new_data_restarts_the_probe_timer_only_outside_recovery() {
    let four_out = || {
        let mut sender = sender("rack/cubic");
        pump(&mut sender, Instant::ZERO, &supply(4));
        sender
    };
    let mut sender = four_out();
    sender.on_ack(ms(100), &ack(1, &[]));
    let srtt = sender.rtt().srtt().unwrap();
    assert_eq!(sender.poll_timeout(), Some(ms(100) + srtt * 2));
    // An ACK without news does not restart it.
    sender.on_ack(ms(150), &ack(1, &[]));
    assert_eq!(sender.poll_timeout(), Some(ms(100) + srtt * 2));
    // Returns the number of probes before the first time-out, if no ACK follows this one.
    let then = |ack: Ack<'_>| {
        let mut sender = four_out();
        sender.on_ack(ms(100), &ack);
        pump(&mut sender, ms(100), &supply(4));
        while sender.stats().timeouts == 0 {
            let at = sender.poll_timeout().unwrap();
            sender.on_timeout(at);
            pump(&mut sender, at, &supply(4));
        }
        sender.stats().probes
    };
    assert_eq!(then(ack(1, &[])), 1);
    // A recovery is in progress; or a segment above a hole is SACKed, which takes precedence.
    assert_eq!(then(ack(0, &[segments(1, 4)])), 0);
    assert_eq!(then(ack(1, &[segments(2, 3)])), 0);
}

// Shows: RFC8985-7.3-4, RFC8985-7.4.2-1, RFC8985-7.4.2-2
#[test]
fn a_probe_that_repaired_a_loss_reduces_and_one_that_did_not_does_not() {
    let reductions = |dsack: bool| {
        let mut sender = sender("rack/reno");
        pump(&mut sender, Instant::ZERO, &supply(4));
        sender.on_timeout(ms(200));
        let (sent, _) = pump(&mut sender, ms(200), &supply(4));
        assert_eq!(named(&sent), [(3, SendRule::ProbeAgain)]);
        sender.on_ack(ms(300), &ack(4, &[]));
        if dsack {
            sender.on_ack(ms(301), &Ack { dsack: Some(segments(3, 4)), ..ack(4, &[]) });
        }
        pump(&mut sender, ms(302), &supply(6));
        sender.on_ack(ms(402), &ack(6, &[]));
        sender.stats().reductions
    };
    assert_eq!((reductions(false), reductions(true)), (1, 0));
}

#[test]
fn in_the_paper_profile_nothing_is_probed() {
    let mut net = Net::new(sender_of("rack/reno".parse().unwrap(), Profile::paper()), 50, 100);
    net.losses.insert((49, 0));
    net.run();
    assert_eq!((net.sender.stats().timeouts, net.sender.stats().probes), (1, 0));
}

#[test]
fn a_time_out_spares_what_has_just_left() {
    let mut sender = ten_out();
    sender.on_ack(ms(100), &ack(1, &[]));
    let rto = sender.rtt().rto();
    // Window updates repeatedly permit new data just before the timer expires.
    let late = ms(100) + rto - Duration::from_millis(1);
    sender.on_timeout(late);
    let (sent, _) = pump(&mut sender, late, &supply(11));
    assert_eq!(named(&sent), [(10, SendRule::Probe)]);
    let before = sender.poll_timeout().unwrap();
    sender.on_ack(before, &ack(2, &[]));
    let (sent, _) = pump(&mut sender, before, &supply(13));
    assert!(!sent.is_empty());
    assert_eq!(sender.board().lost(), ByteCount::ZERO);
    assert!(sender.pipe() > ByteCount(SMSS), "{RTT:?}");
}
