//! A router.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use airtcp_types::{Event, Instant, Node, Packet, PortId};
use airtcp_wire::ip;

/// An IPv4 router: forwards packets at once to the port of their destination. It has no queues;
/// queues are in links.
///
/// It does not notify senders of drops. IPv6, ICMP and prefixes are not supported.
#[derive(Clone, Debug, Default)]
pub struct Router {
    routes: BTreeMap<Ipv4Addr, PortId>,
    default: Option<PortId>,
    waiting: VecDeque<(PortId, Packet)>,
    counters: RouterCounters,
}

/// The counters of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouterCounters {
    /// Forwarded packets.
    pub forwarded: u64,
    /// Packets dropped because they have no IPv4 header, a header with a wrong checksum, or lengths
    /// that do not fit the packet (RFC 1812 section 5.2.2).
    pub malformed: u64,
    /// Packets dropped because their TTL expired.
    pub expired: u64,
    /// Packets dropped because there is no route.
    pub unroutable: u64,
}

impl Router {
    /// Creates a router with the default route `default`.
    pub fn new(default: Option<PortId>) -> Self {
        Self { default, ..Self::default() }
    }

    /// Adds a route to `destination` through `port`.
    pub fn route(&mut self, destination: Ipv4Addr, port: PortId) {
        self.routes.insert(destination, port);
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &RouterCounters {
        &self.counters
    }

    /// Decrements the TTL and returns the output port, or the counter of the reason for a drop.
    fn forward(&mut self, packet: &mut Packet) -> Result<PortId, &mut u64> {
        let counters = &mut self.counters;
        // RFC 1812 section 5.2.2.
        let ends = ip::check(&packet.data).map(|(headers, data)| headers.addresses(data));
        let Ok((_, IpAddr::V4(destination))) = ends else { return Err(&mut counters.malformed) };
        let ttl = match ip::hop_limit(&packet.data) {
            None | Some(0 | 1) => return Err(&mut counters.expired),
            Some(ttl) => ttl,
        };
        let route = self.routes.get(&destination).copied().or(self.default);
        let Some(port) = route else { return Err(&mut counters.unroutable) };
        ip::set_hop_limit(&mut packet.data, ttl - 1);
        counters.forwarded += 1;
        Ok(port)
    }
}

impl Node for Router {
    fn handle_packet(&mut self, _now: Instant, _port: PortId, mut packet: Packet) {
        match self.forward(&mut packet) {
            Ok(port) => self.waiting.push_back((port, packet)),
            Err(counter) => *counter += 1,
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        self.waiting.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

#[cfg(test)]
mod tests {
    use airtcp_wire::checksum;

    use super::*;

    fn packet(ttl: u8, last: u8) -> Packet {
        let mut data =
            vec![0x45, 0, 0, 20, 0, 0, 0x40, 0, ttl, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, last];
        let sum = checksum::checksum(&data);
        data[10..12].copy_from_slice(&sum.to_be_bytes());
        Packet::new(data)
    }

    #[test]
    fn packets_go_to_their_destinations_with_a_hop_less_and_a_right_checksum() {
        let mut router = Router::new(None);
        router.route(Ipv4Addr::new(10, 0, 0, 2), PortId(7));
        for ttl in 2..=255 {
            router.handle_packet(Instant::ZERO, PortId(0), packet(ttl, 2));
            let (port, out) = router.poll_transmit(Instant::ZERO).unwrap();
            assert_eq!((port, out), (PortId(7), packet(ttl - 1, 2)));
        }
    }

    #[test]
    fn undeliverable_packets_are_counted() {
        let mut router = Router::new(None);
        router.route(Ipv4Addr::new(10, 0, 0, 2), PortId(0));
        let mut wrong = packet(9, 2);
        wrong.data[15] ^= 1;
        let short = Packet::new(vec![0x45; 19]);
        for packet in [packet(1, 2), packet(0, 2), packet(9, 3), wrong, short, Packet::default()] {
            router.handle_packet(Instant::ZERO, PortId(0), packet);
        }
        assert_eq!(router.poll_transmit(Instant::ZERO), None);
        let counted = RouterCounters { forwarded: 0, malformed: 3, expired: 2, unroutable: 1 };
        assert_eq!(*router.counters(), counted);
    }
}
