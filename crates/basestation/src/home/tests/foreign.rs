//! A foreign agent around a bridge, between the home agent and a mobile.

use super::relay::{relay_config, to_station};
use super::*;
use crate::{Bridge, Side};

struct Path {
    home: Script,
    foreign: ForeignAgent<Bridge>,
}

impl Path {
    fn new() -> Self {
        let foreign = ForeignAgent::new(Bridge::new(64), relay_config(0)).unwrap();
        Self { home: Script::new(), foreign }
    }

    /// Passes a packet from a side, and what follows between the agents. Returns the packets to the
    /// wireless side, and those to other hosts on the wired side.
    fn pass(&mut self, side: Side, packet: Packet) -> [Vec<Packet>; 2] {
        let now = self.home.now;
        self.foreign.handle_packet(now, side.port(), packet);
        let [mut wireless, mut wired] = [Vec::new(), Vec::new()];
        while let Some((port, packet)) = self.foreign.poll_transmit(now) {
            let (_, dst) = ip::addresses(&packet.data).unwrap();
            if port == Side::Wireless.port() {
                wireless.push(packet);
            } else if !config().addresses.contains(&dst) {
                wired.push(packet);
            } else {
                let mut sent = self.home.give(packet);
                sent.extend(self.home.store());
                for packet in sent {
                    self.foreign.handle_packet(now, Side::Wired.port(), packet);
                }
            }
        }
        [wireless, wired]
    }

    fn register(&mut self, care_of: &str) -> Vec<Packet> {
        let asked = to_station(care_of, self.home.now.as_millis());
        let remote = SocketAddr::new(address(care_of), port(asked.from.is_ipv6()));
        let flow = FlowId { local: asked.from, remote };
        let [wireless, wired] = self.pass(Side::Wireless, udp::emit(&flow, 64, &asked.message()));
        assert!(wired.is_empty());
        wireless
    }
}

#[test]
fn a_visitor_registers_and_gets_its_packets_until_the_registration_ends() {
    for (care_of, home) in [("198.51.100.1", "192.0.2.7"), ("2001:db8:1::1", "2001:db8::7")] {
        let mut path = Path::new();
        let reply = path.register(care_of);
        assert_eq!(reply.len(), 1);
        let read = Read::of(&reply[0]);
        assert_eq!((read.to, read.reply().code), (SocketAddr::new(address(home), 5_000), 0));

        let packet = data(home, 500);
        let outer = path.home.give(packet.clone()).remove(0);
        let [wireless, _] = path.pass(Side::Wired, outer.clone());
        assert_eq!(wireless, [packet]);
        let counters = path.foreign.counters();
        assert_eq!((counters.detunnelled, counters.detunnelled_bytes), (1, 500));
        assert_eq!(path.foreign.relay().visitors().count(), 1);

        assert_eq!(path.foreign.poll_timeout(), Some(Instant::from_millis(300_000)));
        path.home.now = Instant::from_millis(300_000);
        assert!(path.pass(Side::Wired, outer).concat().is_empty());
        assert_eq!(path.foreign.counters().no_visitor, 1);
        assert_eq!(path.foreign.relay().visitors().count(), 0);
    }
}

#[test]
fn packets_that_are_quicker_than_the_reply_wait_for_it() {
    for is_accepted in [true, false] {
        let mut path = Path::new();
        let asked = to_station("198.51.100.1", 0);
        let remote = SocketAddr::new(asked.request.care_of, port(false));
        let request = udp::emit(&FlowId { local: asked.from, remote }, 64, &asked.message());
        let now = path.home.now;
        path.foreign.handle_packet(now, Side::Wireless.port(), request);
        let (_, request) = path.foreign.poll_transmit(now).unwrap();
        let mut replies = path.home.give(request);
        replies.extend(path.home.store());
        let packet = data("192.0.2.7", 500);
        let outer = path.home.give(packet.clone()).remove(0);
        path.foreign.handle_packet(now, Side::Wired.port(), outer);
        // Another mobile has no request.
        let own = address("198.51.100.1");
        let other = data("192.0.2.8", 100);
        let outer = tunnel::encapsulate((address("192.0.2.1"), own), 64, &other.data).unwrap();
        path.foreign.handle_packet(now, Side::Wired.port(), outer);
        assert_eq!(path.foreign.poll_transmit(now), None);
        assert_eq!(path.foreign.counters().no_visitor, 1);
        if is_accepted {
            let [wireless, _] = path.pass(Side::Wired, replies.remove(0));
            assert_eq!(wireless.len(), 2);
            assert_eq!(wireless[1], packet);
        } else {
            // No reply comes in time.
            path.foreign.handle_timeout(Instant::from_millis(7_000));
            assert_eq!(path.foreign.counters().no_visitor, 2);
        }
    }
}

#[test]
fn a_tunnel_of_a_stranger_or_for_another_host_ends_here() {
    let mut path = Path::new();
    path.register("198.51.100.1");
    let [own, agent] = ["198.51.100.1", "192.0.2.1"].map(address);
    let to_visitor = data("192.0.2.7", 100);
    for (entry, inner) in [(address("203.0.113.9"), &to_visitor), (agent, &data("192.0.2.8", 100))]
    {
        let outer = tunnel::encapsulate((entry, own), 64, &inner.data).unwrap();
        assert!(path.pass(Side::Wired, outer).concat().is_empty());
    }
    assert_eq!(path.foreign.counters().no_visitor, 2);
    // RFC 6040 section 4.2: congestion on a packet without ECN.
    let mut marked = tunnel::encapsulate((agent, own), 64, &to_visitor.data).unwrap();
    ip::set_ecn(&mut marked.data, ip::CE);
    // A datagram to another port, and a damaged header.
    let mut damaged = marked.clone();
    damaged.data[9] ^= 1;
    for packet in [marked, data_from("203.0.113.9", "198.51.100.1", 100), damaged] {
        assert!(path.pass(Side::Wired, packet).concat().is_empty());
    }
    assert_eq!(path.foreign.counters().dropped, 3);
    // A tunnel from the wireless side.
    let outer = tunnel::encapsulate((agent, own), 64, &to_visitor.data).unwrap();
    assert!(path.pass(Side::Wireless, outer).concat().is_empty());
    assert_eq!(path.foreign.counters().dropped, 4);
}

#[test]
fn other_packets_pass_in_both_directions() {
    let mut path = Path::new();
    let [there, back] = [("192.0.2.99", "203.0.113.9"), ("203.0.113.9", "192.0.2.99")]
        .map(|(from, to)| data_from(from, to, 100));
    assert_eq!(path.pass(Side::Wireless, there.clone()), [vec![], vec![there]]);
    assert_eq!(path.pass(Side::Wired, back.clone()), [vec![back], vec![]]);
}

#[test]
fn messages_of_home_agents_come_from_the_wired_side_and_requests_from_the_wireless() {
    let mut path = Path::new();
    let asked = to_station("198.51.100.1", 0);
    let remote = SocketAddr::new(asked.request.care_of, port(false));
    let request = udp::emit(&FlowId { local: asked.from, remote }, 64, &asked.message());
    assert!(path.pass(Side::Wired, request).concat().is_empty());
    assert_eq!(path.foreign.relay().counters().unauthenticated, 1);
}
