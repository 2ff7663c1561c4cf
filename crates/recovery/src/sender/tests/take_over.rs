//! Replacement of strategies during a connection.

use airtcp_types::{ByteCount, Instant, SendRule};

use crate::testkit::{SMSS, ack, ms, named, pump, segments, sender, supply};
use crate::{NoticeKind, Phase, Sender};

/// Returns a sender with ten segments outstanding in congestion avoidance.
fn ten_out(combination: &str) -> Sender {
    let mut sender = sender(combination);
    let (cwnd, ssthresh) = (ByteCount(10 * SMSS), Some(ByteCount(10 * SMSS)));
    sender.notify_control(Instant::ZERO, NoticeKind::TakeOver { cwnd, ssthresh });
    assert_eq!(pump(&mut sender, Instant::ZERO, &supply(100)).0.len(), 10);
    sender
}

fn switch(sender: &mut Sender, now: Instant, combination: &str) {
    sender.set_combination(now, &combination.parse().unwrap()).unwrap();
}

#[test]
fn losses_of_one_window_reduce_it_once_with_any_detection() {
    for next in ["sack/reno", "sack/cubic", "fack/reno"] {
        let mut sender = ten_out("sack/reno");
        sender.on_ack(ms(100), &ack(0, &[segments(1, 5)]));
        pump(&mut sender, ms(100), &supply(100));
        assert_eq!((sender.stats().segments_lost, sender.stats().reductions), (1, 1));
        switch(&mut sender, ms(101), next);
        sender.on_ack(ms(102), &ack(0, &[segments(6, 10), segments(1, 5)]));
        pump(&mut sender, ms(102), &supply(100));
        // The new detection finds the sixth, and may take the retransmission, which it does not
        // know of, for lost.
        assert!(sender.stats().segments_lost > 1, "{next}");
        assert_eq!(sender.stats().reductions, 1, "{next}");
        assert_eq!(sender.phase(), Phase::Recovery, "{next}");
        let all = sender.snd_nxt().since(crate::testkit::FIRST).0 / SMSS;
        sender.on_ack(ms(200), &ack(all, &[]));
        assert_eq!(sender.phase(), Phase::Open, "{next}");
    }
}

#[test]
fn a_repair_on_its_way_is_not_sent_again_for_the_duplicate_acks_of_its_loss() {
    for before in ["sack", "newreno", "le"] {
        for next in ["newreno/reno", "reno/reno"] {
            let mut sender = ten_out(&format!("{before}/reno"));
            for upto in 2..=4 {
                sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
            }
            pump(&mut sender, ms(100), &supply(100));
            assert_eq!(sender.stats().segments_retransmitted, 1, "{before}");
            switch(&mut sender, ms(101), next);
            // Up to when the retransmission is a round trip old, and a recovery of `le` is over.
            for upto in 5..=10 {
                let now = ms(102 + 20 * (upto - 5));
                sender.on_ack(now, &ack(0, &[segments(1, upto)]));
                pump(&mut sender, now, &supply(100));
            }
            let sent_again = sender.stats().segments_retransmitted;
            assert_eq!((sent_again, sender.stats().reductions), (1, 1), "{before} {next}");
            // A loss that was not repaired is found.
            sender.on_ack(ms(205), &ack(10, &[]));
            pump(&mut sender, ms(205), &supply(100));
            for upto in 12..=14 {
                sender.on_ack(ms(206), &ack(10, &[segments(11, upto)]));
            }
            let (sent, _) = pump(&mut sender, ms(206), &supply(100));
            assert_eq!(named(&sent)[0], (10, SendRule::FastRetransmit), "{before} {next}");
        }
    }
}

#[test]
fn a_loss_deferred_by_one_judge_is_judged_by_its_successor() {
    let deferred = || {
        let mut sender = ten_out("sack/reno/dcr:timer");
        sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
        pump(&mut sender, ms(100), &supply(100));
        assert_eq!(sender.stats().segments_lost, 0);
        sender
    };
    let mut sender = deferred();
    switch(&mut sender, ms(101), "sack/reno");
    assert_eq!((sender.stats().segments_lost, sender.stats().reductions), (1, 1));
    let (sent, _) = pump(&mut sender, ms(101), &supply(100));
    assert_eq!(named(&sent)[0], (0, SendRule::FastRetransmit));
    // Another judge defers from the time at which it is asked: a round-trip time.
    let mut sender = deferred();
    switch(&mut sender, ms(150), "sack/cubic/dcr:timer");
    sender.on_timeout(ms(249));
    assert_eq!(sender.stats().segments_lost, 0);
    sender.on_timeout(ms(250));
    assert_eq!((sender.stats().segments_lost, sender.stats().reductions), (1, 1));
}

#[test]
fn the_timer_runs_out_however_often_strategies_change() {
    let mut sender = ten_out("sack/reno");
    let at = sender.poll_timeout();
    assert!(at.is_some_and(|at| at > ms(200)));
    for millis in (0..200).step_by(10) {
        switch(&mut sender, ms(millis), ["newreno/cubic", "sack/reno"][millis as usize / 10 % 2]);
        assert_eq!(sender.poll_timeout(), at);
    }
}
