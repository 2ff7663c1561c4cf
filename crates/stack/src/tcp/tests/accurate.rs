//! AccECN (RFC 9768), as packets have it.

use airtcp_wire::ip::{CE, ECT_0, ECT_1, NOT_ECT};
use airtcp_wire::options::Order;

use super::*;

/// What SYN-ACKs, and the ACKs of them, tell of the ECN field of the packet they answer.
const CODES: [(u8, u8); 4] = [(NOT_ECT, 0b010), (ECT_1, 0b011), (ECT_0, 0b100), (CE, 0b110)];
/// ACE before anything was marked.
const FIRST: u8 = 5;

fn accurate() -> TcpConfig {
    TcpConfig { ecn: EcnMode::Accurate, ..plain() }
}

/// The option with so many bytes that arrived with ECT(0), CE and ECT(1).
fn counted(e0b: u32, ceb: u32, e1b: u32) -> Option<AccEcn> {
    Some(AccEcn::new(Order::One, &[e1b + 1, ceb, e0b + 1]))
}

/// The same without ECT(1), as short as it can be.
fn two_counted(e0b: u32, ceb: u32) -> Option<AccEcn> {
    Some(AccEcn::new(Order::Zero, &[e0b + 1, ceb]))
}

fn info(s: &Script) -> AccEcnInfo {
    s.conn.info(s.now).accecn.expect("AccECN is in use")
}

/// A server that was sent a SYN for AccECN in a packet with this field, at time zero. Its SYN-ACK has left.
#[track_caller]
fn syn_received(config: &TcpConfig, ecn: u8, code: u8) -> Script {
    let syn = Seg { ecn, ace: Some(0b111), ..Script::syn_of(config) };
    let wire = syn.to_wire();
    let conn =
        Connection::accept(Instant::ZERO, flow(), ISS, TS_OFFSET, config, &wire.segment(&syn.data));
    let mut s = Script::of(conn, Instant::ZERO);
    let expected = Seg { ack: Some(1), ace: Some(code), accecn: counted(0, 0, 0), ..syn_ack() };
    s.recv_at(0, &expected);
    s
}

/// What all SYN-ACKs here have.
fn syn_ack() -> Seg {
    Seg { flags: "SA", mss: Some(1000), sack_permitted: true, ..Seg::default() }
}

/// A server with a connection.
#[track_caller]
fn server() -> Script {
    server_with(&accurate())
}

#[track_caller]
fn server_with(config: &TcpConfig) -> Script {
    let mut s = syn_received(config, NOT_ECT, 0b010);
    send!(s, 0, "A", 1, ack = 1, ace = 0b010, accecn = counted(0, 0, 0));
    assert_eq!(s.conn.state(), State::Established);
    s
}

/// A client whose SYN-ACK had these flags, and came with this field.
#[track_caller]
fn client(ace: u8, ecn: u8) -> Script {
    let mut s = Script::connecting(&accurate());
    recv!(s, 0, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
    let answer = Seg { ace: Some(ace), ecn, ack: Some(1), ..syn_ack() };
    s.send_at(5, answer);
    s
}

// Shows: RFC9768-3.1.1-3, RFC9768-3.1.5-15, RFC9768-3.2.1-1, RFC9768-3.2.2.2-1, RFC9768-3.2.2.2-3
// Shows: RFC9768-3.2.3.2.1-2
#[test]
fn a_syn_ack_tells_how_the_syn_arrived() {
    for (ecn, code) in CODES {
        let mut s = syn_received(&accurate(), ecn, code);
        send!(s, 1, "A", 1, ack = 1, ace = 0b010, accecn = counted(0, 0, 0));
        assert!(s.conn.info(s.now).ecn, "{ecn}");
        // A marked SYN is told of by its answer alone.
        assert_eq!(info(&s), AccEcnInfo::default());
        s.write(10);
        recv!(s, 1, "PA", 1, ack = 1, len = 10, ace = FIRST, ecn = ECT_0);
    }
}

// Shows: RFC9768-3.1.2-1, RFC9768-3.2.2.1-1, RFC9768-3.2.2.2-4, RFC9768-3.2.2.2-6
// Shows: RFC9768-3.2.2.3-1, RFC9768-3.2.3.2.1-3, RFC9768-3.2.3.2.3-2
#[test]
fn a_client_tells_how_the_syn_ack_arrived_and_stops_where_the_path_writes_into_the_field() {
    for (syn, ace) in CODES.into_iter().chain([(NOT_ECT, 0b101)]) {
        for (ecn, code) in CODES {
            let mut s = client(ace, ecn);
            recv!(s, 5, "A", 1, ack = 1, ace = code, accecn = counted(0, 0, 0));
            recv_nothing!(s, 5);
            // RFC 9768 table 3: of a marked one the counter tells as well, which arrives for certain.
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
fn a_peer_that_knows_less_is_met_there() {
    // ECN of RFC 3168.
    let mut s = client(0b001, NOT_ECT);
    recv!(s, 5, "A", 1, ack = 1);
    assert_eq!((s.conn.info(s.now).ecn, s.conn.info(s.now).accecn), (true, None));
    s.write(10);
    recv!(s, 5, "PA", 1, ack = 1, len = 10, ecn = ECT_0);
    send!(s, 6, "A", 1, ack = 11, len = 10, ecn = CE);
    recv!(s, 6, "AE", 11, ack = 11);
    // None, and one that sends back what it is sent.
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
        // A client may mark all the same: it knows that the server agreed.
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
    // What arrives marked is counted, and what the peer tells counts.
    send!(s, 3101, "A", 1, ack = 11, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 3101, "A", 11, ack = 11, ace = FIRST + 1, accecn = counted(0, 10, 0));
    // With one fallback alone it marks.
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

    // A SYN-ACK without ECN: the peer may not know what it is told.
    let mut s = Script::connecting(&accurate());
    s.take(0).unwrap();
    send!(s, 5, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
    s.take(5).unwrap();
    s.send_at(9, Seg { ack: Some(1), ace: Some(0b000), ..syn_ack() });
    recv!(s, 9, "A", 1, ack = 1, ace = 0b010);
    s.write(10);
    recv!(s, 9, "PA", 1, ack = 1, len = 10, ace = FIRST);
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
        // Zero: what it tells does not count. Otherwise it does, marks or not.
        let ace = if marked { FIRST + 2 } else { FIRST + 1 };
        send!(s, 100, "A", 1, ack = 1001, ace = ace, accecn = counted(0, 1000, 0));
        let reductions = s.conn.sender().unwrap().stats().reductions;
        let expected = if code == 0 { (0, 0) } else { (1 + u64::from(marked), 1) };
        assert_eq!((info(&s).delivered_ce, reductions), expected, "{code:03b}");
        // As a receiver it goes on.
        send!(s, 101, "A", 1, ack = 1001, len = 10, ace = ace, ecn = CE);
        let told = std::iter::from_fn(|| s.take(101)).last().unwrap();
        assert_eq!(told.ace, Some(FIRST + 1));
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
        // Whatever its flags say: the form of feedback stays.
        for (more, ace) in [(0, 0b010), (600, 0b000), (1200, 0b001)] {
            s.send_at(at + more, Seg { ace: Some(ace), ecn, ack: Some(1), ..syn_ack() });
            recv!(s, at + more, "A", 1, ack = 1, ace = code);
        }
    }
    // RFC 9768 section 3.2.2.2: of marked ones one counts.
    assert_eq!(info(&s).received_ce, 1);
    assert_eq!(info(&s).delivered_ce, 0, "the flags of a SYN are no count");
    // Any other SYN is challenged as ever.
    send!(s, 7000, "SA", 5, ack = 1, ace = 0b010, ecn = CE);
    recv!(s, 7000, "A", 1, ack = 1, ace = FIRST + 1);
}

// Shows: RFC9768-3.1.5-14, RFC9768-3.2-1, RFC9768-3.2-2, RFC9768-3.2-3, RFC9768-3.2.2-1
// Shows: RFC9768-3.2.3.3-2
#[test]
fn everything_that_arrives_is_counted_and_told() {
    let mut s = server();
    let (mut seq, mut bytes) = (1, [0; 3]);
    for (at, (ecn, len)) in (1..).zip([
        (ECT_0, 1000),
        (CE, 1000),
        (NOT_ECT, 1000),
        (ECT_1, 500),
        (CE, 300),
        (CE, 1000),
        (ECT_0, 1),
    ]) {
        send!(s, at, "A", seq, ack = 1, len = len, ace = FIRST, ecn = ecn);
        seq += len as u32;
        match ecn {
            ECT_0 => bytes[0] += len as u32,
            CE => bytes[1] += len as u32,
            ECT_1 => bytes[2] += len as u32,
            _ => {}
        }
        let marked = info(&s).received_ce;
        let ace = ((5 + marked) % 8) as u8;
        let [e0b, ceb, e1b] = bytes;
        // Where no counter has changed there is no option.
        let option = if ecn == NOT_ECT { None } else { counted(e0b, ceb, e1b) };
        recv!(s, at, "A", 1, ack = seq, ace = ace, accecn = option);
    }
    let told = info(&s);
    assert_eq!(told.received_ce, 3);
    assert_eq!(
        (told.received_ce_bytes, told.received_e0_bytes),
        (ByteCount(2300), ByteCount(1001))
    );
    assert_eq!(told.received_e1_bytes, ByteCount(500));
    // Data that comes twice counts twice, and an ACK counts as a packet.
    send!(s, 20, "A", seq - 1, ack = 1, len = 1, ace = FIRST, ecn = CE);
    assert_eq!((info(&s).received_ce, info(&s).received_ce_bytes), (4, ByteCount(2301)));
    s.take(20).unwrap();
    send!(s, 21, "A", seq, ack = 1, ace = FIRST, ecn = CE);
    assert_eq!((info(&s).received_ce, info(&s).received_ce_bytes), (5, ByteCount(2301)));
    // What is not acceptable does not.
    send!(s, 22, "A", seq + 200_000, ack = 1, len = 10, ace = FIRST, ecn = CE);
    send!(s, 23, "A", seq, ack = 100_000, len = 10, ace = FIRST, ecn = CE);
    assert_eq!((info(&s).received_ce, info(&s).received_ce_bytes), (5, ByteCount(2301)));
}

// Shows: RFC9768-3.2-3, RFC9768-3.2.3.2.2-4
#[test]
fn data_carries_the_latest_count_and_is_sent_again_with_it() {
    let mut s = server();
    s.write(1000);
    recv!(s, 0, "PA", 1, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    send!(s, 1, "A", 1, ack = 1, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 1, "A", 1001, ack = 11, ace = FIRST + 1, accecn = counted(0, 10, 0));
    // Sent again it cannot be marked (RFC 3168 section 6.1.5), and has no option (RFC 9768 section 3.2.3.2.2).
    let at = s.conn.poll_timeout().unwrap().as_millis();
    recv!(s, at, "PA", 1, ack = 11, len = 1000, ace = FIRST + 1);
}

// Shows: RFC9768-3.2.2.5.1-1, RFC9768-3.2.2.5.1-2
#[test]
fn the_first_mark_after_others_is_told_at_once() {
    let config = TcpConfig { ecn: EcnMode::Accurate, ..delayed() };
    let mut s = server_with(&config);
    s.conn.set_quick_ack(false);
    send!(s, 1, "A", 1, ack = 1, len = 10, ace = FIRST, ecn = ECT_0);
    recv_nothing!(s, 1);
    send!(s, 2, "A", 11, ack = 1, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 2, "A", 1, ack = 21, ace = FIRST + 1, accecn = counted(10, 10, 0));
    // The second in a row waits, and the third not: two have come since the last ACK.
    send!(s, 3, "A", 21, ack = 1, len = 10, ace = FIRST, ecn = CE);
    recv_nothing!(s, 3);
    send!(s, 4, "A", 31, ack = 1, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 4, "A", 1, ack = 41, ace = 0, accecn = counted(10, 30, 0));
    // That something else follows is no news.
    send!(s, 5, "A", 41, ack = 1, len = 10, ace = FIRST, ecn = ECT_1);
    recv_nothing!(s, 5);
    send!(s, 6, "A", 51, ack = 1, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 6, "A", 1, ack = 61, ace = 1, accecn = counted(10, 40, 10));
}

// Shows: RFC9768-3.2.2.5.1-2, RFC9768-3.2.2.5.1-3, RFC9768-3.2.2.5.1-4
#[test]
fn every_third_marked_ack_has_an_ack_without_blocks() {
    let mut s = server();
    s.write(5000);
    while s.take(0).is_some() {}
    // A hole: blocks would be reported.
    send!(s, 1, "A", 101, ack = 1, len = 10, ace = FIRST, ecn = ECT_0);
    s.take(1).unwrap();
    for ack in 1..=9 {
        let at = 10 + u64::from(ack);
        send!(s, at, "A", 1, ack = ack * 500 + 1, ace = FIRST, ecn = CE);
        if ack % 3 == 0 {
            let ace = (FIRST + ack as u8) % 8;
            recv!(s, at, "A", 5001, ack = 1, ace = ace);
        }
        recv_nothing!(s, at);
    }
}

// Shows: RFC9768-3.2.2.5.1-1, RFC9768-3.2.2.5.1-5
#[test]
fn in_a_batch_each_transition_has_an_ack_with_the_count_of_its_moment() {
    let config = TcpConfig { ecn: EcnMode::Accurate, ..delayed() };
    let mut s = server_with(&config);
    // Quick ACKs are over: ACKs of data in order become one.
    for n in 0..20 {
        send!(s, 1, "A", 1 + n * 1000, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
        while s.take(1).is_some() {}
    }
    let (before, at) = (info(&s).received_e0_bytes.0 as u32, 20_001);
    let marks = [ECT_0, ECT_0, CE, ECT_0, ECT_0, ECT_0, CE, CE, CE, ECT_0];
    for (n, ecn) in (0..).zip(marks) {
        send!(s, 2, "A", at + n * 1000, ack = 1, len = 1000, ace = FIRST, ecn = ecn);
    }
    let told: Vec<_> = std::iter::from_fn(|| s.take(2))
        .map(|seg| {
            let option = seg.accecn.unwrap();
            let bytes = (option.e0b().unwrap() - 1 - before, option.ceb().unwrap());
            ((seg.ack.unwrap() - at) / 1000, seg.ace.unwrap(), bytes)
        })
        .collect();
    let expected = [(3, 6, (2000, 1000)), (7, 7, (5000, 2000)), (9, 1, (5000, 4000))];
    assert_eq!(told, expected);
}

// Shows: RFC9768-3.2.3.3-1, RFC9768-3.2.3.3-3, RFC9768-3.2.3.3-4, RFC9768-3.2.3.3-5
#[test]
fn an_option_leaves_room_for_two_blocks_and_is_left_out_where_it_would_not_tell_what_changed() {
    let config = TcpConfig { timestamps: true, ..accurate() };
    let mut s = Script::syn_received(&config);
    let first = s.take(0).unwrap();
    assert_eq!((first.flags, first.accecn), ("SAW", counted(0, 0, 0)));
    s.timestamps = true;
    send!(s, 1, "A", 1, ack = 1, ace = 0b010);
    let blocks = [(1001, 2001), (3001, 4001), (5001, 6001)];
    // One block, and all counters; two blocks, and two counters; of three blocks two.
    send!(s, 2, "A", 1001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_1);
    recv!(s, 2, "A", 1, ack = 1, ace = FIRST, sack = [blocks[0]], accecn = counted(0, 0, 1000));
    send!(s, 3, "A", 3001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    let sack = [blocks[1], blocks[0]];
    recv!(s, 3, "A", 1, ack = 1, ace = FIRST, sack = sack, accecn = two_counted(1000, 0));
    send!(s, 4, "A", 5001, ack = 1, len = 1000, ace = FIRST, ecn = CE);
    let sack = [blocks[2], blocks[1]];
    recv!(s, 4, "A", 1, ack = 1, ace = 6, sack = sack, accecn = two_counted(1000, 1000));
    // Nothing changed: blocks have all the room.
    send!(s, 5, "A", 6001, ack = 1, len = 1000, ace = FIRST);
    let sack = [(5001, 7001), blocks[1], blocks[0]];
    recv!(s, 5, "A", 1, ack = 1, ace = 6, sack = sack);
    // ECT(1) in the other order.
    send!(s, 6, "A", 7001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_1);
    let sack = [(5001, 8001), blocks[1]];
    let option = Some(AccEcn::new(Order::One, &[2001, 1000]));
    recv!(s, 6, "A", 1, ack = 1, ace = 6, sack = sack, accecn = option);
    // Two that changed, and three would have to be told: none, until there is room.
    send!(s, 7, "A", 9001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    s.conn.acks.pop().unwrap();
    send!(s, 7, "A", 10_001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_1);
    let sack = [(9001, 11_001), (5001, 8001), blocks[1]];
    recv!(s, 7, "A", 1, ack = 1, ace = 6, sack = sack);
    for (n, seq) in (0..).zip([1, 2001, 4001]) {
        send!(s, 8 + n, "A", seq, ack = 1, len = 1000, ace = FIRST);
        s.conn.acks.pop().unwrap();
    }
    send!(s, 11, "A", 8001, ack = 1, len = 1000, ace = FIRST);
    recv!(s, 11, "A", 1, ack = 11_001, ace = 6, accecn = counted(2000, 1000, 3000));
}

#[test]
fn small_data_has_the_option_and_before_full_segments_an_ack_has_it() {
    let mut s = server();
    send!(s, 1, "A", 1, ack = 1, len = 100, ace = FIRST, ecn = ECT_0);
    s.write(500);
    recv!(
        s,
        1,
        "PA",
        1,
        ack = 101,
        len = 500,
        ace = FIRST,
        ecn = ECT_0,
        accecn = counted(100, 0, 0)
    );
    recv_nothing!(s, 1);
    send!(s, 2, "A", 101, ack = 501, len = 100, ace = FIRST, ecn = ECT_0);
    s.write(2000);
    recv!(s, 2, "A", 501, ack = 201, ace = FIRST, accecn = counted(200, 0, 0));
    recv!(s, 2, "A", 501, ack = 201, len = 1000, ace = FIRST, ecn = ECT_0);
    recv!(s, 2, "PA", 1501, ack = 201, len = 1000, ace = FIRST, ecn = ECT_0);
    // A delayed ACK is brought forward.
    let config = TcpConfig { ecn: EcnMode::Accurate, ..delayed() };
    let mut s = server_with(&config);
    s.conn.set_quick_ack(false);
    send!(s, 1, "A", 1, ack = 1, len = 100, ace = FIRST, ecn = ECT_0);
    recv_nothing!(s, 1);
    s.write(1000);
    recv!(s, 1, "A", 1, ack = 101, ace = FIRST, accecn = counted(100, 0, 0));
    recv!(s, 1, "PA", 1, ack = 101, len = 1000, ace = FIRST, ecn = ECT_0);
    recv_nothing!(s, 1);
}

// Shows: RFC9768-3.1.1-7, RFC9768-3.2.3.2.2-3
#[test]
fn where_acks_with_an_option_seem_to_be_lost_no_more_leave() {
    let mut s = server();
    send!(s, 1, "A", 1, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    recv!(s, 1, "A", 1, ack = 1001, ace = FIRST, accecn = counted(1000, 0, 0));
    send!(s, 300, "A", 1, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    recv!(
        s,
        300,
        "A",
        1,
        ack = 1001,
        ace = FIRST,
        sack = [(1, 1001)],
        accecn = counted(2000, 0, 0)
    );
    send!(s, 900, "A", 1, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    recv!(s, 900, "A", 1, ack = 1001, ace = FIRST, sack = [(1, 1001)]);
    send!(s, 901, "A", 1001, ack = 1, len = 1000, ace = FIRST, ecn = CE);
    recv!(s, 901, "A", 1, ack = 2001, ace = FIRST + 1);
    // What was acknowledged without one is no sign of it, nor is one now and then.
    let mut s = server();
    send!(s, 1, "A", 1, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    assert!(s.take(1).unwrap().accecn.is_some());
    for n in 1..5 {
        send!(s, n * 300, "A", 1, ack = 1, len = 1000, ace = FIRST);
        assert_eq!(s.take(n * 300).unwrap().accecn, None);
    }
    for n in 1..100 {
        let (at, seq) = (2000 + u64::from(n), 1 + n * 1000);
        send!(s, at, "A", seq, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
        assert!(s.take(at).unwrap().accecn.is_some(), "{n}");
        s.read();
        if n % 20 == 0 {
            send!(s, at, "A", seq, ack = 1, len = 1000, ace = FIRST);
            assert_eq!(s.take(at).unwrap().accecn, None);
        }
    }
}

/// Ten segments are out.
fn ten_out() -> Script {
    let mut s = server();
    s.write(30_000);
    for segment in 0..10 {
        recv!(s, 0, "A", 1 + segment * 1000, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    }
    s
}

// Shows: RFC9768-3.1.5-13, RFC9768-3.2.2-2, RFC9768-3.2.2.4-2, RFC9768-4-1
#[test]
fn marked_bytes_reduce_the_window_once_a_round_trip_and_nothing_says_so() {
    let mut s = ten_out();
    send!(s, 100, "A", 1, ack = 1001, ace = 6, accecn = counted(0, 1000, 0));
    assert_eq!(s.conn.info(s.now).ssthresh, Some(ByteCount(6300)));
    assert_eq!((info(&s).delivered_ce, info(&s).delivered_ce_bytes), (1, ByteCount(1000)));
    for upto in 2..=10 {
        let ace = (5 + upto as u8) % 8;
        send!(
            s,
            100,
            "A",
            1,
            ack = upto * 1000 + 1,
            ace = ace,
            accecn = counted(0, upto * 1000, 0)
        );
        while let Some(sent) = s.take(100) {
            // CWR is a bit of a number that has not changed.
            assert_eq!((sent.ace, sent.ecn), (Some(FIRST), ECT_0));
        }
    }
    let stats = s.conn.sender().unwrap().stats();
    assert_eq!((stats.reductions, stats.segments_lost), (1, 0));
    assert_eq!((info(&s).delivered_ce, info(&s).delivered_ce_bytes), (10, ByteCount(10_000)));
    send!(s, 200, "A", 1, ack = 11_001, ace = 7, accecn = counted(1000, 10_000, 0));
    while s.take(200).is_some() {}
    send!(s, 200, "A", 1, ack = 12_001, ace = 0, accecn = counted(1000, 11_000, 0));
    assert_eq!(s.conn.sender().unwrap().stats().reductions, 2);
    assert_eq!(info(&s).delivered_e0_bytes, ByteCount(1000));
}

// Shows: RFC9768-3.2.2.2-2, RFC9768-3.2.3.1-2
#[test]
fn an_ack_that_another_has_overtaken_is_not_read() {
    let mut s = ten_out();
    send!(s, 100, "A", 1, ack = 3001, ace = 7, accecn = counted(1000, 2000, 0));
    assert_eq!(info(&s).delivered_ce, 2);
    // Older, and as old without a clock that tells.
    send!(s, 101, "A", 1, ack = 1001, ace = 5, accecn = counted(1000, 0, 0));
    send!(s, 102, "A", 1, ack = 3001, ace = 6, accecn = counted(1000, 1000, 0));
    assert_eq!((info(&s).delivered_ce, info(&s).delivered_ce_bytes), (2, ByteCount(2000)));
    // A SACK block that tells something new is news.
    send!(
        s,
        103,
        "A",
        1,
        ack = 3001,
        ace = 0,
        sack = [(4001, 5001)],
        accecn = counted(1000, 3000, 0)
    );
    assert_eq!((info(&s).delivered_ce, info(&s).delivered_ce_bytes), (3, ByteCount(3000)));
    send!(
        s,
        104,
        "A",
        1,
        ack = 3001,
        ace = 1,
        sack = [(4001, 5001)],
        accecn = counted(1000, 4000, 0)
    );
    assert_eq!(info(&s).delivered_ce, 3);
}

#[test]
fn a_later_time_stamp_is_news() {
    let config = TcpConfig { timestamps: true, ..accurate() };
    let mut s = Script::syn_received(&config);
    s.take(0).unwrap();
    s.timestamps = true;
    send!(s, 1, "A", 1, ack = 1, ace = 0b010);
    s.write(1000);
    s.take(1).unwrap();
    send!(s, 50, "A", 1, ack = 1, ace = 6, ts = (PEER_TS + 1, TS_OFFSET + 1));
    assert_eq!(info(&s).delivered_ce, 0);
    send!(s, 51, "A", 1, ack = 1, ace = 6, ts = (PEER_TS + 2, TS_OFFSET + 1));
    assert_eq!(info(&s).delivered_ce, 1);
}

// Shows: RFC9768-3.2.2.5.2-1, RFC9768-3.2.3.2.3-1
#[test]
fn an_ack_of_many_packets_without_an_option_counts_for_the_worst() {
    let mut s = ten_out();
    send!(s, 100, "A", 1, ack = 1001, ace = FIRST);
    send!(s, 101, "A", 1, ack = 10_001, ace = FIRST);
    assert_eq!((info(&s).delivered_ce, info(&s).delivered_ce_bytes), (8, ByteCount(8000)));
    // What an option says corrects it.
    let mut s = ten_out();
    send!(s, 100, "A", 1, ack = 1001, ace = FIRST, accecn = counted(1000, 0, 0));
    send!(s, 101, "A", 1, ack = 10_001, ace = FIRST, accecn = counted(10_000, 0, 0));
    assert_eq!((info(&s).delivered_ce, info(&s).delivered_ce_bytes), (0, ByteCount::ZERO));
}

// Shows: RFC9768-3.2.3.2.5-2
#[test]
fn feedback_that_contradicts_itself_ends_marking() {
    let mut s = server();
    s.write(5000);
    while s.take(0).is_some() {}
    send!(s, 100, "A", 1, ack = 2001, ace = FIRST, accecn = counted(1000, 1000, 0));
    s.write(1000);
    let next = s.take(100).unwrap();
    assert_eq!(next.ecn, NOT_ECT);
}

#[test]
fn an_ace_that_begins_with_zero_is_no_count() {
    let mut s = ten_out();
    send!(s, 100, "A", 1, ack = 1001, ace = 0);
    assert_eq!(info(&s).delivered_ce, 0);
    assert_eq!(s.conn.sender().unwrap().stats().reductions, 0);
    assert_eq!(s.take(100).unwrap().ecn, NOT_ECT);
}

// Shows: RFC9768-3.2.3.2.1-1
#[test]
fn an_option_on_a_syn_is_not_read_and_none_leaves_on_one() {
    let config = accurate();
    let zeroed = Some(AccEcn::new(Order::One, &[0, 0, 0]));
    let syn = Seg { ace: Some(0b111), accecn: zeroed, ..Script::syn_of(&config) };
    let wire = syn.to_wire();
    let segment = wire.segment(&syn.data);
    let conn = Connection::accept(Instant::ZERO, flow(), ISS, TS_OFFSET, &config, &segment);
    let mut s = Script::of(conn, Instant::ZERO);
    s.take(0).unwrap();
    send!(s, 1, "A", 1, ack = 1, ace = 0b010, accecn = counted(0, 0, 0));
    s.write(10_000);
    while s.take(1).is_some() {}
    send!(s, 100, "A", 1, ack = 10_001, ace = FIRST, accecn = counted(10_000, 0, 0));
    assert_eq!(info(&s).delivered_ce, 0, "options are read");
}

#[test]
fn super_segments_leave_while_cwr_is_no_bit_of_the_count() {
    let mut s = server();
    s.outlet = Outlet::new(64);
    s.write(7000);
    recv!(s, 0, "PA", 1, ack = 1, len = 7000, ace = 0b101, ecn = ECT_0);
    send!(s, 1, "A", 1, ack = 7001, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 1, "A", 7001, ack = 11, ace = 0b110, accecn = counted(0, 10, 0));
    s.write(3000);
    // What cuts packets takes CWR for the first segment's alone (RFC 9768 section 3.3.4).
    for segment in 0..3 {
        let flags = if segment == 2 { "PA" } else { "A" };
        let sent = s.take(1).unwrap();
        assert_eq!((without_ecn(sent.flags), sent.data.len()), (flags, 1000));
        assert_eq!((sent.ace, sent.ecn), (Some(0b110), ECT_0));
    }
}

#[test]
fn a_super_segment_counts_for_its_segments() {
    let mut s = server();
    let seg = seg!("A", 1, ack = 1, len = 4500, ace = FIRST, ecn = CE);
    let wire = seg.to_wire();
    let segment = Segment { size: Some(1000), ..wire.segment(&seg.data) };
    s.conn.on_segment(s.now, &segment, &mut s.counters);
    recv!(s, 0, "A", 1, ack = 4501, ace = (FIRST + 5) % 8, accecn = counted(0, 4500, 0));
    assert_eq!((info(&s).received_ce, info(&s).received_ce_bytes), (5, ByteCount(4500)));
}

#[test]
fn a_run_is_of_one_ace_and_with_ecn_of_none() {
    let room = |s: &Script, ace| {
        let seg = seg!("A", 1, ack = 1, len = 1000, ace = ace, ecn = CE);
        let wire = seg.to_wire();
        s.conn.room_for_run(s.now, &wire.segment(&seg.data)) > ByteCount::ZERO
    };
    let config = TcpConfig { ecn: EcnMode::Accurate, ..delayed() };
    let mut s = server_with(&config);
    for n in 0..20 {
        send!(s, 1, "A", 1 + n, ack = 1, len = 1, ace = FIRST);
        while s.take(1).is_some() {}
    }
    let next = |s: &Script, ace| {
        let seg = seg!("A", 21, ack = 1, len = 1000, ace = ace);
        let wire = seg.to_wire();
        s.conn.room_for_run(s.now, &wire.segment(&seg.data)) > ByteCount::ZERO
    };
    assert!((0..8).all(|ace| next(&s, ace)));
    assert!((0..8).all(|ace| !room(&s, ace)), "not the next one");
    let mut classic = Script::established(&delayed());
    for n in 0..20 {
        send!(classic, 1, "A", 1 + n, ack = 1, len = 1);
        while classic.take(1).is_some() {}
    }
    let plain: Vec<u8> = (0..8).filter(|&ace| next(&classic, ace)).collect();
    assert_eq!(plain, [0b000, 0b100]);
}

#[test]
fn a_connection_in_time_wait_goes_on_telling() {
    let mut s = server();
    send!(s, 1, "A", 1, ack = 1, len = 10, ace = FIRST, ecn = CE);
    s.take(1).unwrap();
    s.conn.shutdown(s.now);
    recv!(s, 1, "FA", 1, ack = 11, ace = FIRST + 1);
    send!(s, 2, "FA", 11, ack = 2, ace = FIRST);
    recv!(s, 2, "A", 2, ack = 12, ace = FIRST + 1);
    let mut wait = s.conn.time_wait().unwrap();
    let fin = seg!("FA", 11, ack = 2, ace = FIRST);
    let wire = fin.to_wire();
    let outcome = wait.on_segment(s.now, &wire.segment(&[]), true, &mut s.counters);
    let super::super::time_wait::Outcome::Answer(packet) = outcome else { panic!("{outcome:?}") };
    assert_eq!(Seg::from_packet(&packet.data).ace, Some(FIRST + 1));
}

#[test]
fn what_it_counts_is_shown() {
    let mut s = ten_out();
    send!(s, 100, "A", 1, ack = 1001, len = 500, ace = 6, ecn = CE, accecn = counted(0, 1000, 0));
    let shown = s.conn.info(s.now);
    let line = shown.to_string();
    for token in [
        " ecn accecn ",
        " delivered_ce:1 delivered_ce_bytes:1000 ",
        " received_ce:1 received_ce_bytes:500",
    ] {
        assert!(line.contains(token), "{line}");
    }
    let plain = Script::established(&plain());
    assert!(!plain.conn.info(plain.now).to_string().contains("ecn"));
}
