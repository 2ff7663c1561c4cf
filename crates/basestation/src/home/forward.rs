//! Packets to the home network, and to the agent itself.

use std::net::SocketAddr;

use airtcp_types::{Instant, Packet};
use airtcp_wire::icmp::{self, Complaint};
use airtcp_wire::mobility::{self, Extension, Extensions, Message};
use airtcp_wire::{Headers, fragment, ip, tunnel, udp};

use super::{FLOWS, HOP_LIMIT, HomeAgent};

impl HomeAgent {
    pub(super) fn on_packet(&mut self, now: Instant, packet: &Packet) {
        let is_whole = packet.tail.is_empty() && packet.segment_size.is_none();
        let read = ip::check(&packet.data).ok().filter(|_| is_whole);
        let Some((headers, bytes)) = read else {
            self.counters.dropped += 1;
            return;
        };
        let (src, dst) = headers.addresses(bytes);
        let own = self.config.own(headers.v6);
        if own == Some(dst) {
            self.on_datagram(now, headers, bytes);
        } else if own == Some(src) {
            // Also a packet of the agent to a care-of address that the kernel routes back here.
            self.counters.looped += 1;
        } else if let Some(&place) = self.by_address.get(&dst) {
            self.forward(now, place, headers.v6, bytes);
        } else {
            self.counters.dropped += 1;
        }
    }

    /// Processes a packet to the agent: a message of Mobile IP.
    fn on_datagram(&mut self, now: Instant, headers: Headers, bytes: &[u8]) {
        let (src, dst) = headers.addresses(bytes);
        let is_udp = headers.protocol == ip::UDP && !headers.is_fragment();
        let datagram = udp::parse(&bytes[headers.len..]).ok();
        let datagram = datagram.filter(|datagram| is_udp && datagram.is_intact(src, dst));
        let port = port(headers.v6);
        let Some(datagram) = datagram.filter(|datagram| datagram.dst_port == port) else {
            self.counters.dropped += 1;
            return;
        };
        let from = SocketAddr::new(src, datagram.src_port);
        match mobility::parse(datagram.payload, headers.v6) {
            // RFC 3115 section 2.1: discarded without an answer.
            Ok((message, extensions)) if has_unknown(&message, extensions) => {
                self.counters.malformed += 1;
            }
            Ok((Message::Request(request), extensions)) => {
                self.on_request(now, from, &request, extensions);
            }
            Ok((Message::Acknowledgment(acknowledgment), extensions)) => {
                self.on_acknowledgment(from, &acknowledgment, extensions);
            }
            _ => self.counters.malformed += 1,
        }
    }

    /// Puts a packet to a mobile into its tunnel.
    fn forward(&mut self, now: Instant, place: usize, v6: bool, bytes: &[u8]) {
        let Some(binding) = self.mobiles[place].binding else {
            self.counters.unreachable += 1;
            self.complain(now, v6, Complaint::Host, bytes);
            return;
        };
        // RFC 2003 section 3.2: the exit of a tunnel does not use that tunnel.
        if ip::addresses(bytes).is_some_and(|(src, _)| src == binding.care_of) {
            self.counters.looped += 1;
            return;
        }
        let Some(own) = self.config.own(v6) else { return };
        let room = self.config.mtu - tunnel::overhead(v6);
        let is_long = bytes.len() > room;
        let Ok(parts) = fragment::cut(bytes, room) else {
            self.counters.too_big += 1;
            self.complain(now, v6, Complaint::TooBig { mtu: room as u32 }, bytes);
            return;
        };
        self.counters.fragmented += u64::from(is_long);
        for part in parts {
            // Cannot fail: the header was checked, and the part fits.
            let Ok(packet) = tunnel::encapsulate((own, binding.care_of), HOP_LIMIT, &part) else {
                continue;
            };
            self.counters.tunnelled += 1;
            self.counters.tunnelled_bytes += part.len() as u64;
            self.send(packet);
        }
    }

    /// Sends an ICMP error to the source of a packet, if that is allowed.
    fn complain(&mut self, now: Instant, v6: bool, complaint: Complaint, bytes: &[u8]) {
        let (Some(own), Some((src, _))) = (self.config.own(v6), ip::addresses(bytes)) else {
            return;
        };
        if !icmp::may_complain(bytes) {
            return;
        }
        if !self.limit.take(now) {
            self.counters.rate_limited += 1;
            return;
        }
        let error = icmp::emit_error(own, src, HOP_LIMIT, complaint, bytes);
        match self.by_address.get(&src) {
            // Back here it would look like a packet in a circle. An error causes no further error.
            Some(&place) => self.forward(now, place, v6, &error.data),
            None => self.send(error),
        }
    }

    /// Sends a message of Mobile IP from the agent's port.
    pub(super) fn send_message(&mut self, to: SocketAddr, message: &[u8]) {
        let v6 = to.is_ipv6();
        let Some(own) = self.config.own(v6) else { return };
        let local = SocketAddr::new(own, port(v6));
        self.send(udp::emit(&airtcp_types::FlowId { local, remote: to }, HOP_LIMIT, message));
    }
}

/// Whether a message has a critical extension that the agent does not use in it.
fn has_unknown(message: &Message, mut extensions: Extensions<'_>) -> bool {
    let is_known = |kind| kind == FLOWS && matches!(message, Message::Acknowledgment(_));
    extensions.any(|of| matches!(of, Extension::Vendor { kind, .. } if !is_known(kind)))
}

/// The UDP port of the messages.
pub(super) const fn port(v6: bool) -> u16 {
    if v6 { mobility::V6_PORT } else { mobility::PORT }
}
