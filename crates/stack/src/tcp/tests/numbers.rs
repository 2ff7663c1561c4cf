//! Transmission numbers and their echo.

use super::*;

fn willing() -> TcpConfig {
    TcpConfig { tx_numbers: Offer::Always, ..delayed() }
}

#[test]
fn transmission_numbers_are_used_if_both_ends_offer_them() {
    let config = willing();
    let mut s = Script::syn_received(&config);
    assert_eq!(s.take(0).unwrap().numbers, Some((0, 0)));
    send!(s, 0, "A", 1, ack = 1);
    assert!(s.conn.granted().txno_echo);
    assert_eq!(s.conn.info(s.now).mss, ByteCount(1000 - 12));
    // By default they are offered only if the combination needs them.
    let mut s = Script::connecting(&plain());
    assert_eq!(s.take(0).unwrap().numbers, None);
    send!(s, 0, "S", 0, ack = 1, numbers = (0, 0));
    recv!(s, 0, "A", 1, ack = 1);
    assert!(!s.conn.granted().txno_echo);
}

#[test]
fn every_transmission_has_its_own_and_the_echo_of_the_peers_last() {
    let mut config = willing();
    config.sender.combination = "newreno/reno".parse().unwrap();
    let mut s = Script::established(&config);
    s.write(1976);
    recv!(s, 0, "A", 1, ack = 1, len = 988, numbers = (1, 0));
    recv!(s, 0, "PA", 989, ack = 1, len = 988, numbers = (2, 0));
    send!(s, 10, "A", 1, ack = 989, len = 10, numbers = (77, 1));
    s.write(988);
    recv!(s, 10, "PA", 1977, ack = 11, len = 988, numbers = (3, 77));
    // The timer retransmits the second segment, as another transmission.
    let at = s.conn.poll_timeout().unwrap();
    s.conn.on_timeout(at, &mut s.counters);
    let again = s.conn.poll_transmit(at, &mut s.counters, &mut s.outlet).unwrap();
    let again = Seg::from_packet(&again.data);
    assert_eq!((again.seq, again.numbers), (989, Some((4, 77))));
}

#[test]
fn each_ack_echoes_what_made_it_leave() {
    let mut s = Script::established(&willing());
    for (seq, number) in [(1, 9), (201, 10), (301, 11), (101, 12)] {
        send!(s, 5, "A", seq, ack = 1, len = 100, numbers = (number, 0));
    }
    recv!(s, 5, "A", 1, ack = 101, numbers = (0, 9));
    recv!(s, 5, "A", 1, ack = 101, sack = [(201, 301)], numbers = (0, 10));
    recv!(s, 5, "A", 1, ack = 101, sack = [(201, 401)], numbers = (0, 11));
    recv!(s, 5, "A", 1, ack = 401, numbers = (0, 12));
    // The number of a segment that is not acceptable is ignored.
    send!(s, 6, "A", 900_000, ack = 1, len = 100, numbers = (99, 0));
    recv!(s, 6, "A", 1, ack = 401, numbers = (0, 12));
}

#[test]
fn beside_timestamps_and_an_echo_two_blocks_fit() {
    let mut s = Script::established(&TcpConfig { timestamps: true, ..willing() });
    for (n, seq) in (1..).zip([101, 301, 501]) {
        send!(s, 5, "A", seq, ack = 1, len = 100, numbers = (n, 0));
    }
    recv!(s, 5, "A", 1, ack = 1, sack = [(101, 201)], numbers = (0, 1));
    recv!(s, 5, "A", 1, ack = 1, sack = [(301, 401), (101, 201)], numbers = (0, 2));
    recv!(s, 5, "A", 1, ack = 1, sack = [(501, 601), (301, 401)], numbers = (0, 3));
}
