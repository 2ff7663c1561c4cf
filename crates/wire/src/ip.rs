//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use std::net::{IpAddr, Ipv6Addr};

use smoltcp::wire::{Ipv4Packet, Ipv6Packet};

use crate::{Headers, ParseError, checksum, headers};

/// ICMP's protocol number.
pub const ICMP: u8 = 1;
/// The protocol number of an IPv4 packet in a tunnel (RFC 2003).
pub const IPV4: u8 = 4;
/// TCP's protocol number.
pub const TCP: u8 = 6;
/// UDP's protocol number.
pub const UDP: u8 = 17;
/// The protocol number of an IPv6 packet in a tunnel (RFC 2473).
pub const IPV6: u8 = 41;
/// ICMPv6's protocol number.
pub const ICMPV6: u8 = 58;
/// The next-header number for no next header (RFC 8200 section 4.7).
pub const NO_NEXT_HEADER: u8 = 59;

/// The length of an IPv4 header without options, in bytes.
pub const V4_HEADER_LEN: usize = 20;
/// The length of an IPv6 header without extension headers, in bytes.
pub const V6_HEADER_LEN: usize = 40;

/// Not-ECT: the transport does not support ECN (RFC 3168 section 5).
pub const NOT_ECT: u8 = 0b00;
/// ECT(1): the transport supports ECN.
pub const ECT_1: u8 = 0b01;
/// ECT(0): the transport supports ECN.
pub const ECT_0: u8 = 0b10;
/// CE: congestion experienced; a queue marked the packet.
pub const CE: u8 = 0b11;

/// A received IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The source address.
    pub src: IpAddr,
    /// The destination address.
    pub dst: IpAddr,
    /// The protocol number of the payload; in IPv6, of the first header that is not skipped.
    pub protocol: u8,
    /// The offset of the byte with the protocol number.
    pub pointer: u32,
    /// The TTL or hop limit.
    pub hop_limit: u8,
    /// The ECN field (RFC 3168 section 5).
    pub ecn: u8,
    /// Whether the packet is an atomic fragment (RFC 6946): complete, but with a fragment header.
    pub atomic: bool,
    /// The payload.
    pub payload: &'a [u8],
}

/// Reads an IP packet of either version. Bytes after its length are ignored.
///
/// IPv6 extension headers are skipped as described at [`Headers`].
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Datagram<'_>, ParseError> {
    parse_head(bytes, 0)
}

/// Like [`parse`], for a packet whose last `beyond` bytes are stored elsewhere. Its length field
/// has to include them.
#[inline]
pub fn parse_head(bytes: &[u8], beyond: usize) -> Result<Datagram<'_>, ParseError> {
    Headers::then(
        bytes,
        #[inline(always)]
        |headers| {
            let bytes = headers.check(bytes, beyond)?;
            if headers.is_fragment() {
                return Err(ParseError::Fragment);
            }
            let (src, dst) = headers.addresses(bytes);
            Ok(Datagram {
                src,
                dst,
                protocol: headers.protocol,
                pointer: headers.pointer as u32,
                hop_limit: bytes[hop_limit_at(headers.v6)],
                ecn: ecn_of(headers.v6, bytes),
                atomic: headers.atomic,
                payload: &bytes[headers.len..],
            })
        },
    )
}

/// Reads the headers of a packet, which may be a fragment; returns them and the packet truncated to
/// its length. Checks that length, and the checksum of an IPv4 header.
#[inline]
pub fn check(bytes: &[u8]) -> Result<(Headers, &[u8]), ParseError> {
    Headers::then(
        bytes,
        #[inline(always)]
        |headers| Ok((headers, headers.check(bytes, 0)?)),
    )
}

impl Headers {
    /// Truncates the packet from which the headers were read to its length. Checks that length, and
    /// the checksum of an IPv4 header; `beyond` as in [`parse_head`].
    #[inline(always)]
    pub(crate) fn check<'a>(&self, bytes: &'a [u8], beyond: usize) -> Result<&'a [u8], ParseError> {
        let total = match self.total {
            Some(total) => total.get(),
            None if self.v6 => V6_HEADER_LEN,
            None => return Err(ParseError::Length),
        };
        let bytes = match bytes.len() + beyond {
            held if held < total => return Err(ParseError::Truncated),
            held if held > total && beyond > 0 => return Err(ParseError::Length),
            _ => &bytes[..bytes.len().min(total)],
        };
        // RFC 8200 section 3: extension headers count as payload.
        let headers = bytes.get(..self.len).ok_or(ParseError::Truncated)?;
        // RFC 1122 section 3.2.1.2.
        if !self.v6 && !checksum::verify_v4_header(headers) {
            return Err(ParseError::HeaderChecksum);
        }
        Ok(bytes)
    }
}

/// Starts a packet in `data`, replacing its content, with the IP header and `len` zero bytes;
/// returns the offset of these. The length field also counts `beyond` bytes to follow.
///
/// IPv4 has DF set and identification zero, which RFC 6864 section 4.1 allows and Linux does; IPv6
/// has flow label zero. With addresses of different versions, the packet is IPv6 with mapped
/// addresses.
pub fn start(
    data: &mut Vec<u8>,
    (src, dst): (IpAddr, IpAddr),
    protocol: u8,
    hop_limit: u8,
    len: usize,
    beyond: usize,
) -> usize {
    data.clear();
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total_len = V4_HEADER_LEN + len + beyond;
            data.resize(V4_HEADER_LEN + len, 0);
            let mut packet = Ipv4Packet::new_unchecked(&mut data[..]);
            packet.set_version(4);
            packet.set_header_len(V4_HEADER_LEN as u8);
            packet.set_total_len(length_field(total_len));
            packet.set_dont_frag(true);
            packet.set_hop_limit(hop_limit);
            packet.set_next_header(protocol.into());
            packet.set_src_addr(src);
            packet.set_dst_addr(dst);
            let sum = checksum::checksum(&data[..V4_HEADER_LEN]);
            Ipv4Packet::new_unchecked(&mut data[..]).set_checksum(sum);
            V4_HEADER_LEN
        }
        (src, dst) => {
            data.resize(V6_HEADER_LEN + len, 0);
            let mut packet = Ipv6Packet::new_unchecked(&mut data[..]);
            packet.set_version(6);
            packet.set_payload_len(length_field(len + beyond));
            packet.set_next_header(protocol.into());
            packet.set_hop_limit(hop_limit);
            packet.set_src_addr(mapped(src));
            packet.set_dst_addr(mapped(dst));
            V6_HEADER_LEN
        }
    }
}

/// Returns the ECN field of a packet (RFC 3168 section 5); `None` if its IP header is incomplete.
pub fn ecn(bytes: &[u8]) -> Option<u8> {
    Some(ecn_of(is_v6(bytes)?, bytes))
}

/// Sets the ECN field of a packet and updates the checksum of an IPv4 header. A wrong checksum
/// stays wrong. A packet with an incomplete IP header is left unchanged.
pub fn set_ecn(bytes: &mut [u8], ecn: u8) {
    match is_v6(bytes) {
        Some(false) => {
            let mut packet = Ipv4Packet::new_unchecked(bytes);
            let (sum, old) = (packet.checksum(), packet.ecn());
            packet.set_ecn(ecn);
            packet.set_checksum(checksum::update(sum, old.into(), ecn.into()));
        }
        // The traffic class starts in the middle of the previous byte.
        Some(true) => bytes[1] = bytes[1] & !0x30 | (ecn & 0b11) << 4,
        None => {}
    }
}

/// Returns the TTL or hop limit of a packet; `None` if its IP header is incomplete.
pub fn hop_limit(bytes: &[u8]) -> Option<u8> {
    Some(bytes[hop_limit_at(is_v6(bytes)?)])
}

/// Sets the TTL or hop limit of a packet; checksums and incomplete packets as in [`set_ecn`].
pub fn set_hop_limit(bytes: &mut [u8], hop_limit: u8) {
    let Some(v6) = is_v6(bytes) else { return };
    let old = std::mem::replace(&mut bytes[hop_limit_at(v6)], hop_limit);
    if !v6 {
        let mut packet = Ipv4Packet::new_unchecked(bytes);
        let word = |high: u8| u16::from(high) << 8;
        let sum = checksum::update(packet.checksum(), word(old), word(hop_limit));
        packet.set_checksum(sum);
    }
}

#[inline]
const fn hop_limit_at(v6: bool) -> usize {
    if v6 { 7 } else { 8 }
}

#[inline]
fn ecn_of(v6: bool, bytes: &[u8]) -> u8 {
    let shift = if v6 { 4 } else { 0 };
    (bytes[1] >> shift) & 0b11
}

/// Returns source and destination of a packet; `None` if it is neither IPv4 nor IPv6, or if its
/// fixed header is incomplete. Other fields are not checked.
#[inline]
pub fn addresses(bytes: &[u8]) -> Option<(IpAddr, IpAddr)> {
    Some(headers::addresses(is_v6(bytes)?, bytes))
}

/// Whether a packet is IPv6; `None` if it is neither IPv4 nor IPv6, or if its fixed header is
/// incomplete.
#[inline]
pub fn is_v6(bytes: &[u8]) -> Option<bool> {
    let (v6, len) = match bytes.first()? >> 4 {
        4 => (false, V4_HEADER_LEN),
        6 => (true, V6_HEADER_LEN),
        _ => return None,
    };
    (bytes.len() >= len).then_some(v6)
}

/// Converts a length to a 16-bit field. Callers stay within an MTU, or within an offload's 65,535
/// bytes.
fn length_field(len: usize) -> u16 {
    debug_assert!(len <= usize::from(u16::MAX), "a packet of {len} bytes");
    u16::try_from(len).unwrap_or(u16::MAX)
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}
