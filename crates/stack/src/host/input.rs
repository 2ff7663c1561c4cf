//! IP input: lengths, header checksums, addresses, protocols.

use std::net::IpAddr;

use airtcp_types::{Checksum, Instant, Packet};
use airtcp_wire::icmp::Complaint;
use airtcp_wire::ip::{self, Datagram};
use airtcp_wire::{Layout, ParseError, each_segment, run};
use tracing::debug;

use super::Host;

impl Host {
    /// Handles packets that arrived together, in order. The caller keeps their memory. Contiguous
    /// segments are processed as one.
    pub fn handle_packets(&mut self, now: Instant, packets: &[Packet]) {
        let mut left = packets;
        while !left.is_empty() {
            let run = &left[..run::length(left)];
            let mut taken = if run.len() > 1 { self.on_run(now, run) } else { 0 };
            if taken == 0 {
                run.iter().for_each(|packet| self.on_packet(now, packet));
                taken = run.len();
            }
            left = &left[taken..];
        }
    }

    /// Handles a packet; the caller keeps its memory.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet) {
        if is_aggregate_of_datagrams(packet) {
            each_segment(packet, |datagram| self.on_packet(now, datagram));
            return;
        }
        let v6 = packet.data.first().is_some_and(|first| first >> 4 == 6);
        match v6 {
            true => self.counters.ip6_in_receives += 1,
            false => self.counters.ip_in_receives += 1,
        }
        match ip::parse_head(&packet.data, packet.len() - packet.data.len()) {
            Ok(datagram) => self.on_datagram(now, &datagram, packet),
            Err(ParseError::Fragment) => self.on_fragment(now, packet),
            Err(error) => self.count_bad(v6, error),
        }
    }

    pub(super) fn count_bad(&mut self, v6: bool, error: ParseError) {
        debug!(v6, %error, "packet dropped");
        let counters = &mut self.counters;
        match (error, v6) {
            (ParseError::Truncated, true) => counters.ip6_in_truncated_pkts += 1,
            (ParseError::Truncated, false) => counters.ip_ext_in_truncated_pkts += 1,
            (ParseError::HeaderChecksum, _) => {
                counters.ip_ext_in_csum_errors += 1;
                counters.ip_in_hdr_errors += 1;
            }
            (_, true) => counters.ip6_in_hdr_errors += 1,
            (_, false) => counters.ip_in_hdr_errors += 1,
        }
    }

    pub(super) fn on_datagram(&mut self, now: Instant, datagram: &Datagram<'_>, packet: &Packet) {
        if !self.is_for_us(datagram.src, datagram.dst, datagram.protocol) {
            return;
        }
        if datagram.atomic {
            self.count_atomic();
        }
        self.counters.ip_ext_in_ce_pkts += u64::from(datagram.ecn == ip::CE);
        let v4 = datagram.dst.is_ipv4();
        let delivers = match v4 {
            true => &mut self.counters.ip_in_delivers,
            false => &mut self.counters.ip6_in_delivers,
        };
        // TCP processes a super-segment as one large packet. Its checksum is not verified, and
        // neither is that of other packets from a local sender or a device that verifies checksums.
        let verify = packet.checksum == Checksum::Full;
        match (datagram.protocol, v4) {
            (ip::TCP, _) => {
                *delivers += 1;
                self.on_tcp(now, datagram, verify, packet);
            }
            (ip::UDP, _) => {
                *delivers += 1;
                self.on_udp(now, datagram, verify, packet);
            }
            (ip::ICMP, true) | (ip::ICMPV6, false) => {
                *delivers += 1;
                self.on_icmp(now, datagram, packet);
            }
            (protocol, v4) => {
                debug!(src = %datagram.src, protocol, "packet dropped: unsupported protocol");
                match v4 {
                    true => self.counters.ip_in_unknown_protos += 1,
                    false => self.counters.ip6_in_unknown_protos += 1,
                }
                if v4 || protocol != ip::NO_NEXT_HEADER {
                    let pointer = datagram.pointer;
                    let complaint = Complaint::Protocol { pointer };
                    self.complain(now, datagram.src, datagram.dst, complaint, &packet.data);
                }
            }
        }
    }

    /// Whether a packet was sent by one other host to this host, or to an address that it answers
    /// for. Counts the packet if not.
    pub(super) fn is_for_us(&mut self, src: IpAddr, dst: IpAddr, protocol: u8) -> bool {
        let sound = self.config.may_be_peer(src);
        if sound && (self.config.is_own(dst) || self.answers_for(dst, protocol)) {
            return true;
        }
        debug!(%src, %dst, "packet dropped: not for this host, or invalid source");
        let to_many = dst.is_multicast() || self.config.is_broadcast(dst);
        let counters = &mut self.counters;
        match (to_many, dst.is_ipv4()) {
            (true, true) => counters.ip_ext_in_mcast_pkts += 1,
            (true, false) => counters.ip6_in_mcast_pkts += 1,
            (false, true) => counters.ip_in_addr_errors += 1,
            (false, false) => counters.ip6_in_addr_errors += 1,
        }
        false
    }
}

/// Whether a packet consists of UDP datagrams that a device aggregated, whose boundaries matter, or
/// of a non-TCP packet in several parts.
fn is_aggregate_of_datagrams(packet: &Packet) -> bool {
    let is_aggregate = packet.segment_size.is_some() || !packet.tail.is_empty();
    is_aggregate && Layout::of(&packet.data).is_some_and(|layout| !layout.tcp)
}
