//! A foreign agent on the wired side of a station (RFC 5944 section 4.2.2).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use airtcp_types::{Event, FlowId, Instant, Node, Packet, PortId};
use airtcp_wire::{ip, tunnel, udp};
use serde::Serialize;

use super::forward::{message, port};
use super::{Change, HOP_LIMIT, HomeConfigError, ROOM, Relay, RelayConfig};
use crate::{Bridge, Side};

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
    /// Packets out of tunnels for mobiles whose requests wait for replies.
    early: VecDeque<Packet>,
    counters: ForeignCounters,
}

/// A node behind a [`ForeignAgent`]. The methods are for one that exchanges messages with other
/// stations; a bridge has none of them.
pub trait Visited: Node {
    /// Takes note that a mobile has registered here, or left.
    fn on_change(&mut self, _now: Instant, _home: IpAddr, _change: Change) {}

    /// Processes a message of another station. Returns `false` if `from` is none.
    fn on_station(&mut self, _now: Instant, _from: IpAddr, _message: &[u8]) -> bool {
        false
    }

    /// Returns the next message to another station, with its address.
    fn poll_station(&mut self, _now: Instant) -> Option<(IpAddr, Vec<u8>)> {
        None
    }

    /// Whether packets that come after a mobile has left are sent after it.
    fn sends_after(&self, _home: IpAddr) -> bool {
        false
    }
}

impl Visited for Bridge {}

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
    /// Messages dropped because the output queue was full, and packets for mobiles whose requests
    /// wait for replies.
    pub dropped_full: u64,
}

impl<N: Visited> ForeignAgent<N> {
    /// Creates a foreign agent without visitors.
    ///
    /// # Errors
    /// [`HomeConfigError`].
    pub fn new(inner: N, config: RelayConfig) -> Result<Self, HomeConfigError> {
        let relay = Relay::new(config)?;
        let counters = ForeignCounters::default();
        Ok(Self { inner, relay, to_wired: VecDeque::new(), early: VecDeque::new(), counters })
    }

    /// Returns the node.
    pub const fn inner(&self) -> &N {
        &self.inner
    }

    /// Returns the node, for changes. Packets go through this agent instead.
    pub const fn inner_mut(&mut self) -> &mut N {
        &mut self.inner
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
            (Some((from, message)), Side::Wired) => {
                if !self.inner.on_station(now, from.ip(), message) {
                    self.relay.handle_home(now, from, message);
                }
            }
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
        let Some((_, home)) = ip::addresses(&inner.packet.data) else { return };
        let is_visitor =
            self.relay.visitor(home).is_some_and(|visitor| visitor.home_agent == inner.entry);
        // Packets of the time before a move are still under way.
        let has_left = || self.inner.sends_after(home) && self.relay.is_home_agent(inner.entry);
        if is_visitor || has_left() {
            self.deliver(now, inner.packet);
        } else if !self.relay.expects(home, inner.entry) {
            self.counters.no_visitor += 1;
        } else if self.early.len() < ROOM {
            // They are quicker than the reply, which waits for the station that the mobile left.
            self.early.push_back(inner.packet);
        } else {
            self.counters.dropped_full += 1;
        }
    }

    /// Passes a packet out of a tunnel to its mobile.
    fn deliver(&mut self, now: Instant, packet: Packet) {
        self.counters.detunnelled += 1;
        self.counters.detunnelled_bytes += packet.len() as u64;
        self.inner.handle_packet(now, Side::Wired.port(), packet);
    }

    /// Passes or drops the packets of mobiles whose requests have been answered.
    fn decide(&mut self, now: Instant) {
        for packet in std::mem::take(&mut self.early) {
            let Some((_, home)) = ip::addresses(&packet.data) else { continue };
            if self.relay.visitor(home).is_some() {
                self.deliver(now, packet);
            } else if self.relay.is_waiting(home) {
                self.early.push_back(packet);
            } else {
                self.counters.no_visitor += 1;
            }
        }
    }

    /// Passes the messages of the relay to their sides: those to mobiles as if they came from the
    /// wired side.
    fn pass(&mut self, now: Instant) {
        while let Some((home, change)) = self.relay.poll_change() {
            self.inner.on_change(now, home, change);
        }
        // Requests end with a message. Without one, a packet does not cost the time of all that wait.
        let mut is_decided = false;
        while let Some(outgoing) = self.relay.poll_transmit() {
            is_decided = true;
            let Some(packet) = self.datagram(outgoing.to, &outgoing.message) else { continue };
            if outgoing.is_to_mobile {
                self.inner.handle_packet(now, Side::Wired.port(), packet);
            } else if self.to_wired.len() < ROOM {
                self.to_wired.push_back(packet);
            } else {
                self.counters.dropped_full += 1;
            }
        }
        if is_decided {
            self.decide(now);
        }
    }

    /// Returns the packet of a message from the care-of address.
    fn datagram(&self, to: SocketAddr, message: &[u8]) -> Option<Packet> {
        let v6 = to.is_ipv6();
        let local = SocketAddr::new(self.relay.own(v6)?, port(v6));
        Some(udp::emit(&FlowId { local, remote: to }, HOP_LIMIT, message))
    }

    /// Returns the next message to a home agent or another station.
    fn poll_message(&mut self, now: Instant) -> Option<Packet> {
        if let Some(packet) = self.to_wired.pop_front() {
            return Some(packet);
        }
        while let Some((to, message)) = self.inner.poll_station(now) {
            let to = SocketAddr::new(to, port(to.is_ipv6()));
            if let Some(packet) = self.datagram(to, &message) {
                return Some(packet);
            }
        }
        None
    }
}

impl<N: Visited> Node for ForeignAgent<N> {
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
            if let Some(packet) = self.poll_message(now) {
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
