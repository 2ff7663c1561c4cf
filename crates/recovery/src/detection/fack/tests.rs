use airtcp_types::{ByteCount, Instant, SendRule};

use crate::Phase;
use crate::testkit::{Net, RTT, SMSS, ack, ms, named, pump, segments, sender, supply};

#[test]
fn more_than_three_segments_between_the_hole_and_the_forward_most_byte_trigger() {
    // One ACK is enough: two others were lost.
    let mut sender = sender("fack/reno");
    pump(&mut sender, Instant::ZERO, &supply(10));
    sender.on_ack(ms(100), &ack(0, &[segments(2, 3)]));
    assert_eq!(sender.phase(), Phase::Open);
    sender.on_ack(ms(100), &ack(0, &[segments(3, 4)]));
    assert_eq!((sender.phase(), sender.stats().segments_lost), (Phase::Recovery, 2));
    // awnd: six segments above snd.fack, and nothing retransmitted yet.
    assert_eq!(sender.pipe(), ByteCount(6 * SMSS));
    let (sent, _) = pump(&mut sender, ms(100), &supply(10));
    assert_eq!(named(&sent)[0], (0, SendRule::FastRetransmit));
    assert_eq!(sender.pipe(), ByteCount((6 + sent.len() as u64) * SMSS));
}

#[test]
fn three_duplicates_trigger_too() {
    let mut sender = sender("fack/reno");
    pump(&mut sender, Instant::ZERO, &supply(10));
    for upto in 2..=4 {
        assert_eq!(sender.phase(), Phase::Open);
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
    }
    assert_eq!(sender.phase(), Phase::Recovery);
}

#[test]
fn many_losses_are_repaired_in_a_round_trip_and_one_reduction() {
    let mut net = Net::new(sender("fack/fixed:40"), 400, 100);
    net.losses.extend((100..130).step_by(2).map(|segment| (segment, 0)));
    net.run();
    let repairs: Vec<_> = net.sent.iter().filter(|(_, t)| t.rule.is_retransmission()).collect();
    assert_eq!((repairs.len(), net.sender.stats().timeouts), (15, 0));
    assert!(repairs[14].0.since(repairs[0].0) <= RTT);
    assert_eq!(net.sender.stats().reductions, 1);
}
