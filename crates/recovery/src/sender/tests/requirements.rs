//! Requirements of RFCs on a sender that no other test asserts.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, SendRule};

use crate::testkit::{FIRST, SMSS, ack, index, ms, named, pump, segments, sender, supply};
use crate::{Ack, Combination, Limit, Phase, Sender, SenderConfig, Start, WireNeeds};

// Shows: RFC6298-3-2
#[test]
fn every_ack_of_what_was_sent_once_is_a_sample() {
    let mut sender = sender("sack/reno");
    for round in 0..20 {
        let now = ms(round * 1_000);
        pump(&mut sender, now, &supply(round + 1));
        let taken = Duration::from_millis(100 + round);
        sender.on_ack(now + taken, &ack(round + 1, &[]));
        assert_eq!(sender.rtt().latest(), Some(taken));
    }
}

// Shows: RFC6298-5.1, RFC6298-5.2, RFC6298-5.3
#[test]
fn the_timer_runs_while_data_is_outstanding_and_restarts_with_each_ack_of_new_data() {
    let mut sender = sender("sack/reno");
    assert_eq!(sender.poll_timeout(), None);
    pump(&mut sender, Instant::ZERO, &supply(2));
    let rto = sender.rtt().rto();
    assert_eq!(sender.poll_timeout(), Some(Instant::ZERO + rto));
    // More data does not restart it, nor does an ACK of nothing new.
    pump(&mut sender, ms(50), &supply(4));
    sender.on_ack(ms(60), &ack(0, &[]));
    assert_eq!(sender.poll_timeout(), Some(Instant::ZERO + rto));
    sender.on_ack(ms(110), &ack(2, &[]));
    assert_eq!(sender.poll_timeout(), Some(ms(110) + sender.rtt().rto()));
    sender.on_ack(ms(160), &ack(4, &[]));
    assert_eq!(sender.poll_timeout(), None);
}

// Shows: RFC6298-5
#[test]
fn the_timer_retransmits_segments_sent_an_rto_ago_except_repairs() {
    let mut fired = 0;
    for seed in 0..200 {
        let mut draw = Stream::new(seed, 0);
        let mut sender = sender(if seed.is_multiple_of(2) { "sack/reno" } else { "newreno/reno" });
        let mut left = BTreeMap::new();
        let (mut now, mut end, mut acked) = (Instant::ZERO, 0, 0);
        for _ in 0..200 {
            end += draw.next_u64() % 3;
            for transmit in pump(&mut sender, now, &supply(end)).0 {
                let segment = index(transmit.range.start);
                left.insert(segment, (now, transmit.rule.is_retransmission()));
            }
            let next = now + Duration::from_millis(draw.next_u64() % 150);
            let rto = sender.rtt().rto();
            match sender.poll_timeout().filter(|at| *at <= next) {
                Some(at) => {
                    now = at.max(now);
                    sender.on_timeout(now);
                    let (sent, _) = pump(&mut sender, now, &supply(end));
                    let segment = index(sent[0].range.start);
                    assert_eq!(named(&sent), [(segment, SendRule::Timeout)], "{seed}");
                    let (at, by_an_ack) = left[&segment];
                    assert!(by_an_ack || now.since(at) >= rto, "{seed}: {segment} at {now:?}");
                    left.insert(segment, (now, false));
                    fired += u32::from(!by_an_ack);
                }
                None => {
                    now = next;
                    let out = index(sender.snd_nxt()) - acked;
                    acked += (draw.next_u64() % 4).min(out);
                    sender.on_ack(now, &ack(acked, &[]));
                }
            }
        }
    }
    assert!(fired > 0);
}

#[test]
fn the_repair_of_each_hole_that_sack_reports_at_the_head_has_a_whole_time_out() {
    for combination in ["sack/reno", "fack/reno"] {
        let mut sender = sender(combination);
        pump(&mut sender, Instant::ZERO, &supply(10));
        // Segments 0 and 5 are lost. The first is retransmitted; the second is then at SND.UNA, and
        // is found lost later.
        sender.on_ack(ms(100), &ack(0, &[segments(1, 4)]));
        pump(&mut sender, ms(100), &supply(10));
        sender.on_ack(ms(200), &ack(5, &[]));
        let (sent, _) = pump(&mut sender, ms(200), &supply(10));
        assert_eq!(named(&sent), [], "{combination}");
        sender.on_ack(ms(260), &ack(5, &[segments(6, 9)]));
        let (sent, _) = pump(&mut sender, ms(260), &supply(10));
        assert_eq!(named(&sent), [(5, SendRule::Repair)], "{combination}");
        assert_eq!(sender.poll_timeout(), Some(ms(260) + sender.rtt().rto()), "{combination}");
    }
}

// Shows: RFC5681-3.2-6
#[test]
fn with_sack_a_duplicate_without_news_releases_nothing() {
    for combination in ["sack/reno", "rack/cubic"] {
        let mut sender = sender(combination);
        pump(&mut sender, Instant::ZERO, &supply(100));
        let sacked = [segments(1, 2)];
        sender.on_ack(ms(100), &ack(0, &sacked));
        assert_eq!(pump(&mut sender, ms(100), &supply(100)).0.len(), 1, "{combination}");
        for sack in [&[][..], &sacked] {
            sender.on_ack(ms(101), &ack(0, sack));
            let sent = pump(&mut sender, ms(101), &supply(100));
            assert_eq!(sent, (vec![], Limit::Cwnd), "{combination}");
        }
    }
}

// Shows: RFC5681-3.2-12, RFC5681-4.3-3, RFC6675-5-3
#[test]
fn when_all_that_was_out_is_acknowledged_the_recovery_ends_and_cwnd_is_ssthresh() {
    for combination in ["reno/reno", "newreno/reno", "sack/reno", "rack/reno"] {
        let mut sender = sender(combination);
        pump(&mut sender, Instant::ZERO, &supply(10));
        let has_blocks = combination.starts_with("sack") || combination.starts_with("rack");
        for upto in 2..=10 {
            let sacked = [segments(1, upto)];
            sender.on_ack(ms(100), &ack(0, if has_blocks { &sacked } else { &[] }));
            pump(&mut sender, ms(100), &supply(10));
        }
        assert_eq!(sender.phase(), Phase::Recovery, "{combination}");
        sender.on_ack(ms(200), &ack(10, &[]));
        let state = sender.control_state();
        assert_eq!(sender.phase(), Phase::Open, "{combination}");
        assert_eq!(state.ssthresh, Some(ByteCount(5_000)), "{combination}");
        assert_eq!(sender.cwnd(), ByteCount(5_000), "{combination}");
        // Congestion avoidance from here on: a window of ACKs adds one segment.
        pump(&mut sender, ms(200), &supply(15));
        sender.on_ack(ms(300), &ack(15, &[]));
        assert_eq!(sender.cwnd(), ByteCount(6_000), "{combination}");
    }
}

// Shows: RFC6675-5-6
#[test]
fn sack_information_about_new_data_outlasts_the_recovery() {
    let mut sender = sender("sack/reno");
    pump(&mut sender, Instant::ZERO, &supply(100));
    for upto in 2..=10 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
        pump(&mut sender, ms(100), &supply(100));
    }
    // Ten segments, and two of limited transmit, were outstanding when it started; new data
    // followed the retransmission.
    let last = index(sender.snd_nxt()) - 1;
    assert!(sender.phase() == Phase::Recovery && last > 12, "{last}");
    let sacked = segments(last, last + 1);
    sender.on_ack(ms(190), &ack(0, &[sacked, segments(1, 10)]));
    sender.on_ack(ms(200), &ack(12, &[sacked]));
    assert_eq!((sender.phase(), sender.board().sacked()), (Phase::Open, sacked.len()));
}

// Shows: RFC6675-5-1
#[test]
fn duplicates_before_an_ack_of_new_data_do_not_count_after_it() {
    for combination in ["reno/reno", "newreno/reno", "sack/reno"] {
        let mut sender = sender(combination);
        pump(&mut sender, Instant::ZERO, &supply(10));
        let has_blocks = combination.starts_with("sack");
        for lost in [0, 4] {
            for upto in [2, 3] {
                let sacked = [segments(lost + 1, lost + upto)];
                sender.on_ack(ms(100), &ack(lost, if has_blocks { &sacked } else { &[] }));
            }
            // The missing segment arrives late.
            sender.on_ack(ms(101), &ack(lost + 4, &[]));
        }
        assert_eq!((sender.phase(), sender.stats().segments_lost), (Phase::Open, 0));
    }
}

// Shows: RFC8985-4-1
#[test]
fn without_sack_there_is_no_rack() {
    let rack: Combination = "rack/cubic".parse().unwrap();
    assert_eq!(rack.granted(WireNeeds::NONE).to_string(), "newreno/cubic");
    let granted = WireNeeds { sack: true, ..WireNeeds::NONE };
    assert_eq!(rack.granted(granted), rack);
}

// Shows: RFC8985-3.3.2-4, RFC8985-3.3.2-5
#[test]
fn the_window_for_reordering_is_never_wider_than_a_round_trip() {
    let mut sender = sender("rack/reno");
    // A DSACK in each of twenty round trips.
    for round in 0..20 {
        let now = ms(round * 200);
        pump(&mut sender, now, &supply(round + 1));
        let report = Ack { dsack: Some(segments(round, round + 1)), ..ack(round + 1, &[]) };
        sender.on_ack(now + Duration::from_millis(100), &report);
    }
    pump(&mut sender, ms(4_000), &supply(30));
    sender.on_ack(ms(4_100), &ack(20, &[segments(21, 22)]));
    assert_eq!(sender.rtt().srtt(), Some(Duration::from_millis(100)));
    // The expected arrival of the segment, plus one round trip.
    assert_eq!(sender.poll_timeout(), Some(ms(4_200)));
}

// Shows: RFC8985-7.3-1, RFC8985-7.3-2
#[test]
fn one_probe_is_out_at_a_time_and_none_leaves_before_there_is_a_sample() {
    let mut sender = sender("rack/reno");
    pump(&mut sender, Instant::ZERO, &supply(1));
    let at = sender.poll_timeout().unwrap();
    sender.on_timeout(at);
    let (sent, _) = pump(&mut sender, at, &supply(1));
    assert_eq!(named(&sent), [(0, SendRule::ProbeAgain)]);
    // Only the retransmission timer runs, whatever else is sent.
    let rto = Some(at + sender.rtt().rto());
    pump(&mut sender, at + Duration::from_millis(10), &supply(5));
    assert_eq!(sender.poll_timeout(), rto);
    // The ACK covers data sent twice, and without a time stamp it is no sample.
    let now = at + Duration::from_millis(100);
    sender.on_ack(now, &Ack { dsack: Some(segments(0, 1)), ..ack(1, &[]) });
    assert_eq!(sender.poll_timeout(), Some(now + sender.rtt().rto()));
    pump(&mut sender, now, &supply(6));
    assert_eq!(sender.poll_timeout(), Some(now + sender.rtt().rto()));
    // With a sample there may be another probe.
    let now = now + Duration::from_millis(20);
    sender.on_ack(now, &ack(2, &[]));
    assert_eq!(sender.poll_timeout(), Some(now + sender.rtt().srtt().unwrap() * 2));
}

// Shows: RFC8985-7.3-1
#[test]
fn without_any_sample_nothing_is_probed() {
    let start = Start {
        now: Instant::ZERO,
        first: FIRST,
        smss: ByteCount(SMSS),
        granted: WireNeeds { sack: true, ..WireNeeds::NONE },
        handshake_rtt: None,
        syn_retransmitted: false,
        seed: 0,
    };
    let mut sender = Sender::new(&SenderConfig::default(), &start);
    pump(&mut sender, Instant::ZERO, &supply(4));
    assert_eq!(sender.poll_timeout(), Some(ms(1_000)));
    sender.on_timeout(ms(1_000));
    assert_eq!((sender.stats().timeouts, sender.stats().probes), (1, 0));
}
