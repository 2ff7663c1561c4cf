//! Negotiation of AccECN, and marks on SYNs.

use super::*;

// Shows: RFC9768-3.1.1-3, RFC9768-3.1.5-15, RFC9768-3.2.1-1, RFC9768-3.2.2.2-1, RFC9768-3.2.2.2-3
// Shows: RFC9768-3.2.3.2.1-2
#[test]
fn a_syn_ack_reports_the_ecn_field_of_the_syn() {
    for (ecn, code) in CODES {
        let mut s = syn_received(&accurate(), ecn, code);
        send!(s, 1, "A", 1, ack = 1, ace = 0b010, accecn = counted(0, 0, 0));
        assert!(s.conn.info(s.now).ecn, "{ecn}");
        // A marked SYN is reported only in the SYN-ACK.
        assert_eq!(info(&s), AccEcnInfo::default());
        s.write(10);
        recv!(s, 1, "PA", 1, ack = 1, len = 10, ace = FIRST, ecn = ECT_0);
    }
}

// Shows: RFC9768-3.1.2-1, RFC9768-3.2.2.1-1, RFC9768-3.2.2.2-4, RFC9768-3.2.2.2-6
// Shows: RFC9768-3.2.2.3-1, RFC9768-3.2.3.2.1-3, RFC9768-3.2.3.2.3-2
#[test]
fn a_client_reports_the_ecn_field_of_the_syn_ack_and_stops_if_it_was_changed() {
    for (syn, ace) in CODES.into_iter().chain([(NOT_ECT, 0b101)]) {
        for (ecn, code) in CODES {
            let mut s = client(ace, ecn);
            recv!(s, 5, "A", 1, ack = 1, ace = code, accecn = counted(0, 0, 0));
            recv_nothing!(s, 5);
            // RFC 9768 table 3: a CE mark is also counted in the counter, which is certain to
            // arrive.
            let first = if ecn == CE { FIRST + 1 } else { FIRST };
            s.write(10);
            let field = if syn == NOT_ECT { ECT_0 } else { NOT_ECT };
            recv!(
                s,
                5,
                "PA",
                1,
                ack = 1,
                len = 10,
                ace = first,
                ecn = field,
                accecn = counted(0, 0, 0)
            );
            assert_eq!(info(&s).received_ce, u64::from(ecn == CE));
            assert_eq!(info(&s).delivered_ce, 0, "{ace:03b}: a marked SYN does not count");
        }
    }
}

// Shows: RFC9768-3.1.2-1, RFC9768-3.1.2-4, RFC9768-3.1.5-11
#[test]
fn a_peer_with_classic_ecn_gets_classic_ecn() {
    // The peer supports only ECN of RFC 3168.
    let mut s = client(0b001, NOT_ECT);
    recv!(s, 5, "A", 1, ack = 1);
    assert_eq!((s.conn.info(s.now).ecn, s.conn.info(s.now).accecn), (true, None));
    s.write(10);
    recv!(s, 5, "PA", 1, ack = 1, len = 10, ecn = ECT_0);
    send!(s, 6, "A", 1, ack = 11, len = 10, ecn = CE);
    recv!(s, 6, "AE", 11, ack = 11);
    // The peer supports no ECN, or sends back the flags of the SYN.
    for ace in [0b000, 0b111] {
        let mut s = client(ace, NOT_ECT);
        recv!(s, 5, "A", 1, ack = 1);
        assert_eq!((s.conn.info(s.now).ecn, s.conn.info(s.now).accecn), (false, None));
        s.write(10);
        recv!(s, 5, "PA", 1, ack = 1, len = 10);
        send!(s, 6, "A", 1, ack = 11, len = 10, ecn = CE);
        recv!(s, 6, "A", 11, ack = 11);
    }
}

// Shows: RFC9768-3.1.2-2, RFC9768-3.1.2-3
#[test]
fn a_server_grants_what_the_client_knows() {
    for (ace, flags) in [(0b011, "SAE"), (0b000, "SA")] {
        let config = accurate();
        let syn = Seg { ace: Some(ace), ..Script::syn_of(&config) };
        let wire = syn.to_wire();
        let segment = wire.segment(&syn.data);
        let conn = Connection::accept(Instant::ZERO, flow(), ISS, TS_OFFSET, &config, &segment);
        let mut s = Script::of(conn, Instant::ZERO);
        let answer = s.take(0).unwrap();
        assert_eq!((answer.flags, answer.accecn), (flags, None));
        send!(s, 0, "A", 1, ack = 1);
        let shown = s.conn.info(s.now);
        assert_eq!((shown.ecn, shown.accecn), (ace == 0b011, None));
    }
}

// Shows: RFC9768-3.1.1-6, RFC9768-3.1.4.1-1, RFC9768-3.1.4.1-2, RFC9768-3.1.4.1-3, RFC9768-3.1.5-3
#[test]
fn a_syn_asks_twice_and_then_for_nothing_and_a_late_grant_counts() {
    for (ace, granted) in [(0b000, false), (0b010, true)] {
        let mut s = Script::connecting(&accurate());
        recv!(s, 0, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
        assert!(!s.conn.info(s.now).ecn, "before any SYN-ACK");
        recv!(s, 1000, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
        recv!(s, 3000, "S", 0, ace = 0b000, mss = 1000, sack_permitted = true);
        s.send_at(3100, Seg { ace: Some(ace), ack: Some(1), ..syn_ack() });
        assert_eq!(s.conn.info(s.now).ecn, granted);
        let option = if granted { counted(0, 0, 0) } else { None };
        recv!(s, 3100, "A", 1, ack = 1, ace = ace, accecn = option);
        // The client may send ECT nevertheless: it knows that the server agreed.
        s.write(10);
        let field = if granted { ECT_0 } else { NOT_ECT };
        assert_eq!(s.take(3100).unwrap().ecn, field);
    }
}

// Shows: RFC9768-3.1.5-12, RFC9768-3.2.3.2.2-1, RFC9768-3.2.3.2.2-2
#[test]
fn a_syn_ack_leaves_without_the_option_and_then_without_ecn_so_that_nothing_is_marked() {
    let mut s = syn_received(&accurate(), NOT_ECT, 0b010);
    s.recv_at(1000, &Seg { ack: Some(1), ace: Some(0b010), ..syn_ack() });
    s.recv_at(3000, &Seg { ack: Some(1), ace: Some(0b000), ..syn_ack() });
    send!(s, 3100, "A", 1, ack = 1, ace = 0b010, accecn = counted(0, 0, 0));
    s.write(10);
    recv!(s, 3100, "PA", 1, ack = 1, len = 10, ace = FIRST);
    // Received marks are still counted, and the peer's feedback is still read.
    send!(s, 3101, "A", 1, ack = 11, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 3101, "A", 11, ack = 11, ace = FIRST + 1, accecn = counted(0, 10, 0));
    // With only the first fallback it sends ECT.
    let mut s = syn_received(&accurate(), NOT_ECT, 0b010);
    s.recv_at(1000, &Seg { ack: Some(1), ace: Some(0b010), ..syn_ack() });
    send!(s, 1100, "A", 1, ack = 1, ace = 0b010);
    s.write(10);
    assert_eq!(s.take(1100).unwrap().ecn, ECT_0);
}

// Shows: RFC9768-3.1.5-1, RFC9768-3.1.5-7, RFC9768-3.1.5-8, RFC9768-3.1.5-12
#[test]
fn a_syn_that_comes_again_is_answered_for_itself() {
    for (ace, marks) in [(0b111, true), (0b000, false)] {
        for (ecn, code) in CODES {
            let mut s = syn_received(&accurate(), NOT_ECT, 0b010);
            let again = Seg { ace: Some(ace), ecn, ..Script::syn_of(&accurate()) };
            s.send_at(600, again);
            s.recv_at(600, &Seg { ack: Some(1), ace: Some(code), ..syn_ack() });
            send!(s, 700, "A", 1, ack = 1, ace = 0b010);
            s.write(10);
            let field = if marks { ECT_0 } else { NOT_ECT };
            assert_eq!(s.take(700).unwrap().ecn, field, "{ace:03b}");
            assert_eq!(info(&s).received_ce, 0);
        }
    }
}

// Shows: RFC9768-3.1.5-9, RFC9768-3.1.5-11
#[test]
fn a_server_without_ecn_stays_so() {
    let config = accurate();
    let syn = Seg { ace: Some(0b000), ..Script::syn_of(&config) };
    let wire = syn.to_wire();
    let segment = wire.segment(&syn.data);
    let conn = Connection::accept(Instant::ZERO, flow(), ISS, TS_OFFSET, &config, &segment);
    let mut s = Script::of(conn, Instant::ZERO);
    s.recv_at(0, &Seg { ack: Some(1), ace: Some(0), ..syn_ack() });
    for (at, ace) in [(300, 0b011), (900, 0b111)] {
        s.send_at(at, Seg { ace: Some(ace), ..Script::syn_of(&config) });
        s.recv_at(at, &Seg { ack: Some(1), ace: Some(0), ..syn_ack() });
    }
    send!(s, 950, "A", 1, ack = 1);
    s.write(10);
    assert_eq!(s.take(950).unwrap().ecn, NOT_ECT);
}

// Shows: RFC9768-3.1.5-5
#[test]
fn syns_for_different_forms_of_ecn_reset_the_connection() {
    for (first, then) in [(0b111, 0b011), (0b011, 0b111)] {
        let config = accurate();
        let syn = Seg { ace: Some(first), ..Script::syn_of(&config) };
        let wire = syn.to_wire();
        let segment = wire.segment(&syn.data);
        let conn = Connection::accept(Instant::ZERO, flow(), ISS, TS_OFFSET, &config, &segment);
        let mut s = Script::of(conn, Instant::ZERO);
        s.take(0).unwrap();
        s.send_at(600, Seg { ace: Some(then), ..Script::syn_of(&config) });
        recv!(s, 600, "RA", 1, ack = 1);
        assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
    }
}

// Shows: RFC9768-3.1.2-5, RFC9768-3.1.5-6
#[test]
fn both_may_open_at_once() {
    let mut s = Script::connecting(&accurate());
    recv!(s, 0, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
    send!(s, 5, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
    s.recv_at(5, &Seg { ack: Some(1), ace: Some(0b010), accecn: counted(0, 0, 0), ..syn_ack() });
    s.send_at(9, Seg { ack: Some(1), ace: Some(0b010), ecn: ECT_0, ..syn_ack() });
    assert_eq!(s.conn.state(), State::Established);
    recv!(s, 9, "A", 1, ack = 1, ace = 0b100);
    s.write(10);
    recv!(s, 9, "PA", 1, ack = 1, len = 10, ace = FIRST, ecn = ECT_0);

    // A SYN for AccECN, and a SYN-ACK for ECN.
    let mut s = Script::connecting(&accurate());
    s.take(0).unwrap();
    send!(s, 5, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
    s.take(5).unwrap();
    s.send_at(9, Seg { ack: Some(1), ace: Some(0b001), ..syn_ack() });
    recv!(s, 9, "RA", 1, ack = 1);
    assert_eq!(s.conn.state(), State::Closed);

    // A SYN-ACK without ECN: the peer may not understand the feedback.
    let mut s = Script::connecting(&accurate());
    s.take(0).unwrap();
    send!(s, 5, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
    s.take(5).unwrap();
    s.send_at(9, Seg { ack: Some(1), ace: Some(0b000), ..syn_ack() });
    recv!(s, 9, "A", 1, ack = 1, ace = 0b010);
    s.write(10);
    recv!(s, 9, "PA", 1, ack = 1, len = 10, ace = FIRST);
}

// RFC 9768 section 3.2.2: the three flags of a SYN-ACK are not a counter, even with data.
#[test]
fn the_flags_of_a_syn_ack_with_data_are_no_count_when_both_open_at_once() {
    for len in [0, 10] {
        let mut s = Script::connecting(&accurate());
        s.take(0).unwrap();
        send!(s, 5, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
        s.take(5).unwrap();
        let data = stream(1, len);
        s.send_at(9, Seg { ack: Some(1), ace: Some(0b010), data, ..syn_ack() });
        s.write(10);
        let sent = std::iter::from_fn(|| s.take(9)).last().unwrap();
        assert_eq!((sent.data.len(), sent.ecn), (10, ECT_0), "{len} bytes");
        // The first counter is still accepted as the first.
        send!(s, 20, "A", 1 + len as u32, ack = 11, ace = FIRST + 1);
        assert_eq!(info(&s).delivered_ce, 1, "{len} bytes");
    }
}

// RFC 9768 section 3.2.2.1: the ACK with the code for the SYN-ACK also acknowledges its data.
#[test]
fn one_ack_answers_the_peers_syn_ack_when_both_open_at_once() {
    for (ecn, code, ceb) in [(NOT_ECT, 0b010, 0), (CE, 0b110, 10)] {
        for len in [0, 10] {
            let mut s = Script::connecting(&accurate());
            s.take(0).unwrap();
            send!(s, 5, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
            s.take(5).unwrap();
            let data = stream(1, len);
            s.send_at(9, Seg { ack: Some(1), ace: Some(0b010), ecn, data, ..syn_ack() });
            let sent = s.take(9).unwrap();
            assert_eq!((sent.ack, sent.ace), (Some(1 + len as u32), Some(code)));
            let counters = sent.accecn.map(|option| option.ceb());
            assert_eq!(counters.flatten().unwrap_or(0), ceb * u32::from(len > 0));
            recv_nothing!(s, 9);
            s.write(10);
            let ace = FIRST + u8::from(ecn == CE);
            recv!(s, 9, "PA", 1, ack = 1 + len as u32, len = 10, ace = ace, ecn = ECT_0);
        }
    }
}

// RFC 9768 section 3.1.2: the SYN-ACK of a simultaneous open is that of a passive open.
// Shows: RFC9768-3.1.2-5
#[test]
fn time_outs_of_the_syn_do_not_count_as_time_outs_of_the_syn_ack() {
    let crossed = || {
        let config = TcpConfig { syn_retries: 4, ..accurate() };
        let mut s = Script::connecting(&config);
        for (at, ace) in [(0, 0b111), (1000, 0b111), (3000, 0b000)] {
            recv!(s, at, "S", 0, ace = ace, mss = 1000, sack_permitted = true);
        }
        send!(s, 3100, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
        let grant = Seg { ack: Some(1), ace: Some(0b010), ..syn_ack() };
        s.recv_at(3100, &Seg { accecn: counted(0, 0, 0), ..grant.clone() });
        assert_eq!(s.counters.tcp_ext_syn_retrans, 2);
        (s, grant)
    };
    let (mut s, _) = crossed();
    send!(s, 3200, "A", 1, ack = 1, ace = 0b010, accecn = counted(0, 0, 0));
    assert_eq!(s.conn.state(), State::Established);
    // A SYN was retransmitted: the round-trip time is ambiguous, and the window is one segment.
    assert_eq!(s.conn.info(s.now).cwnd, ByteCount(1000));
    s.write(10);
    recv!(s, 3200, "PA", 1, ack = 1, len = 10, ace = FIRST, ecn = ECT_0);

    // The SYN-ACK's own time-outs count, and the attempt ends after the same number of time-outs in
    // total.
    let (mut s, grant) = crossed();
    // RFC 6298 section 5.5: without a measurement, the time-out stays doubled for every expiry of
    // the timer.
    s.recv_at(7100, &grant);
    s.recv_at(15_100, &Seg { ace: Some(0b000), ..grant });
    recv_nothing!(s, 31_099);
    assert_eq!(s.conn.state(), State::SynReceived);
    recv_nothing!(s, 31_100);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::TimedOut)));
}

// Shows: RFC9768-3.2.2.1-5
#[test]
fn the_ack_of_a_syn_ack_leaves_before_data() {
    let mut s = Script::connecting(&accurate());
    s.take(0).unwrap();
    s.write(2500);
    s.send_at(5, Seg { ace: Some(0b010), ecn: ECT_0, ack: Some(1), ..syn_ack() });
    recv!(s, 5, "A", 1, ack = 1, ace = 0b100, accecn = counted(0, 0, 0));
    recv!(s, 5, "A", 1, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    recv!(s, 5, "A", 1001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    s.send_at(20, Seg { ace: Some(0b010), ack: Some(1), ..syn_ack() });
    s.write(2000);
    recv!(s, 20, "A", 2001, ack = 1, ace = 0b010);
    recv!(s, 20, "PA", 2001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
}

// RFC 9768 section 3.2.2.4
#[test]
fn a_first_ace_of_zero_ends_marking_even_before_this_end_has_sent_data() {
    let simultaneous = || {
        let mut s = Script::connecting(&accurate());
        s.take(0).unwrap();
        send!(s, 5, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
        s.take(5).unwrap();
        s.send_at(9, Seg { ack: Some(1), ace: Some(0b010), ..syn_ack() });
        s.take(9).unwrap();
        s
    };
    let opened = || {
        let mut s = client(0b010, NOT_ECT);
        s.take(5).unwrap();
        s
    };
    for (ace, field) in [(0, NOT_ECT), (FIRST, ECT_0)] {
        // A pure ACK, and data.
        for (mut s, len) in [(simultaneous(), 0), (simultaneous(), 10), (opened(), 10)] {
            send!(s, 10, "A", 1, ack = 1, len = len, ace = ace);
            s.write(10);
            let sent = std::iter::from_fn(|| s.take(10)).last().unwrap();
            assert_eq!((sent.data.len(), sent.ecn), (10, field), "ACE {ace}, {len} bytes");
            // A host that no longer sends ECT still reports received marks.
            send!(s, 20, "A", 1 + len as u32, ack = 11, len = 10, ace = ace, ecn = CE);
            let answer = std::iter::from_fn(|| s.take(20)).last().unwrap();
            assert_eq!(answer.ace, Some(FIRST + 1));
        }
    }
}

// A later ACE of zero is a count: three marked packets.
#[test]
fn an_ace_of_zero_after_the_first_is_a_count() {
    let mut s = client(0b010, NOT_ECT);
    s.take(5).unwrap();
    send!(s, 10, "A", 1, ack = 1, len = 10, ace = FIRST);
    send!(s, 11, "A", 11, ack = 1, len = 10, ace = 0);
    s.write(10);
    let sent = std::iter::from_fn(|| s.take(11)).last().unwrap();
    assert_eq!((sent.data.len(), sent.ecn), (10, ECT_0));
}

// Shows: RFC9768-3.2.2.1-2, RFC9768-3.2.2.1-3, RFC9768-3.2.2.2-5, RFC9768-3.2.2.3-2
// Shows: RFC9768-3.2.2.4-1
#[test]
fn the_last_ack_of_the_handshake_is_read_as_table_4_has_it() {
    for code in 0..8 {
        let mut s = syn_received(&accurate(), NOT_ECT, 0b010);
        send!(s, 1, "A", 1, ack = 1, ace = code, accecn = counted(0, 0, 0));
        let marked = code == 0b110;
        assert_eq!(info(&s).delivered_ce, u64::from(marked), "{code:03b}");
        // A marked SYN-ACK counts as a lost one (RFC 3168 section 6.1.2, RFC 5681 section 3.1).
        assert_eq!(s.conn.info(s.now).cwnd, ByteCount(if marked { 1000 } else { 10_000 }));
        s.write(3000);
        let marks = matches!(code, 0b001 | 0b010 | 0b101 | 0b111);
        let sent = s.take(1).unwrap();
        assert_eq!((sent.ecn, sent.ace), (if marks { ECT_0 } else { 0 }, Some(FIRST)));
        // With code zero the feedback is ignored; otherwise it is used, whether or not data is sent
        // as ECT.
        let ace = if marked { FIRST + 2 } else { FIRST + 1 };
        send!(s, 100, "A", 1, ack = 1001, ace = ace, accecn = counted(0, 1000, 0));
        let reductions = s.conn.sender().unwrap().stats().reductions;
        let expected = if code == 0 { (0, 0) } else { (1 + u64::from(marked), 1) };
        assert_eq!((info(&s).delivered_ce, reductions), expected, "{code:03b}");
        // The receiver side is not affected.
        send!(s, 101, "A", 1, ack = 1001, len = 10, ace = ace, ecn = CE);
        let answer = std::iter::from_fn(|| s.take(101)).last().unwrap();
        assert_eq!(answer.ace, Some(FIRST + 1));
    }
}

#[test]
fn where_data_opens_the_connection_ace_is_a_counter() {
    let mut s = syn_received(&accurate(), NOT_ECT, 0b010);
    send!(s, 1, "A", 1, ack = 1, len = 1000, ace = FIRST, ecn = CE);
    recv!(s, 1, "A", 1, ack = 1001, ace = FIRST + 1, accecn = counted(0, 1000, 0));
    assert_eq!(info(&s).delivered_ce, 0);
    s.write(10);
    assert_eq!(s.take(1).unwrap().ecn, ECT_0);
}

// Shows: RFC9768-3.1.5-2, RFC9768-3.1.5-7, RFC9768-3.2.2-3, RFC9768-3.2.2.1-4
#[test]
fn a_syn_ack_that_comes_again_is_answered_for_itself() {
    let mut s = client(0b010, NOT_ECT);
    recv!(s, 5, "A", 1, ack = 1, ace = 0b010, accecn = counted(0, 0, 0));
    for (at, ecn, code) in [(1000, ECT_0, 0b100), (3000, CE, 0b110), (5000, CE, 0b110)] {
        // Regardless of its flags, the form of feedback stays.
        for (more, ace) in [(0, 0b010), (600, 0b000), (1200, 0b001)] {
            s.send_at(at + more, Seg { ace: Some(ace), ecn, ack: Some(1), ..syn_ack() });
            recv!(s, at + more, "A", 1, ack = 1, ace = code);
        }
    }
    // RFC 9768 section 3.2.2.2: only one of several marked SYN-ACKs counts.
    assert_eq!(info(&s).received_ce, 1);
    assert_eq!(info(&s).delivered_ce, 0, "the flags of a SYN are no count");
    // Any other SYN is challenged as usual.
    send!(s, 7000, "SA", 5, ack = 1, ace = 0b010, ecn = CE);
    recv!(s, 7000, "A", 1, ack = 1, ace = FIRST + 1);
}
