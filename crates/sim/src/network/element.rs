//! A node of a network.

use airtcp_link::Link;
use airtcp_types::{Event, Instant, Node, Packet, PortId};

use crate::app::EndHost;
use crate::base::Base;
use crate::router::Router;

/// A node of a scenario.
#[derive(Debug)]
pub(crate) enum Element {
    Host(Box<EndHost>),
    Link(Box<Link>),
    Router(Router),
    BaseStation(Box<Base>),
}

impl Node for Element {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        match self {
            Self::Host(node) => node.handle_packet(now, port, packet),
            Self::Link(node) => node.handle_packet(now, port, packet),
            Self::Router(node) => node.handle_packet(now, port, packet),
            Self::BaseStation(node) => node.handle_packet(now, port, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Host(node) => node.handle_timeout(now),
            Self::Link(node) => node.handle_timeout(now),
            Self::Router(node) => node.handle_timeout(now),
            Self::BaseStation(node) => node.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        match self {
            Self::Host(node) => node.poll_transmit(now),
            Self::Link(node) => node.poll_transmit(now),
            Self::Router(node) => node.poll_transmit(now),
            Self::BaseStation(node) => node.poll_transmit(now),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Host(node) => node.poll_timeout(),
            Self::Link(node) => node.poll_timeout(),
            Self::Router(node) => node.poll_timeout(),
            Self::BaseStation(node) => node.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Host(node) => node.poll_event(),
            Self::Link(node) => node.poll_event(),
            Self::Router(node) => node.poll_event(),
            Self::BaseStation(node) => node.poll_event(),
        }
    }
}
