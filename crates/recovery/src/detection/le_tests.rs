use airtcp_types::{Instant, SendRule, TxNo};

use crate::testkit::{Net, RTT, ack, ms, named, pump, segments, sender, sender_of, supply};
use crate::{Ack, Phase, Profile, Sender};

fn ten_out(combination: &str) -> Sender {
    let mut sender = sender(combination);
    assert_eq!(pump(&mut sender, Instant::ZERO, &supply(10)).0.len(), 10);
    sender
}

#[test]
fn three_later_arrivals_make_a_loss_however_few_acks_tell_of_them() {
    let mut sender = ten_out("le/reno");
    sender.on_ack(ms(100), &ack(0, &[segments(1, 3)]));
    assert_eq!(sender.stats().segments_lost, 0);
    sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
    assert_eq!(sender.stats().segments_lost, 1);

    // One ACK that tells of three arrivals and of two holes.
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
        // Three new ones leave with the repair, and they are younger than the original.
        pump(&mut sender, ms(100), &supply(20));
        let lost = sender.stats().segments_lost;
        let told = [segments(4, 5)];
        sender.on_ack(ms(at), &Ack { echo: Some(ms(echo)), ..ack(1, &told[..0]) });
        // Taken for the repair it would be the first of three that overtake segments 4 to 9.
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
        // Three new ones leave with the repair.
        pump(&mut sender, ms(100), &supply(20));
        let lost = sender.stats().segments_lost;
        sender.on_ack(ms(120), &Ack { echo: Some(ms(0)), ..ack(4, &[]) });
        // Below SND.UNA, where the board knows of no transmission.
        sender.on_ack(ms(200), &Ack { dsack, ..ack(4, &[]) });
        sender.on_ack(ms(201), &ack(4, &[segments(10, 12)]));
        sender.stats().segments_lost - lost
    };
    assert_eq!(lost_by(Some(segments(0, 1))), 6, "the repair, and two that left after it");
    assert_eq!(lost_by(Some(segments(1, 2))), 0, "what was sent once is the network's own");
    assert_eq!(lost_by(None), 0, "nothing tells that the repair arrived");
}

#[test]
fn the_echoed_number_tells_what_the_time_cannot() {
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
