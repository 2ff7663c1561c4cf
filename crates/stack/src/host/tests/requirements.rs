//! Requirements of RFCs on a host that no other test here asserts.

use crate::tcp::State;

use super::*;

const TO: &str = "10.0.0.1:80";

// Shows: RFC9293-MUST-41
#[test]
fn to_listen_does_nothing_to_connections_of_the_same_port() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, TO);
    pair.server.tcp_close(pair.now, listener).unwrap();
    let again = pair.server.tcp_listen(address(TO), 8).unwrap();
    pair.carry(stream, accepted);
    let (stream, accepted) = pair.connect(again, TO);
    pair.carry(stream, accepted);
}

// Shows: RFC9293-MUST-42
#[test]
fn one_can_listen_on_the_port_of_a_connection_that_is_not_open_yet() {
    let mut pair = Pair::new();
    // SYN-SENT at the client, without an answer.
    let stream = pair.client.tcp_connect(pair.now, address("10.0.0.3:80"), None).unwrap();
    let local = pair.client.local_addr(stream).unwrap();
    assert_eq!(pair.client.tcp(stream).unwrap().state(), State::SynSent);
    pair.client.tcp_listen(local, 4).unwrap();
    // SYN-RECEIVED at the server, after its first listener was closed.
    let listener = pair.server.tcp_listen(address(TO), 4).unwrap();
    pair.server.handle_packet(pair.now, PORT, Packet::new(segment(TO, &syn())));
    let states: Vec<_> = pair.server.tcp_connections().map(|(_, state)| state).collect();
    assert_eq!(states, [State::SynReceived]);
    pair.server.tcp_close(pair.now, listener).unwrap();
    let listener = pair.server.tcp_listen(address(TO), 4).unwrap();
    let (stream, accepted) = pair.connect(listener, TO);
    pair.carry(stream, accepted);
}

/// Connects from a host with two addresses to `10.9.0.1`, loses some data, and returns the source
/// addresses of the segments.
fn sources(bound: Option<&str>) -> Vec<std::net::IpAddr> {
    let addresses = ["10.0.0.2/24", "10.9.0.2/24"].map(|cidr| cidr.parse().unwrap());
    let mut client = Host::new(HostConfig { secret: [7; 16], ..HostConfig::new(addresses) });
    let mut server = host(["10.9.0.1/24", "fd00::1/64"]);
    let to = address("10.9.0.1:80");
    let listener = server.tcp_listen(to, 4).unwrap();
    let mut now = Instant::ZERO;
    let stream = match bound {
        Some(local) => {
            let bound = client.tcp_bind(address(local)).unwrap();
            client.tcp_connect_from(now, bound, to, None).unwrap()
        }
        None => client.tcp_connect(now, to, None).unwrap(),
    };
    let mut sources = Vec::new();
    for round in 0..40 {
        if round == 2 {
            client.tcp_send(now, stream, &[1; 20_000]).unwrap();
            client.tcp_close(now, stream).unwrap();
        }
        while let Some((_, packet)) = client.poll_transmit(now) {
            sources.push(ip::parse(&packet.data).unwrap().src);
            if round != 2 {
                server.handle_packet(now, PORT, packet);
            }
        }
        while let Some((_, packet)) = server.poll_transmit(now) {
            client.handle_packet(now, PORT, packet);
        }
        now += Duration::from_millis(100);
        client.handle_timeout(now);
        server.handle_timeout(now);
    }
    assert!(server.tcp_accept(now, listener).unwrap().is_some());
    assert!(client.counters().tcp_retrans_segs > 0 && sources.len() > 20);
    sources
}

// Shows: RFC9293-MUST-43, RFC9293-MUST-44, RFC9293-MUST-45
#[test]
fn all_segments_of_a_connection_have_one_address_chosen_or_named() {
    for (bound, expected) in [(None, "10.9.0.2"), (Some("10.0.0.2:0"), "10.0.0.2")] {
        let (sources, expected) = (sources(bound), expected.parse::<std::net::IpAddr>().unwrap());
        assert!(sources.iter().all(|source| *source == expected), "{sources:?}");
    }
}

// Shows: RFC9293-MUST-50
#[test]
fn options_of_ip_are_stepped_over() {
    // Record route, an unknown option, and no-operation up to the end.
    let options = [7, 7, 4, 0, 0, 0, 0, 0x99, 4, 1, 2, 1];
    let plain = segment(TO, &syn());
    let data = with_header([&plain[..20], &options, &plain[20..]].concat(), |data| {
        data[0] = 0x48;
        data[3] += options.len() as u8;
    });
    let mut host = server();
    host.tcp_listen(address(TO), 4).unwrap();
    let answers = answers(&mut host, data);
    let flags = read_segment(&answers[0]).flags;
    assert_eq!((answers.len(), flags.syn, flags.ack), (1, true, true));
}

// Shows: RFC9293-MUST-55
#[test]
fn a_source_quench_is_dropped_in_silence() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, TO);
    pair.client.tcp_send(pair.now, stream, &[7; 20_000]).unwrap();
    let (_, sent) = pair.client.poll_transmit(pair.now).unwrap();
    let quench = icmp_error(&sent.data, [4, 0], 0, &sent.data);
    while pair.client.poll_transmit(pair.now).is_some() {}
    let cwnd = |pair: &Pair| pair.client.tcp(stream).unwrap().info(pair.now).cwnd;
    let before = cwnd(&pair);
    pair.client.handle_packet(pair.now, PORT, quench);
    assert_eq!(pair.client.poll_transmit(pair.now), None);
    assert_eq!(cwnd(&pair), before);
    assert_eq!(pair.client.tcp(stream).unwrap().error(), None);
    pair.pass(Duration::from_secs(5));
    assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, [7; 20_000]);
}
