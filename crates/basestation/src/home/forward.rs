//! Packets to the home network, and to the agent itself.

use std::net::SocketAddr;

use airtcp_types::{Instant, Packet};
use airtcp_wire::icmp::{self, Complaint, Reason};
use airtcp_wire::mobility::{self, Extension, Extensions, Message};
use airtcp_wire::{Headers, fragment, ip, tunnel, udp};

use super::{FLOWS, HOP_LIMIT, HomeAgent};

/// The smallest MTU of a path that the agent uses: RFC 791 section 3.1 has 576 bytes, which every
/// host can receive. IPv6 requires 1,280 bytes within the tunnel.
const LEAST_MTU_V4: usize = 576;
const LEAST_MTU_V6: usize = 1_320;

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
        let Some((from, message)) = message(headers, bytes) else {
            return self.on_error(bytes);
        };
        match mobility::parse(message, headers.v6) {
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

    /// Notes the MTU that an ICMP error about a packet of the agent reports (RFC 2003 section 5.1).
    fn on_error(&mut self, bytes: &[u8]) {
        let Some((place, mtu)) = self.reported_mtu(bytes) else {
            self.counters.dropped += 1;
            return;
        };
        if let Some(binding) = &mut self.mobiles[place].binding
            && mtu < binding.mtu
        {
            self.counters.path_mtus += 1;
            binding.mtu = mtu;
        }
    }

    /// Returns the home address whose tunnel an ICMP error is about, and the MTU of its path.
    fn reported_mtu(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let message = icmp::parse(&ip::parse(bytes).ok()?);
        let Ok(icmp::Message::Error { reason: Reason::TooBig(mtu), quoted }) = message else {
            return None;
        };
        let outer = Headers::of(quoted).ok()?;
        let (entry, exit) = outer.addresses(quoted);
        // The quote has to contain the inner addresses, which a stranger has to know.
        let (_, home) = ip::addresses(quoted.get(outer.len..)?)?;
        let place = *self.by_address.get(&home)?;
        let binding = self.mobiles[place].binding.as_ref()?;
        let is_tunnel = matches!(outer.protocol, ip::IPV4 | ip::IPV6)
            && Some(entry) == self.config.own(outer.v6)
            && exit == binding.care_of;
        let least = if outer.v6 { LEAST_MTU_V6 } else { LEAST_MTU_V4 };
        is_tunnel.then(|| (place, least.max(mtu as usize)))
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
        let room = binding.mtu - tunnel::overhead(v6);
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
        if !self.errors.take(now, src) {
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

/// Returns the source and the payload of a datagram to the port of the messages.
pub(super) fn message(headers: Headers, bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (src, dst) = headers.addresses(bytes);
    let is_udp = headers.protocol == ip::UDP && !headers.is_fragment();
    let datagram = udp::parse(bytes.get(headers.len..).filter(|_| is_udp)?).ok()?;
    let is_ours = datagram.dst_port == port(headers.v6) && datagram.is_intact(src, dst);
    is_ours.then(|| (SocketAddr::new(src, datagram.src_port), datagram.payload))
}

/// The UDP port of the messages.
pub(super) const fn port(v6: bool) -> u16 {
    if v6 { mobility::V6_PORT } else { mobility::PORT }
}
