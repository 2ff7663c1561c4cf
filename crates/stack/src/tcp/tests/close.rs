//! Every way to close.

use super::*;

const MINUTE: u64 = 60_000;

// Shows: RFC9293-MUST-13
#[test]
fn we_close_first_and_wait_a_minute() {
    let mut s = Script::established(&plain());
    s.write(10);
    s.conn.close(s.now);
    assert_eq!(s.conn.state(), State::FinWait1);
    recv!(s, 0, "FPA", 1, ack = 1, len = 10);
    send!(s, 10, "A", 1, ack = 12);
    assert_eq!(s.conn.state(), State::FinWait2);
    assert_eq!(s.conn.info(s.now).bytes_acked, ByteCount(10), "the FIN is no payload");
    send!(s, 20, "FA", 1, ack = 12);
    recv!(s, 20, "A", 12, ack = 2);
    assert_eq!(s.conn.state(), State::TimeWait);
    recv_nothing!(s, 20 + MINUTE - 1);
    assert_eq!(s.conn.state(), State::TimeWait);
    recv_nothing!(s, 20 + MINUTE);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, None));
}

// Shows: RFC9293-MUST-12
#[test]
fn the_peer_closes_first() {
    let mut s = Script::close_wait(&plain());
    assert!(s.conn.readiness().readable);
    assert_eq!(s.conn.recv(s.now, &mut [0; 9]), Ok(0));
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 2, len = 10);
    send!(s, 1, "A", 2, ack = 11);
    s.conn.close(s.now);
    assert_eq!(s.conn.state(), State::LastAck);
    recv!(s, 1, "FA", 11, ack = 2);
    send!(s, 2, "A", 2, ack = 12);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, None));
    recv_nothing!(s, MINUTE);
}

#[test]
fn both_close_at_once() {
    let mut s = Script::established(&plain());
    s.conn.close(s.now);
    recv!(s, 0, "FA", 1, ack = 1);
    send!(s, 1, "FA", 1, ack = 1);
    recv!(s, 1, "A", 2, ack = 2);
    assert_eq!(s.conn.state(), State::Closing);
    send!(s, 2, "A", 2, ack = 2);
    assert_eq!(s.conn.state(), State::TimeWait);
}

#[test]
fn a_fin_that_carries_data_and_acknowledges_ours_goes_straight_to_time_wait() {
    let mut s = Script::established(&plain());
    s.conn.shutdown(s.now);
    recv!(s, 0, "FA", 1, ack = 1);
    send!(s, 1, "FPA", 1, ack = 2, len = 50);
    recv!(s, 1, "A", 2, ack = 52);
    assert_eq!(s.conn.state(), State::TimeWait);
    assert_eq!(s.read(), stream(1, 50));
    assert_eq!(s.conn.recv(s.now, &mut [0; 9]), Ok(0));
}

#[test]
fn a_fin_of_ours_is_sent_again() {
    let mut s = Script::established(&plain());
    s.conn.close(s.now);
    for ms in [0, 200, 600] {
        recv!(s, ms, "FA", 1, ack = 1);
    }
    send!(s, 700, "A", 1, ack = 2);
    assert_eq!(s.conn.state(), State::FinWait2);
}

#[test]
fn a_fin_of_the_peer_that_comes_again_is_acknowledged_and_restarts_the_wait() {
    let mut s = Script::time_wait(&plain());
    send!(s, MINUTE / 2, "FA", 1, ack = 2);
    recv!(s, MINUTE / 2, "A", 2, ack = 2);
    recv_nothing!(s, MINUTE);
    assert_eq!(s.conn.state(), State::TimeWait);
    recv_nothing!(s, MINUTE / 2 + MINUTE);
    assert_eq!(s.conn.state(), State::Closed);
    let mut s = Script::close_wait(&plain());
    send!(s, 1, "FA", 1, ack = 1);
    recv!(s, 1, "A", 1, ack = 2);
    assert_eq!(s.conn.state(), State::CloseWait);
}

#[test]
fn data_flows_on_towards_the_half_that_is_open() {
    let mut s = Script::fin_wait_2(&plain());
    for n in 0..5 {
        send!(s, 100 * u64::from(n), "A", 1 + n * 1000, ack = 2, len = 1000);
        recv!(s, 100 * u64::from(n), "A", 2, ack = 1001 + n * 1000);
    }
    assert_eq!(s.conn.send(s.now, b"x", &mut s.outlet), Err(TcpError::Shutdown));
    // The application has not closed: FIN-WAIT-2 may last forever.
    recv_nothing!(s, 10 * MINUTE);
    send!(s, 10 * MINUTE, "FA", 5001, ack = 2);
    recv!(s, 10 * MINUTE, "A", 2, ack = 5002);
    assert_eq!(s.read(), stream(1, 5000));

    let mut s = Script::close_wait(&plain());
    s.write(3000);
    for n in 0..3 {
        assert_eq!(s.take(0).unwrap().seq, 1 + n * 1000);
    }
}

#[test]
fn a_fin_above_a_hole_waits_for_it() {
    let mut s = Script::established(&plain());
    send!(s, 0, "FA", 101, ack = 1, len = 10);
    recv!(s, 0, "A", 1, ack = 1, sack = [(101, 112)]);
    assert_eq!(s.conn.state(), State::Established);
    send!(s, 1, "A", 1, ack = 1, len = 100);
    recv!(s, 1, "A", 1, ack = 112);
    assert_eq!(s.conn.state(), State::CloseWait);
    assert_eq!(s.read(), stream(1, 110));
}

#[test]
fn a_fin_waits_for_the_window_of_the_data_before_it() {
    let mut s = Script::established(&plain());
    s.write(12_000);
    s.conn.shutdown(s.now);
    for n in 0..10 {
        recv!(s, 0, "A", 1 + n * 1000, ack = 1, len = 1000);
    }
    recv_nothing!(s, 0);
    send!(s, 1, "A", 1, ack = 10_001);
    recv!(s, 1, "A", 10_001, ack = 1, len = 1000);
    // A full segment can carry the FIN, too.
    recv!(s, 1, "FPA", 11_001, ack = 1, len = 1000);
    recv_nothing!(s, 1);
}

#[test]
fn a_fin_takes_no_room_in_the_congestion_window() {
    let mut s = Script::established(&plain());
    s.write(10_000);
    for n in 0..9 {
        recv!(s, 0, "A", 1 + n * 1000, ack = 1, len = 1000);
    }
    recv!(s, 0, "PA", 9001, ack = 1, len = 1000);
    s.conn.shutdown(s.now);
    recv!(s, 0, "FA", 10_001, ack = 1);
    recv_nothing!(s, 0);
}

#[test]
fn a_fin_that_does_not_fit_the_window_is_left_off_and_leaves_later() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, window = 1000);
    s.write(1000);
    s.conn.shutdown(s.now);
    recv!(s, 0, "PA", 1, ack = 1, len = 1000);
    recv_nothing!(s, 0);
    send!(s, 1, "A", 1, ack = 1001, window = 1000);
    recv!(s, 1, "FA", 1001, ack = 1);
}

#[test]
fn a_full_last_segment_is_repaired_with_its_fin_though_the_window_is_one_segment() {
    let mut s = Script::established(&plain());
    s.write(2000);
    s.conn.shutdown(s.now);
    recv!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "FPA", 1001, ack = 1, len = 1000);
    // After the time-out.
    recv!(s, 200, "A", 1, ack = 1, len = 1000);
    recv_nothing!(s, 200);
    send!(s, 201, "A", 1, ack = 1001);
    recv!(s, 201, "FPA", 1001, ack = 1, len = 1000);
    recv_nothing!(s, 201);
    send!(s, 202, "A", 1, ack = 2002);
    assert_eq!(s.conn.state(), State::FinWait2);
}

// Shows: RFC9293-SHLD-3
#[test]
fn closing_with_unread_data_sends_a_rst() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, len = 10);
    recv!(s, 0, "A", 1, ack = 11);
    s.conn.close(s.now);
    recv!(s, 0, "RA", 1, ack = 11);
    assert_eq!(s.conn.state(), State::Closed);
    recv_nothing!(s, 0);
}

// Shows: RFC9293-SHLD-3
#[test]
fn data_after_close_is_answered_by_a_rst() {
    let mut s = Script::established(&plain());
    s.conn.close(s.now);
    recv!(s, 0, "FA", 1, ack = 1);
    send!(s, 1, "A", 1, ack = 2);
    send!(s, 2, "A", 1, ack = 2, len = 10);
    recv!(s, 2, "R", 2);
    assert_eq!((s.conn.state(), s.counters.tcp_ext_abort_on_data), (State::Closed, 1));
    // A peer that has not received the FIN accepts a RST only with the number of the FIN (RFC 5961
    // section 3.2).
    let mut s = Script::established(&plain());
    s.conn.close(s.now);
    recv!(s, 0, "FA", 1, ack = 1);
    send!(s, 1, "A", 1, ack = 1, len = 10);
    recv!(s, 1, "R", 1);
}

#[test]
fn an_orphan_ends_after_a_time_limit() {
    let mut s = Script::fin_wait_2(&plain());
    s.conn.close(s.now);
    recv_nothing!(s, MINUTE);
    assert_eq!(s.conn.state(), State::Closed);
    let mut s = Script::established(&plain());
    s.conn.close(s.now);
    recv!(s, 0, "FA", 1, ack = 1);
    send!(s, 5, "A", 1, ack = 2);
    recv_nothing!(s, MINUTE + 5);
    assert_eq!(s.conn.state(), State::Closed);
}

#[test]
fn closing_before_the_handshake_is_done_leaves_nothing_behind() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    s.conn.close(s.now);
    assert_eq!(s.conn.state(), State::Closed);
    recv_nothing!(s, MINUTE);
    let mut s = Script::syn_received(&plain());
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    s.conn.close(s.now);
    send!(s, 1, "A", 1, ack = 1);
    recv!(s, 1, "FA", 1, ack = 1);
    assert_eq!(s.conn.state(), State::FinWait1);
}

#[test]
fn aborting_sends_a_rst_and_forgets() {
    let mut s = Script::established(&plain());
    s.write(10);
    s.conn.abort(s.now);
    recv!(s, 0, "RA", 1, ack = 1);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Aborted)));
    assert_eq!(s.conn.held(), ByteCount(0));
}

// Shows: RFC9293-SHLD-4
#[test]
fn a_newer_syn_may_take_the_place_of_time_wait() {
    let s = Script::time_wait(&plain());
    let may = |seg: Seg| {
        let wire = seg.to_wire();
        s.conn.may_be_replaced(&wire.segment(&seg.data))
    };
    assert!(may(seg!("S", 1000)));
    assert!(!may(seg!("S", 1)));
    assert!(!may(seg!("A", 1000, ack = 2)));
    let s = Script::established(&plain());
    let syn = seg!("S", 1000);
    assert!(!s.conn.may_be_replaced(&syn.to_wire().segment(&syn.data)));
    // RFC 6191: timestamps take precedence over sequence numbers.
    let s = Script::time_wait(&TcpConfig { timestamps: true, ..plain() });
    for (seq, later, expected) in [(1000, -1, false), (1000, 0, true), (1, 0, false), (1, 1, true)]
    {
        let syn = seg!("S", seq, ts = (PEER_TS.wrapping_add_signed(later), 0));
        assert_eq!(s.conn.may_be_replaced(&syn.to_wire().segment(&syn.data)), expected);
    }
}

#[test]
fn an_orphan_does_not_wait_for_a_window_that_never_opens() {
    // The first segment fills the window, or the window was closed before.
    for is_outstanding in [false, true] {
        let mut s = Script::established(&plain());
        s.write(1500);
        if is_outstanding {
            recv!(s, 0, "A", 1, ack = 1, len = 1000);
        }
        send!(s, 0, "A", 1, ack = 1, window = 0);
        s.conn.close(s.now);
        recv_nothing!(s, 0);
        let mut answered = 0;
        let mut last = None;
        while let Some(at) = s.conn.poll_timeout() {
            s.now = at;
            s.conn.on_timeout(at, &mut s.counters);
            while let Some(packet) = s.conn.poll_transmit(at, &mut s.counters, &mut s.outlet) {
                last = Some(Seg::from_packet(&packet.data).flags);
                if s.conn.state() != State::Closed {
                    answered += 1;
                    let closed = seg!("A", 1, ack = 1, window = 0);
                    let wire = closed.to_wire();
                    s.conn.on_segment(at, &wire.segment(&closed.data), &mut s.counters);
                }
            }
            assert!(answered < 100, "it lives on");
        }
        assert!(answered >= 8, "{answered}");
        assert_eq!((s.conn.state(), last), (State::Closed, Some("RA")));
        assert_eq!((s.conn.held(), s.counters.tcp_ext_abort_on_timeout), (ByteCount(0), 1));
    }
}
