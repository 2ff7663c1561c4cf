//! Two nodes connected in series.

use crate::{Event, Instant, Node, Packet, PortId};

/// Two nodes with two ports each, connected in series: port 1 of `near` is port 0 of `far`.
///
/// The outer ports are port 0 of `near` and port 1 of `far`. Packets between the two nodes pass
/// without delay, in `poll_transmit`.
#[derive(Clone, Debug)]
pub struct Chain<A, B> {
    /// The node at port 0.
    pub near: A,
    /// The node at port 1.
    pub far: B,
    /// The next event of each node.
    heard: [Option<Event>; 2],
}

const NEAR: PortId = PortId(0);
const FAR: PortId = PortId(1);

impl<A: Node, B: Node> Chain<A, B> {
    /// Connects `far` behind `near`.
    pub const fn new(near: A, far: B) -> Self {
        Self { near, far, heard: [None, None] }
    }
}

impl<A: Node, B: Node> Node for Chain<A, B> {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        if port == NEAR {
            self.near.handle_packet(now, NEAR, packet);
        } else {
            self.far.handle_packet(now, port, packet);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.near.handle_timeout(now);
        self.far.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        // A packet from one node may make the other one send.
        loop {
            if let Some((port, packet)) = self.near.poll_transmit(now) {
                if port == NEAR {
                    return Some((NEAR, packet));
                }
                self.far.handle_packet(now, NEAR, packet);
                continue;
            }
            let (port, packet) = self.far.poll_transmit(now)?;
            if port != NEAR {
                return Some((port, packet));
            }
            self.near.handle_packet(now, FAR, packet);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.near.poll_timeout().into_iter().chain(self.far.poll_timeout()).min()
    }

    /// Merges the events in order of time, provided that each node's events are in order.
    fn poll_event(&mut self) -> Option<Event> {
        let [near, far] = &mut self.heard;
        *near = near.take().or_else(|| self.near.poll_event());
        *far = far.take().or_else(|| self.far.poll_event());
        match (&near, &far) {
            (Some(of_near), Some(of_far)) if of_far.at < of_near.at => far.take(),
            (None, _) => far.take(),
            _ => near.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use super::*;
    use crate::{EventKind, Fate};

    /// Passes each packet to the other port after `millis` milliseconds, and reports an event.
    struct Wire {
        millis: u64,
        under_way: VecDeque<(Instant, PortId, Packet)>,
        events: VecDeque<Event>,
    }

    impl Wire {
        fn new(millis: u64) -> Self {
            Self { millis, under_way: VecDeque::new(), events: VecDeque::new() }
        }
    }

    impl Node for Wire {
        fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
            let fate = Fate::Dropped { cause: if self.millis == 1 { "near" } else { "far" } };
            let kind = EventKind::Packet { fate, packet: packet.clone() };
            self.events.push_back(Event { at: now, flow: None, kind });
            let at = now + Duration::from_millis(self.millis);
            self.under_way.push_back((at, PortId(1 - port.0), packet));
        }
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
            self.under_way.front().filter(|(at, ..)| *at <= now)?;
            self.under_way.pop_front().map(|(_, port, packet)| (port, packet))
        }
        fn poll_timeout(&self) -> Option<Instant> {
            self.under_way.front().map(|(at, ..)| *at)
        }
        fn poll_event(&mut self) -> Option<Event> {
            self.events.pop_front()
        }
    }

    fn packet(fill: u8) -> Packet {
        Packet::new(vec![fill; 20])
    }

    /// Returns for each packet that leaves the chain: the time, the port, and the first byte.
    fn run(chain: &mut Chain<Wire, Wire>) -> Vec<(u64, u16, u8)> {
        let mut left = Vec::new();
        while let Some(now) = chain.poll_timeout() {
            chain.handle_timeout(now);
            while let Some((port, packet)) = chain.poll_transmit(now) {
                left.push((now.as_nanos() / 1_000_000, port.0, packet.data[0]));
            }
        }
        left
    }

    #[test]
    fn a_packet_goes_through_both_in_either_direction() {
        let mut chain = Chain::new(Wire::new(1), Wire::new(10));
        chain.handle_packet(Instant::ZERO, PortId(0), packet(1));
        chain.handle_packet(Instant::ZERO, PortId(1), packet(2));
        assert_eq!(run(&mut chain), [(11, 0, 2), (11, 1, 1)]);
    }

    #[test]
    fn a_delay_of_nothing_passes_in_one_call() {
        let mut chain = Chain::new(Wire::new(0), Wire::new(0));
        chain.handle_packet(Instant::ZERO, PortId(1), packet(3));
        assert_eq!(run(&mut chain), [(0, 0, 3)]);
    }

    #[test]
    fn events_come_in_the_order_of_time() {
        let mut chain = Chain::new(Wire::new(1), Wire::new(10));
        for (at, port) in [(0, 1), (3, 0), (3, 1), (4, 0)] {
            chain.handle_packet(Instant::from_millis(at), PortId(port), packet(0));
        }
        let reported = std::iter::from_fn(|| chain.poll_event()).map(|event| match event.kind {
            EventKind::Packet { fate: Fate::Dropped { cause }, .. } => (event.at, cause),
            other => panic!("{other:?}"),
        });
        let expected = [(0, "far"), (3, "near"), (3, "far"), (4, "near")];
        let expected = expected.map(|(at, cause)| (Instant::from_millis(at), cause));
        assert_eq!(reported.collect::<Vec<_>>(), expected);
    }
}
