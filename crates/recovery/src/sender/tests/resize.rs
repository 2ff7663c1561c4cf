//! Segments that turn out to be too large for the path.

use airtcp_types::{ByteCount, SeqRange};

use crate::testkit::{FIRST, SMSS, ack, ms, pump, segments, sender, seq, supply};
use crate::{Ack, Phase, Sender, TxState};

const SMALL: ByteCount = ByteCount(600);

const ALL: [&str; 9] = [
    "sack/cubic",
    "rack/cubic",
    "newreno/reno",
    "reno/reno",
    "fack/westwood",
    "le/cubic",
    "sack/fixed:10",
    "rack/cubic/dcr:timer",
    "sack/reno/rr",
];

/// Returns a sender with ten segments outstanding at 0 ms, which learns at 50 ms that the path
/// takes 600 bytes.
fn shrunk(combination: &str) -> Sender {
    let mut sender = sender(combination);
    assert_eq!(pump(&mut sender, ms(0), &supply(30)).0.len(), 10);
    sender.shrink_segments(ms(50), SMALL);
    sender.board().audit().unwrap();
    sender
}

/// Returns an ACK of `bytes` bytes.
fn ack_to(bytes: u64) -> Ack<'static> {
    Ack { ack: FIRST + bytes, ..ack(0, &[]) }
}

#[test]
fn segments_that_are_too_large_are_resent_at_once_in_smaller_ones() {
    for combination in ALL {
        let mut sender = shrunk(combination);
        // A window counted in segments is smaller in bytes now; any other stays.
        let window = if combination.contains("fixed") { 6_000 } else { 10_000 };
        assert_eq!(sender.cwnd(), ByteCount(window), "{combination}");
        let (sent, _) = pump(&mut sender, ms(50), &supply(30));
        let mut next = FIRST;
        for sent in &sent {
            assert!(sent.rule.is_retransmission() && sent.range.len() <= SMALL, "{combination}");
            assert_eq!(sent.range.start, next, "{combination}");
            next = sent.range.end;
        }
        assert_eq!(next, FIRST + window, "{combination}");
        let stats = sender.stats();
        assert_eq!((stats.segments_lost, stats.reductions, stats.timeouts), (10, 0, 0));
    }
}

#[test]
fn acks_of_resized_segments_reduce_nothing_and_the_stream_continues() {
    for combination in ALL {
        let mut sender = shrunk(combination);
        let mut now = ms(50);
        let window = sender.cwnd();
        while sender.snd_una() < seq(30) {
            let (sent, _) = pump(&mut sender, now, &supply(30));
            now += crate::testkit::RTT;
            for sent in &sent {
                let upto = sent.range.end.since(FIRST).0;
                sender.on_ack(now, &ack_to(upto));
                // The ACK of a small segment that had passed between the large ones.
                sender.on_ack(now, &ack_to(upto));
                sender.board().audit().unwrap();
            }
            assert!(!sent.is_empty(), "{combination} stalls at {:?}", sender.snd_una());
        }
        assert_eq!(sender.phase(), Phase::Open, "{combination}");
        assert!(sender.cwnd() >= window, "{combination}");
        assert_eq!((sender.stats().reductions, sender.stats().timeouts), (0, 0), "{combination}");
    }
}

#[test]
fn segments_that_fit_or_have_arrived_are_not_resent() {
    let mut sender = sender("sack/cubic");
    let short = crate::Supply { end: FIRST + 3_500, nodelay: true, ..supply(30) };
    assert_eq!(pump(&mut sender, ms(0), &short).0.len(), 4);
    sender.on_ack(ms(40), &ack(0, &[segments(1, 2)]));
    sender.shrink_segments(ms(50), SMALL);
    let lost: Vec<_> = sender
        .board()
        .in_order_sent()
        .filter(|sent| sent.state == TxState::Lost)
        .map(|sent| sent.range)
        .collect();
    assert_eq!(lost, [segments(0, 1), segments(2, 3)]);
    let (sent, _) = pump(&mut sender, ms(50), &short);
    let ranges: Vec<SeqRange> = sent.iter().map(|sent| sent.range).collect();
    let range = |from, to| SeqRange::new(FIRST + from, FIRST + to);
    assert_eq!(ranges, [range(0, 600), range(600, 1000), range(2000, 2600), range(2600, 3000)]);
}

#[test]
fn segments_never_grow() {
    let mut sender = shrunk("sack/cubic");
    let before = sender.stats().segments_lost;
    for larger in [600, 601, 1_000, 9_000] {
        sender.shrink_segments(ms(60), ByteCount(larger));
        assert_eq!(sender.smss(), SMALL);
    }
    assert_eq!(sender.stats().segments_lost, before);
    sender.shrink_segments(ms(60), ByteCount::ZERO);
    assert_eq!(sender.smss(), ByteCount(1));
}

#[test]
fn segments_that_grow_again_leave_the_windows_but_for_their_floors() {
    for combination in ["sack/reno", "sack/cubic", "sack/westwood"] {
        let mut sender = shrunk(combination);
        let before = sender.cwnd();
        for _ in 0..2 {
            sender.grow_segments(ms(60), ByteCount(900));
        }
        sender.grow_segments(ms(60), ByteCount(800));
        assert_eq!((sender.smss(), sender.cwnd()), (ByteCount(900), before), "{combination}");
        sender.grow_segments(ms(60), ByteCount(20_000));
        assert!(sender.cwnd() >= ByteCount(20_000), "{combination}");
    }
    let mut sender = sender("sack/fixed:10");
    pump(&mut sender, ms(0), &supply(30));
    sender.shrink_segments(ms(50), SMALL);
    sender.grow_segments(ms(60), ByteCount(SMSS));
    assert_eq!(sender.cwnd(), ByteCount(10 * SMSS));
}

#[test]
fn the_arrival_of_a_full_segment_is_reset_with_each_size() {
    let mut sender = sender("sack/reno");
    assert!(!sender.full_segment_arrived());
    pump(&mut sender, ms(0), &supply(5));
    sender.on_ack(ms(100), &ack(1, &[]));
    assert!(sender.full_segment_arrived());
    sender.shrink_segments(ms(110), SMALL);
    assert!(!sender.full_segment_arrived());
    // Larger segments that were in flight do not have the new size.
    sender.on_ack(ms(120), &ack(2, &[]));
    assert!(!sender.full_segment_arrived());
    pump(&mut sender, ms(120), &supply(5));
    sender.on_ack(ms(220), &ack_to(2_600));
    assert!(sender.full_segment_arrived());
}

#[test]
fn a_reduction_that_was_on_stays_and_no_second_one_follows() {
    let mut sender = sender("sack/reno");
    pump(&mut sender, ms(0), &supply(30));
    sender.on_ack(ms(100), &ack(0, &[segments(1, 5)]));
    pump(&mut sender, ms(100), &supply(30));
    assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Recovery, 1));
    sender.shrink_segments(ms(110), SMALL);
    assert_eq!(sender.phase(), Phase::Loss);
    assert_eq!(sender.cwnd(), ByteCount(5 * SMSS));
    pump(&mut sender, ms(110), &supply(30));
    let upto = sender.snd_nxt().since(FIRST).0;
    sender.on_ack(ms(210), &ack_to(upto));
    assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Open, 1));
}

#[test]
fn after_a_time_out_the_smaller_segment_is_what_leaves() {
    let mut sender = sender("rack/cubic");
    pump(&mut sender, ms(0), &supply(30));
    while sender.stats().timeouts == 0 {
        let at = sender.poll_timeout().unwrap();
        sender.on_timeout(at);
        if sender.stats().timeouts == 0 {
            pump(&mut sender, at, &supply(30));
        }
    }
    let now = ms(2_000);
    sender.shrink_segments(now, SMALL);
    let (sent, _) = pump(&mut sender, now, &supply(30));
    assert_eq!(sent[0].range, SeqRange::new(FIRST, FIRST + 600));
    assert!(sender.poll_timeout().is_some());
}
