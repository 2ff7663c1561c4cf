//! HACK between hosts: segments corrupted in transit.

use airtcp_types::Checksum;
use airtcp_wire::checksum::verify_transport;
use airtcp_wire::header_checksum::verify_header;
use airtcp_wire::options::HackForm;
use proptest::prelude::*;

use super::*;
use crate::tcp::{Offer, SocketOption, TcpConfig};

fn willing(addresses: [&str; 2]) -> Host {
    let mut host = host(addresses);
    host.config.tcp.hack = Offer::Always;
    host
}

fn pair() -> Pair {
    Pair {
        now: Instant::ZERO,
        client: willing(["10.0.0.2/24", "fd00::2/64"]),
        server: willing(["10.0.0.1/24", "fd00::1/64"]),
    }
}

fn data_of(packet: &Packet) -> usize {
    read_segment(packet).payload.len()
}

/// All packets that a host sends now.
fn sent(host: &mut Host, now: Instant) -> Vec<Packet> {
    std::iter::from_fn(|| host.poll_transmit(now).map(|(_, packet)| packet)).collect()
}

/// The packets that a server receives from a client that sends a stream, from the SYN on, one every
/// two milliseconds, in order of arrival. One packet is late, so that there are holes.
fn heard(to: &str) -> Vec<Packet> {
    let mut pair = pair();
    pair.server.tcp_listen(address(to), 4).unwrap();
    let stream = pair.client.tcp_connect(pair.now, address(to), None).unwrap();
    let mut heard = Vec::new();
    for _ in 0..2 {
        for packet in sent(&mut pair.client, pair.now) {
            heard.push(packet.clone());
            pair.server.handle_packet(pair.now, PORT, packet);
        }
        for packet in sent(&mut pair.server, pair.now) {
            pair.client.handle_packet(pair.now, PORT, packet);
        }
    }
    pair.client.tcp_send(pair.now, stream, &[7; 12_345]).unwrap();
    heard.extend(sent(&mut pair.client, pair.now));
    let late = heard.remove(5);
    heard.push(late);
    heard
}

#[test]
fn a_corrupted_segment_is_answered_with_its_number() {
    for to in ["10.0.0.1:80", "[fd00::1]:80"] {
        let mut pair = pair();
        let listener = pair.server.tcp_listen(address(to), 4).unwrap();
        let (stream, accepted) = pair.connect(listener, to);
        pair.client.tcp_send(pair.now, stream, &[7; 3000]).unwrap();
        let packets = sent(&mut pair.client, pair.now);
        let mut bad = packets[1].clone();
        *bad.data.last_mut().unwrap() ^= 4;
        let before = pair.server.counters().clone();
        pair.server.handle_packet(pair.now, PORT, bad);
        let answers = sent(&mut pair.server, pair.now);
        let special = read_segment(&answers[0]).options.hack_ack.unwrap();
        assert_eq!((answers.len(), special.form), (1, HackForm::Kinds));
        assert_eq!(special.corrupted, read_segment(&packets[1]).seq);
        let ip = if to.starts_with('[') {
            ["Ip6InReceives", "Ip6InDelivers", "Ip6OutRequests"]
        } else {
            ["IpInReceives", "IpInDelivers", "IpOutRequests"]
        };
        let tcp = ["TcpInSegs", "TcpOutSegs", "TcpInErrs", "TcpInCsumErrors", "TcpExtHackAcksSent"];
        assert_eq!(moved(&before, pair.server.counters()), [&ip[..], &tcp].concat());
        for packet in packets {
            pair.server.handle_packet(pair.now, PORT, packet);
        }
        pair.exchange();
        assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, [7; 3000]);
    }
}

#[test]
fn a_good_header_without_a_connection_is_dropped() {
    let heard = heard("10.0.0.1:80");
    let mut server = willing(["10.0.0.1/24", "fd00::1/64"]);
    let mut bad = heard.iter().find(|packet| data_of(packet) > 0).unwrap().clone();
    *bad.data.last_mut().unwrap() ^= 1;
    server.handle_packet(Instant::ZERO, PORT, bad);
    assert!(sent(&mut server, Instant::ZERO).is_empty());
    assert_eq!(server.counters().tcp_ext_hack_unanswered, 1);
}

#[test]
fn where_a_device_vouches_for_checksums_it_is_not_negotiated() {
    let to = "10.0.0.1:80";
    let granted = |pair: &mut Pair, checksum: Checksum| {
        let listener = pair.server.tcp_listen(address(to), 4).unwrap();
        let stream = pair.client.tcp_connect(pair.now, address(to), None).unwrap();
        for _ in 0..2 {
            for mut packet in sent(&mut pair.client, pair.now) {
                packet.checksum = checksum;
                pair.server.handle_packet(pair.now, PORT, packet);
            }
            for packet in sent(&mut pair.server, pair.now) {
                pair.client.handle_packet(pair.now, PORT, packet);
            }
        }
        let (accepted, _) = pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
        let hack = |host: &Host, socket| host.tcp(socket).unwrap().info(pair.now).hack;
        let offloaded = [&pair.client, &pair.server].map(|h| h.counters().tcp_ext_hack_offloaded);
        ([hack(&pair.client, stream), hack(&pair.server, accepted)], offloaded)
    };
    assert_eq!(granted(&mut pair(), Checksum::Full), ([true; 2], [0, 0]));
    assert_eq!(granted(&mut pair(), Checksum::Verified), ([false; 2], [0, 1]));
    assert_eq!(granted(&mut pair(), Checksum::Partial), ([false; 2], [0, 1]));
    let mut known = pair();
    known.client.config.checksum_offload = true;
    assert_eq!(granted(&mut known, Checksum::Full), ([false; 2], [1, 0]), "it is not offered");
    let mut known = pair();
    known.server.config.checksum_offload = true;
    assert_eq!(granted(&mut known, Checksum::Full), ([false; 2], [0, 1]), "nor granted");
}

#[test]
fn a_live_connection_takes_other_strategies_and_says_what_it_lacks() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 4).unwrap();
    let config = TcpConfig { sack: false, ..TcpConfig::default() };
    let to = address("10.0.0.1:80");
    let stream = pair.client.tcp_connect(pair.now, to, Some(config)).unwrap();
    pair.exchange();
    pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    let mut set = |text: &str| {
        let combination = text.parse().unwrap();
        pair.client.tcp_set(pair.now, stream, SocketOption::Combination(combination))
    };
    assert_eq!(set("newreno/fixed:5"), Ok(()));
    assert_eq!(set("sack/reno"), Err(HostError::NotNegotiated("SACK")));
    let info = pair.client.tcp(stream).unwrap().info(pair.now);
    assert_eq!(info.combination, "newreno/fixed:5");
}

proptest! {
    #[test]
    fn a_corrupted_packet_changes_nothing_but_that_a_special_ack_leaves(
        v6 in any::<bool>(),
        which in any::<prop::sample::Index>(),
        when in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8), 1..4),
        times in 1..3,
    ) {
        let to = if v6 { "[fd00::1]:80" } else { "10.0.0.1:80" };
        let heard = heard(to);
        let mut bad = which.get(&heard).clone();
        for (at, bit) in &flips {
            let at = at.index(bad.data.len());
            bad.data[at] ^= 1u8 << bit;
        }
        let unnoticed = ip::parse(&bad.data).is_ok_and(|datagram| {
            let payload = datagram.payload;
            verify_transport(datagram.src, datagram.dst, datagram.protocol, payload)
                || datagram.protocol != ip::TCP
        });
        prop_assume!(!unnoticed);
        let when = when.index(heard.len());
        let mut servers = [(); 2].map(|()| {
            let mut server = willing(["10.0.0.1/24", "fd00::1/64"]);
            server.tcp_listen(address(to), 4).unwrap();
            server
        });
        let mut now = Instant::ZERO;
        for (index, packet) in heard.iter().enumerate() {
            now += Duration::from_millis(2);
            servers.iter_mut().for_each(|server| server.handle_timeout(now));
            let outputs = servers.each_mut().map(|server| sent(server, now));
            prop_assert_eq!(&outputs[0], &outputs[1]);
            if index == when {
                for _ in 0..times {
                    servers[0].handle_packet(now, PORT, bad.clone());
                    let answers = sent(&mut servers[0], now);
                    let special = |answer: &Packet| {
                        read_segment(answer).options.hack_ack.is_some()
                    };
                    prop_assert!(answers.len() <= 1 && answers.iter().all(special));
                    if !answers.is_empty() {
                        let datagram = ip::parse(&bad.data).unwrap();
                        let ip::Datagram { src, dst, payload, .. } = datagram;
                        prop_assert!(verify_header(src, dst, payload));
                    }
                }
                prop_assert_eq!(servers[0].held(), servers[1].held());
            }
            for server in &mut servers {
                server.handle_packet(now, PORT, packet.clone());
            }
            let outputs = servers.each_mut().map(|server| sent(server, now));
            prop_assert_eq!(&outputs[0], &outputs[1]);
            prop_assert_eq!(servers[0].poll_timeout(), servers[1].poll_timeout());
        }
        let connections = servers.each_ref().map(|server| server.tcp_connections().next());
        prop_assert!(connections[0].is_some());
        prop_assert_eq!(connections[0], connections[1]);
    }
}
