//! Without time stamps, the second ACK after a time-out shows whether it was spurious (RFC 5682).

use airtcp_types::{ByteCount, Instant, SendRule};

use crate::testkit::{Net, RTT, SMSS, ack, named, pump, segments, sender, sender_of, supply};
use crate::{Ack, Phase, Profile, Sender};

const ALL: [&str; 6] =
    ["reno/reno", "newreno/cubic", "sack/reno", "fack/cubic", "rack/cubic", "le/reno"];

/// Returns a sender with `upto` segments outstanding that has retransmitted the first after a
/// time-out, and the time half a round trip later.
fn timed_out(combination: &str, upto: u64) -> (Sender, Instant) {
    let mut sender = sender(combination);
    pump(&mut sender, Instant::ZERO, &supply(upto));
    // Tail loss probes precede the time-out.
    while sender.stats().timeouts == 0 {
        let at = sender.poll_timeout().unwrap();
        sender.on_timeout(at);
        let (sent, _) = pump(&mut sender, at, &supply(upto));
        if sender.stats().timeouts == 1 {
            assert_eq!(named(&sent), [(0, SendRule::Timeout)], "{combination}");
            return (sender, at + RTT / 2);
        }
    }
    unreachable!()
}

#[test]
fn the_arrival_of_unretransmitted_data_shows_a_spurious_time_out() {
    for combination in ALL {
        let (mut sender, now) = timed_out(combination, 10);
        let before = self::sender(combination).cwnd();
        sender.on_ack(now, &ack(2, &[]));
        let (sent, _) = pump(&mut sender, now, &supply(100));
        let new = [10, 11].map(|segment| (segment, SendRule::NewData));
        assert_eq!(named(&sent), new, "{combination}");
        assert_eq!(sender.stats().undos, 0, "{combination}");
        sender.on_ack(now, &ack(3, &[]));
        assert_eq!((sender.stats().undos, sender.phase()), (1, Phase::Open), "{combination}");
        assert!(sender.cwnd() >= before, "{combination}");
        assert_eq!(sender.control_state().ssthresh, None, "{combination}");
        let (sent, _) = pump(&mut sender, now, &supply(100));
        assert!(sent.iter().all(|sent| sent.rule == SendRule::NewData), "{combination}: {sent:?}");
        sender.board().audit().unwrap();
    }
}

#[test]
fn a_sack_block_shows_it_too() {
    for combination in ["sack/reno", "rack/cubic", "le/reno"] {
        let (mut sender, now) = timed_out(combination, 10);
        sender.on_ack(now, &ack(1, &[]));
        pump(&mut sender, now, &supply(100));
        sender.on_ack(now, &ack(1, &[segments(4, 5)]));
        assert_eq!(sender.stats().undos, 1, "{combination}");
    }
}

#[test]
fn where_the_rest_is_lost_repairs_follow_the_second_ack() {
    for combination in ALL {
        let (mut sender, now) = timed_out(combination, 10);
        sender.on_ack(now, &ack(1, &[]));
        let (sent, _) = pump(&mut sender, now, &supply(100));
        let new = [10, 11].map(|segment| (segment, SendRule::NewData));
        assert_eq!(named(&sent), new, "{combination}");
        // The new data causes a duplicate ACK, with a SACK block if SACK is used.
        let now = now + RTT;
        let has_sack = sender.combination().detection().entry().needs.sack;
        let block = [segments(10, 11)];
        sender.on_ack(now, &ack(1, if has_sack { &block } else { &[] }));
        let (sent, _) = pump(&mut sender, now, &supply(100));
        assert_eq!(named(&sent)[0].0, 1, "{combination}: {sent:?}");
        assert!(sent[0].rule.is_retransmission(), "{combination}");
        // RFC 5682 section 2.1 step 3 a.
        assert!(sender.cwnd() <= ByteCount(3 * SMSS), "{combination}");
        assert_eq!((sender.stats().undos, sender.phase()), (0, Phase::Loss), "{combination}");
    }
}

#[test]
fn a_first_ack_that_says_nothing_lets_repairs_leave() {
    // A duplicate ACK; and an ACK of one of two retransmitted segments.
    for combination in ALL {
        let (mut sender, now) = timed_out(combination, 10);
        sender.on_ack(now, &ack(0, &[]));
        sender.on_ack(now, &ack(1, &[]));
        let (sent, _) = pump(&mut sender, now, &supply(100));
        assert_eq!(named(&sent)[0].0, 1, "{combination}: {sent:?}");
        assert!(sent[0].rule.is_retransmission(), "{combination}");
    }
}

#[test]
fn without_new_data_repairs_leave_at_once() {
    for combination in ALL {
        let (mut sender, now) = timed_out(combination, 10);
        sender.on_ack(now, &ack(1, &[]));
        let (sent, _) = pump(&mut sender, now, &supply(10));
        assert_eq!(named(&sent)[0].0, 1, "{combination}: {sent:?}");
        assert!(sent[0].rule.is_retransmission(), "{combination}");
    }
}

#[test]
fn with_timestamps_the_first_ack_decides() {
    for combination in ALL {
        let (mut sender, now) = timed_out(combination, 10);
        let echo = Some(Instant::from_millis((now - RTT / 2).as_millis()));
        sender.on_ack(now, &Ack { echo, ..ack(1, &[]) });
        let (sent, _) = pump(&mut sender, now, &supply(100));
        assert_eq!(named(&sent)[0].0, 1, "{combination}: {sent:?}");
        assert_eq!(sender.stats().undos, 0, "{combination}");
    }
}

#[test]
fn a_second_time_out_repairs() {
    for combination in ALL {
        let (mut sender, now) = timed_out(combination, 10);
        sender.on_ack(now, &ack(1, &[]));
        pump(&mut sender, now, &supply(100));
        let rto = sender.poll_timeout().unwrap();
        sender.on_timeout(rto);
        let (sent, _) = pump(&mut sender, rto, &supply(100));
        assert_eq!((named(&sent), sender.stats().timeouts), (vec![(1, SendRule::Timeout)], 2));
        // RFC 5682 section 2.1 step 1: not again in the recovery from the first.
        sender.on_ack(rto + RTT, &ack(2, &[]));
        let (sent, _) = pump(&mut sender, rto + RTT, &supply(100));
        assert_eq!(named(&sent)[0].0, 2, "{combination}: {sent:?}");
    }
}

#[test]
fn everything_arrives_where_a_whole_window_is_lost_or_late() {
    for combination in ALL {
        for is_late in [false, true] {
            // A probe would delay the time-out.
            let profile = Profile { tail_loss_probe: false, ..Profile::modern() };
            let mut net = Net::new(sender_of(combination.parse().unwrap(), profile), 60, 30);
            net.options = false;
            for segment in 10..30 {
                match is_late {
                    true => drop(net.delays.insert(segment, RTT * 5 / 2)),
                    false => drop(net.losses.insert((segment, 0))),
                }
            }
            net.run();
            let undos = net.sender.stats().undos;
            assert_eq!(undos > 0, is_late, "{combination}, late: {is_late}");
        }
    }
}

#[test]
fn the_paper_profile_has_none() {
    let profile = Profile { initial_window: 10, ..Profile::paper() };
    let mut sender = sender_of("newreno/reno".parse().unwrap(), profile);
    pump(&mut sender, Instant::ZERO, &supply(100));
    let rto = sender.poll_timeout().unwrap();
    sender.on_timeout(rto);
    pump(&mut sender, rto, &supply(100));
    sender.on_ack(rto + RTT, &ack(1, &[]));
    let (sent, _) = pump(&mut sender, rto + RTT, &supply(100));
    assert_eq!(named(&sent)[0].0, 1, "{sent:?}");
}
