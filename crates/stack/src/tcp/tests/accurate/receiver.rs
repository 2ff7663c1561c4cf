//! AccECN at the receiver: its counters, and when they are reported.

use super::*;

// Shows: RFC9768-3.1.5-14, RFC9768-3.2-1, RFC9768-3.2-2, RFC9768-3.2-3, RFC9768-3.2.2-1
// Shows: RFC9768-3.2.3.3-2
#[test]
fn all_arrivals_are_counted_and_reported() {
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
        // If no counter has changed, there is no option.
        let option = if ecn == NOT_ECT { None } else { counted(e0b, ceb, e1b) };
        recv!(s, at, "A", 1, ack = seq, ace = ace, accecn = option);
    }
    let reported = info(&s);
    assert_eq!(reported.received_ce, 3);
    assert_eq!(
        (reported.received_ce_bytes, reported.received_e0_bytes),
        (ByteCount(2300), ByteCount(1001))
    );
    assert_eq!(reported.received_e1_bytes, ByteCount(500));
    // Repeated data counts again, and an ACK counts as a packet.
    send!(s, 20, "A", seq - 1, ack = 1, len = 1, ace = FIRST, ecn = CE);
    assert_eq!((info(&s).received_ce, info(&s).received_ce_bytes), (4, ByteCount(2301)));
    s.take(20).unwrap();
    send!(s, 21, "A", seq, ack = 1, ace = FIRST, ecn = CE);
    assert_eq!((info(&s).received_ce, info(&s).received_ce_bytes), (5, ByteCount(2301)));
    // A segment that is not acceptable does not count.
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
    // A retransmission cannot be ECT (RFC 3168 section 6.1.5), and has no option (RFC 9768 section
    // 3.2.3.2.2).
    let at = s.conn.poll_timeout().unwrap().as_millis();
    recv!(s, at, "PA", 1, ack = 11, len = 1000, ace = FIRST + 1);
}

// Shows: RFC9768-3.2.2.5.1-1, RFC9768-3.2.2.5.1-2
#[test]
fn the_first_mark_after_unmarked_packets_is_reported_at_once() {
    let config = TcpConfig { ecn: EcnMode::Accurate, ..delayed() };
    let mut s = server_with(&config);
    s.conn.set_quick_ack(false);
    send!(s, 1, "A", 1, ack = 1, len = 10, ace = FIRST, ecn = ECT_0);
    recv_nothing!(s, 1);
    send!(s, 2, "A", 11, ack = 1, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 2, "A", 1, ack = 21, ace = FIRST + 1, accecn = counted(10, 10, 0));
    // The second mark in a row waits, but the third does not: two have arrived since the last ACK.
    send!(s, 3, "A", 21, ack = 1, len = 10, ace = FIRST, ecn = CE);
    recv_nothing!(s, 3);
    send!(s, 4, "A", 31, ack = 1, len = 10, ace = FIRST, ecn = CE);
    recv!(s, 4, "A", 1, ack = 41, ace = 0, accecn = counted(10, 30, 0));
    // Another ECN field after a mark is not reported at once.
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
    // With a hole, ACKs would report SACK blocks.
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
    // The quick ACKs are used up: ACKs of in-order data are merged.
    for n in 0..20 {
        send!(s, 1, "A", 1 + n * 1000, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
        while s.take(1).is_some() {}
    }
    let (before, at) = (info(&s).received_e0_bytes.0 as u32, 20_001);
    let marks = [ECT_0, ECT_0, CE, ECT_0, ECT_0, ECT_0, CE, CE, CE, ECT_0];
    for (n, ecn) in (0..).zip(marks) {
        send!(s, 2, "A", at + n * 1000, ack = 1, len = 1000, ace = FIRST, ecn = ecn);
    }
    let reported: Vec<_> = std::iter::from_fn(|| s.take(2))
        .map(|seg| {
            let option = seg.accecn.unwrap();
            let bytes = (option.e0b().unwrap() - 1 - before, option.ceb().unwrap());
            ((seg.ack.unwrap() - at) / 1000, seg.ace.unwrap(), bytes)
        })
        .collect();
    let expected = [(3, 6, (2000, 1000)), (7, 7, (5000, 2000)), (9, 1, (5000, 4000))];
    assert_eq!(reported, expected);
}

// Shows: RFC9768-3.2.3.3-1, RFC9768-3.2.3.3-3, RFC9768-3.2.3.3-4, RFC9768-3.2.3.3-5
#[test]
fn an_accecn_option_leaves_room_for_two_blocks_and_is_omitted_without_the_changed_counter() {
    let mut s = server_with_timestamps();
    let blocks = [(1001, 2001), (3001, 4001), (5001, 6001)];
    // With one block all counters fit; with two blocks two counters; of three blocks two are sent.
    send!(s, 2, "A", 1001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_1);
    recv!(s, 2, "A", 1, ack = 1, ace = FIRST, sack = [blocks[0]], accecn = counted(0, 0, 1000));
    send!(s, 3, "A", 3001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_0);
    let sack = [blocks[1], blocks[0]];
    recv!(s, 3, "A", 1, ack = 1, ace = FIRST, sack = sack, accecn = two_counted(1000, 0));
    send!(s, 4, "A", 5001, ack = 1, len = 1000, ace = FIRST, ecn = CE);
    let sack = [blocks[2], blocks[1]];
    recv!(s, 4, "A", 1, ack = 1, ace = 6, sack = sack, accecn = two_counted(1000, 1000));
    // No counter changed: blocks take all the room.
    send!(s, 5, "A", 6001, ack = 1, len = 1000, ace = FIRST);
    let sack = [(5001, 7001), blocks[1], blocks[0]];
    recv!(s, 5, "A", 1, ack = 1, ace = 6, sack = sack);
    // ECT(1) has changed, so the option has the other order.
    send!(s, 6, "A", 7001, ack = 1, len = 1000, ace = FIRST, ecn = ECT_1);
    let sack = [(5001, 8001), blocks[1]];
    let option = Some(AccEcn::new(Order::One, &[2001, 1000]));
    recv!(s, 6, "A", 1, ack = 1, ace = 6, sack = sack, accecn = option);
    // Two other counters changed, so that all three must be reported: no option is sent until there
    // is room.
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

// Shows: RFC9768-3.2.3.3-3
#[test]
fn of_two_counters_that_fit_none_is_one_that_has_never_changed() {
    for (ecn, order) in [(ECT_0, Order::Zero), (ECT_1, Order::One)] {
        let mut s = server_with_timestamps();
        send!(s, 2, "A", 1001, ack = 1, len = 1000, ace = FIRST, ecn = ecn);
        s.take(2).unwrap();
        send!(s, 3, "A", 3001, ack = 1, len = 1000, ace = FIRST, ecn = CE);
        let option = Some(AccEcn::new(order, &[1001, 1000]));
        let sack = [(3001, 4001), (1001, 2001)];
        recv!(s, 3, "A", 1, ack = 1, ace = FIRST + 1, sack = sack, accecn = option);
    }
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
    // A delayed ACK is sent early.
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
    // Data acknowledged without an option is no such sign, and neither is an isolated repetition.
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
