//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use std::net::{IpAddr, Ipv6Addr};

use airtcp_types::checksum;
use smoltcp::wire::{Ipv4Packet, Ipv6Packet};

use super::ParseError;

/// ICMP's protocol number.
pub const ICMP: u8 = 1;
/// TCP's protocol number.
pub const TCP: u8 = 6;
/// UDP's protocol number.
pub const UDP: u8 = 17;
/// ICMPv6's protocol number.
pub const ICMPV6: u8 = 58;
/// The number that says nothing follows (RFC 8200 section 4.7).
pub const NO_NEXT_HEADER: u8 = 59;

/// An IPv4 header without options, in bytes.
pub const V4_HEADER_LEN: usize = 20;
/// An IPv6 header without extension headers, in bytes.
pub const V6_HEADER_LEN: usize = 40;

pub(super) const HOP_BY_HOP: u8 = 0;
/// The ECN field of who takes no part in it (RFC 3168 section 5).
pub(crate) const NOT_ECT: u8 = 0b00;
/// That of what a queue has marked.
pub(crate) const CE: u8 = 0b11;
const ECT_0: u8 = 0b10;

const ROUTING: u8 = 43;
pub(super) const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// An IP packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// Where it says it comes from.
    pub src: IpAddr,
    /// Where it is to go.
    pub dst: IpAddr,
    /// The number of the protocol it carries; with IPv6, of the first header that is not stepped over.
    pub protocol: u8,
    /// The offset of the byte that says so.
    pub pointer: u32,
    /// Its time to live.
    pub hop_limit: u8,
    /// Its two ECN bits (RFC 3168 section 5).
    pub ecn: u8,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Reads an IP packet of either version. Bytes after its length are left out.
///
/// IPv6 hop-by-hop and destination options and routing headers with nothing left to visit are
/// stepped over.
pub fn parse(bytes: &[u8]) -> Result<Datagram<'_>, ParseError> {
    parse_head(bytes, 0)
}

/// As [`parse`], for a packet of which `beyond` bytes stand elsewhere, after these. Its length has to count them all.
pub fn parse_head(bytes: &[u8], beyond: usize) -> Result<Datagram<'_>, ParseError> {
    match bytes.first().ok_or(ParseError::Truncated)? >> 4 {
        4 => parse_v4(bytes, beyond),
        6 => parse_v6(bytes, beyond),
        version => Err(ParseError::Version(version)),
    }
}

/// The bytes of a packet of `total_len` that are here, where `beyond` stand elsewhere.
fn cut(bytes: &[u8], beyond: usize, total_len: usize) -> Result<&[u8], ParseError> {
    match bytes.len() + beyond {
        held if held < total_len => Err(ParseError::Truncated),
        held if held > total_len && beyond > 0 => Err(ParseError::Length),
        _ => Ok(&bytes[..bytes.len().min(total_len)]),
    }
}

fn parse_v4(bytes: &[u8], beyond: usize) -> Result<Datagram<'_>, ParseError> {
    let (packet, bytes, header_len) = check_v4(bytes, beyond)?;
    if packet.more_frags() || packet.frag_offset() != 0 {
        return Err(ParseError::Fragment);
    }
    Ok(Datagram {
        src: packet.src_addr().into(),
        dst: packet.dst_addr().into(),
        protocol: packet.next_header().into(),
        pointer: 9,
        hop_limit: packet.hop_limit(),
        ecn: packet.ecn(),
        payload: &bytes[header_len..],
    })
}

/// An IPv4 header, the packet cut to its length, and that of the header.
type CheckedV4<'a> = (Ipv4Packet<&'a [u8]>, &'a [u8], usize);

/// Checks an IPv4 header, and gives it with the packet cut to its length, and its own length; `beyond` as with
/// [`parse_head`].
pub(super) fn check_v4(bytes: &[u8], beyond: usize) -> Result<CheckedV4<'_>, ParseError> {
    if bytes.len() < V4_HEADER_LEN {
        return Err(ParseError::Truncated);
    }
    let packet = Ipv4Packet::new_unchecked(bytes);
    let header_len = usize::from(packet.header_len());
    let total_len = usize::from(packet.total_len());
    if header_len < V4_HEADER_LEN || total_len < header_len {
        return Err(ParseError::Length);
    }
    let bytes = cut(bytes, beyond, total_len)?;
    if !checksum::verify(bytes.get(..header_len).ok_or(ParseError::Truncated)?) {
        return Err(ParseError::HeaderChecksum);
    }
    Ok((packet, bytes, header_len))
}

fn parse_v6(bytes: &[u8], beyond: usize) -> Result<Datagram<'_>, ParseError> {
    let (packet, bytes) = check_v6(bytes, beyond)?;
    let place = skip_headers(bytes, packet.next_header().into(), 6, V6_HEADER_LEN)?;
    if place.kind == FRAGMENT {
        return Err(ParseError::Fragment);
    }
    Ok(Datagram {
        src: packet.src_addr().into(),
        dst: packet.dst_addr().into(),
        protocol: place.kind,
        pointer: place.pointer as u32,
        hop_limit: packet.hop_limit(),
        ecn: packet.traffic_class() & 0b11,
        payload: bytes.get(place.at..).ok_or(ParseError::Truncated)?,
    })
}

/// Checks an IPv6 header, and gives it with the packet cut to its length; `beyond` as with [`parse_head`].
pub(super) fn check_v6(
    bytes: &[u8],
    beyond: usize,
) -> Result<(Ipv6Packet<&[u8]>, &[u8]), ParseError> {
    if bytes.len() < V6_HEADER_LEN {
        return Err(ParseError::Truncated);
    }
    let packet = Ipv6Packet::new_unchecked(bytes);
    let total_len = V6_HEADER_LEN + usize::from(packet.payload_len());
    Ok((packet, cut(bytes, beyond, total_len)?))
}

/// A place in a chain of IPv6 headers.
pub(super) struct Place {
    /// What stands there.
    pub(super) kind: u8,
    /// Where the byte that says so is.
    pub(super) pointer: usize,
    /// Where it begins.
    pub(super) at: usize,
}

/// Steps over the headers of a packet, from the one of `kind` at `at`, up to one that is not for that.
pub(super) fn skip_headers(
    bytes: &[u8],
    mut kind: u8,
    mut pointer: usize,
    mut at: usize,
) -> Result<Place, ParseError> {
    loop {
        match kind {
            // RFC 8200 section 4.1: hop-by-hop options stand first; anywhere else they are unknown.
            HOP_BY_HOP if at != V6_HEADER_LEN => break,
            HOP_BY_HOP | DESTINATION_OPTIONS | ROUTING => {
                let fixed = bytes.get(at..at + 8).ok_or(ParseError::Truncated)?;
                // RFC 8200 section 4.4: type and segments left; we are no router.
                if kind == ROUTING && fixed[3] != 0 {
                    return Err(ParseError::Length);
                }
                pointer = at;
                kind = fixed[0];
                at += 8 * (1 + usize::from(fixed[1]));
            }
            _ => break,
        }
    }
    Ok(Place { kind, pointer, at })
}

/// Starts a packet in `data`, whatever that held: the IP header and `len` zero bytes. Gives where those begin. `beyond`
/// more bytes are to follow.
///
/// IPv4 has DF set and identification zero, which RFC 6864 section 4.1 allows and Linux does; IPv6
/// has flow label zero. Two addresses of different versions make an IPv6 packet of mapped addresses.
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

/// Has a packet, whose field for it is zero, say that its ends take part in ECN: ECT(0) (RFC 3168 section 5).
pub fn set_ect(data: &mut [u8]) {
    if data[0] >> 4 == 4 {
        let mut packet = Ipv4Packet::new_unchecked(data);
        let sum = checksum::update(packet.checksum(), 0, u16::from(ECT_0));
        packet.set_ecn(ECT_0);
        packet.set_checksum(sum);
    } else {
        Ipv6Packet::new_unchecked(data).set_traffic_class(ECT_0);
    }
}

/// A length for a 16-bit field. Callers keep within an MTU, or within an offload's 65,535 bytes.
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
