//! A wrapper that runs a node on a faster clock.

use airtcp_types::{Event, Instant, Node, Packet, PortId};

/// How much faster the clock runs. At this speed the two hours after which a silent flow is
/// forgotten are still longer than a round of all flows.
const HASTE: u64 = 1_000;

pub(crate) struct Hasty<N>(pub(crate) N);

fn inner(now: Instant) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_mul(HASTE))
}

impl<N: Node> Node for Hasty<N> {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        self.0.handle_packet(inner(now), port, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(inner(now));
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.0.poll_transmit(inner(now))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout().map(|due| Instant::from_nanos(due.as_nanos().div_ceil(HASTE)))
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }
}
