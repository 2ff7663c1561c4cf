//! Windows that shrink, and silly windows (RFC 9293 sections 3.8.6 and 3.8.6.2).

use proptest::prelude::*;

use super::*;

/// A peer that drops every segment that is not wholly inside its window, and changes its window on
/// every ACK.
struct Strict {
    next: u32,
    window: u32,
    data: Vec<u8>,
}

impl Strict {
    /// Processes a segment, and returns the ACK.
    fn take(&mut self, seg: &Seg, window: u32) -> Seg {
        let end = seg.seq + seg.data.len() as u32;
        if seg.seq <= self.next && end > self.next && end <= self.next + self.window {
            self.data.extend_from_slice(&seg.data[(self.next - seg.seq) as usize..]);
            self.next = end;
        }
        self.window = window;
        seg!("A", 1, ack = self.next, window = window as u16)
    }
}

// Shows: RFC9293-MUST-34, RFC9293-SHLD-15, RFC9293-SHLD-16, RFC7323-2.4-1
#[test]
fn of_what_was_sent_only_what_the_window_holds_is_sent_again() {
    let mut s = Script::established(&plain());
    s.write(3_000);
    for n in 0..3 {
        let seg = s.take(0).unwrap();
        assert_eq!((seg.seq, seg.data.len()), (1 + n * 1_000, 1_000));
    }
    // SND.UNA + SND.WND is now far below SND.NXT, and inside the first segment.
    send!(s, 10, "A", 1, ack = 1, window = 600);
    s.write(1_000);
    recv_nothing!(s, 10);
    recv!(s, 200, "A", 1, ack = 1, len = 600);
    recv_nothing!(s, 200);
    send!(s, 210, "A", 1, ack = 601, window = 600);
    recv!(s, 210, "A", 601, ack = 1, len = 400);
    recv!(s, 210, "A", 1001, ack = 1, len = 200);
    send!(s, 220, "A", 1, ack = 1201, window = 32_000);
    // The rest is retransmitted, followed by new data.
    let mut next = 1_201;
    while let Some(seg) = s.take(220) {
        assert_eq!(seg.seq, next);
        next += seg.data.len() as u32;
        let (seq, ack) = (1, next);
        s.send_at(220, Seg { flags: "A", seq, ack: Some(ack), ..Seg::default() });
    }
    assert_eq!((next, s.conn.state()), (4_001, State::Established));
}

// Shows: RFC9293-MUST-35, RFC9293-SHLD-17
#[test]
fn data_beyond_a_window_that_shrank_ends_nothing() {
    let mut s = Script::established(&plain());
    s.write(2_000);
    s.take(0).unwrap();
    s.take(0).unwrap();
    send!(s, 0, "A", 1, ack = 1, window = 0);
    // R2 is exceeded many times, and every retransmission serves as a probe.
    for _ in 0..60 {
        let ms = s.conn.poll_timeout().unwrap().as_millis();
        let probe = s.take(ms).unwrap();
        assert_eq!((probe.seq, probe.data.len()), (1, 1_000));
        recv_nothing!(s, ms);
        send!(s, ms, "A", 1, ack = 1, window = 0);
    }
    let ms = s.now.as_millis();
    send!(s, ms, "A", 1, ack = 1, window = 5_000);
    let ms = s.conn.poll_timeout().unwrap().as_millis();
    recv!(s, ms, "A", 1, ack = 1, len = 1000);
    send!(s, ms, "A", 1, ack = 2001, window = 5_000);
    assert_eq!(s.conn.info(s.now).unacked, ByteCount::ZERO);
}

#[test]
fn an_orphan_whose_peer_opens_its_window_late_delivers_what_was_written() {
    let mut s = Script::established(&plain());
    s.write(1_000);
    s.take(0).unwrap();
    send!(s, 0, "A", 1, ack = 1, window = 0);
    for _ in 0..20 {
        let ms = s.conn.poll_timeout().unwrap().as_millis();
        s.take(ms).unwrap();
        send!(s, ms, "A", 1, ack = 1, window = 0);
    }
    let ms = s.now.as_millis();
    send!(s, ms, "A", 1, ack = 1, window = 5_000);
    s.conn.close(s.now);
    recv!(s, ms, "PA", 1, ack = 1, len = 1000);
    recv!(s, ms, "FA", 1001, ack = 1);
    recv_nothing!(s, ms);
    // Both are lost.
    let ms = s.conn.poll_timeout().unwrap().as_millis();
    recv!(s, ms, "PA", 1, ack = 1, len = 1000);
    send!(s, ms, "A", 1, ack = 1001, window = 5_000);
    recv!(s, ms, "FA", 1001, ack = 1);
    send!(s, ms, "A", 1, ack = 1002, window = 5_000);
    assert_eq!(s.conn.state(), State::FinWait2);
}

#[test]
fn an_orphan_ends_though_its_peer_opens_its_window_again_and_again() {
    let mut s = Script::established(&plain());
    s.write(1_000);
    s.take(0).unwrap();
    s.conn.close(s.now);
    s.take(0).unwrap();
    send!(s, 0, "A", 1, ack = 1, window = 0);
    for _ in 0..40 {
        let Some(at) = s.conn.poll_timeout() else { break };
        let ms = at.as_millis();
        while s.take(ms).is_some_and(|sent| sent.flags != "RA") {}
        send!(s, ms, "A", 1, ack = 1, window = 0);
        send!(s, ms, "A", 1, ack = 1, window = 5_000);
        while s.take(ms).is_some_and(|sent| sent.flags != "RA") {}
        send!(s, ms, "A", 1, ack = 1, window = 0);
    }
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::TimedOut)));
}

#[test]
fn a_window_that_shrinks_below_what_was_sent_and_grows_again_loses_nothing() {
    let mut s = Script::established(&plain());
    s.write(6_000);
    for _ in 0..6 {
        s.take(0).unwrap();
    }
    send!(s, 10, "A", 1, ack = 1001, window = 2_000);
    s.write(2_000);
    recv_nothing!(s, 10);
    send!(s, 20, "A", 1, ack = 5001, window = 2_000);
    recv!(s, 20, "A", 6001, ack = 1, len = 1000);
    recv_nothing!(s, 20);
    send!(s, 30, "A", 1, ack = 7001, window = 2_000);
    recv!(s, 30, "PA", 7001, ack = 1, len = 1000);
    assert_eq!(s.counters.tcp_retrans_segs, 0);
}

/// A peer whose window is never larger than a segment, and at most `max`.
fn tiny(max: u16, nodelay: bool) -> Script {
    let config = TcpConfig { nodelay, ..plain() };
    let mut s = Script::syn_received(&config);
    assert_eq!(s.take(0).unwrap().flags, "SA");
    send!(s, 0, "A", 1, ack = 1, window = max);
    s
}

// Shows: RFC9293-MUST-38
#[test]
fn half_of_the_largest_window_is_worth_a_segment_and_less_is_not() {
    let mut s = tiny(900, false);
    s.write(3_000);
    recv!(s, 0, "A", 1, ack = 1, len = 900);
    send!(s, 1, "A", 1, ack = 901, window = 449);
    recv_nothing!(s, 1);
    send!(s, 2, "A", 1, ack = 901, window = 450);
    recv!(s, 2, "A", 901, ack = 1, len = 450);
    recv_nothing!(s, 2);
}

#[test]
fn behind_what_is_outstanding_no_part_of_a_segment_leaves_but_with_nodelay() {
    for nodelay in [false, true] {
        let mut s = tiny(900, nodelay);
        s.write(3_000);
        recv!(s, 0, "A", 1, ack = 1, len = 900);
        // The peer has read half of it.
        send!(s, 1, "A", 1, ack = 451, window = 900);
        if nodelay {
            recv!(s, 1, "A", 901, ack = 1, len = 450);
        }
        recv_nothing!(s, 1);
        let upto = if nodelay { 1_351 } else { 901 };
        send!(s, 2, "A", 1, ack = upto, window = 900);
        recv!(s, 2, "A", upto, ack = 1, len = 900);
    }
}

proptest! {
    #[test]
    fn a_strict_peer_whose_window_is_never_the_same_gets_everything(
        windows in prop::collection::vec(prop_oneof![Just(0u32), 1u32..100, 400u32..3_000, Just(20_000)], 1..60),
        combination in prop::sample::select(vec!["sack/cubic", "newreno/reno", "rack/cubic", "le/cubic"]),
    ) {
        let mut config = plain();
        config.sender.combination = combination.parse().unwrap();
        let mut s = Script::established(&config);
        let all = stream(1, 30_000);
        s.write(30_000);
        let mut peer = Strict { next: 1, window: PEER_WINDOW.into(), data: Vec::new() };
        // After the last change the window stays open.
        let mut windows = windows.into_iter().chain(std::iter::repeat(20_000));
        for _ in 0..3_000 {
            let ms = s.now.as_millis();
            while let Some(seg) = s.take(ms) {
                let ack = peer.take(&seg, windows.next().unwrap());
                s.send_at(ms, ack);
            }
            if peer.data.len() == all.len() {
                break;
            }
            let at = s.conn.poll_timeout();
            prop_assert!(at.is_some(), "it waits for nothing");
            s.now = s.now.max(at.unwrap());
            s.conn.on_timeout(s.now, &mut s.counters);
            prop_assert!(s.conn.sender().unwrap().board().audit().is_ok());
        }
        prop_assert_eq!(s.conn.state(), State::Established);
        prop_assert_eq!(peer.data, all);
    }
}
