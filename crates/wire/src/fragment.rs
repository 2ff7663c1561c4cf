//! Fragments of IPv4 (RFC 791 section 3.2) and IPv6 packets (RFC 8200 section 4.5).

use std::net::IpAddr;

use crate::headers::HOP_BY_HOP;
use crate::ip::{self, V4_HEADER_LEN, V6_HEADER_LEN};
use crate::{Headers, ParseError, checksum, icmp};

/// The longest packet of IPv4, and the longest payload of IPv6, in bytes.
const MAX_LEN: usize = 65_535;
/// RFC 1858 section 3.2.1: the first fragment of a TCP segment has at least its flags.
const LEAST_TCP: usize = 16;
/// An IPv6 fragment header, in bytes.
const HEADER_LEN: usize = 8;

/// A fragment that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment<'a> {
    /// Where it says it comes from.
    pub src: IpAddr,
    /// Where it is to go.
    pub dst: IpAddr,
    /// The identification that all fragments of its packet have.
    pub id: u32,
    /// The protocol of its packet; with IPv6, of what comes after the fragment header of the first
    /// one.
    pub protocol: u8,
    /// Where its payload belongs, in bytes.
    pub offset: usize,
    /// It is not the last one.
    pub more: bool,
    /// Its two ECN bits.
    pub ecn: u8,
    /// Its part of the packet.
    pub payload: &'a [u8],
    /// What its packet has before the payload.
    before: &'a [u8],
    /// What it has itself before the payload.
    headers: &'a [u8],
    /// With IPv6, where the byte is that names the fragment header.
    pointer: usize,
}

/// Reads a fragment, of which [`ip::parse`] said that it is one.
///
/// # Errors
///
/// [`ParseError::Length`]: it is empty, it would end beyond the longest packet, or it is not the
/// last one and its length no multiple of eight (RFC 8200 section 4.5); it is the first one and the
/// headers that filters go by are not all in it, or it would lie over them (RFC 1858, RFC 7112).
/// Otherwise what is wrong with the header.
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
    /// One past the last byte it has of its packet's payload.
    pub fn end(&self) -> usize {
        self.offset + self.payload.len()
    }

    /// Whether the headers of its packet are all in the first fragment, as far as this one can
    /// tell.
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

    /// RFC 7112 section 5: everything up to and with the transport header.
    fn shows_its_v6_headers(&self) -> bool {
        let Some(headers) = self.after_headers() else { return false };
        let least = match headers.protocol {
            // RFC 8200 section 4.1: it stands before a fragment header, if anywhere.
            HOP_BY_HOP => return false,
            ip::TCP => 20,
            ip::UDP | ip::ICMPV6 => 8,
            _ => 0,
        };
        self.payload.len() >= headers.len + least
    }

    /// What its payload carries behind IPv6 extension headers; `None` if those are not all there,
    /// or if it is a fragment of a fragment.
    fn after_headers(&self) -> Option<Headers> {
        let mut headers = Headers {
            v6: true,
            protocol: self.protocol,
            pointer: 0,
            len: 0,
            total: None,
            fragment: None,
            // No second fragment header may follow.
            atomic: true,
        };
        headers.walk(self.payload).ok()?;
        Some(headers)
    }

    /// Its own headers, if it is the first fragment of a packet of which may be complained: none
    /// that is an error.
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

    /// What its packet begins with, if this is the first fragment: to it the payload is added, and
    /// [`complete`] does the rest.
    pub fn start(&self) -> Vec<u8> {
        let mut start = self.before.to_vec();
        if self.src.is_ipv4() {
            // Neither offset nor "more fragments"; DF stays.
            start[6] &= 0b0100_0000;
            start[7] = 0;
        } else {
            // RFC 8200 section 4.5: the fragment header is left out.
            start[self.pointer] = self.protocol;
        }
        start
    }
}

/// Writes the length, the ECN bits and the checksum of a packet that was put together; false if it
/// is too long.
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
