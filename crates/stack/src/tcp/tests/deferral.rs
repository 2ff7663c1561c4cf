//! Deferred accept: connections that wait for data before they can be accepted
//! (`TCP_DEFER_ACCEPT`).

use super::*;

/// A connection whose SYN-ACK was sent and that waits for data.
#[track_caller]
fn deferred(wait: u64, config: TcpConfig) -> Script {
    let config = TcpConfig { defer_accept: Some(Duration::from_millis(wait)), ..config };
    let mut s = Script::syn_received(&config);
    s.timestamps = config.timestamps;
    assert_eq!(s.take(0).unwrap().flags, "SA");
    s
}

#[track_caller]
fn recv_syn_ack(s: &mut Script, ms: u64) {
    recv!(s, ms, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
}

#[test]
fn an_ack_without_data_is_not_enough_and_the_first_data_is() {
    let mut s = deferred(10_000, plain());
    send!(s, 50, "A", 1, ack = 1);
    assert_eq!(s.conn.state(), State::SynReceived);
    assert_eq!(s.counters.tcp_ext_defer_accept_drop, 1);
    recv_nothing!(s, 4000);
    send!(s, 4000, "PA", 1, ack = 1, len = 5);
    assert_eq!(s.conn.state(), State::Established);
    recv!(s, 4000, "A", 1, ack = 6);
    assert_eq!(s.read(), stream(1, 5));
    // The time until the peer sent data is not a round-trip time.
    let info = s.conn.info(s.now);
    assert_eq!((info.rtt, info.cwnd), (Some(Duration::from_millis(50)), ByteCount(10_000)));
}

#[test]
fn no_time_at_all_is_no_wait() {
    let mut s = deferred(0, plain());
    send!(s, 50, "A", 1, ack = 1);
    assert_eq!(s.conn.state(), State::Established);
}

#[test]
fn with_time_stamps_the_wait_is_no_round_trip_either() {
    let mut s = deferred(10_000, TcpConfig { timestamps: true, ..plain() });
    recv!(s, 1000, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1030, "A", 1, ack = 1, ts = (PEER_TS + 1030, TS_OFFSET + 1000));
    send!(s, 5000, "PA", 1, ack = 1, len = 5, ts = (PEER_TS + 5000, TS_OFFSET + 1000));
    assert_eq!(s.conn.state(), State::Established);
    assert_eq!(s.conn.info(s.now).rtt, Some(Duration::from_millis(30)));
}

#[test]
fn when_the_time_is_over_the_peer_is_asked_once_more_and_any_ack_will_do() {
    let mut s = deferred(2000, plain());
    send!(s, 50, "A", 1, ack = 1);
    recv_nothing!(s, 1000);
    // Not before the next time-out of the SYN-ACK.
    send!(s, 2500, "A", 1, ack = 1);
    assert_eq!(s.conn.state(), State::SynReceived);
    recv_syn_ack(&mut s, 3000);
    send!(s, 3050, "A", 1, ack = 1);
    assert_eq!(s.conn.state(), State::Established);
    // The repeated SYN-ACK is not a sign of loss.
    assert_eq!(s.conn.info(s.now).cwnd, ByteCount(10_000));
}

#[test]
fn an_unanswered_syn_ack_after_deferral_ends_after_the_usual_tries() {
    let mut s = deferred(2000, TcpConfig { syn_retries: 1, ..plain() });
    send!(s, 50, "A", 1, ack = 1);
    recv_syn_ack(&mut s, 3000);
    recv_nothing!(s, 6999);
    assert_eq!(s.conn.state(), State::SynReceived);
    recv_nothing!(s, 7000);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::TimedOut)));
}

#[test]
fn the_wait_for_data_outlasts_the_tries_of_a_syn_ack() {
    let mut s = deferred(600_000, TcpConfig { syn_retries: 1, ..plain() });
    send!(s, 50, "A", 1, ack = 1);
    recv_nothing!(s, 600_000);
    // 127 s, and then steps of 120 s.
    recv_syn_ack(&mut s, 607_000);
    send!(s, 607_000, "PA", 1, ack = 1, len = 5);
    assert_eq!(s.conn.state(), State::Established);
}

#[test]
fn a_deferred_syn_ack_without_an_ack_is_retransmitted_as_usual() {
    let mut s = deferred(10_000, plain());
    recv_syn_ack(&mut s, 1000);
    send!(s, 1010, "A", 1, ack = 1);
    recv_nothing!(s, 7000);
    send!(s, 7000, "PA", 1, ack = 1, len = 5);
    let info = s.conn.info(s.now);
    assert_eq!((s.conn.state(), info.rtt, info.cwnd), (State::Established, None, ByteCount(1000)));
}

#[test]
fn a_fin_ends_the_deferral_and_a_rst_closes() {
    let mut s = deferred(10_000, plain());
    send!(s, 50, "FA", 1, ack = 1);
    assert_eq!(s.conn.state(), State::CloseWait);

    let mut s = deferred(10_000, plain());
    send!(s, 50, "A", 1, ack = 1);
    send!(s, 60, "R", 1);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
}

#[test]
fn an_active_open_is_not_deferred() {
    let config = TcpConfig { defer_accept: Some(Duration::from_secs(10)), ..plain() };
    let mut s = Script::connecting(&config);
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 5, "S", 0, ack = 1, mss = 1000, sack_permitted = true);
    assert_eq!(s.conn.state(), State::Established);
}
