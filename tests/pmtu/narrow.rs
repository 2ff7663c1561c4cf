//! A link that silently drops packets larger than its MTU.

use airtcp_link::Link;
use airtcp_types::{Event, Instant, Node, Packet, PortId};

pub(crate) struct Narrow {
    link: Link,
    /// The longest packet that the link takes (bytes).
    mtu: usize,
    dropped: u64,
}

impl Narrow {
    pub(crate) fn new(link: Link, mtu: usize) -> Self {
        Self { link, mtu, dropped: 0 }
    }

    /// The packets that were too large, in both directions.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Node for Narrow {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        if packet.data.len() > self.mtu {
            self.dropped += 1;
        } else {
            self.link.handle_packet(now, port, packet);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.link.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.link.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.link.poll_event()
    }
}
