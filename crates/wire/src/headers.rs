//! The IP headers of a packet, parsed in one place for all readers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroUsize;

use crate::ParseError;
use crate::ip::{V4_HEADER_LEN, V6_HEADER_LEN};

/// The maximum number of IPv6 extension headers in a packet (RFC 8883 section 3 allows a limit).
pub const MAX_EXTENSIONS: usize = 8;

/// The offset of the next-header field in the fixed IPv6 header.
const V6_NEXT_HEADER: usize = 6;

pub(crate) const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// The IP headers of a packet: the fixed header with its options, and IPv6 extension headers.
///
/// These extension headers are skipped, at most [`MAX_EXTENSIONS`]: hop-by-hop options, routing
/// headers without segments left, destination options, and the fragment header of an atomic
/// fragment (RFC 6946). Authentication and ESP headers are not skipped: they are reported as the
/// protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Whether the packet is IPv6.
    pub v6: bool,
    /// The protocol number of the payload.
    pub protocol: u8,
    /// The offset of the byte with the protocol number; in an IPv6 fragment, of the byte that
    /// announces the fragment header.
    pub pointer: usize,
    /// The length of the headers in bytes, which is the offset of the payload.
    pub len: usize,
    /// The length of the packet in bytes by its length field. `None` if that field is zero, as in
    /// super-segments that are too long for it, and in jumbograms (RFC 2675).
    pub total: Option<NonZeroUsize>,
    /// The part of the original packet that a fragment carries; `None` if this is not a fragment.
    pub fragment: Option<Part>,
    /// Whether the packet is an atomic fragment (RFC 6946): complete, but with a fragment header.
    pub atomic: bool,
}

/// The part of the original packet that a fragment carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The offset of its payload in that of the original packet, in bytes.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more: bool,
    /// The identification, which all fragments of the packet share.
    pub id: u32,
}

impl Headers {
    /// Reads the headers of a packet that may be truncated anywhere behind them.
    ///
    /// No checksum is verified. The headers are within `bytes` and within the packet's length; only
    /// `total` may exceed `bytes`.
    ///
    /// # Errors
    ///
    /// - [`ParseError::Version`]: the version is neither 4 nor 6.
    /// - [`ParseError::Truncated`]: the headers are incomplete.
    /// - [`ParseError::Length`]: the lengths of an IPv4 packet contradict each other, or a routing
    ///   header has segments left.
    /// - [`ParseError::Fragment`]: a fragment header is truncated, or is the second one.
    /// - [`ParseError::Extensions`]: there are too many extension headers.
    #[inline(always)]
    pub fn of(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::then(bytes, Ok)
    }

    /// Reads the headers like [`of`](Self::of), then the rest of the packet with `read`.
    ///
    /// `read` is compiled separately for each IP version, so that most of its conditions on the
    /// headers are constant.
    #[inline(always)]
    pub(crate) fn then<T>(
        bytes: &[u8],
        read: impl FnOnce(Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        match bytes.first().ok_or(ParseError::Truncated)? >> 4 {
            4 => read(Self::of_v4(bytes)?),
            6 => read(Self::of_v6(bytes)?),
            version => Err(ParseError::Version(version)),
        }
    }

    #[inline(always)]
    fn of_v4(bytes: &[u8]) -> Result<Self, ParseError> {
        let header: &[u8; V4_HEADER_LEN] = bytes.first_chunk().ok_or(ParseError::Truncated)?;
        let len = usize::from(header[0] & 0x0f) * 4;
        let total = length([header[2], header[3]]);
        // RFC 791 section 3.1: a header has at least five words.
        if len < V4_HEADER_LEN || total.is_some_and(|total| total.get() < len) {
            return Err(ParseError::Length);
        }
        if bytes.len() < len {
            return Err(ParseError::Truncated);
        }
        let field = u16::from_be_bytes([header[6], header[7]]);
        // Tests MF and the offset, but not DF.
        let fragment = (field & 0x3fff != 0).then(|| Part {
            offset: field << 3,
            more: field & 0x2000 != 0,
            id: u16::from_be_bytes([header[4], header[5]]).into(),
        });
        let (protocol, pointer) = (header[9], 9);
        Ok(Self { v6: false, protocol, pointer, len, total, fragment, atomic: false })
    }

    #[inline(always)]
    fn of_v6(bytes: &[u8]) -> Result<Self, ParseError> {
        let header: &[u8; V6_HEADER_LEN] = bytes.first_chunk().ok_or(ParseError::Truncated)?;
        let total = length([header[4], header[5]]).map(|len| len.saturating_add(V6_HEADER_LEN));
        let fixed = Self {
            v6: true,
            protocol: header[V6_NEXT_HEADER],
            pointer: V6_NEXT_HEADER,
            len: V6_HEADER_LEN,
            total,
            fragment: None,
            atomic: false,
        };
        if !fixed.is_extension_next() {
            return Ok(fixed);
        }
        let mut headers = fixed;
        headers.walk(bytes)?;
        // The repeated fields let the compiler use their values after either branch.
        Ok(Self { v6: true, total, ..headers })
    }

    /// Whether the next header is an extension header to skip.
    #[inline]
    const fn is_extension_next(&self) -> bool {
        match self.protocol {
            // RFC 8200 section 4.1: hop-by-hop options come first; elsewhere they are not
            // recognised.
            HOP_BY_HOP => self.pointer == V6_NEXT_HEADER,
            ROUTING | FRAGMENT | DESTINATION_OPTIONS => true,
            _ => false,
        }
    }

    /// Skips the extension headers up to a transport header or a fragment's payload. Not inlined:
    /// few packets have any.
    #[inline(never)]
    pub(crate) fn walk(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        let bytes = self.trim(bytes);
        let mut left = MAX_EXTENSIONS;
        while self.is_extension_next() {
            left = left.checked_sub(1).ok_or(ParseError::Extensions)?;
            let header: Option<&[u8; 8]> = bytes.get(self.len..).and_then(<[u8]>::first_chunk);
            let len = if self.protocol == FRAGMENT {
                // RFC 8200 section 4.1: it occurs at most once. Fragments of fragments are
                // rejected.
                let header = header.filter(|_| !self.atomic).ok_or(ParseError::Fragment)?;
                let part = part_of(header);
                if part.offset > 0 || part.more {
                    (self.protocol, self.len) = (header[0], self.len + header.len());
                    self.fragment = Some(part);
                    return Ok(());
                }
                // RFC 6946 section 4: an atomic fragment is processed on its own.
                self.atomic = true;
                header.len()
            } else {
                let &[_, len, _, segments_left, ..] = header.ok_or(ParseError::Truncated)?;
                // RFC 8200 sections 4.4 and 8.1: with segments left, the final destination is
                // another one, and the transport checksum covers that.
                if self.protocol == ROUTING && segments_left != 0 {
                    return Err(ParseError::Length);
                }
                8 * (1 + usize::from(len))
            };
            // The first byte of every extension header is the next-header field.
            self.protocol = bytes[self.len];
            (self.pointer, self.len) = (self.len, self.len + len);
        }
        if self.len <= bytes.len() { Ok(()) } else { Err(ParseError::Truncated) }
    }

    /// Whether the packet is a fragment of a longer one.
    #[inline]
    pub const fn is_fragment(&self) -> bool {
        self.fragment.is_some()
    }

    /// Truncates `packet`, from which the headers were read, to its length. Bytes behind that are
    /// not part of the packet.
    #[inline(always)]
    pub fn trim<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        self.total.and_then(|total| packet.get(..total.get())).unwrap_or(packet)
    }

    /// Returns source and destination; `packet` is the one from which the headers were read.
    #[inline]
    pub fn addresses(&self, packet: &[u8]) -> (IpAddr, IpAddr) {
        addresses(self.v6, packet)
    }
}

/// Returns source and destination of a packet whose fixed header is complete.
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

/// Reads a fragment header (RFC 8200 section 4.5).
fn part_of(&[_, _, high, low, ref id @ ..]: &[u8; 8]) -> Part {
    let offset = u16::from_be_bytes([high, low]) & !0b111;
    Part { offset, more: low & 1 != 0, id: u32::from_be_bytes(*id) }
}

/// Returns the value of a length field, or `None` if it is zero.
#[inline]
fn length(field: [u8; 2]) -> Option<NonZeroUsize> {
    NonZeroUsize::new(u16::from_be_bytes(field).into())
}
