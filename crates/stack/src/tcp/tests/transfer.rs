//! Data in both directions, and its retransmission.

use std::sync::Arc;

use airtcp_recovery::registry::Entry;
use airtcp_recovery::{Cause, Choice, Finding, LossJudge, Ruling, Transmission, View, When};
use airtcp_types::SharedBytes;

use super::*;

// Shows: RFC9293-MUST-65, RFC9293-SHLD-28, RFC2018-2
#[test]
fn data_goes_both_ways() {
    let mut s = Script::established(&plain());
    s.write(1500);
    recv!(s, 0, "A", 1, ack = 1, len = 1000);
    recv_nothing!(s, 0);
    send!(s, 10, "PA", 1, ack = 1001, len = 300);
    recv!(s, 10, "PA", 1001, ack = 301, len = 500);
    recv_nothing!(s, 10);
    assert_eq!(s.read(), stream(1, 300));
    send!(s, 20, "A", 301, ack = 1501);
    recv_nothing!(s, 1_000_000);
    let info = s.conn.info(s.now);
    assert_eq!((info.bytes_sent, info.bytes_acked), (ByteCount(1500), ByteCount(1500)));
    assert_eq!((info.bytes_received, info.send_q), (ByteCount(300), ByteCount(0)));
}

// Shows: RFC5681-3.1-3
#[test]
fn the_initial_window_is_ten_segments() {
    let mut s = Script::established(&plain());
    s.write(20_000);
    for n in 0..10 {
        recv!(s, 0, "A", 1 + n * 1000, ack = 1, len = 1000);
    }
    recv_nothing!(s, 0);
}

// Shows: RFC9293-MUST-60, RFC9293-MUST-61, RFC9293-SHLD-27
#[test]
fn psh_marks_the_end_of_a_write_not_every_segment() {
    let mut s = Script::established(&plain());
    s.write(1500);
    s.write(1000);
    recv!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "PA", 1001, ack = 1, len = 1000);
    send!(s, 1, "A", 1, ack = 2001);
    recv!(s, 1, "PA", 2001, ack = 1, len = 500);
}

// Shows: RFC9293-SHLD-7, RFC9293-MUST-17
#[test]
fn nagle_holds_a_small_segment_back_and_nodelay_does_not() {
    let mut s = Script::established(&plain());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    s.write(10);
    recv_nothing!(s, 0);
    s.conn.set_nodelay(true);
    recv!(s, 0, "PA", 11, ack = 1, len = 10);
    s.conn.set_nodelay(false);
    s.write(10);
    recv_nothing!(s, 0);
    send!(s, 5, "A", 1, ack = 21);
    recv!(s, 5, "PA", 21, ack = 1, len = 10);
}

// Shows: RFC9293-MUST-19, RFC9293-MUST-20
#[test]
fn the_retransmission_timer_backs_off_and_gives_up() {
    let mut s = Script::established(&plain());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    // The handshake took no time, so the RTO is 0 + 200 ms.
    for ms in [200, 600, 1400, 3000] {
        recv!(s, ms, "PA", 1, ack = 1, len = 10);
        recv_nothing!(s, ms);
    }
    assert_eq!(s.counters.tcp_ext_timeouts, 4);
    let mut left = 4;
    while s.conn.state() != State::Closed {
        s.now = s.conn.poll_timeout().unwrap();
        s.conn.on_timeout(s.now, &mut s.counters);
        left += u32::from(s.conn.poll_transmit(s.now, &mut s.counters, &mut s.outlet).is_some());
    }
    assert_eq!((left, s.conn.error()), (15, Some(TcpError::TimedOut)));
}

// Shows: RFC9293-MUST-21
#[test]
fn a_user_timeout_ends_the_wait() {
    let mut s = Script::established(&plain());
    s.conn.set_user_timeout(Some(Duration::from_millis(500)));
    recv_nothing!(s, 10_000);
    s.write(10);
    recv!(s, 10_000, "PA", 1, ack = 1, len = 10);
    recv!(s, 10_200, "PA", 1, ack = 1, len = 10);
    recv_nothing!(s, 10_500);
    assert_eq!(s.conn.error(), Some(TcpError::TimedOut));
}

// Shows: RFC2018-5-1, RFC2018-5.1-1, RFC6675-4-2, RFC6675-5-2
#[test]
fn sack_blocks_bring_a_fast_retransmission() {
    let mut config = plain();
    config.sender.profile.proportional_rate_reduction = false;
    let mut s = Script::established(&config);
    s.write(5000);
    for n in 0..5 {
        s.take(0).unwrap_or_else(|| panic!("segment {n}"));
    }
    send!(s, 10, "A", 1, ack = 1, sack = [(1001, 2001)]);
    send!(s, 10, "A", 1, ack = 1, sack = [(1001, 3001)]);
    recv_nothing!(s, 10);
    send!(s, 10, "A", 1, ack = 1, sack = [(1001, 4001)]);
    recv!(s, 10, "A", 1, ack = 1, len = 1000);
    // RFC 6675 NextSeg rule 4: with nothing else to send, the end goes once more.
    recv!(s, 10, "PA", 4001, ack = 1, len = 1000);
    recv_nothing!(s, 10);
    send!(s, 20, "A", 1, ack = 5001);
    let info = s.conn.info(s.now);
    assert_eq!((info.retrans, info.bytes_retrans), (2, ByteCount(2000)));
    assert_eq!(s.counters.tcp_ext_fast_retrans, 1);
}

/// A judge to which every loss is random.
#[derive(Debug)]
struct AllRandom;

impl LossJudge for AllRandom {
    fn rule(&mut self, _: &Finding, _: &Transmission, _: &View<'_>, _: bool) -> Option<Ruling> {
        Some(Ruling { repair: When::Now, reduce: When::Never, cause: Cause::Random })
    }
}

static ALL_RANDOM: Entry<dyn LossJudge> = Entry {
    name: "all-random",
    summary: "every loss is random",
    source: "this test",
    make: |_, _| Ok(Box::new(AllRandom)),
    ..Entry::BLANK
};

#[test]
fn losses_are_counted_by_their_cause() {
    for (judges, random) in [(vec![], 0), (vec![Choice::new(&ALL_RANDOM, None).unwrap()], 1)] {
        let mut config = plain();
        config.sender.combination = config.sender.combination.clone().with_judges(judges);
        let mut s = Script::established(&config);
        s.write(5000);
        while s.take(0).is_some() {}
        send!(s, 10, "A", 1, ack = 1, sack = [(1001, 5001)]);
        let info = s.conn.info(s.now);
        assert_eq!((info.segs_lost, info.segs_lost_random), (1, random));
        let counted = (s.counters.tcp_ext_segs_lost, s.counters.tcp_ext_segs_lost_random);
        assert_eq!(counted, (1, u64::from(random)));
        assert!(info.to_string().contains(" segs_lost:1"), "{info}");
        // The counts outlive the sender.
        send!(s, 20, "A", 1, ack = 5001);
        assert_eq!(s.counters.tcp_ext_segs_lost, 1);
        assert_eq!(s.conn.info(s.now).segs_lost_random, random);
    }
}

// Shows: RFC6675-4-2, RFC6675-5-2
#[test]
fn one_ack_shows_a_loss_by_three_ranges_or_more_than_two_segments() {
    type Blocks = &'static [(u32, u32)];
    let cases: [(Blocks, bool); 5] = [
        (&[(51, 61), (31, 41), (11, 21)], true),
        (&[(31, 41), (11, 21)], false),
        (&[(51, 81)], false),
        (&[(1081, 3081)], false),
        (&[(1081, 3082)], true),
    ];
    for (sack, lost) in cases {
        let mut s = Script::established(&plain());
        s.conn.set_nodelay(true);
        // Eight segments of ten bytes, and three full ones.
        for _ in 0..8 {
            s.write(10);
            assert_eq!(s.take(0).unwrap().data.len(), 10);
        }
        s.write(3001);
        while s.take(0).is_some() {}
        s.send_at(10, Seg { sack: sack.to_vec(), ..seg!("A", 1, ack = 1) });
        let again = s.take(10).map(|seg| (seg.seq, seg.data.len()));
        assert_eq!(again, lost.then_some((1, 10)), "{sack:?}");
        assert_eq!(s.counters.tcp_ext_fast_retrans, u64::from(lost), "{sack:?}");
    }
}

// Shows: RFC6675-5-2
#[test]
fn sack_blocks_of_a_late_ack_count() {
    let mut s = Script::established(&plain());
    s.write(5000);
    (0..5).for_each(|_| assert!(s.take(0).is_some()));
    send!(s, 10, "A", 1, ack = 1001, window = 9_000);
    send!(s, 11, "A", 1, ack = 1, sack = [(501, 1001), (3001, 4001)], window = 1);
    let info = s.conn.info(s.now);
    assert_eq!((info.sacked, info.snd_wnd), (ByteCount(1000), ByteCount(9000)));
    assert_eq!(s.counters.tcp_ext_sack_discard, 0);
    recv_nothing!(s, 11);
    // Together with the others these are three segments, so that a loss is detected.
    send!(s, 12, "A", 1, ack = 1001, sack = [(2001, 5001)]);
    recv!(s, 12, "A", 1001, ack = 1, len = 1000);
}

// Shows: RFC5681-3.2-3, RFC5681-3.2-9
#[test]
fn three_duplicate_acks_do_the_same_without_sack() {
    let mut s = Script::established(&TcpConfig { sack: false, ..plain() });
    s.write(5000);
    (0..5).for_each(|_| assert!(s.take(0).is_some()));
    for _ in 0..2 {
        send!(s, 10, "A", 1, ack = 1);
        recv_nothing!(s, 10);
    }
    // A window update or data is not a duplicate ACK.
    send!(s, 10, "A", 1, ack = 1, window = PEER_WINDOW + 1);
    recv_nothing!(s, 10);
    send!(s, 10, "A", 1, ack = 1, window = PEER_WINDOW + 1);
    recv!(s, 10, "A", 1, ack = 1, len = 1000);
}

#[test]
fn sack_blocks_that_lie_change_nothing() {
    let mut s = Script::established(&plain());
    s.write(5000);
    (0..5).for_each(|_| assert!(s.take(0).is_some()));
    let lies = [(5001, 6001), (3001, 2001), (2001, 2001), (4001, 9001)];
    for _ in 0..5 {
        send!(s, 10, "A", 1, ack = 1001, sack = lies);
    }
    assert_eq!(s.conn.info(s.now).sacked, ByteCount(0));
    assert_eq!(s.counters.tcp_ext_sack_discard, 20);
}

#[test]
fn an_ack_of_the_future_is_answered_and_dropped_with_its_data() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 2, len = 10);
    recv!(s, 0, "A", 1, ack = 1);
    send!(s, 1, "A", 1, ack = 2, len = 10);
    recv_nothing!(s, 1);
    assert_eq!(s.read(), b"");
}

// Shows: RFC5961-5.2
#[test]
fn an_ack_too_old_to_be_true_is_challenged_and_an_old_one_is_not() {
    let mut s = Script::established(&plain());
    s.write(20);
    recv!(s, 0, "PA", 1, ack = 1, len = 20);
    send!(s, 0, "A", 1, ack = 21);
    // RFC 5961 section 5.2: down to SND.UNA - MAX.SND.WND.
    send!(s, 1, "A", 1, ack = 1, len = 10);
    recv!(s, 1, "A", 21, ack = 11);
    send!(s, 2, "A", 11, ack = 21u32.wrapping_sub(u32::from(PEER_WINDOW) + 1), len = 10);
    recv!(s, 2, "A", 21, ack = 11);
    assert_eq!(s.counters.tcp_ext_challenge_ack, 1);
}

#[test]
fn the_send_buffer_is_bounded_and_says_when_there_is_room() {
    let mut s = Script::established(&TcpConfig { send_buffer: ByteCount(3000), ..plain() });
    assert_eq!(s.conn.send(s.now, &stream(1, 5000), &mut s.outlet), Ok(3000));
    assert_eq!(s.conn.send(s.now, b"x", &mut s.outlet), Err(TcpError::WouldBlock));
    assert!(!s.conn.readiness().writable);
    (0..3).for_each(|_| assert!(s.take(0).is_some()));
    send!(s, 1, "A", 1, ack = 1001);
    assert!(s.conn.readiness().writable);
    assert_eq!(s.conn.send(s.now, &stream(3001, 5000), &mut s.outlet), Ok(1000));
}

#[test]
fn shared_bytes_are_sent_as_what_is_copied_is() {
    let mut s = Script::established(&TcpConfig { send_buffer: ByteCount(9000), ..plain() });
    let data = Arc::new(stream(1, 20_000));
    let mut left = SharedBytes::new(&data, 0..data.len());
    assert_eq!(s.conn.send_shared(s.now, left.clone(), &mut s.outlet), Ok(9000));
    left.advance(9000);
    assert_eq!(s.conn.send_shared(s.now, left.clone(), &mut s.outlet), Err(TcpError::WouldBlock));
    assert_eq!(s.conn.send_shared(s.now, left.part(0..0), &mut s.outlet), Ok(0));
    let sent: Vec<u8> = std::iter::from_fn(|| s.take(0)).flat_map(|segment| segment.data).collect();
    assert!(!sent.is_empty() && data.starts_with(&sent));
    send!(s, 1, "A", 1, ack = 1001);
    assert_eq!(s.conn.send_shared(s.now, left.clone(), &mut s.outlet), Ok(1000));
    s.conn.shutdown(s.now);
    assert_eq!(s.conn.send_shared(s.now, left.clone(), &mut s.outlet), Err(TcpError::Shutdown));
}

#[test]
fn events_are_in_order_and_only_on_request() {
    let mut s = Script::established(&TcpConfig { events: true, ..plain() });
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    send!(s, 1, "A", 1, ack = 11);
    s.conn.shutdown(s.now);
    recv!(s, 1, "FA", 11, ack = 1);
    let reported: Vec<_> = std::iter::from_fn(|| s.conn.poll_event())
        .filter_map(|kind| match kind {
            EventKind::Received { .. } => Some("received"),
            EventKind::State { to, .. } => Some(to),
            EventKind::Sent { .. } => Some("sent"),
            EventKind::Rtt { .. } => Some("rtt"),
            _ => None,
        })
        .collect();
    let story =
        ["received", "ESTABLISHED", "sent", "received", "rtt", "FIN-WAIT-1", "sent"].as_slice();
    assert_eq!(reported, story);
    let mut quiet = Script::established(&plain());
    assert_eq!(quiet.conn.poll_event(), None);
}

#[test]
fn info_prints_the_line_of_ss() {
    let mut s = Script::established(&plain());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    let line = s.conn.info(s.now).to_string();
    for token in
        ["ESTAB sack sack/cubic wscale:0,0 rto:200", " mss:1000 ", " cwnd:10 ", " unacked:1 "]
    {
        assert!(line.contains(token), "{token} in {line}");
    }
}

#[test]
fn info_prints_the_path_model_under_the_name_of_its_control() {
    for (combination, prefix) in [
        ("rack/bbr", Some(" bbr:(bw:")),
        ("le:echo/bbr3/spike", Some(" bbr3:(bw:")),
        ("rack/cubic", None),
    ] {
        let mut config = plain();
        config.sender.combination = combination.parse().unwrap();
        let s = Script::established(&config);
        let line = s.conn.info(s.now).to_string();
        match prefix {
            Some(prefix) => assert!(line.contains(prefix), "{line}"),
            None => assert!(!line.contains(":(bw:"), "{line}"),
        }
    }
}
