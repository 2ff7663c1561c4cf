//! The packetdrill scripts of `tests/packetdrill/scripts` that no other test covers, without
//! packetdrill.

use airtcp_recovery::Phase;

use super::*;

/// As [`plain`], with a combination of strategies.
fn with(combination: &str) -> TcpConfig {
    let mut config = plain();
    config.sender.combination = combination.parse().unwrap();
    config
}

/// ESTABLISHED, with a round-trip time of 100 ms measured in the handshake.
#[track_caller]
fn established(config: &TcpConfig) -> Script {
    let mut s = Script::syn_received(config);
    assert_eq!(s.take(0).unwrap().flags, "SA");
    send!(s, 100, "A", 1, ack = 1);
    s
}

impl Script {
    /// Writes full segments, which are sent at once; the last one may end a write.
    #[track_caller]
    fn leave(&mut self, ms: u64, segments: u32) {
        let from = self.written;
        self.write(segments as usize * 1000);
        for n in 0..segments {
            let sent = self.take(ms).unwrap();
            assert_eq!((sent.seq, sent.data.len()), (from + n * 1000, 1000));
        }
    }

    fn phase(&self) -> Phase {
        self.conn.sender().unwrap().phase()
    }

    /// cwnd and ssthresh in segments.
    fn windows(&self) -> (u64, Option<u64>) {
        let info = self.conn.info(self.now);
        (info.cwnd.0 / 1000, info.ssthresh.map(|ssthresh| ssthresh.0 / 1000))
    }
}

/// `rto_backoff.pkt`
#[test]
fn each_time_out_is_twice_the_one_before() {
    let mut s = established(&plain());
    s.leave(100, 1);
    for ms in [400, 1000, 2200, 4600] {
        recv_nothing!(s, ms - 1);
        recv!(s, ms, "PA", 1, ack = 1, len = 1000);
    }
    send!(s, 4700, "A", 1, ack = 1001);
    let info = s.conn.info(s.now);
    assert_eq!((info.unacked, info.retrans), (ByteCount::ZERO, 4));
    send!(s, 4800, "A", 1, ack = 1001, len = 100);
    recv!(s, 4800, "A", 1001, ack = 101);
}

/// `tlp.pkt`
#[test]
fn the_last_of_the_data_is_sent_again_after_two_round_trips() {
    let mut s = established(&with("rack/cubic"));
    s.leave(100, 4);
    send!(s, 200, "A", 1, ack = 2001);
    recv_nothing!(s, 399);
    recv!(s, 400, "PA", 3001, ack = 1, len = 1000);
    send!(s, 500, "A", 1, ack = 4001);
    assert_eq!(s.conn.info(s.now).backoff, 0);
    assert!(s.windows().0 >= 7, "it was no time-out");
}

/// `dsack_undo.pkt`
#[test]
fn a_repair_that_is_reported_as_a_duplicate_gives_the_window_back() {
    let mut s = established(&with("rack/cubic"));
    s.leave(100, 10);
    send!(s, 200, "A", 1, ack = 1, sack = [(1001, 4001)]);
    recv!(s, 200, "A", 1, ack = 1, len = 1000);
    assert_eq!((s.phase(), s.windows().1), (Phase::Recovery, Some(7)));
    // It was late, not lost.
    send!(s, 220, "A", 1, ack = 10_001);
    assert_eq!(s.windows().1, Some(7));
    send!(s, 300, "A", 1, ack = 10_001, sack = [(1, 1001)]);
    assert_eq!((s.phase(), s.conn.info(s.now).dsack_dups), (Phase::Open, 1));
    let (cwnd, ssthresh) = s.windows();
    assert!(cwnd >= 10 && ssthresh.is_none(), "{cwnd} {ssthresh:?}");
}

/// `prr.pkt`
#[test]
fn while_the_window_falls_fewer_leave_than_arrive_and_then_as_many() {
    let mut s = established(&with("rack/cubic"));
    s.leave(100, 10);
    s.write(10_000);
    // The segment sent after each further segment above the hole has arrived.
    let leaves = [
        Some(10_001),
        Some(11_001),
        // The fast retransmit. Each segment that arrives allows 0.7 of a segment, and a fraction
        // releases a whole one: 0.7, 1.4, 2.1, then 2.8, when three have been sent.
        Some(1),
        Some(12_001),
        Some(13_001),
        None,
        // As much data is in flight as the window will allow.
        None,
        // One segment less is in flight: one is sent for each that arrives.
        Some(14_001),
        Some(15_001),
    ];
    for (n, expected) in (2..).zip(leaves) {
        send!(s, 200, "A", 1, ack = 1, sack = [(1001, n * 1000 + 1)]);
        assert_eq!(s.take(200).map(|sent| sent.seq), expected, "after {n}");
        recv_nothing!(s, 200);
    }
    assert_eq!(s.windows().1, Some(7));
}

/// `dcr_delay.pkt`
#[test]
fn the_response_to_duplicate_acks_waits_for_a_round_trip() {
    let mut s = established(&with("sack/cubic/dcr:timer"));
    // A loss ends slow start, during which the response is not delayed.
    s.leave(100, 10);
    send!(s, 200, "A", 1, ack = 1, sack = [(1001, 10_001)]);
    recv!(s, 200, "A", 1, ack = 1, len = 1000);
    send!(s, 300, "A", 1, ack = 10_001);
    s.leave(300, 7);
    s.write(10_000);
    for n in 0..3 {
        send!(s, 400, "A", 1, ack = 10_001, sack = [(11_001, 12_001 + n * 1000)]);
        recv!(s, 400, "A", 17_001 + n * 1000, ack = 1, len = 1000);
        recv_nothing!(s, 400);
    }
    assert_eq!(s.phase(), Phase::Open);
    recv_nothing!(s, 499);
    recv!(s, 500, "A", 10_001, ack = 1, len = 1000);
    assert_eq!(s.phase(), Phase::Recovery);
}
