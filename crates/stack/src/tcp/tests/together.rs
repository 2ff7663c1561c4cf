//! Segments that do two things at once, and two ends that do the same at once.

use super::*;

#[test]
fn urgent_data_is_data() {
    // RFC 6093: urgent data stays at its place in the stream, wherever the pointer is.
    let mut s = Script::established(&plain());
    send!(s, 0, "UA", 1, ack = 1, len = 10);
    recv!(s, 0, "A", 1, ack = 11);
    send!(s, 1, "UPA", 21, ack = 1, len = 10);
    recv!(s, 1, "A", 1, ack = 11, sack = [(21, 31)]);
    send!(s, 2, "UA", 11, ack = 1, len = 10);
    recv!(s, 2, "A", 1, ack = 31);
    assert_eq!(s.read(), stream(1, 30));
    // Without data the flag has no effect; with a FIN the FIN counts.
    send!(s, 3, "UA", 31, ack = 1);
    recv_nothing!(s, 3);
    send!(s, 4, "UFA", 31, ack = 1, len = 5);
    recv!(s, 4, "A", 1, ack = 37);
    assert_eq!((s.conn.state(), s.read()), (State::CloseWait, stream(31, 5)));
}

#[test]
fn data_in_a_syn_is_left_for_later() {
    let config = plain();
    let syn = Seg { data: stream(1, 20), ..Script::syn_of(&config) };
    let wire = syn.to_wire();
    let mut s = Script::connecting(&config);
    s.conn = Connection::accept(s.now, flow(), ISS, TS_OFFSET, &config, &wire.segment(&syn.data));
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1, "A", 1, ack = 1, len = 20);
    recv!(s, 1, "A", 1, ack = 21);
    assert_eq!((s.conn.state(), s.read()), (State::Established, stream(1, 20)));
}

#[test]
fn data_or_a_fin_in_the_answer_to_a_syn_is_too() {
    for flags in ["S", "FS"] {
        let mut s = Script::connecting(&plain());
        recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
        let answer = Seg {
            flags,
            ack: Some(1),
            mss: Some(1000),
            sack_permitted: true,
            data: stream(1, 20),
            ..Seg::default()
        };
        s.send_at(1, answer);
        recv!(s, 1, "A", 1, ack = 1);
        assert_eq!(s.conn.state(), State::Established);
        assert_eq!(s.conn.recv(s.now, &mut [0; 9]), Err(TcpError::WouldBlock));
        send!(s, 2, "FPA", 1, ack = 1, len = 20);
        recv!(s, 2, "A", 1, ack = 22);
        assert_eq!((s.conn.state(), s.read()), (State::CloseWait, stream(1, 20)));
    }
}

#[test]
fn data_and_fin_may_complete_the_handshake() {
    let mut s = Script::syn_received(&plain());
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1, "FPA", 1, ack = 1, len = 20);
    recv!(s, 1, "A", 1, ack = 22);
    assert_eq!((s.conn.state(), s.read()), (State::CloseWait, stream(1, 20)));
    assert_eq!(s.conn.recv(s.now, &mut [0; 9]), Ok(0));
}

#[test]
fn a_fin_on_data_counts_after_it() {
    let mut s = Script::established(&plain());
    send!(s, 0, "FPA", 1, ack = 1, len = 100);
    recv!(s, 0, "A", 1, ack = 102);
    assert_eq!((s.conn.state(), s.read()), (State::CloseWait, stream(1, 100)));
    assert_eq!(s.conn.recv(s.now, &mut [0; 9]), Ok(0));
    // Retransmissions with other boundaries are accepted.
    send!(s, 1, "FPA", 51, ack = 1, len = 50);
    recv!(s, 1, "A", 1, ack = 102, sack = [(51, 101)]);
    assert_eq!(s.conn.state(), State::CloseWait);
}

#[test]
fn a_fin_behind_data_that_the_window_cuts_off_comes_again() {
    let mut s = Script::established(&TcpConfig {
        initial_window: ByteCount(1000),
        receive_buffer: ByteCount(1000),
        ..plain()
    });
    send!(s, 0, "FPA", 1, ack = 1, len = 1500);
    recv!(s, 0, "A", 1, ack = 1001);
    assert_eq!((s.conn.state(), s.read().len()), (State::Established, 1000));
    s.take(0);
    send!(s, 1, "FPA", 1001, ack = 1, len = 500);
    recv!(s, 1, "A", 1, ack = 1502);
    assert_eq!((s.conn.state(), s.read()), (State::CloseWait, stream(1001, 500)));
}

#[test]
fn both_open_at_once_and_one_answer_is_lost() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 5, "S", 0, mss = 1000, sack_permitted = true);
    // This SYN-ACK is lost; the peer's arrives, and is retransmitted.
    recv!(s, 5, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 9, "S", 0, ack = 1, mss = 1000, sack_permitted = true);
    assert_eq!(s.conn.state(), State::Established);
    // The ACK replaces the lost SYN-ACK.
    recv!(s, 9, "A", 1, ack = 1);
    // The ACK is lost as well.
    send!(s, 1_005, "S", 0, ack = 1, mss = 1000, sack_permitted = true);
    recv!(s, 1_005, "A", 1, ack = 1);
    recv_nothing!(s, 2_000);
    // The opposite case: the peer's SYN-ACK is lost, and its ACK of this end's SYN-ACK replaces it.
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 5, "S", 0, mss = 1000, sack_permitted = true);
    recv!(s, 5, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 9, "A", 1, ack = 1, len = 10);
    recv!(s, 9, "A", 1, ack = 11);
    assert_eq!((s.conn.state(), s.read()), (State::Established, stream(1, 10)));
}

#[test]
fn where_both_open_at_once_one_ack_answers_a_syn_ack_with_data() {
    for (config, last) in [(plain(), 11), (delayed(), 11), (plain(), 12)] {
        let mut s = Script::connecting(&config);
        recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
        send!(s, 5, "S", 0, mss = 1000, sack_permitted = true);
        recv!(s, 5, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
        let flags = if last == 12 { "FS" } else { "S" };
        let data = stream(1, 10);
        s.send_at(9, Seg { flags, ack: Some(1), mss: Some(1000), data, ..Seg::default() });
        recv!(s, 9, "A", 1, ack = last);
        recv_nothing!(s, 1_000);
        assert_eq!(s.read(), stream(1, 10));
    }
}

// RFC 6298 section 2.1: the time-out before the first measurement is one second.
#[test]
fn where_both_open_at_once_the_syn_ack_has_a_timer_of_its_own() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 990, "S", 0, mss = 1000, sack_permitted = true);
    recv!(s, 990, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    recv_nothing!(s, 1_989);
    for ms in [1_990, 3_990] {
        recv!(s, ms, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    }
    // It is unknown whether an ACK answers the SYN or the SYN-ACK (Karn's algorithm).
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 990, "S", 0, mss = 1000, sack_permitted = true);
    recv!(s, 990, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1_100, "A", 1, ack = 1);
    assert_eq!(s.conn.info(s.now).rtt, None);
}

#[test]
fn both_close_at_once_with_data() {
    let mut s = Script::established(&plain());
    s.write(50);
    s.conn.shutdown(s.now);
    recv!(s, 0, "FPA", 1, ack = 1, len = 50);
    send!(s, 1, "FPA", 1, ack = 1, len = 70);
    recv!(s, 1, "A", 52, ack = 72);
    assert_eq!(s.conn.state(), State::Closing);
    // The FIN of this end is lost.
    recv!(s, 200, "FPA", 1, ack = 72, len = 50);
    send!(s, 201, "A", 72, ack = 52);
    assert_eq!((s.conn.state(), s.read()), (State::TimeWait, stream(1, 70)));
}
