//! Proportional rate reduction (RFC 9937) in a whole sender.

use airtcp_types::{ByteCount, Instant};

use super::double::{self, rule};
use crate::testkit::{SMSS, ack, ms, named, pump, segments, sender_of, supply};
use crate::{Ack, Phase, Profile, Ruling, Sender, When};

const SACK: [&str; 3] = ["sack/reno", "fack/reno", "rack/reno"];

/// Returns a sender with twenty segments outstanding, and a window of twenty.
fn twenty_out(combination: &str) -> Sender {
    let profile = Profile { initial_window: 20, ..Profile::modern() };
    let mut sender = sender_of(combination.parse().unwrap(), profile);
    assert_eq!(pump(&mut sender, Instant::ZERO, &supply(1_000)).0.len(), 20);
    sender
}

/// Processes an ACK; returns cwnd and pipe before anything is sent, in segments, and the segments
/// then sent: `N`ew data or `R`etransmissions.
fn step(sender: &mut Sender, now: Instant, ack: &Ack<'_>) -> (u64, u64, String) {
    sender.on_ack(now, ack);
    let (cwnd, pipe) = (sender.cwnd().0 / SMSS, sender.pipe().0 / SMSS);
    let (sent, _) = pump(sender, now, &supply(1_000));
    let letter = |again| if again { 'R' } else { 'N' };
    (cwnd, pipe, sent.iter().map(|sent| letter(sent.rule.is_retransmission())).collect())
}

// Shows: RFC9937-3-2, RFC9937-5, RFC9937-6.1, RFC9937-6.2-4, RFC9937-6.3, RFC9937-6.4-1
#[test]
fn a_single_loss_is_recovered_from_as_in_figure_1() {
    // RFC 9937 section 8, figure 1: cwnd, inflight and the segments sent for each of the ACKs 1
    // to 21. At ACK 19 inflight is ssthresh, and by the steps of section 6.2 SndCnt is MIN(0, ...),
    // where the figure has one segment; ACK 20 releases it.
    let cwnd = [20, 20, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 10, 10, 10];
    let pipe = [19, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 9, 9];
    for combination in SACK {
        let mut sender = twenty_out(combination);
        for number in 1..=21 {
            let sacked = [segments(1, number + 1)];
            let measured = step(&mut sender, ms(100), &ack(0, &sacked));
            let sent = match number {
                1 | 2 => "N",
                3 => "R",
                20 => "N",
                number if number % 2 == 1 && number != 19 => "N",
                _ => "",
            };
            let column = number as usize - 1;
            let figure = (cwnd[column], pipe[column], sent.to_owned());
            assert_eq!(measured, figure, "{combination}, ACK {number}");
        }
        // ACK 22 covers everything up to the second segment of limited transmit, and ends the
        // recovery.
        sender.on_ack(ms(200), &ack(22, &[]));
        assert_eq!(sender.phase(), Phase::Open, "{combination}");
        assert_eq!(sender.cwnd(), ByteCount(10 * SMSS), "{combination}");
        assert_eq!(sender.control_state().ssthresh, Some(ByteCount(10 * SMSS)));
    }
}

// Shows: RFC9937-6.2-1, RFC9937-6.2-5, RFC9937-6.2-6
#[test]
fn a_burst_of_losses_is_recovered_from_as_in_figure_2() {
    // FACK finds the losses on the first ACK.
    for combination in ["sack/reno", "rack/reno"] {
        let mut sender = twenty_out(combination);
        // RFC 9937 section 8, figure 2: the first fifteen are lost, and five ACKs arrive.
        let heavy = (5, 4, "R");
        // The figure is followed by the ACKs of the two segments of limited transmit.
        let figure = [(20, 19, "N"), (20, 19, "N"), heavy, heavy, heavy, heavy, heavy];
        for (number, figure) in (15..).zip(figure) {
            let now = ms(if number < 20 { 100 } else { 200 });
            let (cwnd, pipe, sent) = step(&mut sender, now, &ack(0, &[segments(15, number + 1)]));
            assert_eq!((cwnd, pipe, &*sent), figure, "{combination}, ACK {number}");
        }
        // PRR-SSRB: each retransmission that arrives releases two segments, up to ssthresh.
        let blocks = [segments(15, 22)];
        let (cwnd, pipe, sent) = step(&mut sender, ms(200), &ack(1, &blocks));
        assert_eq!((cwnd, pipe, &*sent), (6, 4, "RR"), "{combination}");
        let (cwnd, pipe, sent) = step(&mut sender, ms(200), &ack(2, &blocks));
        assert_eq!((cwnd, pipe, &*sent), (7, 5, "RR"), "{combination}");
    }
}

// Shows: RFC9937-6.1
#[test]
fn data_sacked_before_the_reduction_does_not_count_as_expected() {
    let mut sender = double::with_judge("sack/reno");
    pump(&mut sender, Instant::ZERO, &supply(1_000));
    // The first segment is missing. The judge makes no ruling on the suspect, and defers the loss.
    let wait = When::After(double::millis(5));
    rule(None);
    rule(Some(Ruling { repair: wait, reduce: wait, ..Ruling::CONGESTION }));
    for number in 1..=6 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, number + 1)]));
        assert_eq!(pump(&mut sender, ms(100), &supply(1_000)).0.len(), 1, "limited transmit");
    }
    sender.on_timeout(ms(105));
    assert_eq!(sender.phase(), Phase::Recovery);
    assert_eq!(named(&pump(&mut sender, ms(105), &supply(1_000)).0)[0].0, 0);
    // Ten were outstanding and six followed; six of these sixteen have arrived.
    let ssthresh = sender.control_state().ssthresh.unwrap().0 / SMSS;
    let (recover_fs, mut sent) = (10, 1);
    for delivered in 1..=4 {
        let (_, pipe, left) = step(&mut sender, ms(106), &ack(0, &[segments(1, 7 + delivered)]));
        assert!(pipe > ssthresh, "{delivered}: {pipe}");
        sent += left.len() as u64;
        assert_eq!(sent, (delivered * ssthresh).div_ceil(recover_fs), "{delivered}");
    }
}

// Shows: RFC9937-6.1
#[test]
fn data_of_the_first_ack_counts_as_delivered_and_expected() {
    // The ACK that starts the reduction covers two segments cumulatively and three by SACK.
    let mut sender = twenty_out("sack/reno");
    let (cwnd, pipe, sent) = step(&mut sender, ms(100), &ack(2, &[segments(3, 6)]));
    // RecoverFS is 20, prr_delivered 5: three segments are due, as ssthresh is 9, half of the 18
    // outstanding.
    assert_eq!((cwnd, pipe, &*sent), (14 + 3, 14, "RNN"));
}

// Shows: RFC9937-6.4-1
#[test]
fn the_ack_that_starts_a_reduction_does_not_grow_the_window() {
    for combination in SACK {
        let mut sender = twenty_out(combination);
        // It advances SND.UNA, which would otherwise let the window grow.
        sender.on_ack(ms(100), &ack(10, &[segments(11, 16)]));
        assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Recovery, 1));
        assert_eq!(Some(sender.control_window()), sender.control_state().ssthresh);
    }
}

// Shows: RFC9937-6.4-2
#[test]
fn a_time_out_ends_the_reduction() {
    let profile = Profile { initial_window: 20, f_rto: false, ..Profile::modern() };
    let mut sender = sender_of("sack/reno".parse().unwrap(), profile);
    pump(&mut sender, Instant::ZERO, &supply(1_000));
    for number in 1..=3 {
        step(&mut sender, ms(100), &ack(0, &[segments(1, number + 1)]));
    }
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    assert_eq!((sender.phase(), sender.cwnd()), (Phase::Loss, ByteCount(SMSS)));
    // Slow start, not SndCnt, determines what is sent: PRR would release one segment for each.
    pump(&mut sender, rto, &supply(1_000));
    let (cwnd, pipe, sent) = step(&mut sender, ms(900), &ack(4, &[]));
    assert_eq!((cwnd, pipe, &*sent), (2, 0, "RR"));
}
