//! Blind attackers, who see no packet and guess (RFC 5961, RFC 5927): inside the window and outside
//! it.

use super::*;

/// ESTABLISHED, with ten bytes in flight.
fn waiting() -> Script {
    let mut s = Script::established(&plain());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    s
}

/// Checks that data still flows in both directions.
#[track_caller]
fn goes_on(mut s: Script, ms: u64) {
    assert_eq!((s.conn.state(), s.conn.held()), (State::Established, ByteCount(10)));
    send!(s, ms, "A", 1, ack = 11, len = 10);
    recv!(s, ms, "A", 11, ack = 11);
    assert_eq!(s.read(), stream(1, 10));
}

// Shows: RFC5961-3.2-1, RFC5961-3.2-3
#[test]
fn a_rst_is_challenged_inside_the_window_and_dropped_outside() {
    let mut s = Script::established(&TcpConfig { receive_buffer: ByteCount(65_535), ..plain() });
    for (n, seq) in (0..).zip([2, 1_000, 65_535]) {
        send!(s, 500 * n, "R", seq);
        recv!(s, 500 * n, "A", 1, ack = 1);
    }
    for seq in [0, 65_536, 65_537, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX - 70_000] {
        send!(s, 5_000, "R", seq);
        recv_nothing!(s, 5_000);
    }
    assert_eq!((s.conn.state(), s.counters.tcp_ext_challenge_ack), (State::Established, 3));
}

// Shows: RFC5961-5.2
#[test]
fn data_in_the_window_counts_only_with_an_ack_that_can_be() {
    let mut s = waiting();
    // Beyond the data sent, below all acknowledged data, and far from both.
    for (n, ack) in (0..).zip([12, u32::MAX, 0x4000_0000, 0x8000_0000, 0xc000_0000]) {
        send!(s, 20 * n, "PA", 1, ack = ack, len = 100);
        send!(s, 20 * n, "FA", 101, ack = ack, len = 100);
        if n == 0 {
            recv!(s, 0, "A", 11, ack = 1);
        }
        recv_nothing!(s, 20 * n);
    }
    let counters = &s.counters;
    assert_eq!((counters.tcp_ext_challenge_ack, counters.tcp_ext_ack_skipped_challenge), (1, 9));
    goes_on(s, 100);
}

// Shows: RFC5961-5.2
#[test]
fn data_counts_with_the_oldest_ack_that_there_can_be() {
    let mut s = waiting();
    send!(s, 0, "PA", 1, ack = 0, len = 100);
    recv!(s, 0, "A", 11, ack = 101);
    assert_eq!((s.read().len(), s.counters.tcp_ext_challenge_ack), (100, 0));
}

#[test]
fn data_outside_the_window_is_answered_seldom_and_not_kept() {
    let mut s = waiting();
    for n in 0..90 {
        let far = 0x2000_0000 + 0x0200_0000 * n;
        send!(s, u64::from(n), "PA", far, ack = 1, len = 100);
        if n == 0 {
            recv!(s, 0, "A", 11, ack = 1);
        }
        recv_nothing!(s, u64::from(n));
    }
    assert_eq!(s.counters.tcp_ext_ack_skipped_seq, 89);
    goes_on(s, 100);
}

#[test]
fn retransmissions_of_the_peer_are_always_acknowledged() {
    let mut s = Script::established(&plain());
    for _ in 0..20 {
        send!(s, 0, "A", 1, ack = 1, len = 10);
    }
    recv!(s, 0, "A", 1, ack = 11);
    for _ in 1..20 {
        recv!(s, 0, "A", 1, ack = 11, sack = [(1, 11)]);
    }
}

#[test]
fn all_guesses_share_one_answer() {
    let mut s = waiting();
    for n in 0..10 {
        send!(s, 10 * n, "R", 2);
        send!(s, 10 * n, "S", 7, mss = 1000);
        send!(s, 10 * n, "PA", 1, ack = 77, len = 10);
        send!(s, 10 * n, "A", 0x4000_0000, ack = 1);
    }
    recv!(s, 90, "A", 11, ack = 1);
    recv_nothing!(s, 90);
    assert_eq!(s.counters.tcp_ext_challenge_ack, 1);
    goes_on(s, 100);
}

#[test]
fn a_host_that_has_sent_enough_challenges_sends_none() {
    let mut s = waiting();
    s.conn.set_may_challenge(false);
    send!(s, 0, "R", 2);
    send!(s, 0, "S", 7, mss = 1000);
    recv_nothing!(s, 0);
    assert_eq!((s.counters.tcp_ext_challenge_ack, s.counters.tcp_ext_challenge_ack_limit), (0, 2));
    s.conn.set_may_challenge(true);
    send!(s, 1, "R", 2);
    recv!(s, 1, "A", 11, ack = 1);
    goes_on(s, 2);
}

#[test]
fn an_icmp_error_is_believed_only_of_what_is_outstanding() {
    let s = waiting();
    for (seq, outstanding) in [(0, false), (1, true), (10, true), (11, false), (0x8000_0000, false)]
    {
        assert_eq!(s.conn.is_outstanding(ISS + seq), outstanding, "{seq}");
    }
}

// Shows: RFC9293-MUST-56
#[test]
fn a_hard_icmp_error_is_soft_once_the_handshake_is_done() {
    let all = [Unreachable::Protocol, Unreachable::Port, Unreachable::Prohibited];
    for error in all {
        let mut s = waiting();
        s.conn.on_unreachable(s.now, error);
        goes_on(s, 1);
        // It becomes the reason if the connection ends.
        let mut s = waiting();
        s.conn.set_user_timeout(Some(Duration::from_millis(100)));
        s.conn.on_unreachable(s.now, error);
        recv_nothing!(s, 100);
        assert_eq!(s.conn.error(), Some(TcpError::Unreachable(error)));
    }
}
