//! Measurements of the path that connections inherit (RFC 9040).

use super::*;

const TO: &str = "10.0.0.1:80";

/// Two hosts whose connections share measurements, after a transfer.
fn after_a_transfer(path_memory: bool) -> Pair {
    let mut pair = Pair::new();
    pair.client.config.tcp.path_memory = path_memory;
    let listener = pair.server.tcp_listen(address(TO), 64).unwrap();
    let (stream, accepted) = pair.connect(listener, TO);
    pair.carry(stream, accepted);
    pair
}

#[test]
fn the_timer_of_the_next_syn_is_that_of_the_path_and_the_attempt_lasts_as_long() {
    for (path_memory, first) in [(false, 1_000), (true, 250)] {
        let mut pair = after_a_transfer(path_memory);
        let began = pair.now;
        let stream = pair.client.tcp_connect(began, address(TO), None).unwrap();
        while pair.client.poll_transmit(pair.now).is_some() {}
        let mut sent = Vec::new();
        while pair.client.tcp(stream).unwrap().error().is_none() {
            pair.now = pair.client.poll_timeout().unwrap();
            pair.client.handle_timeout(pair.now);
            while pair.client.poll_transmit(pair.now).is_some() {
                sent.push(pair.now.since(began));
            }
        }
        assert_eq!(sent[0], Duration::from_millis(first), "{path_memory}");
        assert!(pair.now.since(began) >= Duration::from_secs(247), "{path_memory}");
    }
}

#[test]
fn a_connection_that_was_opened_before_begins_with_what_others_learned_meanwhile() {
    let mut pair = Pair::new();
    pair.client.config.tcp.path_memory = true;
    let listener = pair.server.tcp_listen(address(TO), 64).unwrap();
    let (early, accepted) = pair.connect(listener, TO);
    let (stream, taken) = pair.connect(listener, TO);
    pair.carry(stream, taken);
    let peer = address(TO).ip();
    let rate = pair.client.paths.get(pair.now, peer).rate.unwrap();
    pair.client.tcp_send(pair.now, early, &[7; 20_000]).unwrap();
    while pair.client.poll_transmit(pair.now).is_some() {}
    let sender = pair.client.tcp(early).unwrap().sender().unwrap();
    assert!(sender.pacing_rate().unwrap() >= rate);
    // Both connections count while they have data in flight.
    let shared = pair.client.paths.get(pair.now, peer).rate.unwrap();
    assert_eq!(shared.bits_per_sec(), rate.bits_per_sec() / 2);
    pair.exchange();
    pair.pass(Duration::from_millis(100));
    let got = read_all(&mut pair.server, pair.now, accepted).0;
    assert_eq!(got, [7; 20_000]);
    assert!(pair.client.paths.get(pair.now, peer).rate.unwrap() >= rate);
}
