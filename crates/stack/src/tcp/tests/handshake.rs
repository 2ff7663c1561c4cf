//! Active, passive and simultaneous opens.

use super::*;

// Shows: RFC9293-MUST-14, RFC9293-MUST-16, RFC9293-SHLD-5, RFC7323-2.2-3, RFC7323-3.2-3
#[test]
fn an_active_open_offers_what_linux_offers_and_takes_what_both_have() {
    let mut s = Script::connecting(&TcpConfig::default());
    recv!(
        s,
        0,
        "S",
        0,
        mss = 1460,
        wscale = 9,
        sack_permitted = true,
        ts = (TS_OFFSET, 0),
        window = 65_535
    );
    recv_nothing!(s, 0);
    send!(
        s,
        50,
        "S",
        0,
        ack = 1,
        mss = 1400,
        wscale = 3,
        sack_permitted = true,
        ts = (PEER_TS, TS_OFFSET)
    );
    recv!(s, 50, "A", 1, ack = 1, ts = (TS_OFFSET + 50, PEER_TS), window = 128);
    recv_nothing!(s, 50);
    assert_eq!(s.conn.state(), State::Established);
    let info = s.conn.info(s.now);
    assert_eq!((info.mss, info.wscale), (ByteCount(1388), (3, 9)));
    assert_eq!(info.rtt, Some(Duration::from_millis(50)));
    assert_eq!(info.snd_wnd, ByteCount(u64::from(PEER_WINDOW)), "a SYN's window is not scaled");
    assert!(s.conn.readiness().connected);
}

// Shows: RFC9293-MUST-14, RFC7323-2.2-1, RFC2018-4-1
#[test]
fn a_passive_open_grants_only_what_the_syn_offers() {
    let config = TcpConfig::default();
    let syn = Seg { flags: "S", mss: Some(5), ..Seg::default() };
    let wire = syn.to_wire();
    let mut s = Script::connecting(&config);
    s.conn = Connection::accept(s.now, flow(), ISS, TS_OFFSET, &config, &wire.segment(&syn.data));
    recv!(s, 0, "SA", 0, ack = 1, mss = 1460);
    send!(s, 0, "A", 1, ack = 1);
    let info = s.conn.info(s.now);
    assert_eq!((info.ts, info.sack, info.wscale), (false, false, (0, 0)));
    assert_eq!(info.mss, ByteCount(48), "an absurd MSS is not obeyed");
}

// Shows: RFC7323-2.2-1
#[test]
fn an_offer_of_the_peer_we_did_not_make_is_not_taken() {
    let mut s = Script::connecting(&TcpConfig { sack: false, ..plain() });
    recv!(s, 0, "S", 0, mss = 1000);
    send!(s, 0, "S", 0, ack = 1, wscale = 9, sack_permitted = true, ts = (1, 1));
    recv!(s, 0, "A", 1, ack = 1);
    let info = s.conn.info(s.now);
    assert_eq!((info.ts, info.sack, info.wscale), (false, false, (0, 0)));
}

// Shows: RFC9293-MUST-22, RFC6298-2.1, RFC6298-5.5
#[test]
fn a_lost_syn_is_sent_again_with_doubling_pauses_and_given_up() {
    let mut s = Script::connecting(&TcpConfig { syn_retries: 3, ..plain() });
    for ms in [0, 1000, 3000, 7000] {
        recv!(s, ms, "S", 0, mss = 1000, sack_permitted = true);
    }
    recv_nothing!(s, 14_999);
    assert_eq!(s.conn.state(), State::SynSent);
    recv_nothing!(s, 15_000);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::TimedOut)));
    assert_eq!(s.conn.poll_timeout(), None);
    assert_eq!(s.counters.tcp_ext_syn_retrans, 3);
}

// Shows: RFC9293-MUST-23
#[test]
fn a_syn_and_a_syn_ack_are_not_given_up_within_three_minutes() {
    const R2: u64 = 247_000;
    for (mut s, flags) in
        [(Script::connecting(&plain()), "S"), (Script::syn_received(&plain()), "SA")]
    {
        for ms in [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 127_000] {
            assert_eq!(s.take(ms).map(|sent| sent.flags), Some(flags), "{ms}");
        }
        recv_nothing!(s, R2 - 1);
        assert_ne!(s.conn.state(), State::Closed);
        recv_nothing!(s, R2);
        assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::TimedOut)));
    }
}

// Shows: RFC5681-3.1-4, RFC6298-5.7
#[test]
fn a_lost_syn_ack_is_sent_again_by_the_timer_and_by_the_syn() {
    let mut s = Script::syn_received(&plain());
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    recv!(s, 1000, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1500, "S", 0, mss = 1000);
    recv!(s, 1500, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1600, "A", 1, ack = 1);
    assert_eq!(s.conn.state(), State::Established);
    // RFC 5681 section 3.1: the window is one segment after a lost SYN-ACK. RFC 6298 section 5.7:
    // the time-out is 3 s.
    let info = s.conn.info(s.now);
    assert_eq!((info.cwnd, info.rto), (ByteCount(1000), Duration::from_secs(3)));
}

// Shows: RFC5681-3.1-4
#[test]
fn a_repeated_syn_is_a_sign_of_loss_and_spoils_the_measurement() {
    let mut s = Script::syn_received(&plain());
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 900, "S", 0, mss = 1000);
    recv!(s, 900, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 950, "A", 1, ack = 1);
    let info = s.conn.info(s.now);
    assert_eq!((info.rtt, info.cwnd), (None, ByteCount(1000)));
    assert_eq!((s.counters.tcp_ext_syn_retrans, s.counters.tcp_out_segs), (1, 1));
}

// Shows: RFC9293-MUST-22
#[test]
fn a_user_timeout_limits_the_handshake_too() {
    let config = TcpConfig { user_timeout: Some(Duration::from_millis(500)), ..plain() };
    let mut s = Script::connecting(&config);
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    recv_nothing!(s, 500);
    assert_eq!(s.conn.error(), Some(TcpError::TimedOut));
}

#[test]
fn a_lost_last_ack_is_made_good_by_data() {
    let mut s = Script::syn_received(&plain());
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 10, "A", 1, ack = 1, len = 10);
    assert_eq!(s.conn.state(), State::Established);
    recv!(s, 10, "A", 1, ack = 11);
    assert_eq!(s.read(), stream(1, 10));
}

// Shows: RFC9293-MUST-10
#[test]
fn both_may_open_at_once() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 5, "S", 0, mss = 900, sack_permitted = true);
    assert_eq!(s.conn.state(), State::SynReceived);
    recv!(s, 5, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 9, "S", 0, ack = 1, mss = 900, sack_permitted = true);
    assert_eq!(s.conn.state(), State::Established);
    recv!(s, 9, "A", 1, ack = 1);
    let info = s.conn.info(s.now);
    assert_eq!((info.mss, info.cwnd), (ByteCount(900), ByteCount(9000)));
}

// Shows: RFC5961-3.2-4
#[test]
fn a_rst_to_the_syn_refuses_and_a_forged_one_does_not() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 1, "R", 0);
    send!(s, 1, "R", 0, ack = 2);
    assert_eq!(s.conn.state(), State::SynSent);
    send!(s, 1, "R", 0, ack = 1);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Refused)));
    recv_nothing!(s, 1);
    assert!(s.conn.readiness().readable && s.conn.readiness().closed);
}

#[test]
fn an_ack_for_what_was_not_sent_gets_a_rst_before_the_handshake_is_done() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 1, "S", 0, ack = 77, mss = 1000);
    recv!(s, 1, "R", 77);
    assert_eq!(s.conn.state(), State::SynSent);

    let mut s = Script::syn_received(&plain());
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1, "A", 1, ack = 2);
    recv!(s, 1, "R", 2);
    assert_eq!(s.conn.state(), State::SynReceived);
}

#[test]
fn a_rst_ends_syn_received() {
    let mut s = Script::syn_received(&plain());
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1, "R", 1);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
}

#[test]
fn data_written_early_is_sent_with_the_last_ack_of_the_handshake() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    s.write(5);
    s.conn.shutdown(s.now);
    recv_nothing!(s, 0);
    send!(s, 1, "S", 0, ack = 1, mss = 1000, sack_permitted = true);
    recv!(s, 1, "FPA", 1, ack = 1, len = 5);
    recv_nothing!(s, 1);
    assert_eq!(s.conn.state(), State::FinWait1);
}

// Shows: RFC9293-MUST-56
#[test]
fn icmp_ends_a_handshake_only_if_it_is_hard_and_quotes_it() {
    let start = || {
        let mut s = Script::connecting(&TcpConfig { syn_retries: 0, ..plain() });
        recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
        s
    };
    let mut s = start();
    assert!(s.conn.is_outstanding(ISS) && !s.conn.is_outstanding(ISS + 1));
    s.conn.on_unreachable(s.now, Unreachable::Host);
    assert_eq!(s.conn.state(), State::SynSent);
    recv_nothing!(s, 1000);
    assert_eq!(s.conn.error(), Some(TcpError::Unreachable(Unreachable::Host)));
    let mut s = start();
    s.conn.on_unreachable(s.now, Unreachable::Port);
    assert_eq!(s.conn.error(), Some(TcpError::Refused));
}

#[test]
fn an_unreachable_host_or_network_ends_an_attempt_where_asked_for() {
    let config = TcpConfig { unreachable_ends_attempt: true, ..plain() };
    for error in [Unreachable::Host, Unreachable::Network] {
        let mut s = Script::connecting(&config);
        recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
        s.conn.on_unreachable(s.now, error);
        assert_eq!(s.conn.error(), Some(TcpError::Unreachable(error)));
        // One that is open goes on.
        let mut s = Script::established(&config);
        s.write(20);
        s.conn.on_unreachable(s.now, error);
        assert_eq!((s.conn.state(), s.conn.error()), (State::Established, None));
    }
}

#[test]
fn no_data_has_come_since_the_connection_was_opened_and_not_since_it_was_made() {
    let mut s = Script::connecting(&plain());
    assert_eq!(s.take(0).unwrap().flags, "S");
    send!(s, 30, "SA", 0, ack = 1, mss = 1000);
    recv!(s, 30, "A", 1, ack = 1);
    s.advance(100);
    assert_eq!(s.conn.info(s.now).lastrcv, Duration::from_millis(70));
}
