//! A foreign agent on the wired side of a station (RFC 5944 section 4.2.2).

use std::collections::VecDeque;
use std::net::SocketAddr;

use airtcp_types::{Event, FlowId, Instant, Node, Packet, PortId};
use airtcp_wire::{ip, tunnel, udp};
use serde::Serialize;

use super::forward::{message, port};
use super::{HOP_LIMIT, HomeConfigError, ROOM, Relay, RelayConfig};
use crate::Side;

/// Relays registrations of mobiles on the wireless side of `N`, and takes their packets out of the
/// tunnels of their home agents.
///
/// It has the ports of `N`, a bridge or a station. Its care-of addresses are routed to the port of
/// the wired side.
#[derive(Debug)]
pub struct ForeignAgent<N> {
    inner: N,
    relay: Relay,
    to_wired: VecDeque<Packet>,
    counters: ForeignCounters,
}

/// The counters of a [`ForeignAgent`], beside those of its [`Relay`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ForeignCounters {
    /// Packets taken out of tunnels.
    pub detunnelled: u64,
    /// Bytes of these packets, without the outer headers.
    pub detunnelled_bytes: u64,
    /// Packets in a tunnel for an address that is not registered, or not by that home agent.
    pub no_visitor: u64,
    /// Other packets to a care-of address that are invalid or not used.
    pub dropped: u64,
    /// Messages dropped because the output queue was full.
    pub dropped_full: u64,
}

impl<N: Node> ForeignAgent<N> {
    /// Creates a foreign agent without visitors.
    ///
    /// # Errors
    /// [`HomeConfigError`].
    pub fn new(inner: N, config: RelayConfig) -> Result<Self, HomeConfigError> {
        let relay = Relay::new(config)?;
        let (to_wired, counters) = (VecDeque::new(), ForeignCounters::default());
        Ok(Self { inner, relay, to_wired, counters })
    }

    /// The registrations.
    pub const fn relay(&self) -> &Relay {
        &self.relay
    }

    /// Returns the counters.
    pub const fn counters(&self) -> ForeignCounters {
        self.counters
    }

    fn is_own(&self, packet: &Packet) -> bool {
        ip::addresses(&packet.data)
            .is_some_and(|(_, dst)| self.relay.own(dst.is_ipv6()) == Some(dst))
    }

    /// Processes a packet to a care-of address, from the wired or the wireless side.
    fn on_own(&mut self, now: Instant, side: Side, packet: &Packet) {
        let is_whole = packet.tail.is_empty() && packet.segment_size.is_none();
        let Some((headers, bytes)) = ip::check(&packet.data).ok().filter(|_| is_whole) else {
            self.counters.dropped += 1;
            return;
        };
        match (message(headers, bytes), side) {
            (Some((from, message)), Side::Wired) => self.relay.handle_home(now, from, message),
            (Some((from, message)), Side::Wireless) => self.relay.handle_mobile(now, from, message),
            (None, Side::Wired) if matches!(headers.protocol, ip::IPV4 | ip::IPV6) => {
                self.on_tunnel(now, bytes);
            }
            (None, _) => self.counters.dropped += 1,
        }
        self.pass(now);
    }

    /// Takes a packet of a visitor out of its tunnel.
    fn on_tunnel(&mut self, now: Instant, bytes: &[u8]) {
        self.relay.handle_timeout(now);
        let Ok(inner) = tunnel::decapsulate(bytes) else {
            self.counters.dropped += 1;
            return;
        };
        let visitor =
            ip::addresses(&inner.packet.data).and_then(|(_, dst)| self.relay.visitor(dst));
        if visitor.is_none_or(|visitor| visitor.home_agent != inner.entry) {
            self.counters.no_visitor += 1;
            return;
        }
        self.counters.detunnelled += 1;
        self.counters.detunnelled_bytes += inner.packet.len() as u64;
        self.inner.handle_packet(now, Side::Wired.port(), inner.packet);
    }

    /// Passes the messages of the relay to their sides: those to mobiles as if they came from the
    /// wired side.
    fn pass(&mut self, now: Instant) {
        while let Some(outgoing) = self.relay.poll_transmit() {
            let v6 = outgoing.to.is_ipv6();
            let Some(own) = self.relay.own(v6) else { continue };
            let flow = FlowId { local: SocketAddr::new(own, port(v6)), remote: outgoing.to };
            let packet = udp::emit(&flow, HOP_LIMIT, &outgoing.message);
            if outgoing.is_to_mobile {
                self.inner.handle_packet(now, Side::Wired.port(), packet);
            } else if self.to_wired.len() < ROOM {
                self.to_wired.push_back(packet);
            } else {
                self.counters.dropped_full += 1;
            }
        }
    }
}

impl<N: Node> Node for ForeignAgent<N> {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        if port == Side::Wired.port() && self.is_own(&packet) {
            self.on_own(now, Side::Wired, &packet);
        } else {
            self.inner.handle_packet(now, port, packet);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.relay.handle_timeout(now);
        self.pass(now);
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        loop {
            if let Some(packet) = self.to_wired.pop_front() {
                return Some((Side::Wired.port(), packet));
            }
            let (port, packet) = self.inner.poll_transmit(now)?;
            if port != Side::Wired.port() || !self.is_own(&packet) {
                return Some((port, packet));
            }
            self.on_own(now, Side::Wireless, &packet);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.relay.poll_timeout(), self.inner.poll_timeout()].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
}
