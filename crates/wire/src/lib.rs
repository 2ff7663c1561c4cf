//! Reading and writing of packet headers: IPv4, IPv6 with extension headers, ICMP, UDP and TCP,
//! with TCP options, checksums and fragments. It is the only crate that reads and writes headers.
//!
//! Readers take bytes and return views that borrow from them, or a [`ParseError`]. No input makes a
//! reader panic, and no view allocates. Writers take addresses, header fields and data, and return
//! a [`Packet`](airtcp_types::Packet).
//!
//! | Task | Reader |
//! |---|---|
//! | receive a packet: check lengths and the IPv4 checksum | [`ip::parse`]; [`fragment::parse`] |
//! | read the payload of such a packet | [`tcp::parse`], [`udp::parse`], [`icmp`] |
//! | read or edit a TCP segment in transit | [`tcp::View::checked`], [`tcp::Editor`] |
//! | read a TCP segment from a capture, which may be truncated | [`tcp::View::of`] |
//! | find the headers of a packet checked or built elsewhere | [`Headers::of`], [`Layout::of`] |
//! | check whether a host accepts a packet | [`is_accepted`] |
//! | mark a packet, forward it | [`ip::set_ecn`], [`ip::set_hop_limit`] |
//! | write a packet | [`tcp::emit`], [`udp::emit`], [`icmp::emit_error`] |
//! | split a super-segment into packets | [`each_segment`], [`into_segments`] |
//! | split an IPv4 packet into fragments | [`fragment::cut`] |
//! | put a packet into an IP tunnel, take it out | [`tunnel`] |
//! | read and write the messages of Mobile IP | [`mobility`] |
//!
//! All readers use the same parser of IP headers, [`Headers`], and therefore agree on extension
//! headers and fragments. Headers are written with smoltcp's wire layer.
//!
//! Not supported: IPv4 and IPv6 options are skipped without interpretation; jumbograms (RFC 2675)
//! have no length; data behind authentication and ESP headers is not read.
//!
//! ```
//! use airtcp_types::{FlowId, SeqNumber};
//! use airtcp_wire::tcp::{self, Flags, Header};
//! use airtcp_wire::{ParseError, ip, is_accepted};
//!
//! let flow = FlowId { local: "[fd00::1]:4000".parse()?, remote: "[fd00::2]:80".parse()? };
//! let (seq, ack) = (SeqNumber(7), Some(SeqNumber(9)));
//! let header = Header { seq, ack, flags: Flags::ACK, ..Header::default() };
//! let mut packet = tcp::emit(&flow, 64, &header, b"hello");
//! assert!(is_accepted(&packet.data));
//!
//! let datagram = ip::parse(&packet.data)?;
//! assert_eq!((datagram.protocol, datagram.dst), (ip::TCP, flow.remote.ip()));
//! let (_, dst_port, segment) = tcp::parse(datagram.payload)?;
//! assert_eq!((dst_port, segment.seq, segment.payload.len()), (80, SeqNumber(7), 5));
//!
//! packet.data.truncate(50);
//! assert_eq!(ip::parse(&packet.data), Err(ParseError::Truncated));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod accept;
pub mod checksum;
pub mod fragment;
pub mod header_checksum;
mod headers;
pub mod icmp;
pub mod ip;
mod layout;
pub mod mobility;
pub mod options;
pub mod payload;
pub mod run;
mod segments;
pub mod tcp;
pub mod tunnel;
pub mod udp;

#[cfg(test)]
mod tests;

pub use accept::is_accepted;
pub use headers::{Headers, MAX_EXTENSIONS, Part};
pub use layout::Layout;
pub use segments::{each_segment, into_segments};

/// The reason why bytes are not a valid packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// There are fewer bytes than the header has, or than its length field states.
    #[error("packet is cut short")]
    Truncated,
    /// The IP version is neither 4 nor 6.
    #[error("IP version {0} is unknown")]
    Version(u8),
    /// A length field contradicts another one, or the header whose length it states.
    #[error("length field is invalid")]
    Length,
    /// The IPv4 header's checksum is wrong.
    #[error("IPv4 header checksum is wrong")]
    HeaderChecksum,
    /// The transport checksum is wrong.
    #[error("transport checksum is wrong")]
    Checksum,
    /// There are more than [`MAX_EXTENSIONS`] IPv6 extension headers.
    #[error("packet has more than {MAX_EXTENSIONS} IPv6 extension headers")]
    Extensions,
    /// The packet is a fragment: [`fragment::parse`] reads it.
    #[error("packet is a fragment")]
    Fragment,
}
