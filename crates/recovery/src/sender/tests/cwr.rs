//! Echoed marks (RFC 3168): one reduction per round trip, and no retransmissions.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, SendRule};

use super::double::{self, Found, find, noted};
use crate::testkit::{RTT, SMSS, ack, ms, pump, segments, sender_of, supply};
use crate::{Ack, Combination, Phase, Profile, Sender};

fn marked(ack: Ack<'_>) -> Ack<'_> {
    Ack { ece: true, ..ack }
}

/// A sender with ten segments outstanding.
fn ten_out(combination: &Combination, profile: Profile) -> Sender {
    let mut sender = sender_of(combination.clone(), profile);
    pump(&mut sender, Instant::ZERO, &supply(10));
    assert_eq!(sender.snd_nxt(), segments(0, 10).end, "{combination}");
    sender
}

/// A sender of every combination whose control leaves the response to marks to the sender.
fn every() -> impl Iterator<Item = (Combination, Sender)> {
    let answers = |all: &Combination| !all.control().entry().takes_over.marks;
    Combination::all().into_iter().filter(answers).map(|combination| {
        let profile = Profile { initial_window: 10, ..Profile::modern() };
        let sender = ten_out(&combination, profile);
        (combination, sender)
    })
}

#[test]
fn echoes_of_one_round_trip_reduce_the_window_once_and_nothing_is_sent_again() {
    for (combination, mut sender) in every() {
        let before = sender.cwnd();
        for segment in 1..=10 {
            sender.on_ack(ms(100 + segment), &marked(ack(segment, &[])));
            assert_eq!(sender.take_reduced(), segment == 1, "{combination}");
            sender.board().audit().unwrap();
        }
        // The last ACK again: no ACK yet of data sent after the reduction.
        sender.on_ack(ms(112), &marked(ack(10, &[])));
        let stats = sender.stats();
        assert_eq!((stats.reductions, stats.segments_lost), (1, 0), "{combination}");
        let is_fixed = combination.control().entry().name == "fixed";
        let window = sender.control_window();
        assert!(is_fixed || window < before, "{combination}: {window} after {before}");

        // The peer knows of the reduction, and a new mark is echoed.
        pump(&mut sender, ms(112), &supply(14));
        sender.on_ack(ms(212), &ack(11, &[]));
        assert_eq!(sender.phase(), Phase::Open, "{combination}");
        sender.on_ack(ms(213), &marked(ack(12, &[])));
        assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Cwr, 2), "{combination}");
        assert_eq!(sender.stats().segments_retransmitted, 0, "{combination}");
    }
}

#[test]
fn a_time_out_signals_cwr_once() {
    for (combination, mut sender) in every() {
        let timed_out = (0..9).any(|_| {
            assert!(!sender.take_reduced(), "{combination}");
            let at = sender.poll_timeout().unwrap();
            sender.on_timeout(at)
        });
        assert!(timed_out && sender.stats().timeouts == 1, "{combination}");
        assert!(sender.take_reduced() && !sender.take_reduced(), "{combination}");
    }
}

#[test]
fn marked_bytes_count_as_an_echo_of_one_mark() {
    for (combination, mut echoed) in every() {
        let profile = Profile { initial_window: 10, ..Profile::modern() };
        let mut counted = ten_out(&combination, profile);
        for segment in 1..=10 {
            let now = ms(100 + segment);
            echoed.on_ack(now, &marked(ack(segment, &[])));
            counted.on_ack(now, &Ack { ce: ByteCount(SMSS), ..ack(segment, &[]) });
            let state =
                |sender: &Sender| (sender.cwnd(), sender.phase(), sender.stats().reductions);
            assert_eq!(state(&counted), state(&echoed), "{combination}");
        }
        assert_eq!(counted.stats().reductions, 1, "{combination}");
    }
}

#[test]
fn the_window_does_not_grow_by_an_echo_nor_before_cwr_is_sent() {
    for (combination, mut sender) in every() {
        sender.on_ack(ms(101), &marked(ack(1, &[])));
        let reduced = sender.control_window();
        for segment in 2..=9 {
            sender.on_ack(ms(100 + segment), &ack(segment, &[]));
            assert_eq!(sender.phase(), Phase::Cwr, "{combination}");
            assert_eq!(sender.control_window(), reduced, "{combination}");
        }
    }
}

#[test]
fn a_mark_without_outstanding_data_reduces_nothing() {
    for (combination, mut sender) in every() {
        sender.on_ack(ms(100), &ack(10, &[]));
        sender.on_ack(ms(101), &marked(ack(10, &[])));
        assert_eq!(sender.stats().reductions, 0, "{combination}: nothing was outstanding");
        pump(&mut sender, ms(101), &supply(12));
        sender.on_ack(ms(102), &marked(ack(9, &[])));
        assert_eq!(sender.stats().reductions, 0, "{combination}: a newer ACK has overtaken it");
    }
}

#[test]
fn a_loss_in_the_same_window_is_repaired_at_once_and_reduces_it_no_second_time() {
    for name in ["rack/cubic", "sack/reno", "fack/cubic", "newreno/reno", "reno/cubic"] {
        let mut sender = ten_out(&name.parse().unwrap(), Profile::modern());
        sender.on_ack(ms(100), &marked(ack(1, &[])));
        let reduced = sender.control_window();
        let (sent, _) = pump(&mut sender, ms(100), &supply(10));
        assert!(sent.is_empty());
        for upto in 3..=5 {
            sender.on_ack(ms(100 + upto), &ack(1, &[segments(2, upto)]));
        }
        let (sent, _) = pump(&mut sender, ms(105), &supply(10));
        assert_eq!(sent[0].rule, SendRule::FastRetransmit, "{name}");
        assert_eq!(sent[0].range, segments(1, 2), "{name}");
        assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Recovery, 1), "{name}");
        assert_eq!(sender.control_window(), reduced, "{name}");
        // A DSACK of the retransmission does not undo the reduction for the mark.
        sender.on_ack(ms(106), &Ack { dsack: Some(segments(1, 2)), ..ack(10, &[]) });
        assert_eq!(sender.stats().undos, 0, "{name}");
        assert_eq!(sender.control_window(), reduced, "{name}");
    }
}

#[test]
fn an_echo_in_a_recovery_reduces_nothing_more() {
    for name in ["rack/cubic", "sack/reno", "newreno/reno"] {
        let mut sender = ten_out(&name.parse().unwrap(), Profile::modern());
        for upto in 2..=4 {
            sender.on_ack(ms(100 + upto), &ack(0, &[segments(1, upto)]));
        }
        assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Recovery, 1), "{name}");
        sender.on_ack(ms(105), &marked(ack(0, &[segments(1, 5)])));
        assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Recovery, 1), "{name}");
    }
}

#[test]
fn a_mark_on_what_left_after_a_reduction_is_answered_by_the_ack_that_ends_it() {
    for (combination, mut sender) in every() {
        sender.on_ack(ms(100), &marked(ack(9, &[])));
        pump(&mut sender, ms(100), &supply(14));
        assert!(sender.snd_nxt() > segments(0, 10).end, "{combination}");
        sender.on_ack(ms(200), &marked(ack(11, &[])));
        assert_eq!(sender.stats().reductions, 2, "{combination}");
    }
}

#[test]
fn a_loss_of_what_left_after_the_reduction_reduces_the_window_again() {
    for name in ["rack/cubic", "sack/reno", "fack/cubic"] {
        let profile = Profile { initial_window: 20, ..Profile::modern() };
        let mut sender = sender_of(name.parse().unwrap(), profile);
        pump(&mut sender, Instant::ZERO, &supply(20));
        for segment in 1..=20 {
            sender.on_ack(ms(100 + segment), &marked(ack(segment, &[])));
            pump(&mut sender, ms(100 + segment), &supply(100));
        }
        let end = sender.snd_nxt().since(segments(0, 1).start).0 / SMSS;
        assert!(end > 25, "{name}: {end}");
        // The first segment sent since then is lost.
        for upto in 22..=end {
            sender.on_ack(ms(200 + upto), &ack(20, &[segments(21, upto)]));
        }
        assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Recovery, 2), "{name}");
    }
}

#[test]
fn nothing_of_a_reduction_outlives_what_was_outstanding() {
    for (combination, mut sender) in every() {
        sender.on_ack(ms(100), &marked(ack(4, &[])));
        sender.on_ack(ms(101), &ack(10, &[]));
        assert_eq!(sender.phase(), Phase::Open, "{combination}");
        // The restart after an idle time determines the window.
        let hour = ms(3_600_000);
        let (sent, _) = pump(&mut sender, hour, &supply(100));
        let is_fixed = combination.control().entry().name == "fixed";
        assert!(is_fixed || sent.len() <= 10, "{combination}: {}", sent.len());
    }
}

#[test]
fn a_recovery_in_which_a_mark_was_echoed_is_not_taken_back() {
    for name in ["rack/cubic", "sack/reno", "newreno/reno"] {
        let mut sender = ten_out(&name.parse().unwrap(), Profile::modern());
        for upto in 2..=4 {
            sender.on_ack(ms(100 + upto), &ack(0, &[segments(1, upto)]));
        }
        pump(&mut sender, ms(104), &supply(10));
        sender.on_ack(ms(105), &marked(ack(0, &[segments(1, 5)])));
        sender.on_ack(ms(106), &Ack { dsack: Some(segments(0, 1)), ..ack(10, &[]) });
        assert_eq!(sender.stats().undos, 0, "{name}");
    }
}

#[test]
fn a_tail_behind_a_mark_is_probed() {
    let mut sender = ten_out(&"rack/cubic".parse().unwrap(), Profile::modern());
    sender.on_ack(ms(100), &marked(ack(9, &[])));
    let at = sender.poll_timeout().unwrap();
    sender.on_timeout(at);
    let (sent, _) = pump(&mut sender, at, &supply(10));
    assert_eq!(sent[0].rule, SendRule::ProbeAgain);
    assert_eq!(sender.stats().timeouts, 0);
}

#[test]
fn a_control_that_answers_marks_itself_answers_once_in_a_round_trip() {
    let name = "rack/bbr3".parse().unwrap();
    let mut sender = sender_of(name, Profile::modern());
    // The control paces.
    let mut now = Instant::ZERO;
    while sender.snd_nxt() < segments(0, 10).end {
        pump(&mut sender, now, &supply(10));
        now += Duration::from_millis(1);
    }
    for segment in 1..=9 {
        sender.on_ack(ms(100 + segment), &marked(ack(segment, &[])));
        assert_eq!(sender.take_reduced(), segment == 1);
    }
    pump(&mut sender, ms(110), &supply(12));
    assert!(sender.snd_nxt() > segments(0, 10).end);
    sender.on_ack(ms(110), &marked(ack(10, &[])));
    assert!(!sender.take_reduced(), "an echo from before the answer");
    sender.on_ack(ms(211), &marked(ack(11, &[])));
    assert!(sender.take_reduced() && sender.stats().reductions == 0);
    assert_eq!(sender.phase(), Phase::Open);
}

#[test]
fn a_mark_is_answered_after_the_judges_and_before_losses() {
    let mut sender = double::sender(1);
    pump(&mut sender, Instant::ZERO, &supply(100));
    noted();
    find(2, Found::Lost);
    sender.on_ack(Instant::ZERO + RTT, &marked(ack(1, &[])));
    assert_eq!(
        noted(),
        [
            "judge hears 1001 with SND.UNA 1001, RTT 100ms",
            "control: reduce from 9000 B, mark",
            "detection hears 1001 with SND.UNA 1001",
            "judge rules on Lost 2",
            "control: 1000 B lost, congestion",
            "control hears 1001 with pipe 8000",
        ]
    );
    assert_eq!(sender.pipe(), ByteCount(8 * SMSS));
}
