//! Replacement of the strategies of an open connection.

use airtcp_recovery::Combination;

use super::*;

fn combination(text: &str) -> Combination {
    text.parse().unwrap()
}

#[test]
fn board_and_rtt_survive_a_change_of_strategies() {
    let mut s = Script::established(&plain());
    s.write(5000);
    while s.take(0).is_some() {}
    send!(s, 20, "A", 1, ack = 1001);
    let before = s.conn.info(s.now);
    let deadline = s.conn.poll_timeout();
    for text in ["newreno/reno", "sack/cubic", "reno/reno"] {
        assert_eq!(s.conn.set_combination(s.now, &combination(text)), Ok(()));
        let after = s.conn.info(s.now);
        assert_eq!(after.combination, text);
        assert_eq!((after.unacked, after.rtt), (ByteCount(4000), before.rtt));
        assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh));
        assert_eq!(s.conn.poll_timeout().is_some(), deadline.is_some());
    }
    send!(s, 25, "A", 1, ack = 5001);
    assert_eq!(s.conn.info(s.now).unacked, ByteCount::ZERO);
}

#[test]
fn strategies_without_their_options_are_refused_and_the_old_ones_stay() {
    let mut s = Script::established(&TcpConfig { sack: false, ..plain() });
    let before = s.conn.info(s.now).combination;
    let refused = s.conn.set_combination(s.now, &combination("sack/reno"));
    assert_eq!(refused, Err(SwitchError::NotNegotiated("SACK")));
    assert!(refused.unwrap_err().to_string().contains("needs SACK"));
    assert_eq!(s.conn.info(s.now).combination, before);
    assert_eq!(s.conn.set_combination(s.now, &combination("newreno/cubic")), Ok(()));
}

#[test]
fn strategies_set_during_the_handshake_are_those_of_the_connection() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    assert_eq!(s.conn.set_combination(s.now, &combination("newreno/fixed:7")), Ok(()));
    send!(s, 10, "S", 0, ack = 1, mss = 1000);
    recv!(s, 10, "A", 1, ack = 1);
    let info = s.conn.info(s.now);
    assert_eq!((info.combination.as_str(), info.cwnd), ("newreno/fixed:7", ByteCount(7000)));
}

#[test]
fn strategies_cannot_change_after_the_last_data() {
    let mut s = Script::time_wait(&plain());
    let late = s.conn.set_combination(s.now, &combination("newreno/reno"));
    assert_eq!(late, Err(SwitchError::Ended(TcpError::Shutdown)));
    let mut s = Script::established(&plain());
    s.conn.abort(s.now);
    let late = s.conn.set_combination(s.now, &combination("newreno/reno"));
    assert_eq!(late, Err(SwitchError::Ended(TcpError::Aborted)));
}
