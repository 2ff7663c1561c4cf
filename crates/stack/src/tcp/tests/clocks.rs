//! Timestamps (RFC 7323): which segments have them, what they echo, and how they are used.

use super::*;

fn stamped() -> TcpConfig {
    TcpConfig { timestamps: true, ..plain() }
}

// Shows: RFC7323-3.2-4
#[test]
fn negotiated_timestamps_are_on_every_segment() {
    let mut s = Script::syn_received(&stamped());
    let stamp = |s: &mut Script, ms| s.take(ms).unwrap().ts.map(|(val, _)| val);
    assert_eq!(stamp(&mut s, 0), Some(TS_OFFSET));
    s.timestamps = true;
    send!(s, 0, "A", 1, ack = 1);
    s.write(500);
    assert_eq!(stamp(&mut s, 0), Some(TS_OFFSET), "data");
    assert_eq!(stamp(&mut s, 200), Some(TS_OFFSET + 200), "data once more");
    send!(s, 210, "A", 1, ack = 501, len = 10);
    assert_eq!(stamp(&mut s, 210), Some(TS_OFFSET + 210), "an ACK");
    send!(s, 220, "R", 12);
    assert_eq!(stamp(&mut s, 220), Some(TS_OFFSET + 220), "a challenge");
    send!(s, 230, "A", 11, ack = 501, window = 0);
    s.write(10);
    recv_nothing!(s, 230);
    let at = s.conn.poll_timeout().unwrap().as_millis() + 1;
    s.conn.on_timeout(Instant::from_millis(at), &mut s.counters);
    assert_eq!(stamp(&mut s, at), Some(TS_OFFSET + at as u32), "a probe");
    send!(s, at, "A", 11, ack = 501);
    recv!(s, at, "PA", 501, ack = 11, len = 10);
    s.read();
    s.conn.shutdown(s.now);
    assert_eq!(stamp(&mut s, at), Some(TS_OFFSET + at as u32), "a FIN");
}

// Shows: RFC7323-3.2-5, RFC7323-5.2-4
#[test]
fn timestamps_are_on_a_rst() {
    let mut s = Script::established(&stamped());
    s.conn.abort(s.now);
    recv!(s, 0, "RA", 1, ack = 1, ts = (TS_OFFSET, PEER_TS));
}

// Shows: RFC7323-3.2-2
#[test]
fn an_echo_without_ack_measures_nothing() {
    let mut s = Script::connecting(&stamped());
    s.take(0).unwrap();
    send!(s, 40, "S", 0, mss = 1000, sack_permitted = true, ts = (PEER_TS, TS_OFFSET));
    let info = s.conn.info(s.now);
    assert_eq!((s.conn.state(), info.rtt, info.rcv_rtt), (State::SynReceived, None, None));
}

// Shows: RFC7323-3.2-6, RFC7323-3.2-7
#[test]
fn a_segment_without_one_is_dropped_and_the_next_with_one_taken() {
    let mut s = Script::established(&stamped());
    s.timestamps = false;
    send!(s, 1, "A", 1, ack = 1, len = 10);
    recv_nothing!(s, 1);
    assert_eq!(s.conn.state(), State::Established);
    s.timestamps = true;
    send!(s, 2, "A", 1, ack = 1, len = 10);
    recv!(s, 2, "A", 1, ack = 11);
}

// Shows: RFC7323-3.2-8
#[test]
fn timestamps_that_were_not_negotiated_are_ignored() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, len = 10, ts = (9, 9));
    assert_eq!(s.take(0).map(|seg| (seg.ack, seg.ts)), Some((Some(11), None)));
    send!(s, 1, "A", 11, ack = 1, len = 10, ts = (1, 9));
    recv!(s, 1, "A", 1, ack = 21);
    assert_eq!(s.read(), stream(1, 20));
}

// Shows: RFC7323-4.3-1
#[test]
fn a_delayed_ack_echoes_the_first_segment_that_it_answers() {
    let mut s = Script::established(&TcpConfig { timestamps: true, ..delayed() });
    for n in 0..16 {
        send!(s, 0, "A", 1 + n * 10, ack = 1, len = 10);
        recv!(s, 0, "A", 1, ack = 11 + n * 10);
    }
    send!(s, 5, "A", 161, ack = 1, len = 10);
    send!(s, 25, "A", 171, ack = 1, len = 10);
    recv!(s, 45, "A", 1, ack = 181, ts = (TS_OFFSET + 45, PEER_TS + 5));
}

// Shows: RFC7323-4.3-2, RFC7323-4.3-3, RFC7323-5.3-3
#[test]
fn a_gap_keeps_the_echo_and_what_fills_it_is_echoed() {
    let mut s = Script::established(&stamped());
    send!(s, 5, "A", 1, ack = 1, len = 10);
    recv!(s, 5, "A", 1, ack = 11, ts = (TS_OFFSET + 5, PEER_TS + 5));
    send!(s, 9, "A", 21, ack = 1, len = 10);
    recv!(s, 9, "A", 1, ack = 11, ts = (TS_OFFSET + 9, PEER_TS + 5), sack = [(21, 31)]);
    send!(s, 12, "A", 11, ack = 1, len = 10);
    recv!(s, 12, "A", 1, ack = 31, ts = (TS_OFFSET + 12, PEER_TS + 12));
}

// Shows: RFC7323-5.2-5
#[test]
fn a_rst_counts_whatever_its_time_stamp() {
    for ts in [PEER_TS - 50, PEER_TS + 0x4000_0000] {
        let mut s = Script::established(&stamped());
        send!(s, 100, "A", 1, ack = 1, len = 10);
        recv!(s, 100, "A", 1, ack = 11);
        send!(s, 101, "R", 11, ts = (ts, 0));
        assert_eq!(s.conn.error(), Some(TcpError::Reset));
    }
}

// Shows: RFC7323-5.2-6
#[test]
fn the_timestamp_of_a_rst_is_not_remembered() {
    let mut s = Script::established(&stamped());
    send!(s, 1, "R", 2, ts = (PEER_TS + 0x4000_0000, 0));
    recv!(s, 1, "A", 1, ack = 1, ts = (TS_OFFSET + 1, PEER_TS));
    send!(s, 2, "A", 1, ack = 1, len = 10);
    recv!(s, 2, "A", 1, ack = 11, ts = (TS_OFFSET + 2, PEER_TS + 2));
}

// Shows: RFC7323-5.3-2
#[test]
fn an_old_one_refuses_before_the_window_does() {
    let mut s = Script::established(&stamped());
    send!(s, 50, "A", 1, ack = 1, len = 10);
    recv!(s, 50, "A", 1, ack = 11);
    send!(s, 51, "A", 0x4000_0000, ack = 1, len = 10, ts = (PEER_TS + 40, TS_OFFSET));
    recv!(s, 51, "A", 1, ack = 11);
    assert_eq!((s.counters.tcp_ext_paws_estab, s.counters.tcp_ext_beyond_window), (1, 0));
}

#[test]
fn a_duplicate_with_an_old_timestamp_is_reported() {
    let mut s = Script::established(&stamped());
    send!(s, 50, "A", 1, ack = 1, len = 10);
    recv!(s, 50, "A", 1, ack = 11);
    send!(s, 51, "A", 1, ack = 1, len = 10, ts = (PEER_TS + 40, TS_OFFSET));
    recv!(s, 51, "A", 1, ack = 11, sack = [(1, 11)]);
    assert_eq!(s.counters.tcp_ext_paws_estab, 1);
}
