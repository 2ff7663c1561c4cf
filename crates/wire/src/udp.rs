//! UDP datagrams (RFC 768).

use std::net::IpAddr;

use airtcp_types::{Checksum, FlowId, Packet};
use smoltcp::wire::UdpPacket;

use crate::checksum::{Sum, verify_transport};
use crate::tcp::transport_sum;
use crate::{ParseError, ip};

/// The length of a UDP header, in bytes.
pub const HEADER_LEN: usize = 8;

/// A received UDP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The source port.
    pub src_port: u16,
    /// The destination port.
    pub dst_port: u16,
    /// Whether the datagram has no checksum, which only IPv4 allows.
    pub no_checksum: bool,
    /// The data.
    pub payload: &'a [u8],
    /// Header and data, which the checksum covers.
    pub covered: &'a [u8],
}

impl Datagram<'_> {
    /// Whether the checksum is correct, or missing where that is allowed.
    pub fn is_intact(&self, src: IpAddr, dst: IpAddr) -> bool {
        match self.no_checksum {
            // RFC 8200 section 8.1: IPv6 requires a checksum.
            true => dst.is_ipv4(),
            false => verify_transport(src, dst, ip::UDP, self.covered),
        }
    }
}

/// Reads a UDP datagram. Bytes after its length are ignored; the checksum is not verified.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Datagram<'_>, ParseError> {
    if bytes.len() < HEADER_LEN {
        return Err(ParseError::Truncated);
    }
    let packet = UdpPacket::new_unchecked(bytes);
    let len = usize::from(packet.len());
    if len < HEADER_LEN {
        return Err(ParseError::Length);
    }
    let covered = bytes.get(..len).ok_or(ParseError::Truncated)?;
    Ok(Datagram {
        src_port: packet.src_port(),
        dst_port: packet.dst_port(),
        no_checksum: packet.checksum() == 0,
        payload: &covered[HEADER_LEN..],
        covered,
    })
}

/// Builds the IP packet of a datagram from `flow.local` to `flow.remote`.
pub fn emit(flow: &FlowId, hop_limit: u8, payload: &[u8]) -> Packet {
    let (mut data, at) = start(flow, hop_limit, payload);
    let (src, dst, datagram) = (flow.local.ip(), flow.remote.ip(), &mut data[at..]);
    // RFC 768: a computed checksum of zero is sent as all ones.
    let sum = match transport_sum(src, dst, ip::UDP, datagram) {
        0 => u16::MAX,
        sum => sum,
    };
    UdpPacket::new_unchecked(datagram).set_checksum(sum);
    Packet::new(data)
}

/// Like [`emit`], but leaves the checksum to the device.
pub fn emit_open(flow: &FlowId, hop_limit: u8, payload: &[u8]) -> Packet {
    let (mut data, at) = start(flow, hop_limit, payload);
    let (src, dst, datagram) = (flow.local.ip(), flow.remote.ip(), &mut data[at..]);
    let mut sum = Sum::new();
    sum.add_pseudo_header(src, dst, ip::UDP, datagram.len());
    UdpPacket::new_unchecked(datagram).set_checksum(sum.folded());
    Packet { checksum: Checksum::Partial, ..Packet::new(data) }
}

/// Builds the packet without the checksum; returns it with the offset of the UDP header.
fn start(flow: &FlowId, hop_limit: u8, payload: &[u8]) -> (Vec<u8>, usize) {
    let len = HEADER_LEN + payload.len();
    let ends = (flow.local.ip(), flow.remote.ip());
    let mut data = Vec::new();
    let at = ip::start(&mut data, ends, ip::UDP, hop_limit, len, 0);
    data[at + HEADER_LEN..].copy_from_slice(payload);
    let mut packet = UdpPacket::new_unchecked(&mut data[at..]);
    packet.set_src_port(flow.local.port());
    packet.set_dst_port(flow.remote.port());
    packet.set_len(u16::try_from(len).unwrap_or(u16::MAX));
    (data, at)
}
