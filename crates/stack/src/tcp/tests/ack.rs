//! ACKs: when they are sent, and what they contain.

use super::*;

/// ESTABLISHED, after the initial quick ACKs were used up by `16 * 10` bytes.
fn settled() -> Script {
    let mut s = Script::established(&delayed());
    for n in 0..16 {
        send!(s, 0, "A", 1 + n * 10, ack = 1, len = 10);
        recv!(s, 0, "A", 1, ack = 11 + n * 10);
    }
    s
}

// Shows: RFC9293-SHLD-18, RFC5681-4.2-1
#[test]
fn the_first_sixteen_acks_are_quick_and_later_ones_wait() {
    let mut s = settled();
    send!(s, 5, "A", 161, ack = 1, len = 10);
    recv_nothing!(s, 44);
    recv!(s, 45, "A", 1, ack = 171);
    recv_nothing!(s, 1000);
    assert_eq!(s.counters.tcp_ext_delayed_acks, 1);
}

#[test]
fn set_quick_ack_turns_quick_acks_on_and_off() {
    let mut s = settled();
    send!(s, 5, "A", 161, ack = 1, len = 10);
    recv_nothing!(s, 5);
    s.conn.set_quick_ack(true);
    recv!(s, 5, "A", 1, ack = 171);
    send!(s, 6, "A", 171, ack = 1, len = 10);
    recv!(s, 6, "A", 1, ack = 181);
    s.conn.set_quick_ack(false);
    assert!(!s.conn.quick_ack());
    send!(s, 7, "A", 181, ack = 1, len = 10);
    recv_nothing!(s, 46);
    recv!(s, 47, "A", 1, ack = 191);
    assert!(s.conn.quick_ack(), "nobody answered: it is no conversation");
}

// Shows: RFC9293-SHLD-19, RFC9293-MUST-58, RFC9293-MUST-59, RFC5681-4.2-2
#[test]
fn every_second_full_segment_is_acknowledged_at_once_and_a_batch_in_order_once() {
    let mut s = settled();
    send!(s, 5, "A", 161, ack = 1, len = 1000);
    recv_nothing!(s, 5);
    send!(s, 6, "A", 1161, ack = 1, len = 1000);
    recv!(s, 6, "A", 1, ack = 2161);
    for n in 0..5 {
        send!(s, 7, "A", 2161 + n * 1000, ack = 1, len = 1000);
    }
    recv!(s, 7, "A", 1, ack = 7161);
    recv_nothing!(s, 1000);
}

#[test]
fn a_batch_with_a_hole_is_answered_before_and_behind_it() {
    let mut s = settled();
    for seq in [161, 1161, 3161, 4161, 2161, 5161, 6161] {
        send!(s, 5, "A", seq, ack = 1, len = 1000);
    }
    recv!(s, 5, "A", 1, ack = 2161);
    recv!(s, 5, "A", 1, ack = 2161, sack = [(3161, 4161)]);
    recv!(s, 5, "A", 1, ack = 2161, sack = [(3161, 5161)]);
    // The hole has enabled quick ACKs again.
    recv!(s, 5, "A", 1, ack = 5161);
    recv!(s, 5, "A", 1, ack = 6161);
    recv!(s, 5, "A", 1, ack = 7161);
    recv_nothing!(s, 1000);
}

#[test]
fn duplicate_acks_without_blocks_are_not_merged_into_what_follows() {
    let mut s = Script::established(&TcpConfig { sack: false, ..delayed() });
    for n in 0..16 {
        send!(s, 0, "A", 1 + n * 10, ack = 1, len = 10);
        recv!(s, 0, "A", 1, ack = 11 + n * 10);
    }
    send!(s, 5, "A", 161, ack = 1, len = 1000);
    send!(s, 5, "A", 161, ack = 1, len = 1000);
    send!(s, 5, "A", 161, ack = 1, len = 1000);
    send!(s, 5, "A", 1161, ack = 1, len = 1000);
    for ack in [1161, 1161, 2161] {
        recv!(s, 5, "A", 1, ack = ack);
    }
    recv_nothing!(s, 1000);
}

#[test]
fn quick_acks_come_back_after_a_pause() {
    let mut s = settled();
    send!(s, 5, "A", 161, ack = 1, len = 10);
    recv!(s, 45, "A", 1, ack = 171);
    send!(s, 1000, "A", 171, ack = 1, len = 10);
    recv!(s, 1000, "A", 1, ack = 181);
}

// Shows: RFC5681-4.2-4
#[test]
fn without_delayed_acks_every_segment_is_acknowledged() {
    let mut s = Script::established(&plain());
    for n in 0..40 {
        send!(s, 0, "A", 1 + n * 10, ack = 1, len = 10);
    }
    for n in 0..40 {
        recv!(s, 0, "A", 1, ack = 11 + n * 10);
    }
    recv_nothing!(s, 1000);
}

// Shows: RFC9293-MUST-58
#[test]
fn an_answer_carries_the_ack() {
    let mut s = settled();
    send!(s, 5, "PA", 161, ack = 1, len = 10);
    s.write(7);
    recv!(s, 6, "PA", 1, ack = 171, len = 7);
    recv_nothing!(s, 100);
}

// Shows: RFC9293-SHLD-31, RFC5681-3.2-1, RFC5681-3.2-2, RFC2018-4-2, RFC2018-4-3, RFC2018-4-4
// Shows: RFC2018-4-6, RFC2018-4-8
#[test]
fn a_hole_is_reported_at_once_latest_block_first() {
    let mut s = settled();
    send!(s, 5, "A", 261, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 161, sack = [(261, 361)]);
    send!(s, 5, "A", 461, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 161, sack = [(461, 561), (261, 361)]);
    send!(s, 5, "A", 661, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 161, sack = [(661, 761), (461, 561), (261, 361)]);
    send!(s, 5, "A", 361, ack = 1, len = 50);
    recv!(s, 5, "A", 1, ack = 161, sack = [(261, 411), (661, 761), (461, 561)]);
    // Filling the first hole is reported at once, too.
    send!(s, 6, "A", 161, ack = 1, len = 100);
    recv!(s, 6, "A", 1, ack = 411, sack = [(661, 761), (461, 561)]);
    // So is a segment that contains known data.
    send!(s, 6, "A", 411, ack = 1, len = 250);
    recv!(s, 6, "A", 1, ack = 761, sack = [(461, 561)]);
    assert_eq!(s.read(), stream(1, 760));
}

// Shows: RFC2018-4-7
#[test]
fn as_many_blocks_leave_as_fit_the_options() {
    for (timestamps, fit) in [(false, 4), (true, 3)] {
        let mut s = Script::established(&TcpConfig { timestamps, ..plain() });
        let mut holes = vec![];
        for n in 1..=5 {
            send!(s, 5, "A", 1 + n * 200, ack = 1, len = 100);
            holes.insert(0, (1 + n * 200, 101 + n * 200));
            let blocks = s.take(5).unwrap().sack;
            assert_eq!(blocks, holes[..holes.len().min(fit)], "time stamps: {timestamps}");
        }
    }
}

// Shows: RFC2018-4-3, RFC2018-4-4, RFC2018-4-5
#[test]
fn each_duplicate_ack_of_a_batch_leaves_with_its_own_blocks() {
    let mut s = settled();
    for n in 1..4 {
        send!(s, 5, "A", 161 + n * 100, ack = 1, len = 100);
    }
    for n in 1..4 {
        recv!(s, 5, "A", 1, ack = 161, sack = [(261, 261 + n * 100)]);
    }
    recv_nothing!(s, 5);
}

// Shows: RFC2883-4-1, RFC2883-4-2, RFC2883-4-3, RFC2883-4-4
#[test]
fn a_duplicate_is_reported_by_a_dsack() {
    let mut s = settled();
    // RFC 2883 section 4.1.1: below the cumulative acknowledgement.
    send!(s, 5, "A", 61, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 161, sack = [(61, 161)]);
    // Above it: the block that contains it follows.
    send!(s, 5, "A", 261, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 161, sack = [(261, 361)]);
    send!(s, 5, "A", 361, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 161, sack = [(261, 461)]);
    send!(s, 5, "A", 261, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 161, sack = [(261, 361), (261, 461)]);
    // Partly old, partly new.
    send!(s, 6, "A", 151, ack = 1, len = 20);
    recv!(s, 6, "A", 1, ack = 171, sack = [(151, 161), (261, 461)]);
    assert_eq!(s.counters.tcp_ext_dsack_old_sent, 2);
    assert_eq!(s.counters.tcp_ext_dsack_ofo_sent, 1);
}

// Shows: RFC2883-4.2
#[test]
fn of_several_parts_that_came_twice_only_the_first_is_reported() {
    let mut s = settled();
    for seq in [261, 461] {
        send!(s, 5, "A", seq, ack = 1, len = 100);
        s.take(5).unwrap();
    }
    // All of both ranges and the part between them; then also the part below them.
    send!(s, 6, "A", 261, ack = 1, len = 300);
    recv!(s, 6, "A", 1, ack = 161, sack = [(261, 361), (261, 561)]);
    send!(s, 7, "A", 151, ack = 1, len = 410);
    recv!(s, 7, "A", 1, ack = 561, sack = [(151, 161)]);
    assert_eq!(s.read(), stream(1, 560));
}

// Shows: RFC2018-4-1
#[test]
fn without_sack_nothing_is_reported() {
    let mut s = Script::established(&TcpConfig { sack: false, ..plain() });
    send!(s, 5, "A", 101, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 1);
    send!(s, 5, "A", 101, ack = 1, len = 100);
    recv!(s, 5, "A", 1, ack = 1);
}

#[test]
fn a_fin_is_acknowledged_at_once() {
    let mut s = settled();
    send!(s, 5, "FA", 161, ack = 1, len = 10);
    recv!(s, 5, "A", 1, ack = 172);
}

#[test]
fn a_block_report_does_not_ride_on_a_full_segment() {
    let mut s = Script::established(&plain());
    s.write(1000);
    send!(s, 0, "A", 101, ack = 1, len = 100);
    recv!(s, 0, "A", 1, ack = 1, sack = [(101, 201)]);
    recv!(s, 0, "PA", 1, ack = 1, len = 1000);
    recv_nothing!(s, 0);
}

// Shows: RFC7323-3.2-1, RFC7323-4.3-2
#[test]
fn time_stamps_echo_the_segment_that_moved_the_window() {
    let mut s = Script::established(&TcpConfig { timestamps: true, ..delayed() });
    send!(s, 5, "A", 1, ack = 1, len = 10);
    recv!(s, 5, "A", 1, ack = 11, ts = (TS_OFFSET + 5, PEER_TS + 5));
    // RFC 7323 section 4.3: an out-of-order segment is not echoed.
    send!(s, 6, "A", 21, ack = 1, len = 10);
    recv!(s, 6, "A", 1, ack = 11, ts = (TS_OFFSET + 6, PEER_TS + 5), sack = [(21, 31)]);
}

// Shows: RFC7323-3.2-6, RFC7323-5.2-1, RFC7323-5.3-1
#[test]
fn an_old_duplicate_is_refused_by_its_time_stamp() {
    let mut s = Script::established(&TcpConfig { timestamps: true, ..plain() });
    send!(s, 50, "A", 1, ack = 1, len = 10);
    recv!(s, 50, "A", 1, ack = 11);
    send!(s, 51, "A", 11, ack = 1, len = 10, ts = (PEER_TS + 49, TS_OFFSET));
    recv!(s, 51, "A", 1, ack = 11, ts = (TS_OFFSET + 51, PEER_TS + 50));
    assert_eq!((s.read().len(), s.counters.tcp_ext_paws_estab), (10, 1));
    // A segment without a timestamp is dropped silently (RFC 7323 section 3.2).
    s.timestamps = false;
    send!(s, 52, "A", 11, ack = 1, len = 10);
    recv_nothing!(s, 52);
    // A RST does not need one.
    send!(s, 53, "R", 11);
    assert_eq!(s.conn.error(), Some(TcpError::Reset));
}
