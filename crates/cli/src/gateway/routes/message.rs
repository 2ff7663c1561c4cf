//! Converts rules and routes to and from rtnetlink messages.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airtcp_testbed::Cidr;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use rtnetlink::packet_route::{AddressFamily, IpProtocol};

use super::{Action, EVERYTHING, FIRST, LAST, NEVER, PROTOCOL, Route, Rule, TABLE};

impl Rule {
    pub(super) fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        let header = &mut message.header;
        header.family = if self.is_ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let attributes = &mut message.attributes;
        attributes.push(RuleAttribute::Priority(self.priority));
        attributes.push(RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)));
        attributes.extend(self.mark.map(RuleAttribute::FwMark));
        if let Some(to) = self.to {
            header.dst_len = to.prefix;
            // The network of all addresses has no destination attribute.
            attributes.extend((to.prefix > 0).then_some(RuleAttribute::Destination(to.address)));
        }
        if let Some(port) = self.port {
            attributes.push(RuleAttribute::IpProtocol(IpProtocol::Udp));
            let ports = RulePortRange { start: port, end: port };
            attributes.push(RuleAttribute::DestinationPortRange(ports));
        }
        header.action = match self.action {
            Action::Lookup { table, suppress } => {
                attributes.push(RuleAttribute::Table(table));
                if suppress != NEVER {
                    attributes.push(RuleAttribute::SuppressPrefixLen(suppress));
                }
                RuleAction::ToTable
            }
            Action::Goto(priority) => {
                attributes.push(RuleAttribute::Goto(priority));
                RuleAction::Goto
            }
            Action::Nop => RuleAction::Nop,
        };
        message
    }

    /// Parses a rule; `None` if its form is not one of those above.
    pub(super) fn of(message: &RuleMessage) -> Option<Self> {
        let is_ipv6 = message.header.family == AddressFamily::Inet6;
        let mut rule = Self {
            is_ipv6,
            priority: priority(message)?,
            mark: None,
            to: None,
            port: None,
            action: Action::Nop,
        };
        let (mut table, mut suppress, mut target) = (message.header.table.into(), NEVER, None);
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::FwMark(mark) => rule.mark = Some(*mark),
                RuleAttribute::Destination(address) => {
                    rule.to = Some(Cidr { address: *address, prefix: message.header.dst_len });
                }
                RuleAttribute::DestinationPortRange(ports) => rule.port = Some(ports.start),
                RuleAttribute::Table(number) => table = *number,
                RuleAttribute::SuppressPrefixLen(bits) => suppress = *bits,
                RuleAttribute::Goto(priority) => target = Some(*priority),
                _ => {}
            }
        }
        rule.action = match message.header.action {
            RuleAction::ToTable => {
                let everything = EVERYTHING[usize::from(is_ipv6)];
                rule.to = rule.to.or(Some(everything));
                Action::Lookup { table, suppress }
            }
            RuleAction::Goto => Action::Goto(target?),
            RuleAction::Nop => Action::Nop,
            _ => return None,
        };
        Some(rule)
    }
}

pub(super) fn priority(message: &RuleMessage) -> Option<u32> {
    message.attributes.iter().find_map(|attribute| match attribute {
        RuleAttribute::Priority(priority) => Some(*priority),
        _ => None,
    })
}

/// Whether a gateway made the rule.
pub(super) fn is_ours(message: &RuleMessage) -> bool {
    let protocol = RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL));
    message.attributes.contains(&protocol)
        && priority(message).is_some_and(|priority| (FIRST..=LAST).contains(&priority))
}

impl Route {
    pub(super) fn message(&self, index: u32) -> RouteMessage {
        let prefix = self.to.prefix;
        let mut message = match self.to.address {
            IpAddr::V4(address) => {
                RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(address, prefix).build()
            }
            IpAddr::V6(address) => {
                RouteMessageBuilder::<Ipv6Addr>::new().destination_prefix(address, prefix).build()
            }
        };
        message.header.table = 0;
        message.header.protocol = RouteProtocol::Other(PROTOCOL);
        message.header.kind = self.kind;
        message.attributes.push(RouteAttribute::Table(TABLE));
        message.attributes.push(RouteAttribute::Priority(self.metric));
        if self.kind == RouteType::Unicast {
            message.attributes.push(RouteAttribute::Oif(index));
            // The scope of a route without a router, as `ip` sets it.
            if self.to.address.is_ipv4() {
                message.header.scope = RouteScope::Link;
            }
        }
        message
    }

    pub(super) fn of(message: &RouteMessage) -> Self {
        let is_ipv6 = message.header.address_family == AddressFamily::Inet6;
        let mut to = EVERYTHING[usize::from(is_ipv6)];
        to.prefix = message.header.destination_prefix_length;
        let mut metric = 0;
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(address)) => {
                    to.address = (*address).into();
                }
                RouteAttribute::Destination(RouteAddress::Inet6(address)) => {
                    to.address = (*address).into();
                }
                RouteAttribute::Priority(number) => metric = *number,
                _ => {}
            }
        }
        Self { to, kind: message.header.kind, metric }
    }
}

pub(super) fn table(message: &RouteMessage) -> u32 {
    let number = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(number) => Some(*number),
        _ => None,
    });
    number.unwrap_or(message.header.table.into())
}
