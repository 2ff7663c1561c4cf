//! The IP headers in front of a transport header: one walk for every reader of packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ParseError;
use crate::ip::{V4_HEADER_LEN, V6_HEADER_LEN};

/// The most IPv6 extension headers that a packet may have (RFC 8883 section 3 allows a limit).
pub const MAX_EXTENSIONS: usize = 8;

/// Where the fixed header of IPv6 names the next one.
const V6_NEXT_HEADER: usize = 6;

pub(crate) const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// The IP headers of a packet: the fixed header with its options, and IPv6 extension headers.
///
/// These extension headers are stepped over, at most [`MAX_EXTENSIONS`] of them: hop-by-hop options,
/// routing headers without segments left, destination options, and the fragment header of an atomic
/// fragment (RFC 6946). Authentication and ESP headers are not: they count as the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Whether the packet is IPv6.
    pub v6: bool,
    /// The protocol number of the payload.
    pub protocol: u8,
    /// The offset of the byte that names the protocol; in an IPv6 fragment, of the byte that names
    /// the fragment header.
    pub pointer: usize,
    /// The length of the headers, which is the offset of the payload (bytes).
    pub len: usize,
    /// The length of the packet by its length field (bytes). `None` if that field is zero: in
    /// super-segments too long for it, and in jumbograms (RFC 2675).
    pub total: Option<usize>,
    /// The fragment's part of its packet; `None` if the packet was never fragmented.
    pub fragment: Option<Part>,
}

/// The part of a packet that a fragment carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Where its payload belongs in that of the packet, in bytes.
    pub offset: usize,
    /// Whether more fragments follow.
    pub more: bool,
    /// The identification that all fragments of the packet have.
    pub id: u32,
}

impl Part {
    /// Whether it is the only fragment of its packet.
    #[inline]
    const fn is_atomic(self) -> bool {
        self.offset == 0 && !self.more
    }
}

impl Headers {
    /// Reads the headers of a packet that may be cut off anywhere behind them.
    ///
    /// No checksum is verified. The headers lie within `bytes` and within the packet's length; only
    /// `total` may be longer than `bytes`.
    ///
    /// # Errors
    ///
    /// - [`ParseError::Version`]: the version is neither 4 nor 6.
    /// - [`ParseError::Truncated`]: the headers are not all there.
    /// - [`ParseError::Length`]: the lengths of an IPv4 packet contradict each other, or a routing
    ///   header has segments left.
    /// - [`ParseError::Fragment`]: a fragment header is cut short, or is the second one.
    /// - [`ParseError::Extensions`]: there are too many extension headers.
    #[inline]
    pub fn of(bytes: &[u8]) -> Result<Self, ParseError> {
        match bytes.first().ok_or(ParseError::Truncated)? >> 4 {
            4 => Self::of_v4(bytes),
            6 => Self::of_v6(bytes),
            version => Err(ParseError::Version(version)),
        }
    }

    #[inline]
    fn of_v4(bytes: &[u8]) -> Result<Self, ParseError> {
        let header: &[u8; V4_HEADER_LEN] = bytes.first_chunk().ok_or(ParseError::Truncated)?;
        let len = usize::from(header[0] & 0x0f) * 4;
        let total = length([header[2], header[3]]);
        // RFC 791 section 3.1: a header has at least five words.
        if len < V4_HEADER_LEN || total.is_some_and(|total| total < len) {
            return Err(ParseError::Length);
        }
        if bytes.len() < len {
            return Err(ParseError::Truncated);
        }
        let field = u16::from_be_bytes([header[6], header[7]]);
        // Neither more fragments nor an offset: DF is the bit between.
        let fragment = (field & 0x3fff != 0).then(|| Part {
            offset: usize::from(field & 0x1fff) * 8,
            more: field & 0x2000 != 0,
            id: u16::from_be_bytes([header[4], header[5]]).into(),
        });
        Ok(Self { v6: false, protocol: header[9], pointer: 9, len, total, fragment })
    }

    #[inline]
    fn of_v6(bytes: &[u8]) -> Result<Self, ParseError> {
        let header: &[u8; V6_HEADER_LEN] = bytes.first_chunk().ok_or(ParseError::Truncated)?;
        let total = length([header[4], header[5]]).map(|len| V6_HEADER_LEN + len);
        let bytes = &bytes[..total.map_or(bytes.len(), |total| total.min(bytes.len()))];
        let start = Chain {
            protocol: header[V6_NEXT_HEADER],
            pointer: V6_NEXT_HEADER,
            at: V6_HEADER_LEN,
            fragment: None,
        };
        let Chain { protocol, pointer, at: len, fragment } = Chain::walk(bytes, start)?;
        Ok(Self { v6: true, protocol, pointer, len, total, fragment })
    }

    /// Whether the packet is a fragment of a longer one.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.fragment.is_some_and(|part| !(self.v6 && part.is_atomic()))
    }

    /// Cuts `packet`, which the headers were read from, to its length. Bytes behind that are not part
    /// of it.
    #[inline]
    pub fn trim<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        self.total.and_then(|total| packet.get(..total)).unwrap_or(packet)
    }

    /// Source and destination; `packet` is what the headers were read from.
    #[inline]
    pub fn addresses(&self, packet: &[u8]) -> (IpAddr, IpAddr) {
        addresses(self.v6, packet)
    }
}

/// Source and destination of a packet that has its fixed header.
#[inline]
pub(crate) fn addresses(v6: bool, packet: &[u8]) -> (IpAddr, IpAddr) {
    fn at<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
        packet.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
    }
    if v6 {
        (Ipv6Addr::from(at(packet, 8)).into(), Ipv6Addr::from(at(packet, 24)).into())
    } else {
        (Ipv4Addr::from(at(packet, 12)).into(), Ipv4Addr::from(at(packet, 16)).into())
    }
}

/// A place in a chain of IPv6 headers.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    /// What stands there.
    pub(crate) protocol: u8,
    /// Where the byte is that says so, or that names the fragment header before it.
    pub(crate) pointer: usize,
    /// Where it begins.
    pub(crate) at: usize,
    /// What the fragment header before it says.
    pub(crate) fragment: Option<Part>,
}

impl Chain {
    /// Steps over extension headers, up to a transport header or a fragment's payload.
    #[inline]
    pub(crate) fn walk(bytes: &[u8], mut place: Self) -> Result<Self, ParseError> {
        let mut left = MAX_EXTENSIONS;
        loop {
            let kind = place.protocol;
            let is_extension = match kind {
                // RFC 8200 section 4.1: hop-by-hop options stand first; elsewhere they are unknown.
                HOP_BY_HOP => place.pointer == V6_NEXT_HEADER,
                ROUTING | FRAGMENT | DESTINATION_OPTIONS => true,
                _ => false,
            };
            if !is_extension {
                return if place.at <= bytes.len() {
                    Ok(place)
                } else {
                    Err(ParseError::Truncated)
                };
            }
            left = left.checked_sub(1).ok_or(ParseError::Extensions)?;
            let header: Option<&[u8; 8]> = bytes.get(place.at..).and_then(<[u8]>::first_chunk);
            let len = if kind == FRAGMENT {
                // RFC 8200 section 4.1: it occurs at most once. Fragments of fragments are refused.
                let is_second = place.fragment.is_some();
                let header = header.filter(|_| !is_second).ok_or(ParseError::Fragment)?;
                let part = part_of(header);
                place.fragment = Some(part);
                if !part.is_atomic() {
                    (place.protocol, place.at) = (header[0], place.at + header.len());
                    return Ok(place);
                }
                // RFC 6946 section 4: an atomic fragment is a packet by itself.
                header.len()
            } else {
                let &[_, len, _, segments_left, ..] = header.ok_or(ParseError::Truncated)?;
                // RFC 8200 sections 4.4 and 8.1: with segments left, the packet is on its way to
                // another destination, which the transport checksum covers.
                if kind == ROUTING && segments_left != 0 {
                    return Err(ParseError::Length);
                }
                8 * (1 + usize::from(len))
            };
            // Whatever it is, its first byte names the next header.
            place.protocol = bytes[place.at];
            (place.pointer, place.at) = (place.at, place.at + len);
        }
    }
}

/// Reads a fragment header (RFC 8200 section 4.5).
fn part_of(&[_, _, high, low, ref id @ ..]: &[u8; 8]) -> Part {
    let offset = usize::from(u16::from_be_bytes([high, low]) & !0b111);
    Part { offset, more: low & 1 != 0, id: u32::from_be_bytes(*id) }
}

/// The value of a length field, unless it is zero.
#[inline]
fn length(field: [u8; 2]) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(field))).filter(|len| *len > 0)
}
