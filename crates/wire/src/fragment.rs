//! Fragments of IPv4 packets (RFC 791 section 3.2) and IPv6 packets (RFC 8200 section 4.5).

use std::net::IpAddr;

use crate::headers::HOP_BY_HOP;
use crate::ip::{self, V4_HEADER_LEN, V6_HEADER_LEN};
use crate::{Headers, ParseError, checksum, icmp};

/// The maximum length of an IPv4 packet, and of the payload of an IPv6 packet, in bytes.
const MAX_LEN: usize = 65_535;
/// RFC 1858 section 3.2.1: the first fragment of a TCP segment contains at least its flags.
const LEAST_TCP: usize = 16;
/// The length of an IPv6 fragment header, in bytes.
const HEADER_LEN: usize = 8;
/// "Don't fragment" and "more fragments", in byte 6 and in bytes 6 and 7 of an IPv4 header.
const DF: u8 = 0b0100_0000;
const MF: u16 = 0b0010_0000_0000_0000;

/// A received fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment<'a> {
    /// The source address.
    pub src: IpAddr,
    /// The destination address.
    pub dst: IpAddr,
    /// The identification, which all fragments of the packet share.
    pub id: u32,
    /// The protocol of the original packet; in IPv6, of the header that follows the first
    /// fragment's fragment header.
    pub protocol: u8,
    /// The offset of its payload in that of the original packet, in bytes.
    pub offset: usize,
    /// Whether more fragments follow.
    pub more: bool,
    /// The ECN field.
    pub ecn: u8,
    /// The part of the original payload that it carries.
    pub payload: &'a [u8],
    /// The headers of the original packet in front of the payload.
    before: &'a [u8],
    /// All headers of the fragment.
    headers: &'a [u8],
    /// In IPv6, the offset of the byte that announces the fragment header.
    pointer: usize,
}

/// Reads a packet for which [`ip::parse`] returned [`ParseError::Fragment`].
///
/// # Errors
///
/// [`ParseError::Length`]: the fragment is empty, ends beyond the longest packet, or is not the
/// last one and its length is not a multiple of eight (RFC 8200 section 4.5); or it is the first
/// one and lacks headers that filters examine, or would overwrite them (RFC 1858, RFC 7112).
/// Otherwise the error of the header.
pub fn parse(bytes: &[u8]) -> Result<Fragment<'_>, ParseError> {
    let (headers, bytes) = ip::check(bytes)?;
    let part = headers.fragment.ok_or(ParseError::Length)?;
    let (src, dst) = headers.addresses(bytes);
    let before = headers.len - if headers.v6 { HEADER_LEN } else { 0 };
    let fragment = Fragment {
        src,
        dst,
        id: part.id,
        protocol: headers.protocol,
        offset: part.offset.into(),
        more: part.more,
        ecn: ip::ecn(bytes).unwrap_or_default(),
        payload: &bytes[headers.len..],
        before: &bytes[..before],
        headers: &bytes[..headers.len],
        pointer: headers.pointer,
    };
    let len = fragment.payload.len();
    let fixed = if fragment.src.is_ipv4() { 0 } else { V6_HEADER_LEN };
    let too_long = fragment.before.len() - fixed + fragment.offset + len > MAX_LEN;
    let uneven = fragment.more && !len.is_multiple_of(8);
    if too_long || uneven || len == 0 || !fragment.shows_its_headers() {
        return Err(ParseError::Length);
    }
    Ok(fragment)
}

impl Fragment<'_> {
    /// The offset after the last byte of its payload in that of the original packet.
    pub fn end(&self) -> usize {
        self.offset + self.payload.len()
    }

    /// Whether the first fragment contains all headers of the packet, as far as this fragment
    /// shows.
    fn shows_its_headers(&self) -> bool {
        let v4 = self.src.is_ipv4();
        match (self.offset, v4) {
            (0, true) => self.protocol != ip::TCP || self.payload.len() >= LEAST_TCP,
            // RFC 1858 section 3.2.2.
            (offset, true) => self.protocol != ip::TCP || offset >= LEAST_TCP,
            (0, false) => self.shows_its_v6_headers(),
            (_, false) => true,
        }
    }

    /// RFC 7112 section 5: all headers up to and including the transport header.
    fn shows_its_v6_headers(&self) -> bool {
        let Some(headers) = self.after_headers() else { return false };
        let least = match headers.protocol {
            // RFC 8200 section 4.1: it may only precede a fragment header.
            HOP_BY_HOP => return false,
            ip::TCP => 20,
            ip::UDP | ip::ICMPV6 => 8,
            _ => 0,
        };
        self.payload.len() >= headers.len + least
    }

    /// Returns the headers after IPv6 extension headers in the payload; `None` if these are
    /// incomplete, or for a fragment of a fragment.
    fn after_headers(&self) -> Option<Headers> {
        let mut headers = Headers {
            v6: true,
            protocol: self.protocol,
            pointer: 0,
            len: 0,
            total: None,
            fragment: None,
            // Rejects a second fragment header.
            atomic: true,
        };
        headers.walk(self.payload).ok()?;
        Some(headers)
    }

    /// Returns the headers of the first fragment, for an ICMP error about the packet; `None` if
    /// this is another fragment, or if the packet is an ICMP error itself.
    pub fn headers_to_quote(&self) -> Option<&[u8]> {
        let v4 = self.src.is_ipv4();
        let (protocol, message) = if v4 {
            (self.protocol, self.payload)
        } else {
            let headers = self.after_headers()?;
            (headers.protocol, self.payload.get(headers.len..)?)
        };
        let is_icmp = protocol == if v4 { ip::ICMP } else { ip::ICMPV6 };
        let is_error = is_icmp && message.first().is_none_or(|kind| icmp::is_error(v4, *kind));
        (self.offset == 0 && !is_error).then_some(self.headers)
    }

    /// Returns the headers of the reassembled packet, if this is the first fragment. The caller
    /// appends the payload and calls [`complete`].
    pub fn start(&self) -> Vec<u8> {
        let mut start = self.before.to_vec();
        if self.src.is_ipv4() {
            // Clears the offset and MF, but keeps DF.
            start[6] &= DF;
            start[7] = 0;
        } else {
            // RFC 8200 section 4.5: the fragment header is removed.
            start[self.pointer] = self.protocol;
        }
        start
    }
}

/// Splits an IPv4 packet, which may be a fragment itself, into fragments of at most `mtu` bytes
/// (RFC 791 section 3.2). A packet that fits is returned as it is.
///
/// # Errors
///
/// [`ParseError::Length`]: the packet must not be fragmented, because it is IPv6 or has DF set; or
/// `mtu` leaves no room for eight bytes of payload. Otherwise the error of the header.
pub fn cut(bytes: &[u8], mtu: usize) -> Result<Vec<Vec<u8>>, ParseError> {
    let (headers, bytes) = ip::check(bytes)?;
    if bytes.len() <= mtu {
        return Ok(vec![bytes.to_vec()]);
    }
    if headers.v6 || bytes[6] & DF != 0 {
        return Err(ParseError::Length);
    }
    let (first, mut rest) = bytes.split_at(headers.len);
    let later = later_header(first);
    let field = u16::from_be_bytes([first[6], first[7]]);
    let (mut eighths, is_last_more) = (usize::from(field & 0x1fff), field & MF != 0);
    let mut fragments = Vec::new();
    while !rest.is_empty() {
        let header = if fragments.is_empty() { first } else { &later };
        let room = mtu.saturating_sub(header.len());
        let len = if rest.len() <= room { rest.len() } else { room & !7 };
        if len == 0 || eighths > 0x1fff {
            return Err(ParseError::Length);
        }
        let (part, others) = rest.split_at(len);
        let more = if others.is_empty() && !is_last_more { 0 } else { MF };
        let mut fragment = [header, part].concat();
        fragment[6..8].copy_from_slice(&(eighths as u16 | more).to_be_bytes());
        complete(&mut fragment, first[1] & 0b11);
        fragments.push(fragment);
        (rest, eighths) = (others, eighths + len / 8);
    }
    Ok(fragments)
}

/// Returns the IPv4 header of the fragments after the first: with the options that are copied.
fn later_header(first: &[u8]) -> Vec<u8> {
    const COPIED: u8 = 0x80;
    let (fixed, mut options) = first.split_at(V4_HEADER_LEN);
    let mut header = fixed.to_vec();
    while let Some(kind) = options.first() {
        let len = match kind {
            0 => break,
            1 => 1,
            _ => options.get(1).map_or(0, |len| usize::from(*len)),
        };
        let Some((option, rest)) = options.split_at_checked(len).filter(|_| len > 0) else { break };
        if kind & COPIED != 0 {
            header.extend_from_slice(option);
        }
        options = rest;
    }
    header.resize(header.len().next_multiple_of(4), 0);
    header[0] = 0x40 | (header.len() / 4) as u8;
    header
}

/// Sets the length, the ECN field and the checksum of a reassembled packet; returns false if it is
/// too long.
pub fn complete(packet: &mut [u8], ecn: u8) -> bool {
    let len = packet.len();
    match packet.first().map(|first| first >> 4) {
        Some(4) if (V4_HEADER_LEN..=MAX_LEN).contains(&len) => {
            packet[1] = packet[1] & !0b11 | ecn;
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            packet[10..12].fill(0);
            let header_len = (usize::from(packet[0] & 0xf) * 4).min(len);
            let sum = checksum::checksum(&packet[..header_len]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            true
        }
        Some(6) if (V6_HEADER_LEN..=V6_HEADER_LEN + MAX_LEN).contains(&len) => {
            packet[1] = packet[1] & !0b0011_0000 | ecn << 4;
            packet[4..6].copy_from_slice(&((len - V6_HEADER_LEN) as u16).to_be_bytes());
            true
        }
        _ => false,
    }
}
