//! The rules that permit transmissions, the retransmission timer and the windows.

use airtcp_types::{ByteCount, Instant, SendRule, TxNo};

use super::double::millis;
use crate::testkit::{RTT, SMSS, ack, ms, named, pump, segments, sender, sender_of, seq, supply};
use crate::{Ack, Limit, Phase, Profile, Sender, SenderConfig, Start, Supply, TxState, WireNeeds};

/// Returns a sender whose initial window of ten segments is outstanding.
fn ten_out(combination: &str) -> Sender {
    let mut sender = sender(combination);
    assert_eq!(pump(&mut sender, Instant::ZERO, &supply(100)).0.len(), 10);
    sender
}

// Shows: RFC5681-3.2-3, RFC5681-3.2-4, RFC5681-3.2-5, RFC5681-3.2-7, RFC5681-3.2-8, RFC5681-3.2-9
#[test]
fn the_first_two_duplicates_each_release_a_new_segment() {
    // RFC 3042 section 2.
    for combination in ["reno/reno", "newreno/cubic", "sack/reno", "sack/cubic"] {
        let mut sender = ten_out(combination);
        let cwnd = sender.cwnd();
        for duplicate in 1..=2 {
            let sacked = [segments(1, 1 + duplicate)];
            let sack = if combination.starts_with("sack") { &sacked[..] } else { &[] };
            sender.on_ack(ms(100), &ack(0, sack));
            let (sent, limit) = pump(&mut sender, ms(100), &supply(100));
            assert_eq!(named(&sent), [(9 + duplicate, SendRule::LimitedTransmit)], "{combination}");
            assert_eq!((limit, sender.cwnd()), (Limit::Cwnd, cwnd), "{combination}");
        }
        sender.on_ack(ms(101), &ack(0, &[segments(1, 4)]));
        let (sent, _) = pump(&mut sender, ms(101), &supply(100));
        assert_eq!(named(&sent)[0], (0, SendRule::FastRetransmit), "{combination}");
        // The two do not count in FlightSize (RFC 5681 section 3.2 step 2).
        let factor = if combination.ends_with("cubic") { 0.7 } else { 0.5 };
        let target = sender.control_state().ssthresh;
        assert_eq!(target, Some(cwnd.scale(factor)), "{combination}");
    }
}

#[test]
fn without_limited_transmit_the_first_duplicates_release_nothing() {
    let profile = Profile { limited_transmit: false, ..Profile::modern() };
    let mut sender = sender_of("newreno/reno".parse().unwrap(), profile);
    pump(&mut sender, Instant::ZERO, &supply(100));
    sender.on_ack(ms(100), &ack(0, &[]));
    assert_eq!(pump(&mut sender, ms(100), &supply(100)), (vec![], Limit::Cwnd));
}

#[test]
fn forged_duplicates_give_no_more_credit_than_is_in_flight() {
    for combination in ["reno/reno", "newreno/reno"] {
        let mut sender = ten_out(combination);
        // More duplicates than outstanding segments, and nothing to send in the meantime.
        for _ in 0..1_000 {
            sender.on_ack(ms(100), &ack(0, &[]));
            pump(&mut sender, ms(100), &supply(10));
        }
        let (sent, _) = pump(&mut sender, ms(100), &supply(10_000));
        assert_eq!(sent.len(), 5, "{combination}: cwnd, and not what was saved up");
    }
}

#[test]
fn an_ack_with_data_or_with_another_window_is_no_duplicate() {
    let mut sender = ten_out("newreno/reno");
    for _ in 0..5 {
        sender.on_ack(ms(100), &Ack { has_payload: true, ..ack(0, &[]) });
        sender.on_ack(ms(100), &Ack { window_changed: true, ..ack(0, &[]) });
    }
    assert_eq!((sender.stats().duplicate_acks, sender.stats().segments_lost), (0, 0));
}

// Shows: RFC6675-4-3, RFC6675-4-5, RFC6675-4-6, RFC6675-4-7, RFC6675-5-4
#[test]
fn without_new_data_sack_sends_unreported_segments_and_rescues_the_last() {
    // RFC 6675 section 4, NextSeg rules 3 and 4: ten segments are outstanding, and no more data is
    // queued; 0 and 2 are missing, IsLost does not hold for 2 yet, and nothing is known of 7 to 9.
    let mut sender = sender("sack/fixed:10");
    pump(&mut sender, Instant::ZERO, &supply(10));
    let blocks = [segments(3, 5), segments(1, 2)];
    sender.on_ack(ms(100), &ack(0, &[segments(1, 2)]));
    sender.on_ack(ms(101), &ack(0, &[segments(3, 4), segments(1, 2)]));
    assert_eq!(pump(&mut sender, ms(101), &supply(10)), (vec![], Limit::App));
    sender.on_ack(ms(102), &ack(0, &blocks));
    let (sent, limit) = pump(&mut sender, ms(102), &supply(10));
    assert_eq!(
        named(&sent),
        [(0, SendRule::FastRetransmit), (2, SendRule::Unsacked), (9, SendRule::Rescue)]
    );
    assert_eq!(limit, Limit::App);
    // IsLost becomes true of the first transmission of 2: it leaves the pipe, and segment 2 is not
    // sent a third time.
    let pipe = sender.pipe();
    sender.on_ack(ms(103), &ack(0, &[segments(3, 6), segments(1, 2)]));
    assert_eq!(sender.pipe(), pipe - ByteCount(2 * SMSS));
    assert_eq!(pump(&mut sender, ms(103), &supply(10)), (vec![], Limit::App));
    sender.board().audit().unwrap();
}

// Shows: RFC6675-4-3, RFC6675-4-4
#[test]
fn sack_prefers_new_data_to_guesses() {
    let mut sender = sender("sack/fixed:10");
    pump(&mut sender, Instant::ZERO, &supply(10));
    for blocks in [&[segments(1, 2)][..], &[segments(3, 4), segments(1, 2)]] {
        sender.on_ack(ms(100), &ack(0, blocks));
    }
    sender.on_ack(ms(102), &ack(0, &[segments(3, 5), segments(1, 2)]));
    let (sent, _) = pump(&mut sender, ms(102), &supply(100));
    assert_eq!(named(&sent)[..2], [(0, SendRule::FastRetransmit), (10, SendRule::NewData)]);
}

// Shows: RFC9293-MUST-19, RFC5681-3.1-1, RFC5681-3.1-11, RFC5681-3.1-12
#[test]
fn a_time_out_resends_the_first_and_slow_starts() {
    let mut sender = ten_out("sack/reno");
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    assert_eq!((sender.cwnd(), sender.phase()), (ByteCount(SMSS), Phase::Loss));
    // RFC 5681 section 3.1, equation 4.
    assert_eq!(sender.control_state().ssthresh, Some(ByteCount(5 * SMSS)));
    let (sent, limit) = pump(&mut sender, rto, &supply(100));
    assert_eq!((named(&sent), limit), (vec![(0, SendRule::Timeout)], Limit::Cwnd));
    sender.on_ack(rto + RTT, &ack(1, &[]));
    let (sent, _) = pump(&mut sender, rto + RTT, &supply(10));
    assert_eq!(named(&sent), [(1, SendRule::Repair), (2, SendRule::Repair)]);
    // Until the recovery point, duplicates start neither a fast retransmit nor another reduction.
    for _ in 0..5 {
        sender.on_ack(rto + RTT, &ack(1, &[]));
    }
    assert_eq!(sender.stats().reductions, 0);
    sender.on_ack(rto + RTT * 2, &ack(10, &[]));
    assert_eq!(sender.phase(), Phase::Open);
}

#[test]
fn duplicates_at_the_recovery_point_are_echoes_of_the_time_out() {
    // RFC 6582 sections 3.2 step 4 and 4.1: the receiver had some of the retransmitted data.
    for combination in ["reno/reno", "newreno/reno"] {
        let mut sender = ten_out(combination);
        let rto = sender.poll_timeout().unwrap();
        sender.on_timeout(rto);
        pump(&mut sender, rto, &supply(100));
        sender.on_ack(rto + RTT, &ack(10, &[]));
        pump(&mut sender, rto + RTT, &supply(100));
        for _ in 0..4 {
            sender.on_ack(rto + RTT, &ack(10, &[]));
        }
        assert_eq!((sender.phase(), sender.stats().reductions), (Phase::Open, 0), "{combination}");
        // Beyond the recovery point they count again.
        for _ in 0..4 {
            sender.on_ack(rto + RTT * 2, &ack(11, &[]));
        }
        assert_eq!(sender.stats().reductions, 1, "{combination}");
    }
}

#[test]
fn the_second_time_out_leaves_ssthresh_alone() {
    for combination in ["sack/reno", "sack/cubic"] {
        let mut sender = ten_out(combination);
        let mut thresholds = Vec::new();
        for _ in 0..3 {
            let rto = sender.poll_timeout().unwrap();
            sender.on_timeout(rto);
            pump(&mut sender, rto, &supply(100));
            thresholds.push(sender.control_state().ssthresh);
        }
        assert!(thresholds.iter().all(|threshold| *threshold == thresholds[0]), "{combination}");
        assert_eq!(sender.backoff(), 3);
    }
}

// Shows: RFC6298-3-1
#[test]
fn the_back_off_lasts_until_there_is_a_sample() {
    // RFC 6298 section 5, Karn: the ACK of a retransmission gives no RTT sample.
    let mut sender = ten_out("newreno/reno");
    let first = sender.rtt().rto();
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    pump(&mut sender, rto, &supply(100));
    sender.on_ack(rto + RTT, &ack(1, &[]));
    assert_eq!((sender.backoff(), sender.rtt().rto()), (0, first * 2));
    // All old data, then a segment that was sent once.
    pump(&mut sender, rto + RTT, &supply(10));
    sender.on_ack(rto + RTT * 2, &ack(10, &[]));
    assert_eq!(sender.rtt().rto(), first * 2);
    let (sent, _) = pump(&mut sender, rto + RTT * 2, &supply(100));
    assert_eq!(named(&sent)[0], (10, SendRule::NewData));
    sender.on_ack(rto + RTT * 3, &ack(11, &[]));
    assert!(sender.rtt().rto() < first * 2);
}

// Shows: RFC9293-MUST-18, RFC6298-3-1
#[test]
fn retransmissions_give_no_sample_without_time_stamps() {
    let mut sender = ten_out("sack/reno");
    for upto in 2..=4 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
    }
    pump(&mut sender, ms(100), &supply(100));
    let srtt = sender.rtt().srtt();
    // It covers the retransmission and data that waited behind it: neither gives an RTT sample.
    sender.on_ack(ms(180), &ack(4, &[]));
    assert_eq!(sender.rtt().srtt(), srtt);
    // With time stamps it does; a time stamp from the future does not.
    sender.on_ack(ms(190), &Ack { echo: Some(ms(900)), ..ack(5, &[]) });
    assert_eq!(sender.rtt().min(), Some(RTT));
}

#[test]
fn a_sample_includes_the_delay_of_a_delayed_ack() {
    let mut sender = sender("sack/reno");
    pump(&mut sender, ms(0), &supply(1));
    pump(&mut sender, ms(30), &Supply { nodelay: true, ..supply(2) });
    sender.on_ack(ms(150), &ack(2, &[]));
    assert_eq!(sender.rtt().latest(), Some(millis(150)));
}

// Shows: RFC2018-5-3
#[test]
fn a_receiver_that_reneges_gets_everything_again() {
    let mut sender = ten_out("sack/cubic");
    // Everything is SACKed, nothing acknowledged (RFC 2018 section 8).
    sender.on_ack(ms(100), &ack(0, &[segments(0, 10)]));
    assert_eq!((sender.pipe(), sender.board().sacked()), (ByteCount::ZERO, ByteCount(10 * SMSS)));
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    sender.board().audit().unwrap();
    assert_eq!(
        (sender.board().lost(), sender.board().sacked()),
        (ByteCount(10 * SMSS), ByteCount(0))
    );
    let (sent, _) = pump(&mut sender, rto, &supply(10));
    assert_eq!(named(&sent), [(0, SendRule::Timeout)]);
}

#[test]
fn a_fin_alone_is_resent_too() {
    let mut sender = sender("sack/cubic");
    let end = Supply { end: seq(0) + 1, fin: true, ..supply(40) };
    assert_eq!(pump(&mut sender, Instant::ZERO, &end).0.len(), 1);
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    let (sent, limit) = pump(&mut sender, rto, &end);
    assert_eq!((sent.len(), sent[0].range.len(), limit), (1, ByteCount(1), Limit::App));
}

// Shows: RFC5681-4.1
#[test]
fn after_an_idle_period_the_window_restarts() {
    // RFC 5681 section 4.1.
    let window_after = |profile: Profile, silence: u64| {
        let mut sender = sender_of("sack/reno".parse().unwrap(), profile);
        pump(&mut sender, ms(0), &supply(10));
        sender.on_ack(ms(100), &ack(10, &[]));
        pump(&mut sender, ms(100), &supply(30));
        sender.on_ack(ms(200), &ack(30, &[]));
        let grown = sender.cwnd().0 / SMSS;
        pump(&mut sender, ms(200 + silence), &supply(1_000));
        (grown, sender.cwnd().0 / SMSS)
    };
    let unlimited = Profile { byte_counting_limit: 100, ..Profile::modern() };
    assert_eq!(window_after(unlimited.clone(), 5_000), (40, 10));
    assert_eq!(window_after(unlimited.clone(), 50), (40, 40), "shorter than the time-out");
    let carefree = Profile { idle_restart: false, ..unlimited };
    assert_eq!(window_after(carefree, 5_000), (40, 40));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for combination in ["sack/reno", "sack/cubic"] {
        let mut sender = sender(combination);
        let cwnd = sender.cwnd();
        for round in 0..50 {
            let now = ms(round * 100);
            pump(&mut sender, now, &supply(round * 4 + 4));
            sender.on_ack(now + RTT, &ack(round * 4 + 4, &[]));
        }
        assert_eq!(sender.cwnd(), cwnd, "{combination}");
        // As soon as the window is full, even if only just, it grows.
        pump(&mut sender, ms(5_000), &supply(210));
        sender.on_ack(ms(5_100), &ack(210, &[]));
        assert!(sender.cwnd() > cwnd, "{combination}");
    }
}

#[test]
fn a_paced_flow_with_little_to_send_does_not_grow() {
    let combination = "rack/cubic".parse().unwrap();
    let config = SenderConfig { combination, pacing: true, ..SenderConfig::default() };
    let start = Start {
        now: Instant::ZERO,
        first: seq(0),
        smss: ByteCount(SMSS),
        granted: WireNeeds { sack: true, timestamps: true, ..WireNeeds::NONE },
        handshake_rtt: Some(RTT),
        syn_retransmitted: false,
        seed: 0,
    };
    let grown = |per_round: u64| {
        let mut sender = Sender::new(&config, &start);
        let (mut now, cwnd) = (Instant::ZERO, sender.cwnd());
        for round in 1..20 {
            let round_ends = now + RTT;
            while pump(&mut sender, now, &supply(round * per_round)).1 == Limit::Pacing {
                now = sender.poll_timeout().unwrap();
                sender.on_timeout(now);
            }
            now = now.max(round_ends);
            sender.on_ack(now, &ack(crate::testkit::index(sender.snd_nxt()), &[]));
        }
        sender.cwnd() > cwnd
    };
    assert!(!grown(4), "four segments a round");
    assert!(grown(1_000), "as many as may leave");
}

#[test]
fn a_partial_ack_lets_out_its_repair_and_one_new_segment() {
    // RFC 6582 section 3.2 step 3: deflate by what is acknowledged, add back one SMSS.
    let mut sender = sender("newreno/fixed:10");
    pump(&mut sender, Instant::ZERO, &supply(100));
    // 0 and 2 are lost; each of the eight others releases one segment.
    for _ in 0..8 {
        sender.on_ack(ms(100), &ack(0, &[]));
        pump(&mut sender, ms(100), &supply(100));
    }
    sender.on_ack(ms(200), &ack(2, &[]));
    let (sent, _) = pump(&mut sender, ms(200), &supply(100));
    assert_eq!(named(&sent), [(2, SendRule::FastRetransmit), (18, SendRule::NewData)]);
}

// Shows: RFC6675-5.1-1, RFC6675-5.1-2
#[test]
fn after_a_time_out_sack_looks_for_no_losses_until_the_recovery_point() {
    // RFC 6675 section 5.1.
    let mut sender = ten_out("sack/reno");
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    pump(&mut sender, rto, &supply(100));
    let lost = sender.stats().segments_lost;
    for upto in 2..6 {
        sender.on_ack(rto + RTT, &ack(0, &[segments(1, upto)]));
    }
    assert_eq!((sender.stats().segments_lost, sender.pipe()), (lost, ByteCount(SMSS)));
}

#[test]
fn small_segments_wait_for_an_ack_and_silly_windows_for_a_larger_one() {
    let mut sender = sender("sack/reno");
    let small = Supply { end: seq(1) + 10, ..supply(40) };
    let (sent, limit) = pump(&mut sender, Instant::ZERO, &small);
    assert_eq!((sent.len(), limit), (1, Limit::Nagle));
    let (sent, limit) = pump(&mut sender, Instant::ZERO, &Supply { nodelay: true, ..small });
    assert_eq!((sent.len(), limit), (1, Limit::App));
    let mut ending = self::sender("sack/reno");
    let (sent, limit) = pump(&mut ending, Instant::ZERO, &Supply { fin: true, ..small });
    assert_eq!((sent.len(), limit), (2, Limit::App), "the end of the stream does not wait");
    let silly = Supply { window_edge: seq(1) + 20, ..supply(40) };
    assert_eq!(pump(&mut sender, Instant::ZERO, &silly), (vec![], Limit::Rwnd));
}

#[test]
fn acks_that_cannot_be_are_ignored() {
    let mut sender = ten_out("sack/cubic");
    sender.on_ack(ms(100), &ack(5, &[]));
    let (pipe, cwnd) = (sender.pipe(), sender.cwnd());
    sender.on_ack(ms(101), &ack(11, &[]));
    sender.on_ack(ms(101), &ack(4, &[]));
    let backwards = airtcp_types::SeqRange::new(seq(9), seq(7));
    sender.on_ack(ms(101), &ack(5, &[backwards, segments(0, 3), segments(50, 90)]));
    assert_eq!((sender.pipe(), sender.cwnd(), sender.snd_una()), (pipe, cwnd, seq(5)));
    sender.board().audit().unwrap();
}

#[test]
fn numbers_rise_and_states_follow() {
    let mut sender = ten_out("sack/reno");
    for upto in 2..=4 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
    }
    let state = |sender: &Sender, tx| sender.board().get(TxNo(tx)).map(|t| t.state);
    assert_eq!(state(&sender, 0), Some(TxState::Lost));
    let (sent, _) = pump(&mut sender, ms(100), &supply(100));
    assert_eq!(sent[0].tx, TxNo(10));
    assert_eq!(state(&sender, 0), Some(TxState::Superseded));
    assert_eq!(
        (state(&sender, 1), state(&sender, 10)),
        (Some(TxState::Sacked), Some(TxState::InFlight))
    );
    sender.on_ack(ms(200), &ack(4, &[]));
    assert_eq!(state(&sender, 10), None);
}

// Shows: RFC5681-3.2-11
#[test]
fn a_sacked_segment_gives_a_duplicate_acks_credit_and_no_more() {
    // A peer sends SACK blocks if SACK was negotiated, whatever the detection.
    for combination in ["reno/fixed:20", "newreno/fixed:20"] {
        let mut sender = sender(combination);
        let (sent, _) = pump(&mut sender, ms(0), &supply(1_000));
        assert_eq!(sent.len(), 20);
        for arrived in 2..=11 {
            sender.on_ack(ms(20), &ack(0, &[segments(1, arrived)]));
            pump(&mut sender, ms(20), &supply(1_000));
        }
        // Ten segments left the network; ten new ones and the retransmission keep it full.
        let stats = sender.stats();
        assert_eq!((stats.segments_sent, stats.segments_retransmitted), (20 + 10 + 1, 1));
    }
}

#[test]
fn of_a_late_ack_only_the_sack_blocks_count() {
    let mut sender = sender("sack/fixed:20");
    pump(&mut sender, ms(0), &supply(1_000));
    sender.on_ack(ms(20), &ack(3, &[]));
    let before = sender.stats().duplicate_acks;
    sender.on_ack(ms(21), &ack(2, &[segments(5, 6)]));
    assert_eq!(sender.snd_una(), seq(3));
    assert_eq!(sender.board().sacked(), segments(5, 6).len());
    assert_eq!(sender.stats().duplicate_acks, before);
}

#[test]
fn after_a_time_out_what_was_sacked_does_not_stop_the_repairs() {
    for combination in ["reno/reno", "newreno/reno"] {
        let mut sender = sender(combination);
        pump(&mut sender, ms(0), &supply(10));
        sender.on_ack(ms(20), &ack(0, &[segments(6, 10)]));
        let timeout = sender.poll_timeout().unwrap();
        sender.on_timeout(timeout);
        pump(&mut sender, timeout, &supply(10));
        sender.on_ack(timeout + RTT, &ack(1, &[segments(6, 10)]));
        let (sent, _) = pump(&mut sender, timeout + RTT, &supply(10));
        assert_eq!(named(&sent), [(1, SendRule::Repair), (2, SendRule::Repair)], "{combination}");
    }
}

#[test]
fn slow_start_doubles_what_was_used_of_a_window_that_was_not_full() {
    // Nine of ten segments are outstanding: as in Linux the window grows to eighteen, and no
    // further.
    let mut sender = sender("sack/reno");
    let nine = supply(9);
    assert_eq!(pump(&mut sender, Instant::ZERO, &nine).0.len(), 9);
    for (acked, cwnd) in [(2, 12), (4, 14), (6, 16), (8, 18), (9, 18)] {
        sender.on_ack(ms(100), &ack(acked, &[]));
        assert_eq!(sender.cwnd(), ByteCount(SMSS * cwnd));
    }
    // The next round starts with what it uses.
    assert_eq!(pump(&mut sender, ms(100), &supply(12)).0.len(), 3);
    sender.on_ack(ms(200), &ack(12, &[]));
    assert_eq!(sender.cwnd(), ByteCount(SMSS * 18));
}

/// The first of ten segments is missing; DupThresh signs of that make it lost.
#[test]
fn dup_thresh_says_how_many_signs_are_a_loss() {
    for name in ["reno/reno", "newreno/reno", "sack/reno", "rack/reno"] {
        for thresh in [1, 3, 5] {
            let profile = Profile { dup_thresh: thresh, ..Profile::modern() };
            let mut sender = sender_of(name.parse().unwrap(), profile);
            pump(&mut sender, Instant::ZERO, &supply(10));
            for sacked in 1..=thresh {
                assert_eq!(sender.stats().segments_lost, 0, "{name}: {sacked} of {thresh}");
                sender.on_ack(ms(100), &ack(0, &[segments(1, 1 + u64::from(sacked))]));
            }
            assert_eq!(sender.stats().segments_lost, 1, "{name}: {thresh}");
        }
    }
}

#[test]
fn late_arrivals_are_counted() {
    let mut sender = sender("rack/cubic");
    pump(&mut sender, Instant::ZERO, &supply(10));
    sender.on_ack(ms(100), &ack(0, &[segments(2, 3)]));
    assert_eq!((sender.reordering(), sender.reord_seen()), (0, 0));
    sender.on_ack(ms(101), &ack(0, &[segments(1, 3)]));
    assert_eq!((sender.reordering(), sender.reord_seen()), (2, 1));
    sender.on_ack(ms(102), &ack(3, &[]));
    assert_eq!((sender.reordering(), sender.reord_seen()), (3, 2));
}
