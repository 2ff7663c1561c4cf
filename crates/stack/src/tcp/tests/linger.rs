//! Closing with a time limit (`SO_LINGER`), and peers that do not answer for too long (RFC 5482).

use super::*;

/// ESTABLISHED, with ten bytes in flight.
fn waiting() -> Script {
    let mut s = Script::established(&plain());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    s
}

const LIMIT: Duration = Duration::from_millis(150);

#[test]
fn with_no_time_at_all_a_close_is_a_rst() {
    for state in [Script::established, Script::close_wait] {
        let mut s = state(&plain());
        let ack = s.conn.receive.nxt().since(airtcp_types::ExtSeq::starting_at(IRS)).0 as u32;
        assert!(!s.close_within(Duration::ZERO));
        recv!(s, 0, "RA", 1, ack = ack);
        recv_nothing!(s, 0);
        assert_eq!((s.conn.state(), s.conn.poll_timeout()), (State::Closed, None));
        assert_eq!(s.conn.error(), Some(TcpError::Aborted));
    }
    // In SYN-SENT no RST is sent.
    let mut s = Script::connecting(&plain());
    assert_eq!(s.take(0).unwrap().flags, "S");
    s.close_within(Duration::ZERO);
    recv_nothing!(s, 0);
    assert_eq!(s.conn.state(), State::Closed);
    // TIME-WAIT has no more data to discard, and ends.
    let mut s = Script::time_wait(&plain());
    s.close_within(Duration::ZERO);
    recv_nothing!(s, 0);
    assert_eq!(s.conn.state(), State::Closed);
}

#[test]
fn a_close_acknowledged_within_linger_is_orderly() {
    let mut s = waiting();
    s.close_within(LIMIT);
    recv!(s, 0, "FA", 11, ack = 1);
    send!(s, 149, "A", 1, ack = 12);
    assert_eq!(s.conn.state(), State::FinWait2);
    recv_nothing!(s, 1_000);
    send!(s, 1_000, "FA", 1, ack = 12);
    recv!(s, 1_000, "A", 12, ack = 2);
    recv_nothing!(s, 61_000);
    assert_eq!((s.conn.state(), s.counters.tcp_ext_abort_on_linger), (State::Closed, 0));
    assert_eq!(s.counters.tcp_ext_tw, 1);
}

#[test]
fn a_close_not_acknowledged_within_linger_sends_a_rst() {
    // Nothing is acknowledged; the data, but not the FIN; the peer's FIN arrives, but no ACK of
    // this end's FIN.
    for answer in [None, Some(seg!("A", 1, ack = 11)), Some(seg!("FA", 1, ack = 11))] {
        let mut s = waiting();
        s.close_within(LIMIT);
        recv!(s, 0, "FA", 11, ack = 1);
        let fin = answer.as_ref().is_some_and(|answer| answer.flags == "FA");
        if let Some(answer) = answer {
            s.send_at(100, answer);
        }
        let ack = if fin { 2 } else { 1 };
        if fin {
            recv!(s, 100, "A", 12, ack = 2);
        }
        recv_nothing!(s, 149);
        recv!(s, 150, "RA", 12, ack = ack);
        assert_eq!((s.conn.state(), s.counters.tcp_ext_abort_on_linger), (State::Closed, 1));
        assert_eq!(s.conn.poll_timeout(), None);
    }
}

#[test]
fn a_handshake_that_is_not_over_in_time_is_thrown_away_too() {
    let mut s = Script::syn_received(&plain());
    assert_eq!(s.take(0).unwrap().flags, "SA");
    s.close_within(LIMIT);
    recv!(s, 150, "RA", 1, ack = 1);
    assert_eq!((s.conn.state(), s.counters.tcp_ext_abort_on_linger), (State::Closed, 1));
}

#[test]
fn a_user_time_out_that_is_set_later_counts_from_the_last_progress() {
    let mut s = waiting();
    for ms in [200, 600] {
        recv!(s, ms, "PA", 1, ack = 1, len = 10);
    }
    s.conn.set_user_timeout(Some(Duration::from_millis(1_000)));
    recv_nothing!(s, 999);
    assert_eq!(s.conn.state(), State::Established);
    recv_nothing!(s, 1_000);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::TimedOut)));
    assert_eq!(s.counters.tcp_ext_abort_on_timeout, 1);
}

#[test]
fn without_one_again_the_number_of_time_outs_counts() {
    let mut s = waiting();
    s.conn.set_user_timeout(Some(Duration::from_millis(100)));
    s.conn.set_user_timeout(None);
    recv!(s, 200, "PA", 1, ack = 1, len = 10);
    send!(s, 210, "A", 1, ack = 11);
    s.conn.set_user_timeout(Some(Duration::from_millis(100)));
    // No answer is outstanding.
    recv_nothing!(s, 10_000);
    assert_eq!(s.conn.state(), State::Established);
}

// Shows: RFC9293-MUST-21
#[test]
fn a_closed_window_has_no_more_time_whether_probes_are_answered_or_not() {
    for (limit, answered) in [(500, false), (500, true), (300_000, false), (300_000, true)] {
        let mut s = Script::established(&plain());
        send!(s, 0, "A", 1, ack = 1, window = 0);
        recv_nothing!(s, 1_000);
        s.conn.set_user_timeout(Some(Duration::from_millis(limit)));
        s.write(10);
        recv_nothing!(s, 1_000);
        while let Some(at) = s.conn.poll_timeout() {
            s.now = at;
            s.conn.on_timeout(at, &mut s.counters);
            let probe = s.conn.poll_transmit(at, &mut s.counters, &mut s.outlet);
            if probe.is_some() && answered {
                send!(s, at.as_millis(), "A", 1, ack = 1, window = 0);
            }
        }
        assert_eq!(s.now, Instant::from_millis(1_000 + limit), "{limit} {answered}");
        assert_eq!(s.conn.error(), Some(TcpError::TimedOut));
        assert!(s.counters.tcp_ext_win_probe > 0);
    }
}

#[test]
fn a_window_that_opens_in_time_restarts_the_user_time_out() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, window = 0);
    s.conn.set_user_timeout(Some(Duration::from_millis(500)));
    s.write(10);
    recv_nothing!(s, 0);
    recv!(s, 200, "A", 0, ack = 1);
    send!(s, 400, "A", 1, ack = 1);
    recv!(s, 400, "PA", 1, ack = 1, len = 10);
    recv!(s, 600, "PA", 1, ack = 1, len = 10);
    send!(s, 899, "A", 1, ack = 11);
    recv_nothing!(s, 10_000);
    assert_eq!(s.conn.state(), State::Established);
}
