//! The order of processing an ACK, and the effects of rulings.

use airtcp_types::{ByteCount, Instant, SendRule, TxNo};

use super::double::{self, Found, end_recoveries, find, millis, noted, raise, rule};
use crate::detection::RecoveryEnd;
use crate::testkit::{RTT, SMSS, ack, ms, named, pump, segments, supply};
use crate::{Ack, Cause, Limit, Phase, Ruling, Sender, TxState, When};

/// Returns a sender with ten segments outstanding and nothing recorded yet.
fn ten_out(judges: usize) -> Sender {
    let mut sender = double::sender(judges);
    let (sent, limit) = pump(&mut sender, Instant::ZERO, &supply(100));
    assert_eq!((sent.len(), limit), (10, Limit::Cwnd));
    noted();
    sender
}

fn state(sender: &Sender, tx: u64) -> Option<TxState> {
    sender.board().get(airtcp_types::TxNo(tx)).map(|transmission| transmission.state)
}

const fn ruling(repair: When, reduce: When) -> Ruling {
    Ruling { repair, reduce, cause: Cause::Corruption }
}

#[test]
fn one_ack_is_worked_in_the_order_that_the_trait_promises() {
    let mut sender = ten_out(1);
    find(2, Found::Suspect);
    find(1, Found::Lost);
    find(2, Found::Immediate);
    sender.on_ack(Instant::ZERO + RTT, &ack(1, &[segments(3, 4)]));
    sender.board().audit().unwrap();
    let (sent, _) = pump(&mut sender, Instant::ZERO + RTT, &supply(100));
    assert_eq!(
        noted(),
        [
            // Board and RTT first: the judge sees both.
            "judge hears 1001 with SND.UNA 1001, RTT 100ms",
            "detection hears 1001 with SND.UNA 1001",
            // Each finding is ruled on and the ruling applied in turn; one reduction for all.
            "judge rules on Suspect 2",
            "judge rules on Lost 1",
            "control: 1000 B lost, congestion",
            "control: reduce from 9000 B, congestion",
            "judge rules on Lost 2",
            "control: 1000 B lost, congestion",
            "control hears 1001 with pipe 6000",
            // Then transmission: the immediate retransmission before all others.
            "detection sees 10 leave as fast-retransmit",
            "detection sees 11 leave as repair",
            "detection sees 12 leave as new-data",
            "detection sees 13 leave as new-data",
        ]
    );
    assert_eq!(
        named(&sent)[..2],
        [(2, SendRule::FastRetransmit), (1, SendRule::Repair)],
        "the immediate repair goes first"
    );
}

#[test]
fn without_a_judge_a_loss_is_congestion_and_a_suspicion_nothing() {
    let mut sender = ten_out(0);
    find(0, Found::Suspect);
    sender.on_ack(ms(100), &ack(0, &[]));
    assert_eq!(noted(), ["detection hears 1 with SND.UNA 1", "control hears 1 with pipe 10000"]);
    find(0, Found::Lost);
    sender.on_ack(ms(101), &ack(0, &[]));
    assert_eq!(
        noted()[1..3],
        ["control: 1000 B lost, congestion", "control: reduce from 10000 B, congestion"]
    );
    assert_eq!((state(&sender, 0), sender.phase()), (Some(TxState::Lost), Phase::Recovery));
}

#[test]
fn the_first_judge_with_an_opinion_wins() {
    let mut sender = ten_out(2);
    rule(None);
    rule(Some(ruling(When::Now, When::Never)));
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    let log = noted();
    assert_eq!(log.iter().filter(|line| line.starts_with("judge rules")).count(), 2);
    assert!(log.contains(&"control: 1000 B lost, corruption".to_owned()));

    // The second judge is not asked if the first makes a ruling.
    rule(Some(ruling(When::Now, When::Never)));
    find(1, Found::Lost);
    sender.on_ack(ms(101), &ack(0, &[]));
    assert_eq!(noted().iter().filter(|line| line.starts_with("judge rules")).count(), 1);
}

#[test]
fn repair_without_reduction_and_reduction_without_repair() {
    let mut sender = ten_out(1);
    rule(Some(ruling(When::Now, When::Never)));
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    assert_eq!((state(&sender, 0), sender.phase()), (Some(TxState::Lost), Phase::Open));
    assert_eq!(sender.stats().reductions, 0);

    rule(Some(ruling(When::Never, When::Now)));
    find(1, Found::Lost);
    sender.on_ack(ms(101), &ack(0, &[]));
    assert_eq!((state(&sender, 1), sender.phase()), (Some(TxState::InFlight), Phase::Recovery));
    assert_eq!(sender.stats().reductions, 1);
}

#[test]
fn a_loss_deferred_forever_is_not_judged_again() {
    let mut sender = ten_out(1);
    rule(Some(ruling(When::Never, When::Never)));
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    assert_eq!((state(&sender, 0), sender.phase()), (Some(TxState::InFlight), Phase::Open));
    let rto = sender.poll_timeout().unwrap();
    noted();
    sender.on_timeout(rto - millis(1));
    assert!(noted().is_empty(), "nothing is judged again");
}

#[test]
fn a_deferred_loss_is_judged_again_at_its_time() {
    let mut sender = ten_out(1);
    rule(Some(ruling(When::After(millis(40)), When::After(millis(40)))));
    find(0, Found::Suspect);
    sender.on_ack(ms(100), &ack(0, &[]));
    assert_eq!(sender.poll_timeout(), Some(ms(140)));
    noted();

    sender.on_timeout(ms(139));
    assert!(noted().is_empty());
    // Deferred once more, then decided.
    rule(Some(ruling(When::After(millis(10)), When::Never)));
    sender.on_timeout(ms(140));
    assert_eq!(noted(), ["judge rules again on Suspect 0"]);
    rule(Some(Ruling::CONGESTION));
    sender.on_timeout(ms(150));
    assert_eq!(
        noted(),
        [
            "judge rules again on Suspect 0",
            "control: 1000 B lost, congestion",
            "control: reduce from 10000 B, congestion",
        ]
    );
    assert_eq!(state(&sender, 0), Some(TxState::Lost));
}

#[test]
fn a_deferred_loss_is_forgotten_when_it_arrives() {
    for sacked in [false, true] {
        let mut sender = ten_out(1);
        rule(Some(ruling(When::After(millis(40)), When::After(millis(40)))));
        find(0, Found::Lost);
        sender.on_ack(ms(100), &ack(0, &[]));
        if sacked {
            sender.on_ack(ms(120), &ack(0, &[segments(0, 1)]));
        } else {
            sender.on_ack(ms(120), &ack(1, &[]));
        }
        noted();
        sender.on_timeout(ms(140));
        assert!(noted().is_empty(), "SACKed: {sacked}");
    }
}

#[test]
fn a_repair_can_come_at_once_and_the_reduction_later() {
    let mut sender = ten_out(1);
    rule(Some(ruling(When::Now, When::After(millis(40)))));
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    assert_eq!(pump(&mut sender, ms(100), &supply(100)).0.len(), 1);
    assert_eq!(sender.phase(), Phase::Open);
    // The retransmission has not arrived by then, and the judge makes no ruling: congestion.
    sender.on_timeout(ms(140));
    assert_eq!((sender.phase(), sender.stats().segments_lost), (Phase::Recovery, 1));
}

#[test]
fn losses_raised_by_a_judge_precede_detection() {
    let mut sender = ten_out(1);
    raise(4, ruling(When::Now, When::Never));
    sender.on_ack(ms(100), &ack(0, &[]));
    assert_eq!(
        noted(),
        [
            "judge hears 1 with SND.UNA 1, RTT 0ns",
            "control: 1000 B lost, corruption",
            "detection hears 1 with SND.UNA 1",
            "control hears 1 with pipe 9000",
        ]
    );
    assert_eq!((state(&sender, 4), sender.phase()), (Some(TxState::Lost), Phase::Open));
}

#[test]
fn one_recovery_has_one_reduction_and_the_next_another() {
    let mut sender = ten_out(0);
    for tx in 0..3 {
        find(tx, Found::Lost);
        sender.on_ack(ms(100 + tx), &ack(0, &[]));
        pump(&mut sender, ms(100 + tx), &supply(100));
    }
    let reductions = |log: Vec<String>| log.iter().filter(|line| line.contains("reduce")).count();
    assert_eq!(reductions(noted()), 1);
    // Up to and at the recovery point, the recovery is the old one.
    sender.on_ack(ms(200), &ack(9, &[]));
    pump(&mut sender, ms(200), &supply(100));
    find(9, Found::Lost);
    sender.on_ack(ms(201), &ack(9, &[]));
    assert_eq!(reductions(noted()), 0);
    sender.on_ack(ms(210), &ack(10, &[]));
    assert!(noted().contains(&"control: recovery over".to_owned()));
    let next = sender.board().first().unwrap().tx.0;
    find(next, Found::Lost);
    sender.on_ack(ms(220), &ack(10, &[]));
    assert_eq!(reductions(noted()), 1);
}

#[test]
fn a_time_out_marks_all_lost_before_the_strategies_are_notified() {
    let mut sender = ten_out(1);
    rule(Some(ruling(When::After(millis(400)), When::After(millis(400)))));
    find(0, Found::Lost);
    sender.on_ack(ms(10), &ack(0, &[]));
    noted();
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    let log = noted();
    assert_eq!(log[..2], ["detection times out with 10000 B lost", "judge times out"]);
    assert_eq!(log[2..12], ["control: 1000 B lost, timeout"; 10]);
    assert_eq!(log[12..], ["control: time-out, first true"]);
    // The time-out overtakes the deferred finding.
    assert_eq!(sender.poll_timeout(), Some(rto + sender.rtt().rto()));
}

#[test]
fn sack_reports_each_loss_once() {
    let mut sender = double::with_judge("sack/fixed:20");
    pump(&mut sender, Instant::ZERO, &supply(20));
    (0..50).for_each(|_| rule(Some(ruling(When::Never, When::Never))));
    for upto in 6..20 {
        sender.on_ack(ms(100), &ack(0, &[segments(5, upto)]));
    }
    let log = noted();
    let asked =
        |tx| log.iter().filter(|line| **line == format!("judge rules on Lost {tx}")).count();
    assert_eq!((0..5).map(asked).collect::<Vec<_>>(), [1; 5]);
}

#[test]
fn idle_time_is_reported_when_new_data_ends_it() {
    let mut sender = ten_out(0);
    sender.on_ack(ms(100), &ack(10, &[]));
    assert_eq!(pump(&mut sender, ms(100), &supply(10)).1, Limit::App);
    noted();
    pump(&mut sender, ms(250), &supply(11));
    assert_eq!(noted()[0], "control: idle 150ms, restart false");
    sender.on_ack(ms(350), &ack(11, &[]));
    noted();
    pump(&mut sender, ms(9_350), &supply(12));
    assert_eq!(noted()[0], "control: idle 9s, restart true");
}

#[test]
fn an_undo_precedes_the_notification_of_the_ack() {
    let mut sender = ten_out(1);
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    pump(&mut sender, ms(100), &supply(100));
    assert_eq!((sender.phase(), sender.stats().segments_retransmitted), (Phase::Recovery, 1));
    noted();
    // The original of segment 0 arrives, and segment 3 is lost: the restored window is reduced.
    find(3, Found::Lost);
    sender.on_ack(ms(110), &Ack { echo: Some(Instant::ZERO), ..ack(1, &[]) });
    assert_eq!(
        noted(),
        [
            "detection undoes",
            "control: undo, resumes false",
            "judge hears 1001 with SND.UNA 1001, RTT 0ns",
            "detection hears 1001 with SND.UNA 1001",
            "judge rules on Lost 3",
            "control: 1000 B lost, congestion",
            "control: reduce from 9000 B, congestion",
            "control hears 1001 with pipe 8000",
        ]
    );
    assert_eq!((sender.stats().undos, sender.phase()), (1, Phase::Recovery));
}

#[test]
fn a_loss_without_a_reduction_leaves_nothing_to_undo() {
    let late = |ruling: Ruling| {
        let mut sender = ten_out(1);
        rule(Some(ruling));
        find(0, Found::Lost);
        sender.on_ack(ms(100), &ack(0, &[]));
        pump(&mut sender, ms(100), &supply(100));
        assert_eq!(sender.stats().segments_retransmitted, 1);
        sender.on_ack(ms(110), &Ack { echo: Some(Instant::ZERO), ..ack(1, &[]) });
        sender.on_ack(ms(200), &Ack { dsack: Some(segments(0, 1)), ..ack(1, &[]) });
        (sender.stats().undos, noted().contains(&"control: undo, resumes false".to_owned()))
    };
    assert_eq!(late(ruling(When::Now, When::Never)), (0, false));
    // The same data, with a reduction.
    assert_eq!(late(Ruling::CONGESTION), (1, true));
}

#[test]
fn a_recovery_ends_between_detection_and_the_controls_ack() {
    let mut sender = ten_out(1);
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    let (sent, _) = pump(&mut sender, ms(100), &supply(12));
    // A segment sent before the reduction is lost, and segments sent after it arrive.
    let after = crate::testkit::index(sender.snd_nxt());
    assert_eq!((named(&sent)[0], after), ((0, SendRule::FastRetransmit), 10));
    noted();
    find(9, Found::Lost);
    sender.on_ack(ms(200), &ack(after, &[]));
    let log = noted();
    assert_eq!(
        log[1..],
        [
            "detection hears 10001 with SND.UNA 10001",
            "control: recovery over",
            "control hears 10001 with pipe 0",
        ]
    );
}

#[test]
fn the_verdict_on_a_probe_comes_before_the_end_of_the_recovery() {
    let mut sender = double::with_detection("rack");
    pump(&mut sender, Instant::ZERO, &supply(10));
    let probe_at = sender.poll_timeout().unwrap();
    sender.on_timeout(probe_at);
    let (sent, _) = pump(&mut sender, probe_at, &supply(10));
    assert_eq!(named(&sent), [(9, SendRule::ProbeAgain)]);
    noted();
    // New data follows the probe, and the ACK of both has no DSACK: the probe repaired a loss.
    sender.on_ack(probe_at + RTT / 2, &ack(9, &[]));
    pump(&mut sender, probe_at + RTT / 2, &supply(11));
    noted();
    let now = probe_at + RTT * 2;
    sender.on_ack(now, &ack(11, &[]));
    let log = noted();
    assert_eq!(
        log[1..],
        [
            "judge rules on Lost 9",
            "control: reduce from 0 B, congestion",
            "control: recovery over",
            "control hears 11001 with pipe 0",
        ],
        "{log:?}"
    );
}

#[test]
fn the_window_is_validated_after_the_controls_ack() {
    let mut sender = double::with_detection("rack");
    let (mut now, mut acked) = (Instant::ZERO, 0);
    let log = loop {
        acked += 2;
        pump(&mut sender, now, &supply(acked));
        now += RTT;
        noted();
        sender.on_ack(now, &ack(acked, &[]));
        let log = noted();
        if log.contains(&"control: unused".to_owned()) {
            break log;
        }
        assert!(now < ms(400_000), "{log:?}");
    };
    assert!(log[log.len() - 2].starts_with("control hears"), "{log:?}");
    assert_eq!(log.last().unwrap(), "control: unused");
}

#[test]
fn prr_goes_by_the_window_that_the_control_has_after_the_ack() {
    let quota = |acked: Option<u64>| {
        let mut sender = double::with_detection("sack");
        pump(&mut sender, Instant::ZERO, &supply(100));
        double::set_windows(Some(ByteCount(5 * SMSS)), None);
        for upto in 2..5 {
            sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
            pump(&mut sender, ms(100), &supply(100));
        }
        assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Recovery, 1));
        double::set_windows(None, acked.map(|acked| ByteCount(acked * SMSS)));
        sender.on_ack(ms(100), &ack(0, &[segments(1, 5)]));
        noted();
        (sender.cwnd() - sender.pipe()).0 / SMSS
    };
    assert_eq!((quota(None), quota(Some(10))), (0, 1));
}

#[test]
fn a_recovery_whose_time_is_over_ends_before_the_notice_of_the_next_loss() {
    let mut sender = ten_out(0);
    end_recoveries(RecoveryEnd::After(millis(100)));
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    let (sent, _) = pump(&mut sender, ms(100), &supply(10));
    assert_eq!((named(&sent), sent[0].tx), (vec![(0, SendRule::FastRetransmit)], TxNo(10)));
    find(1, Found::Lost);
    sender.on_ack(ms(200), &ack(0, &[]));
    assert_eq!(sender.stats().reductions, 1);
    noted();
    find(10, Found::Lost);
    sender.on_ack(ms(201), &ack(0, &[]));
    assert_eq!(
        noted()[1..4],
        [
            "control: recovery over",
            "control: 1000 B lost, congestion",
            "control: reduce from 10000 B, congestion",
        ]
    );
    assert_eq!(sender.stats().reductions, 2);
}

#[test]
fn a_reduction_covers_earlier_transmissions() {
    let mut sender = ten_out(0);
    end_recoveries(RecoveryEnd::After(millis(100)));
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    pump(&mut sender, ms(100), &supply(10));
    find(2, Found::Lost);
    sender.on_ack(ms(201), &ack(0, &[]));
    assert_eq!(sender.stats().reductions, 1);
    let (sent, _) = pump(&mut sender, ms(201), &supply(10));
    assert_eq!(named(&sent)[0], (2, SendRule::FastRetransmit));
}

#[test]
fn an_undo_of_a_time_out_reports_that_the_interrupted_recovery_resumes() {
    let mut sender = ten_out(0);
    find(0, Found::Lost);
    sender.on_ack(ms(100), &ack(0, &[]));
    pump(&mut sender, ms(100), &supply(10));
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    assert_eq!(sender.phase(), Phase::Loss);
    pump(&mut sender, rto, &supply(10));
    noted();
    sender.on_ack(rto + millis(1), &Ack { echo: Some(ms(0)), ..ack(1, &[]) });
    assert_eq!(noted()[..2], ["detection undoes", "control: undo, resumes true"]);
    assert_eq!(sender.phase(), Phase::Recovery);
}
