use airtcp_wire::options::Order;

use super::*;

const SMSS: u64 = 1460;

/// The feedback of an ACK of `packets` full packets.
fn of_packets(ace: u8, packets: u64) -> Feedback {
    let bytes = ByteCount(packets * SMSS);
    let (advances, unreported, smss) = (true, ByteCount::ZERO, ByteCount(SMSS));
    let (is_later, is_idle) = (true, false);
    Feedback { ace, option: None, advances, is_later, is_idle, bytes, packets, unreported, smss }
}

fn with(feedback: Feedback, e0b: u64, ceb: u64) -> Feedback {
    let option = AccEcn::new(Order::Zero, &[e0b as u32 + 1, ceb as u32]);
    Feedback { option: Some(option), ..feedback }
}

/// Counters after a good option and the first ACK, of one packet without a mark.
fn started() -> DeliveredMarks {
    let mut delivered = DeliveredMarks::new();
    delivered.on_option(&AccEcn::new(Order::Zero, &[1, 0, 1]));
    delivered.on_ack(&of_packets(5, 1));
    delivered
}

fn ace_of(packets: u64) -> u8 {
    ((FIRST_CEP + packets) % CYCLE) as u8
}

// Shows: RFC9768-3.2.2-2
#[test]
fn ace_counts_marked_packets_across_its_wrap() {
    let mut delivered = started();
    let mut marked = 0;
    for newly in [0, 1, 2, 3, 7, 0, 5, 6, 7] {
        marked += newly;
        let bytes = delivered.on_ack(&of_packets(ace_of(marked), 7));
        assert_eq!(bytes, ByteCount(newly * SMSS));
        assert_eq!(delivered.packets(), marked);
    }
}

// Shows: RFC9768-3.2.2.5.2-1
#[test]
fn without_an_option_the_worst_is_assumed_of_an_ack_of_many_packets() {
    // RFC 9768 appendix A.2.1: 9 packets with 2 marks, and 10 packets with 2.
    for (ace, packets, expected) in [(2, 9, 2), (2, 10, 10), (0, 8, 8), (0, 7, 0), (7, 16, 15)] {
        let mut delivered = started();
        delivered.on_ack(&of_packets((5 + ace) % 8, packets));
        assert_eq!(delivered.packets(), expected, "{ace} of {packets}");
    }
}

#[test]
fn from_a_peer_that_acknowledges_many_packets_at_once_as_a_rule_ace_is_taken_as_it_is() {
    let mut delivered = DeliveredMarks::new();
    for _ in 0..50 {
        assert_eq!(delivered.on_ack(&of_packets(5, 45)), ByteCount::ZERO);
    }
    assert_eq!(delivered.on_ack(&of_packets(7, 45)), ByteCount(2 * SMSS));
    assert_eq!(delivered.packets(), 2);
}

// Shows: RFC9768-3.2.2.5.2-2
#[test]
fn more_marks_than_packets_are_believed() {
    let mut delivered = started();
    assert_eq!(delivered.on_ack(&of_packets(5 + 2, 1)), ByteCount(2 * SMSS));
    assert_eq!(delivered.packets(), 2);
}

// Shows: RFC9768-3.2.3.2.5-1
#[test]
fn with_an_option_the_number_of_packets_follows_the_bytes() {
    // The number of packets, and the number of marked ones; ACE reports the lower three bits of the
    // latter.
    for (packets, marked) in [(8, 8), (10, 2), (10, 10), (40, 0), (40, 17), (64, 64), (100, 33)] {
        let mut delivered = started();
        let all = packets * SMSS;
        let ack = of_packets(ace_of(marked), packets);
        let newly = delivered.on_ack(&with(ack, all - marked * SMSS, marked * SMSS));
        assert_eq!(newly, ByteCount(marked * SMSS));
        assert_eq!(delivered.packets(), marked, "{marked} of {packets}");
        assert_eq!(delivered.bytes(), [all - marked * SMSS, marked * SMSS, 0]);
        assert!(delivered.is_sound());
    }
}

#[test]
fn an_option_corrects_an_estimate_that_was_too_high() {
    let mut delivered = started();
    delivered.on_ack(&of_packets(5, 9));
    assert_eq!((delivered.packets(), delivered.bytes()[1]), (8, 8 * SMSS));
    let newly = delivered.on_ack(&with(of_packets(6, 2), 11 * SMSS, SMSS));
    assert_eq!((delivered.packets(), delivered.bytes()[1]), (1, SMSS));
    assert_eq!(newly, ByteCount::ZERO, "they were answered before");
    assert!(delivered.is_sound());
}

// Shows: RFC9768-3.2.3.1-2
#[test]
fn an_option_with_a_lower_counter_is_of_an_ack_that_was_overtaken() {
    let mut delivered = started();
    delivered.on_ack(&with(of_packets(ace_of(3), 5), 2 * SMSS, 3 * SMSS));
    let old = Feedback { advances: false, ..with(of_packets(ace_of(1), 1), SMSS, SMSS) };
    assert_eq!(delivered.on_ack(&old), ByteCount::ZERO);
    assert_eq!((delivered.packets(), delivered.bytes()[1]), (3, 3 * SMSS));
    assert_eq!(
        delivered.on_ack(&with(of_packets(ace_of(4), 1), 2 * SMSS, 4 * SMSS)),
        ByteCount(SMSS)
    );
    assert_eq!(delivered.packets(), 4);
}

// An ACK that advances SND.UNA is new, however far its counters have advanced.
#[test]
fn an_option_counts_after_more_than_half_a_cycle_of_bytes_without_one() {
    let mut delivered = started();
    let packets = 3 * (1 << 22) / SMSS;
    for _ in 0..packets / 2 {
        assert_eq!(delivered.on_ack(&of_packets(ace_of(0), 2)), ByteCount::ZERO);
    }
    let unmarked = (1 + packets / 2 * 2) * SMSS;
    assert!(unmarked > 1 << 23);
    let ack = with(of_packets(ace_of(2), 2), unmarked, 2 * SMSS);
    assert_eq!(delivered.on_ack(&ack), ByteCount(2 * SMSS));
    assert_eq!(delivered.bytes()[..2], [unmarked, 2 * SMSS]);
    let next = with(of_packets(ace_of(3), 1), unmarked, 3 * SMSS);
    assert_eq!(delivered.on_ack(&next), ByteCount(SMSS));
}

#[test]
fn the_bytes_of_an_option_are_counted_across_its_wrap() {
    let mut delivered = started();
    let mut marked = 0;
    for round in 1..=40 {
        marked += 700 * SMSS;
        let ack = of_packets(ace_of(round * 700), 700);
        assert_eq!(delivered.on_ack(&with(ack, 0, marked)), ByteCount(700 * SMSS));
        assert_eq!((delivered.bytes()[1], delivered.packets()), (marked, round * 700));
    }
    assert!(marked > 2 << 24);
}

// Shows: RFC9768-3.2.3.2.5-2
#[test]
fn marked_bytes_without_a_marked_packet_are_a_contradiction() {
    let mut delivered = started();
    delivered.on_ack(&with(of_packets(5, 6), 6 * SMSS, SMSS));
    assert!(!delivered.is_sound());
    // All of eight packets may have been marked, one of them acknowledged before.
    let mut delivered = started();
    delivered.on_ack(&with(of_packets(5, 7), 7 * SMSS, SMSS));
    assert!(delivered.is_sound());
    assert_eq!(delivered.packets(), 8);
}

// Shows: RFC9768-3.2.3.2.4-1
#[test]
fn counters_that_were_zeroed_are_not_read() {
    for counters in [[0, 0, 1], [1, 0, 0]] {
        let mut delivered = DeliveredMarks::new();
        delivered.on_option(&AccEcn::new(Order::Zero, &counters));
        delivered.on_ack(&with(of_packets(6, 2), 0, 9000));
        assert_eq!((delivered.packets(), delivered.bytes()), (1, [0, SMSS, 0]));
    }
}

// Shows: RFC9768-3.2.2.1-2
#[test]
fn the_codes_of_the_handshake_are_those_of_table_4() {
    let after = |code| {
        let mut delivered = DeliveredMarks::new();
        delivered.on_handshake(code);
        (delivered.responds(), delivered.packets())
    };
    for code in 0..8 {
        let expected = match code {
            0b000 => (false, 0),
            0b110 => (true, 1),
            _ => (true, 0),
        };
        assert_eq!(after(code), expected, "{code:03b}");
    }
}

#[test]
fn an_ace_of_zero_that_cannot_be_a_count_ends_it() {
    let first = |packets| {
        let mut delivered = DeliveredMarks::new();
        delivered.on_ack(&of_packets(0, packets));
        (delivered.responds(), delivered.packets())
    };
    assert_eq!(first(1), (false, 0));
    assert_eq!(first(4), (true, 3));
    // Later an ACE of zero can always be a count.
    let mut delivered = started();
    delivered.on_ack(&of_packets(0, 3));
    assert_eq!((delivered.responds(), delivered.packets()), (true, 3));
}
