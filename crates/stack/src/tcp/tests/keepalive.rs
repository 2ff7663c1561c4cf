//! Probes of a silent peer, and how they end.

use super::*;

const SECOND: u64 = 1_000;

/// The first probe after 10 s, then every 2 s, three times.
const WATCH: KeepAlive =
    KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 3 };

fn watching() -> TcpConfig {
    TcpConfig { keep_alive: Some(WATCH), ..plain() }
}

// Shows: RFC9293-MUST-25
#[test]
fn keep_alive_is_off_by_default() {
    let mut s = Script::established(&plain());
    assert_eq!((s.conn.keep_alive(), s.conn.poll_timeout()), (None, None));
    recv_nothing!(s, 24 * 60 * 60 * SECOND);
    assert_eq!(s.conn.state(), State::Established);
}

// Shows: RFC9293-MUST-28
#[test]
fn the_default_is_linuxes() {
    let mut s = Script::established(&plain());
    s.conn.set_keep_alive(s.now, Some(KeepAlive::default()));
    let mut ms = 2 * 60 * 60 * SECOND;
    for _ in 0..9 {
        recv_nothing!(s, ms - 1);
        recv!(s, ms, "A", 0, ack = 1);
        ms += 75 * SECOND;
    }
    recv!(s, ms, "RA", 1, ack = 1);
    assert_eq!(s.conn.error(), Some(TcpError::TimedOut));
}

// Shows: RFC9293-MUST-27, RFC9293-MUST-29, RFC9293-SHLD-12
#[test]
fn a_silent_peer_is_probed_and_gone_in_the_end() {
    let mut s = Script::established(&watching());
    for ms in [10, 12, 14] {
        recv_nothing!(s, ms * SECOND - 1);
        recv!(s, ms * SECOND, "A", 0, ack = 1);
        recv_nothing!(s, ms * SECOND);
    }
    assert_eq!(s.conn.info(s.now).probes, 3);
    recv_nothing!(s, 16 * SECOND - 1);
    assert_eq!(s.conn.state(), State::Established);
    recv!(s, 16 * SECOND, "RA", 1, ack = 1);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::TimedOut)));
    assert_eq!((s.counters.tcp_ext_keep_alive, s.counters.tcp_ext_abort_on_timeout), (3, 1));
    assert_eq!(s.conn.poll_timeout(), None);
}

// Shows: RFC9293-MUST-26
#[test]
fn an_answer_is_life_and_so_is_anything_else_of_the_peers() {
    let mut s = Script::established(&watching());
    recv!(s, 10 * SECOND, "A", 0, ack = 1);
    recv!(s, 12 * SECOND, "A", 0, ack = 1);
    send!(s, 12_050, "A", 1, ack = 1);
    recv_nothing!(s, 22_049);
    recv!(s, 22_050, "A", 0, ack = 1);
    // Data instead of an answer.
    send!(s, 23 * SECOND, "A", 1, ack = 1, len = 10);
    recv!(s, 23 * SECOND, "A", 1, ack = 11);
    recv_nothing!(s, 33 * SECOND - 1);
    recv!(s, 33 * SECOND, "A", 0, ack = 11);
    // The count restarted each time.
    recv!(s, 35 * SECOND, "A", 0, ack = 11);
    recv!(s, 37 * SECOND, "A", 0, ack = 11);
    recv!(s, 39 * SECOND, "RA", 1, ack = 11);
}

#[test]
fn forged_segments_do_not_reset_keep_alive() {
    let mut s = Script::established(&watching());
    send!(s, 9 * SECOND, "A", 0x4000_0000, ack = 1);
    recv!(s, 9 * SECOND, "A", 1, ack = 1);
    send!(s, 9 * SECOND, "A", 1, ack = 77, len = 5);
    send!(s, 9 * SECOND, "S", 0);
    send!(s, 9 * SECOND, "R", 5);
    recv_nothing!(s, 9 * SECOND);
    recv!(s, 10 * SECOND, "A", 0, ack = 1);
}

// Shows: RFC9293-MUST-26
#[test]
fn with_data_outstanding_no_keep_alive_is_sent() {
    let mut s = Script::established(&watching());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    let mut ms = 200;
    while ms < 30 * SECOND {
        recv!(s, ms, "PA", 1, ack = 1, len = 10);
        recv_nothing!(s, ms);
        ms = 2 * ms + 200;
    }
    assert_eq!(s.counters.tcp_ext_keep_alive, 0);
    let start = ms / 2 + 1_000;
    send!(s, start, "A", 1, ack = 11);
    recv_nothing!(s, start + 10 * SECOND - 1);
    recv!(s, start + 10 * SECOND, "A", 10, ack = 1);
}

#[test]
fn a_closed_window_is_probed_for_itself() {
    let mut s = Script::established(&watching());
    send!(s, 0, "A", 1, ack = 1, window = 0);
    s.write(10);
    let mut probes = 0;
    while s.now < Instant::from_millis(30 * SECOND) {
        recv_nothing!(s, s.now.as_millis());
        let next = s.conn.poll_timeout().unwrap().as_millis();
        if s.conn.rest_at().is_some_and(|at| at.as_millis() == next) {
            recv_nothing!(s, next);
            assert_eq!(s.conn.rest_at(), None);
            continue;
        }
        recv!(s, next, "A", 0, ack = 1);
        send!(s, next, "A", 1, ack = 1, window = 0);
        probes += 1;
    }
    assert_eq!((s.counters.tcp_ext_win_probe, s.counters.tcp_ext_keep_alive), (probes, 0));
}

#[test]
fn data_written_when_a_probe_is_due_takes_its_place() {
    let mut s = Script::established(&watching());
    s.now = Instant::from_millis(10 * SECOND);
    s.conn.on_timeout(s.now, &mut s.counters);
    s.write(10);
    recv!(s, 10 * SECOND, "PA", 1, ack = 1, len = 10);
    recv_nothing!(s, 10 * SECOND);
    send!(s, 10_100, "A", 1, ack = 11);
    recv_nothing!(s, 20_099);
    recv!(s, 20_100, "A", 10, ack = 1);
}

#[test]
fn half_closed_connections_are_watched_and_ended_ones_are_not() {
    let mut s = Script::fin_wait_2(&watching());
    recv!(s, 10 * SECOND, "A", 1, ack = 1);
    let mut s = Script::close_wait(&watching());
    recv!(s, 10 * SECOND, "A", 0, ack = 2);
    let mut s = Script::time_wait(&watching());
    recv_nothing!(s, 59 * SECOND);
    recv_nothing!(s, 61 * SECOND);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, None));
    assert_eq!(s.counters.tcp_ext_keep_alive, 0);
}

#[test]
fn a_handshake_has_timers_of_its_own() {
    let keep_alive = Some(KeepAlive { idle: Duration::from_secs(1), ..WATCH });
    let mut s = Script::connecting(&TcpConfig { keep_alive, ..plain() });
    for ms in [0, 1000, 3000] {
        recv!(s, ms, "S", 0, mss = 1000, sack_permitted = true);
        recv_nothing!(s, ms);
    }
    // The end of the handshake shows that the peer is alive.
    send!(s, 3_100, "S", 0, ack = 1, mss = 1000, sack_permitted = true);
    recv!(s, 3_100, "A", 1, ack = 1);
    recv_nothing!(s, 4_099);
    recv!(s, 4_100, "A", 0, ack = 1);
}

// Shows: RFC9293-MUST-24
#[test]
fn keep_alive_is_turned_on_and_off_on_a_live_connection() {
    let mut s = Script::established(&plain());
    s.advance(5 * SECOND);
    s.conn.set_keep_alive(s.now, Some(WATCH));
    assert_eq!(s.conn.keep_alive(), Some(WATCH));
    recv_nothing!(s, 15 * SECOND - 1);
    recv!(s, 15 * SECOND, "A", 0, ack = 1);
    s.conn.set_keep_alive(s.now, None);
    assert_eq!(s.conn.poll_timeout(), None);
    recv_nothing!(s, 60 * SECOND);
    assert_eq!(s.conn.state(), State::Established);
}

#[test]
fn a_user_timeout_takes_the_place_of_the_count() {
    for (limit, end) in [(11, 12), (30, 30)] {
        let mut s = Script::established(&watching());
        s.conn.set_user_timeout(Some(Duration::from_secs(limit)));
        let mut ms = 10 * SECOND;
        while ms < end * SECOND {
            recv!(s, ms, "A", 0, ack = 1);
            ms += 2 * SECOND;
        }
        recv!(s, ms, "RA", 1, ack = 1);
        assert_eq!((ms, s.conn.error()), (end * SECOND, Some(TcpError::TimedOut)));
    }
}

#[test]
fn settings_that_make_no_sense_are_as_near_as_do() {
    let zero = KeepAlive { idle: Duration::ZERO, interval: Duration::ZERO, probes: 0 };
    let mut s = Script::established(&TcpConfig { keep_alive: Some(zero), ..plain() });
    recv_nothing!(s, 999);
    recv!(s, 1_000, "A", 0, ack = 1);
    recv!(s, 2_000, "RA", 1, ack = 1);
    let never = KeepAlive { idle: Duration::MAX, interval: Duration::MAX, probes: u8::MAX };
    let mut s = Script::established(&TcpConfig { keep_alive: Some(never), ..plain() });
    recv_nothing!(s, 1_000_000 * SECOND);
}

#[test]
fn data_received_before_the_end_can_still_be_read() {
    let mut s = Script::established(&watching());
    send!(s, 0, "A", 1, ack = 1, len = 10);
    recv!(s, 0, "A", 1, ack = 11);
    for ms in [10, 12, 14] {
        recv!(s, ms * SECOND, "A", 0, ack = 11);
    }
    recv!(s, 16 * SECOND, "RA", 1, ack = 11);
    assert_eq!(s.read(), stream(1, 10));
    assert_eq!(s.conn.recv(s.now, &mut [0; 9]), Err(TcpError::TimedOut));
}
