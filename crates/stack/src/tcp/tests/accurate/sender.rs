//! AccECN at the sender: its response to the reported counters.

use super::*;

/// A server that has sent ten segments.
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
            // CWR is a bit of the ACE counter, which has not changed.
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
    // An older ACK, and one that may be older, because it has no timestamp.
    send!(s, 101, "A", 1, ack = 1001, ace = 5, accecn = counted(1000, 0, 0));
    send!(s, 102, "A", 1, ack = 3001, ace = 6, accecn = counted(1000, 1000, 0));
    assert_eq!((info(&s).delivered_ce, info(&s).delivered_ce_bytes), (2, ByteCount(2000)));
    // A SACK block that reports new data makes an ACK new.
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
    // A later option corrects the estimate.
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
    // A device that cuts packets sets CWR only on the first segment (RFC 9768 section 3.3.4).
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
fn time_wait_continues_to_send_ace() {
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
fn info_has_the_accecn_counters() {
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
