//! A bridge: forwards packets from each side to the other.

use std::collections::VecDeque;

use airtcp_types::{Event, Instant, Node, Packet, PortId};
use airtcp_wire::ip;

use crate::Counters;

/// A side of a bridge or station.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Port 0, usually the side of the server.
    Wired,
    /// Port 1, usually the side of the mobile host.
    Wireless,
}

impl Side {
    /// Both sides, in the order of their ports.
    pub const BOTH: [Self; 2] = [Self::Wired, Self::Wireless];

    /// Returns the port on this side.
    pub const fn port(self) -> PortId {
        PortId(self as u16)
    }

    /// Returns the side of a port.
    pub const fn of(port: PortId) -> Option<Self> {
        match port.0 {
            0 => Some(Self::Wired),
            1 => Some(Self::Wireless),
            _ => None,
        }
    }

    /// Returns the other side.
    pub const fn other(self) -> Self {
        match self {
            Self::Wired => Self::Wireless,
            Self::Wireless => Self::Wired,
        }
    }

    /// Returns `wired` or `wireless`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wired => "wired",
            Self::Wireless => "wireless",
        }
    }
}

/// Forwards IP packets between two ports, unchanged and in order.
///
/// A queue of a fixed number of packets leads to each side; packets that arrive at a full queue are
/// counted and dropped. Packets that are neither IPv4 nor IPv6 are counted and dropped too. A
/// bridge has no deadlines and creates no events.
#[derive(Debug)]
pub struct Bridge {
    capacity: usize,
    /// The queues, by output side.
    queues: [VecDeque<Packet>; 2],
    /// The counters, by input side.
    counters: [Counters; 2],
    /// The side to serve next in [`Node::poll_transmit`], so that a busy side does not starve the
    /// other.
    turn: Side,
}

impl Bridge {
    /// Creates a bridge with queues of `capacity` packets, at least one.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            queues: Default::default(),
            counters: Default::default(),
            turn: Side::Wired,
        }
    }

    /// Returns the counters of packets that arrived on `side`.
    pub const fn counters(&self, side: Side) -> &Counters {
        &self.counters[side as usize]
    }

    /// Returns the number of packets queued towards `side`.
    pub fn queued(&self, side: Side) -> usize {
        self.queues[side as usize].len()
    }
}

impl Node for Bridge {
    fn handle_packet(&mut self, _: Instant, port: PortId, packet: Packet) {
        // A port that does not exist is the caller's mistake: the packet is ignored.
        let Some(side) = Side::of(port) else { return };
        let queue = &mut self.queues[side.other() as usize];
        let counters = &mut self.counters[side as usize];
        // The rest of the header is for the hosts to check.
        if ip::is_v6(&packet.data).is_none() {
            counters.dropped_not_ip += 1;
        } else if queue.len() >= self.capacity {
            counters.dropped_full += 1;
        } else {
            counters.packets += 1;
            counters.bytes += packet.len() as u64;
            queue.push_back(packet);
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<(PortId, Packet)> {
        let (side, packet) = [self.turn, self.turn.other()]
            .into_iter()
            .find_map(|side| Some((side, self.queues[side as usize].pop_front()?)))?;
        self.turn = side.other();
        Some((side.port(), packet))
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
    use airtcp_types::Checksum;

    use super::*;

    const NOW: Instant = Instant::ZERO;

    /// An IPv4 packet of 20 + `more` bytes; each length has its own content.
    fn packet(more: u8) -> Packet {
        let mut data = vec![more; 20 + usize::from(more)];
        data[0] = 0x45;
        Packet::new(data)
    }

    fn transmitted(bridge: &mut Bridge) -> Vec<(PortId, Packet)> {
        std::iter::from_fn(|| bridge.poll_transmit(NOW)).collect()
    }

    #[test]
    fn what_comes_in_on_one_side_leaves_by_the_other_unchanged_and_in_order() {
        for side in Side::BOTH {
            let mut bridge = Bridge::new(8);
            let mut sent = vec![packet(1), packet(2), packet(3)];
            sent[1].segment_size = Some(1);
            sent[2].checksum = Checksum::Verified;
            for packet in &sent {
                bridge.handle_packet(NOW, side.port(), packet.clone());
            }
            let expected: Vec<_> = sent.into_iter().map(|p| (side.other().port(), p)).collect();
            assert_eq!(transmitted(&mut bridge), expected);
            let counters = bridge.counters(side);
            assert_eq!((counters.packets, counters.bytes), (3, 66));
            assert_eq!(*bridge.counters(side.other()), Counters::default());
        }
    }

    #[test]
    fn ipv6_passes() {
        let mut bridge = Bridge::new(8);
        let mut data = vec![0; 40];
        data[0] = 0x60;
        bridge.handle_packet(NOW, Side::Wireless.port(), Packet::new(data));
        assert_eq!(transmitted(&mut bridge).len(), 1);
    }

    #[test]
    fn what_is_no_ip_packet_is_counted_and_dropped() {
        let mut bridge = Bridge::new(8);
        let mut short_v6 = vec![0; 39];
        short_v6[0] = 0x60;
        let junk = [vec![], vec![0x45], vec![0x45; 19], short_v6, vec![0x55; 60], vec![0xff; 60]];
        let count = junk.len() as u64;
        for data in junk {
            bridge.handle_packet(NOW, Side::Wired.port(), Packet::new(data));
        }
        assert_eq!(transmitted(&mut bridge), []);
        let expected = Counters { dropped_not_ip: count, ..Counters::default() };
        assert_eq!(*bridge.counters(Side::Wired), expected);
    }

    #[test]
    fn a_full_queue_drops_at_the_tail_and_leaves_the_other_side_alone() {
        let mut bridge = Bridge::new(2);
        for more in 0..5 {
            bridge.handle_packet(NOW, Side::Wired.port(), packet(more));
        }
        bridge.handle_packet(NOW, Side::Wireless.port(), packet(9));
        assert_eq!((bridge.queued(Side::Wireless), bridge.queued(Side::Wired)), (2, 1));
        assert_eq!(bridge.counters(Side::Wired).dropped_full, 3);
        assert_eq!(bridge.counters(Side::Wireless).dropped_full, 0);
        let left: Vec<_> = transmitted(&mut bridge).into_iter().map(|(_, packet)| packet).collect();
        assert_eq!(left, [packet(9), packet(0), packet(1)]);
    }

    #[test]
    fn sides_take_turns() {
        let mut bridge = Bridge::new(8);
        for more in 0..3 {
            bridge.handle_packet(NOW, Side::Wired.port(), packet(more));
        }
        bridge.handle_packet(NOW, Side::Wireless.port(), packet(9));
        let ports: Vec<_> = transmitted(&mut bridge).iter().map(|(port, _)| port.0).collect();
        assert_eq!(ports, [0, 1, 1, 1]);
    }

    #[test]
    fn an_unknown_port_and_the_passing_of_time_do_nothing() {
        let mut bridge = Bridge::new(8);
        bridge.handle_packet(NOW, PortId(2), packet(1));
        bridge.handle_timeout(Instant::MAX);
        assert_eq!(transmitted(&mut bridge), []);
        assert_eq!((bridge.poll_timeout(), bridge.poll_event()), (None, None));
    }
}
