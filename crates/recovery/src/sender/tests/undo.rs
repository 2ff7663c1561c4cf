//! Undo of spurious reductions and time-outs, and only of those.

use airtcp_types::{ByteCount, Instant, SendRule, SeqRange};

use crate::testkit::{RTT, SMSS, ack, ms, named, pump, segments, sender, sender_of, supply};
use crate::{Ack, Limit, Phase, Profile, Sender};

const ALL: [&str; 6] =
    ["reno/reno", "reno/cubic", "newreno/reno", "newreno/cubic", "sack/reno", "sack/cubic"];

/// Returns a sender whose segment 0 is late: three later segments were SACKed at 100 ms, and it was
/// retransmitted.
fn repaired(combination: &str, profile: Profile) -> Sender {
    let mut sender = sender_of(combination.parse().unwrap(), profile);
    pump(&mut sender, Instant::ZERO, &supply(100));
    for upto in 2..=4 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
        pump(&mut sender, ms(100), &supply(100));
    }
    assert_eq!((sender.stats().reductions, sender.phase()), (1, Phase::Recovery));
    assert_eq!(sender.stats().segments_retransmitted, 1);
    sender
}

fn with_echo(ack: Ack<'_>, echo: u64) -> Ack<'_> {
    Ack { echo: Some(ms(echo)), ..ack }
}

fn with_dsack(ack: Ack<'_>, dsack: SeqRange) -> Ack<'_> {
    Ack { dsack: Some(dsack), ..ack }
}

#[test]
fn a_time_stamp_from_before_the_repair_restores_both_windows() {
    for combination in ALL {
        let mut sender = repaired(combination, Profile::modern());
        let before = self::sender(combination).cwnd();
        assert!(sender.cwnd() < before);
        sender.on_ack(ms(120), &with_echo(ack(4, &[]), 0));
        assert_eq!((sender.stats().undos, sender.phase()), (1, Phase::Open), "{combination}");
        assert_eq!(sender.control_window(), before, "{combination}");
        assert_eq!(sender.control_state().ssthresh, None, "{combination}");
        sender.board().audit().unwrap();
        // The same ACK, and those that follow it, are no evidence of another loss.
        assert_eq!(sender.stats().reductions, 1, "{combination}");
        sender.on_ack(ms(121), &with_echo(ack(8, &[]), 0));
        assert_eq!((sender.stats().reductions, sender.stats().segments_lost), (1, 1));
    }
}

#[test]
fn a_time_stamp_of_the_repair_itself_restores_nothing() {
    for combination in ALL {
        let mut sender = repaired(combination, Profile::modern());
        sender.on_ack(ms(200), &with_echo(ack(4, &[]), 100));
        // Only the first ACK that advances decides (RFC 3522 section 3.2).
        sender.on_ack(ms(201), &with_echo(ack(5, &[]), 0));
        assert_eq!(sender.stats().undos, 0, "{combination}");
    }
}

#[test]
fn the_first_ack_that_covers_a_repair_decides_for_all_losses_of_the_event() {
    // LE reduces once for data sent before the reduction, even if the loss is found a round trip
    // later.
    for combination in ["le/reno", "le/cubic"] {
        let mut sender = sender(combination);
        pump(&mut sender, Instant::ZERO, &supply(10));
        sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
        pump(&mut sender, ms(100), &supply(10));
        assert_eq!((sender.stats().reductions, sender.stats().segments_retransmitted), (1, 1));
        sender.on_ack(ms(210), &ack(0, &[segments(5, 9), segments(1, 4)]));
        pump(&mut sender, ms(210), &supply(10));
        assert_eq!((sender.stats().reductions, sender.stats().segments_retransmitted), (1, 2));
        sender.on_ack(ms(220), &with_echo(ack(4, &[segments(5, 9)]), 100));
        // The original of segment 4 was late; that of segment 0 was lost.
        sender.on_ack(ms(230), &with_echo(ack(9, &[]), 0));
        assert_eq!(sender.stats().undos, 0, "{combination}");
        sender.board().audit().unwrap();
    }
}

/// Returns a sender with a full window of at least eighty segments, the number of segments
/// acknowledged, and the time.
fn with_a_large_window(combination: &str) -> (Sender, u64, Instant) {
    let profile = Profile { hystart: false, ..Profile::modern() };
    let mut sender = sender_of(combination.parse().unwrap(), profile);
    let (mut acked, mut now) = (0, Instant::ZERO);
    loop {
        let (sent, _) = pump(&mut sender, now, &supply(1_000));
        if sender.cwnd() >= ByteCount(80 * SMSS) {
            return (sender, acked, now);
        }
        now += RTT;
        for _ in &sent {
            acked += 1;
            sender.on_ack(now, &ack(acked, &[]));
        }
    }
}

#[test]
fn no_burst_follows_an_undo() {
    // RFC 4015 section 3.4.
    for combination in ["sack/reno", "fack/reno", "rack/reno", "le/reno"] {
        let (mut sender, base, sent_at) = with_a_large_window(combination);
        let (before, out) = (sender.control_window(), sender.board().flight_size().0 / SMSS);
        let mut now = sent_at + RTT;
        // The first segment is late, and half a window of ACKs is processed as for a loss.
        for sacked in 2..=out / 2 {
            sender.on_ack(now, &ack(base, &[segments(base + 1, base + sacked)]));
            pump(&mut sender, now, &supply(1_000));
        }
        assert_eq!(sender.stats().reductions, 1, "{combination}");
        now += RTT / 100;
        let echo = sent_at.as_millis();
        let mut acked = base + out / 2;
        let mut released = Vec::new();
        while sender.pipe() + ByteCount(SMSS) <= before && acked < base + out {
            sender.on_ack(now, &with_echo(ack(acked, &[]), echo));
            let (sent, limit) = pump(&mut sender, now, &supply(1_000));
            assert_eq!(limit, Limit::Cwnd, "{combination}");
            released.push(sent.len());
            acked += 1;
        }
        assert_eq!(sender.stats().undos, 1, "{combination}");
        assert!(sender.control_window() >= before, "{combination}");
        // An initial window per ACK, until the window is full again.
        assert!(released.len() > 1 && released[0] == 10, "{combination}: {released:?}");
        assert!(released.iter().all(|sent| *sent <= 10), "{combination}: {released:?}");
        assert!(sender.pipe() + ByteCount(SMSS) > before, "{combination}: {released:?}");
        sender.board().audit().unwrap();
    }
}

#[test]
fn an_undo_lets_no_less_leave_than_the_reduction_did() {
    let (mut sender, base, sent_at) = with_a_large_window("rack/reno");
    let end = crate::testkit::index(sender.snd_nxt());
    let now = sent_at + RTT;
    for upto in 2..=4 {
        sender.on_ack(now, &ack(base, &[segments(base + 1, base + upto)]));
        pump(&mut sender, now, &supply(end));
    }
    assert_eq!(sender.stats().segments_retransmitted, 1);
    sender.on_ack(now, &ack(end, &[]));
    let reduced = sender.cwnd();
    assert!(reduced >= ByteCount(40 * SMSS));
    // Nothing is in flight when the DSACK of the retransmission arrives.
    sender.on_ack(now + RTT, &with_dsack(ack(end, &[]), segments(base, base + 1)));
    assert_eq!((sender.stats().undos, sender.cwnd()), (1, reduced));
    assert!(sender.control_window() > reduced);
}

#[test]
fn a_report_of_each_repair_as_a_duplicate_restores_both_windows() {
    for combination in ALL {
        let mut sender = repaired(combination, Profile::modern());
        // No time stamps: the original fills the hole, the recovery ends, then the retransmission
        // arrives.
        let point = crate::testkit::index(sender.snd_nxt());
        sender.on_ack(ms(120), &ack(point, &[]));
        assert_eq!((sender.stats().undos, sender.phase()), (0, Phase::Open));
        let reduced = sender.cwnd();
        pump(&mut sender, ms(120), &supply(100));
        sender.on_ack(ms(200), &with_dsack(ack(point, &[]), segments(0, 1)));
        assert_eq!(sender.stats().undos, 1, "{combination}");
        assert!(sender.control_window() > reduced);
        assert_eq!(sender.control_window(), self::sender(combination).cwnd(), "{combination}");
    }
}

// Shows: RFC2883-4.3
#[test]
fn a_duplicate_that_was_not_sent_again_is_the_networks_own() {
    let mut sender = repaired("sack/cubic", Profile::modern());
    for elsewhere in [segments(1, 2), segments(5, 6), segments(40, 50)] {
        sender.on_ack(ms(150), &with_dsack(ack(0, &[segments(1, 4)]), elsewhere));
    }
    assert_eq!(sender.stats().undos, 0);
}

#[test]
fn of_two_repairs_both_must_be_duplicates() {
    let both = |reported: &[u64]| {
        let mut sender = sender("sack/reno");
        pump(&mut sender, Instant::ZERO, &supply(100));
        sender.on_ack(ms(100), &ack(0, &[segments(2, 8)]));
        let (sent, _) = pump(&mut sender, ms(100), &supply(100));
        assert_eq!(
            named(&sent)[..2],
            [(0, SendRule::FastRetransmit), (1, SendRule::Repair)],
            "both are lost at once"
        );
        for &segment in reported {
            let dsack = segments(segment, segment + 1);
            sender.on_ack(ms(200), &with_dsack(ack(8, &[]), dsack));
        }
        sender.stats().undos
    };
    assert_eq!(both(&[0]), 0);
    assert_eq!(both(&[0, 1]), 1);
}

// Shows: RFC2883-4.3
#[test]
fn a_late_report_is_about_something_else() {
    let mut sender = repaired("sack/reno", Profile::modern());
    let point = crate::testkit::index(sender.snd_nxt());
    sender.on_ack(ms(200), &ack(point, &[]));
    // A whole round trip after the recovery.
    pump(&mut sender, ms(200), &supply(100));
    let next = crate::testkit::index(sender.snd_nxt());
    sender.on_ack(ms(300), &ack(next, &[]));
    sender.on_ack(ms(301), &with_dsack(ack(next, &[]), segments(0, 1)));
    assert_eq!(sender.stats().undos, 0);
}

#[test]
fn a_spurious_time_out_is_undone_and_new_data_continues() {
    for combination in ALL {
        let mut sender = sender(combination);
        let before = sender.cwnd();
        pump(&mut sender, Instant::ZERO, &supply(100));
        let rto = sender.poll_timeout().unwrap();
        sender.on_timeout(rto);
        let (sent, _) = pump(&mut sender, rto, &supply(100));
        assert_eq!(named(&sent), [(0, SendRule::Timeout)]);
        assert_eq!(sender.cwnd(), ByteCount(SMSS));
        // The originals were only late (RFC 4015 section 3): continue with unsent data.
        let now = rto + RTT / 2;
        sender.on_ack(now, &with_echo(ack(2, &[]), 0));
        // The window is restored, and this ACK grows it like any other.
        let grown = before + ByteCount(SMSS);
        assert_eq!((sender.stats().undos, sender.control_window()), (1, grown), "{combination}");
        assert_eq!((sender.phase(), sender.board().lost()), (Phase::Open, ByteCount::ZERO));
        let (sent, _) = pump(&mut sender, now, &supply(100));
        assert_eq!(
            named(&sent),
            [10, 11, 12].map(|segment| (segment, SendRule::NewData)),
            "{combination}"
        );
        sender.board().audit().unwrap();
    }
}

#[test]
fn a_recovery_resumes_after_a_spurious_time_out() {
    for combination in ["reno/reno", "newreno/reno", "newreno/cubic"] {
        let mut sender = sender(combination);
        pump(&mut sender, Instant::ZERO, &supply(100));
        // Segments 0 and 5 of ten are lost, and the retransmission of 0 is late.
        for upto in [2, 3, 4] {
            sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
        }
        pump(&mut sender, ms(100), &supply(100));
        let reduced = sender.cwnd();
        let rto = sender.poll_timeout().unwrap();
        sender.on_timeout(rto);
        pump(&mut sender, rto, &supply(100));
        sender.on_ack(rto + RTT / 2, &with_echo(ack(5, &[]), 100));
        // This ACK may grow the window like any other.
        let grown = sender.cwnd();
        assert_eq!(sender.stats().undos, 1, "{combination}");
        assert!((reduced..=reduced + ByteCount(SMSS)).contains(&grown), "{combination}");
        // It ends at its recovery point: the next hole of that window is repaired without another
        // reduction.
        let now = rto + RTT;
        for upto in [7, 8, 9] {
            sender.on_ack(now, &ack(5, &[segments(6, upto)]));
        }
        let (sent, _) = pump(&mut sender, now, &supply(100));
        assert_eq!(named(&sent)[0], (5, SendRule::FastRetransmit), "{combination}");
        assert_eq!((sender.stats().reductions, sender.cwnd()), (1, grown), "{combination}");
        sender.on_ack(now + RTT, &ack(crate::testkit::index(sender.snd_nxt()), &[]));
        assert_eq!(sender.phase(), Phase::Open, "{combination}");
    }
}

/// Returns a sender whose recovery, with 40 segments in flight, a time-out interrupts: the link is
/// down, and nothing in flight arrives. Also returns the time of the first ACK after that.
fn after_an_outage(combination: &str) -> (Sender, Instant) {
    let profile = Profile { initial_window: 40, ..Profile::default() };
    let mut sender = sender_of(combination.parse().unwrap(), profile);
    pump(&mut sender, Instant::ZERO, &supply(40));
    for upto in [2, 3, 4] {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
    }
    pump(&mut sender, ms(100), &supply(40));
    assert_eq!(sender.phase(), Phase::Recovery, "{combination}");
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    pump(&mut sender, rto, &supply(40));
    (sender, rto + RTT)
}

#[test]
fn after_an_outage_the_first_repair_leaves_although_the_window_is_full() {
    for combination in ["rack/reno", "rack/cubic"] {
        let (mut sender, now) = after_an_outage(combination);
        // The first ACK after the outage reports what arrived before it.
        sender.on_ack(now, &with_echo(ack(5, &[segments(6, 9)]), 100));
        assert_eq!((sender.stats().undos, sender.phase()), (1, Phase::Recovery), "{combination}");
        // Without an ACK of this retransmission the sender would wait for the next time-out.
        let (sent, _) = pump(&mut sender, now, &supply(40));
        assert_eq!(named(&sent), [(5, SendRule::FastRetransmit)], "{combination}");
        sender.board().audit().unwrap();
    }
}

#[test]
fn after_an_outage_a_loss_that_a_later_ack_shows_is_repaired_at_once() {
    for combination in ["sack/reno", "fack/reno", "rack/reno", "rack/cubic"] {
        let (mut sender, now) = after_an_outage(combination);
        sender.on_ack(now, &with_echo(ack(5, &[]), 100));
        assert_eq!((sender.stats().undos, sender.phase()), (1, Phase::Recovery), "{combination}");
        assert_eq!(pump(&mut sender, now, &supply(40)).0, [], "{combination}");
        for upto in [7, 8, 9] {
            sender.on_ack(now, &ack(5, &[segments(6, upto)]));
        }
        let (sent, _) = pump(&mut sender, now, &supply(40));
        assert_eq!(named(&sent), [(5, SendRule::FastRetransmit)], "{combination}");
        sender.board().audit().unwrap();
    }
}

#[test]
fn a_repair_that_an_ack_overtakes_was_not_needed() {
    for combination in ALL {
        let mut sender = sender(combination);
        pump(&mut sender, Instant::ZERO, &supply(100));
        let before = sender.cwnd();
        // The time-out is handled first, then, before anything is sent, the ACK that was waiting.
        sender.on_timeout(sender.poll_timeout().unwrap());
        let now = ms(5_000);
        sender.on_ack(now, &ack(10, &[]));
        assert_eq!((sender.stats().undos, sender.phase()), (1, Phase::Open), "{combination}");
        // The window is restored, and this ACK may grow it.
        assert!((before..=before + ByteCount(SMSS)).contains(&sender.cwnd()), "{combination}");
        assert_eq!(sender.control_state().ssthresh, None);
        sender.board().audit().unwrap();
    }
}

#[test]
fn in_the_paper_profile_nothing_is_taken_back() {
    let mut sender = repaired("sack/reno", Profile { initial_window: 10, ..Profile::paper() });
    let reduced = sender.cwnd();
    sender.on_ack(ms(120), &with_echo(ack(4, &[]), 0));
    assert_eq!((sender.stats().undos, sender.cwnd()), (0, reduced));
}

#[test]
fn after_an_undo_new_evidence_finds_a_real_loss() {
    let mut sender = repaired("sack/reno", Profile::modern());
    // Segment 0 was late, but segment 4 is lost.
    sender.on_ack(ms(110), &with_echo(ack(4, &[]), 0));
    assert_eq!(sender.stats().undos, 1);
    let mut upto = 5;
    while sender.stats().reductions == 1 && upto < 10 {
        upto += 1;
        sender.on_ack(ms(111), &ack(4, &[segments(5, upto)]));
    }
    assert_eq!((upto, sender.stats().reductions), (8, 2));
    let (sent, _) = pump(&mut sender, ms(111), &supply(100));
    assert_eq!(named(&sent)[0], (4, SendRule::FastRetransmit));
}
