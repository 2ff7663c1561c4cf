//! Explicit congestion notification (RFC 3168) on the wire.

use airtcp_wire::ip::CE;

use super::*;

const ECT_0: u8 = 0b10;
const ECT_1: u8 = 0b01;

fn with(ecn: EcnMode) -> TcpConfig {
    TcpConfig { ecn, ..plain() }
}

/// Opens a connection by a SYN with these flags and this ECN field; also returns the flags of the
/// SYN-ACK.
#[track_caller]
fn opened(ecn: EcnMode, flags: &'static str, field: u8) -> (Script, &'static str) {
    let config = with(ecn);
    let syn = Seg { flags, ecn: field, ..Script::syn_of(&config) };
    let wire = syn.to_wire();
    let now = Instant::ZERO;
    let segment = wire.segment(&syn.data);
    let connection = Connection::accept(now, flow(), ISS, TS_OFFSET, &config, &segment);
    let mut s = Script::of(connection, now);
    let answer = s.take(0).unwrap();
    // RFC 3168 section 6.1.1: neither a SYN nor a SYN-ACK may be ECT.
    assert_eq!(answer.ecn, 0);
    send!(s, 0, "A", 1, ack = 1);
    (s, answer.flags)
}

/// A connection that negotiated ECN.
#[track_caller]
fn agreed() -> Script {
    let (s, answer) = opened(EcnMode::Passive, "SEW", 0);
    assert_eq!((answer, s.conn.info(s.now).ecn), ("SAE", true));
    s
}

// Shows: RFC9293-SHLD-8
#[test]
fn ecn_is_granted_unless_it_is_off() {
    for (ecn, flags, field, answer) in [
        (EcnMode::Passive, "SEW", 0, "SAE"),
        (EcnMode::Active, "SEW", 0, "SAE"),
        (EcnMode::Off, "SEW", 0, "SA"),
        (EcnMode::Active, "S", 0, "SA"),
        (EcnMode::Passive, "SE", 0, "SA"),
        (EcnMode::Passive, "SW", 0, "SA"),
        // A path that changes the field.
        (EcnMode::Passive, "SEW", ECT_0, "SA"),
        (EcnMode::Passive, "SEW", CE, "SA"),
    ] {
        let (mut s, answered) = opened(ecn, flags, field);
        assert_eq!(answered, answer, "{ecn:?} {flags} {field}");
        let agreed = answer == "SAE";
        assert_eq!(s.conn.info(s.now).ecn, agreed);
        s.write(10);
        recv!(s, 0, "PA", 1, ack = 1, len = 10, ecn = if agreed { ECT_0 } else { 0 });
    }
}

#[test]
fn an_active_open_requests_ecn_and_follows_the_answer() {
    for (flags, agreed) in [("SE", true), ("S", false), ("SEW", false)] {
        let mut s = Script::connecting(&with(EcnMode::Active));
        recv!(s, 0, "SEW", 0, mss = 1000, sack_permitted = true);
        let answer =
            Seg { flags, ack: Some(1), mss: Some(1000), sack_permitted: true, ..Seg::default() };
        s.send_at(5, answer);
        recv!(s, 5, "A", 1, ack = 1);
        assert_eq!(s.conn.info(s.now).ecn, agreed, "{flags}");
        s.write(10);
        recv!(s, 5, "PA", 1, ack = 1, len = 10, ecn = if agreed { ECT_0 } else { 0 });
    }
    let mut s = Script::connecting(&with(EcnMode::Passive));
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 5, "SE", 0, ack = 1, mss = 1000);
    assert!(!s.conn.info(s.now).ecn, "what was not asked for is not granted");
}

#[test]
fn a_syn_that_is_sent_again_does_not_ask_but_a_late_answer_to_the_first_counts() {
    let mut s = Script::connecting(&with(EcnMode::Active));
    recv!(s, 0, "SEW", 0, mss = 1000, sack_permitted = true);
    recv!(s, 1000, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 1010, "SE", 0, ack = 1, mss = 1000);
    assert!(s.conn.info(s.now).ecn);
}

#[test]
fn a_peer_that_asks_again_without_is_answered_without() {
    let config = with(EcnMode::Passive);
    let syn = Seg { flags: "SEW", ..Script::syn_of(&config) };
    let wire = syn.to_wire();
    let segment = wire.segment(&syn.data);
    let connection = Connection::accept(Instant::ZERO, flow(), ISS, TS_OFFSET, &config, &segment);
    let mut s = Script::of(connection, Instant::ZERO);
    assert_eq!(s.take(0).unwrap().flags, "SAE");
    s.send_at(1000, Script::syn_of(&config));
    assert_eq!(s.take(1000).unwrap().flags, "SA");
    send!(s, 1000, "A", 1, ack = 1);
    // No data may be sent as ECT. But the first SYN-ACK may have arrived after all: received marks
    // are reported.
    s.write(10);
    recv!(s, 1000, "PA", 1, ack = 1, len = 10);
    send!(s, 1000, "A", 1, ack = 11, len = 10, ecn = CE);
    recv!(s, 1000, "AE", 11, ack = 11);
}

#[test]
fn both_may_ask_at_once() {
    let mut s = Script::connecting(&with(EcnMode::Active));
    recv!(s, 0, "SEW", 0, mss = 1000, sack_permitted = true);
    send!(s, 5, "SEW", 0, mss = 1000, sack_permitted = true);
    recv!(s, 5, "SAE", 0, ack = 1, mss = 1000, sack_permitted = true);
    s.write(1000);
    send!(s, 9, "SE", 0, ack = 1, mss = 1000, sack_permitted = true);
    assert_eq!((s.conn.state(), s.conn.info(s.now).ecn), (State::Established, true));
    // The ECE flag answered the SYN, and does not report a mark.
    assert_eq!(s.conn.sender().unwrap().stats().reductions, 0);
}

#[test]
fn a_mark_is_echoed_until_cwr() {
    let mut s = agreed();
    send!(s, 0, "A", 1, ack = 1, len = 1000, ecn = ECT_0);
    recv!(s, 0, "A", 1, ack = 1001);
    send!(s, 1, "A", 1001, ack = 1, len = 1000, ecn = CE);
    recv!(s, 1, "AE", 1, ack = 2001);
    send!(s, 2, "A", 2001, ack = 1, len = 1000, ecn = ECT_1);
    recv!(s, 2, "AE", 1, ack = 3001);
    // Data carries ECE as well.
    s.write(10);
    recv!(s, 2, "PAE", 1, ack = 3001, len = 10, ecn = ECT_0);
    send!(s, 3, "AW", 3001, ack = 11, len = 1000, ecn = ECT_0);
    recv!(s, 3, "A", 11, ack = 4001);
    // A marked segment with CWR: CWR refers to an earlier mark.
    send!(s, 4, "AW", 4001, ack = 11, len = 1000, ecn = CE);
    recv!(s, 4, "AE", 11, ack = 5001);
}

#[test]
fn only_new_data_is_marked_for_good() {
    let mut s = agreed();
    // Old data, and an ACK: their ECN field is ignored.
    send!(s, 0, "A", 1, ack = 1, len = 1000, ecn = ECT_0);
    recv!(s, 0, "A", 1, ack = 1001);
    send!(s, 1, "A", 1, ack = 1, len = 1000, ecn = CE);
    assert_eq!(s.take(1).unwrap().flags, "A");
    send!(s, 2, "A", 1001, ack = 1, ecn = CE);
    send!(s, 3, "A", 1001, ack = 1, len = 1000, ecn = ECT_0);
    recv!(s, 3, "A", 1, ack = 2001);
}

#[test]
fn a_mark_and_cwr_are_acknowledged_at_once() {
    let config = TcpConfig { ecn: EcnMode::Passive, ..delayed() };
    let mut s = Script::syn_received(&config);
    let syn = Seg { flags: "SEW", ..Script::syn_of(&config) };
    let wire = syn.to_wire();
    s.conn = Connection::accept(s.now, flow(), ISS, TS_OFFSET, &config, &wire.segment(&syn.data));
    assert_eq!(s.take(0).unwrap().flags, "SAE");
    send!(s, 0, "A", 1, ack = 1);
    s.conn.set_quick_ack(false);
    send!(s, 1, "A", 1, ack = 1, len = 10, ecn = ECT_0);
    recv_nothing!(s, 1);
    send!(s, 2, "A", 11, ack = 1, len = 10, ecn = CE);
    recv!(s, 2, "AE", 1, ack = 21);
    s.conn.set_quick_ack(false);
    send!(s, 3, "AW", 21, ack = 1, len = 10, ecn = ECT_0);
    recv!(s, 3, "A", 1, ack = 31);
}

// Shows: RFC9293-SHLD-8
#[test]
fn an_echo_reduces_the_window_and_the_next_new_data_says_so_once() {
    let mut s = agreed();
    s.write(20_000);
    for segment in 0..10 {
        let seq = 1 + segment * 1000;
        recv!(s, 0, "A", seq, ack = 1, len = 1000, ecn = ECT_0);
    }
    send!(s, 100, "AE", 1, ack = 1001);
    let info = s.conn.info(s.now);
    assert_eq!((info.ssthresh, info.bytes_retrans), (Some(ByteCount(6300)), ByteCount::ZERO));
    recv!(s, 100, "AW", 10_001, ack = 1, len = 1000, ecn = ECT_0);
    for upto in 2..=10 {
        send!(s, 100, "AE", 1, ack = upto * 1000 + 1);
        while let Some(sent) = s.take(100) {
            assert_eq!((sent.flags, sent.ecn), ("A", ECT_0));
        }
    }
    assert_eq!(s.conn.sender().unwrap().stats().reductions, 1);
    send!(s, 200, "A", 1, ack = 11_001);
    while s.take(200).is_some() {}
    send!(s, 200, "AE", 1, ack = 12_001);
    assert_eq!(s.conn.sender().unwrap().stats().reductions, 2);
}

#[test]
fn retransmissions_are_not_ect_and_a_loss_sends_cwr() {
    let mut s = agreed();
    s.write(20_000);
    for _ in 0..10 {
        assert_eq!(s.take(0).unwrap().ecn, ECT_0);
    }
    for upto in 2..=4 {
        send!(s, 100, "A", 1, ack = 1, sack = [(1001, upto * 1000 + 1)]);
    }
    let sent: Vec<_> = std::iter::from_fn(|| s.take(100)).collect();
    let fields: Vec<_> = sent.iter().map(|seg| (seg.flags, seg.seq, seg.ecn)).collect();
    assert_eq!(fields[0], ("A", 1, 0));
    // RFC 3168 section 6.1.2: whatever the reason why the window was reduced.
    let new: Vec<_> = fields[1..].iter().map(|(flags, _, ecn)| (*flags, *ecn)).collect();
    assert!(new.iter().all(|new| new.1 == ECT_0));
    let says: Vec<_> = new.iter().filter(|new| new.0 == "AW").collect();
    assert!(says.len() <= 1);
    send!(s, 150, "A", 1, ack = 10_001);
    let later: Vec<_> = std::iter::from_fn(|| s.take(150)).collect();
    let all = later.iter().filter(|seg| seg.flags.contains('W')).count() + says.len();
    assert_eq!(all, 1);
}

#[test]
fn probes_and_a_fin_alone_cannot_be_marked() {
    let mut s = agreed();
    send!(s, 0, "A", 1, ack = 1, window = 0);
    s.write(10);
    recv_nothing!(s, 0);
    let at = s.conn.poll_timeout().unwrap().as_millis();
    recv!(s, at, "A", 0, ack = 1);
    send!(s, at, "A", 1, ack = 1);
    recv!(s, at, "PA", 1, ack = 1, len = 10, ecn = ECT_0);
    send!(s, at, "A", 1, ack = 11);
    s.conn.shutdown(s.now);
    recv!(s, at, "FA", 11, ack = 1);
}

#[test]
fn where_a_device_cuts_packets_the_one_that_says_so_is_a_segment() {
    let mut s = agreed();
    s.outlet = Outlet::new(64);
    s.write(7000);
    recv!(s, 0, "PA", 1, ack = 1, len = 7000, ecn = ECT_0);
    s.write(20_000);
    let more = s.take(0).unwrap();
    assert_eq!((more.data.len(), more.ecn), (3000, ECT_0));
    send!(s, 100, "AE", 1, ack = 5001);
    recv!(s, 100, "AW", 10_001, ack = 1, len = 1000, ecn = ECT_0);
    while let Some(next) = s.take(100) {
        assert_eq!((next.flags, next.ecn), ("A", ECT_0));
    }
    send!(s, 200, "A", 1, ack = s.conn.snd_nxt().distance(ISS) as u32);
    let next = s.take(200).unwrap();
    assert_eq!((next.flags, next.ecn), ("PA", ECT_0));
    assert!(next.data.len() >= 2000, "{}", next.data.len());
}

// Shows: RFC9768-3.1.5-16
#[test]
fn without_an_agreement_ece_and_marks_mean_nothing() {
    let (mut s, _) = opened(EcnMode::Passive, "S", 0);
    s.write(20_000);
    while s.take(0).is_some() {}
    send!(s, 100, "AE", 1, ack = 1001, len = 1000, ecn = CE);
    assert_eq!(s.conn.sender().unwrap().stats().reductions, 0);
    while let Some(sent) = s.take(100) {
        assert_eq!((sent.flags, sent.ecn), ("A", 0));
    }
}
