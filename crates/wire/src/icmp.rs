//! ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, errors, and the packet that an error quotes.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;

use airtcp_types::{FlowId, Packet, SeqNumber};

use crate::checksum::{checksum, verify, verify_transport};
use crate::ip::{self, Datagram};
use crate::tcp::transport_sum;
use crate::{Headers, ParseError};

/// The length of an ICMP header in bytes: type, code, checksum, and four bytes that depend on the
/// type.
pub const HEADER_LEN: usize = 8;

const V4_ECHO_REPLY: u8 = 0;
const V4_UNREACHABLE: u8 = 3;
const V4_ECHO: u8 = 8;
const V4_TIME_EXCEEDED: u8 = 11;
const V4_PARAMETER_PROBLEM: u8 = 12;

const V6_UNREACHABLE: u8 = 1;
const V6_PACKET_TOO_BIG: u8 = 2;
const V6_TIME_EXCEEDED: u8 = 3;
const V6_PARAMETER_PROBLEM: u8 = 4;
const V6_ECHO: u8 = 128;
const V6_ECHO_REPLY: u8 = 129;

/// RFC 1812 section 4.3.2.3: the maximum length of an ICMP error in bytes.
const V4_ERROR_MAX: usize = 576;
/// RFC 4443 section 2.4 (c): an ICMPv6 error is at most as long as the minimum IPv6 MTU.
const V6_ERROR_MAX: usize = 1280;

/// A received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Echo: identifier, sequence number and data, which the reply returns unchanged.
    Echo(&'a [u8]),
    /// Echo Reply.
    EchoReply,
    /// An error about a packet that was not delivered.
    Error {
        /// The reason.
        reason: Reason,
        /// The start of the packet that the error is about, as far as the message contains it.
        quoted: &'a [u8],
    },
    /// Any other message.
    Other,
}

/// The reason why a packet was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// There is no route to the network.
    Network,
    /// The host is unreachable.
    Host,
    /// The hop limit expired on the path.
    HopLimit,
    /// The destination does not support the protocol.
    Protocol,
    /// The destination has no socket at the port.
    Port,
    /// A filter rejected the packet.
    Prohibited,
    /// The packet was too long for the next link, whose MTU in bytes this is; zero from an old
    /// router.
    TooBig(u32),
    /// A header field was invalid.
    Parameter,
}

/// Reads the message in a datagram, and verifies its checksum. A datagram of another protocol is
/// [`Message::Other`].
pub fn parse<'a>(datagram: &Datagram<'a>) -> Result<Message<'a>, ParseError> {
    match (datagram.protocol, datagram.dst.is_ipv4()) {
        (ip::ICMP, true) => parse_v4(datagram.payload),
        (ip::ICMPV6, false) => parse_v6(datagram.src, datagram.dst, datagram.payload),
        _ => Ok(Message::Other),
    }
}

/// Returns the start of the packet that the error in a datagram is about; `None` if the datagram is
/// not an ICMP error.
pub fn quoted<'a>(datagram: &Datagram<'a>) -> Option<&'a [u8]> {
    match parse(datagram) {
        Ok(Message::Error { quoted, .. }) => Some(quoted),
        _ => None,
    }
}

fn parse_v4(bytes: &[u8]) -> Result<Message<'_>, ParseError> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(ParseError::Truncated)?;
    if !verify(bytes) {
        return Err(ParseError::Checksum);
    }
    let [kind, code, _, _, _, _, mtu_high, mtu_low] = *header;
    let reason = match (kind, code) {
        (V4_ECHO, _) => return Ok(Message::Echo(&bytes[4..])),
        (V4_ECHO_REPLY, _) => return Ok(Message::EchoReply),
        (V4_UNREACHABLE, 2) => Reason::Protocol,
        (V4_UNREACHABLE, 3) => Reason::Port,
        (V4_UNREACHABLE, 4) => Reason::TooBig(u16::from_be_bytes([mtu_high, mtu_low]).into()),
        (V4_UNREACHABLE, 9 | 10 | 13) => Reason::Prohibited,
        (V4_UNREACHABLE, 0 | 6 | 11) => Reason::Network,
        (V4_UNREACHABLE, _) => Reason::Host,
        (V4_TIME_EXCEEDED, _) => Reason::HopLimit,
        (V4_PARAMETER_PROBLEM, _) => Reason::Parameter,
        _ => return Ok(Message::Other),
    };
    Ok(Message::Error { reason, quoted: rest })
}

fn parse_v6(src: IpAddr, dst: IpAddr, bytes: &[u8]) -> Result<Message<'_>, ParseError> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(ParseError::Truncated)?;
    if !verify_transport(src, dst, ip::ICMPV6, bytes) {
        return Err(ParseError::Checksum);
    }
    let [kind, code, _, _, mtu @ ..] = *header;
    let reason = match (kind, code) {
        (V6_ECHO, _) => return Ok(Message::Echo(&bytes[4..])),
        (V6_ECHO_REPLY, _) => return Ok(Message::EchoReply),
        (V6_UNREACHABLE, 1 | 5 | 6) => Reason::Prohibited,
        (V6_UNREACHABLE, 4) => Reason::Port,
        (V6_UNREACHABLE, 0) => Reason::Network,
        (V6_UNREACHABLE, _) => Reason::Host,
        (V6_TIME_EXCEEDED, _) => Reason::HopLimit,
        (V6_PACKET_TOO_BIG, _) => Reason::TooBig(u32::from_be_bytes(mtu)),
        (V6_PARAMETER_PROBLEM, 1) => Reason::Protocol,
        (V6_PARAMETER_PROBLEM, _) => Reason::Parameter,
        _ => return Ok(Message::Other),
    };
    Ok(Message::Error { reason, quoted: rest })
}

/// The packet that an error is about, from the point of view of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote {
    /// The flow: the packet's source is the local end, its destination the remote end.
    pub flow: FlowId,
    /// The protocol: TCP or UDP.
    pub protocol: u8,
    /// The sequence number, with TCP.
    pub seq: SeqNumber,
    /// The length in bytes, all headers included.
    pub len: u32,
}

/// Reads the packet that an error quotes: an IP header and at least eight bytes after it.
///
/// `None` for protocols without ports, and for fragments other than the first, which have no ports.
pub fn parse_quote(quoted: &[u8]) -> Option<Quote> {
    let headers = Headers::of(quoted).ok()?;
    let is_first = headers.fragment.is_none_or(|part| part.offset == 0);
    let protocol = headers.protocol;
    if !is_first || protocol != ip::TCP && protocol != ip::UDP {
        return None;
    }
    let (src, dst) = headers.addresses(quoted);
    let transport = &headers.trim(quoted)[headers.len..];
    let &[s0, s1, d0, d1, q0, q1, q2, q3] = transport.first_chunk::<8>()?;
    let flow = FlowId {
        local: SocketAddr::new(src, u16::from_be_bytes([s0, s1])),
        remote: SocketAddr::new(dst, u16::from_be_bytes([d0, d1])),
    };
    let len = headers.total.map_or(headers.len, NonZero::get) as u32;
    Some(Quote { flow, protocol, seq: SeqNumber(u32::from_be_bytes([q0, q1, q2, q3])), len })
}

/// Builds an echo: `data` is identifier, sequence number and data, as in [`Message::Echo`].
pub fn emit_echo(src: IpAddr, dst: IpAddr, hop_limit: u8, data: &[u8]) -> Packet {
    let kind = if src.is_ipv4() { V4_ECHO } else { V6_ECHO };
    emit(src, dst, hop_limit, [kind, 0], data)
}

/// Builds the reply to an echo: `echoed` is the content of [`Message::Echo`].
pub fn emit_echo_reply(src: IpAddr, dst: IpAddr, hop_limit: u8, echoed: &[u8]) -> Packet {
    let kind = if src.is_ipv4() { V4_ECHO_REPLY } else { V6_ECHO_REPLY };
    emit(src, dst, hop_limit, [kind, 0], echoed)
}

/// The reason for an ICMP error that the host sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Complaint {
    /// The host has no socket at the UDP port.
    Port,
    /// The host does not support the protocol, or the IPv6 next header.
    Protocol {
        /// The offset of the byte with the protocol number; used with IPv6 only.
        pointer: u32,
    },
    /// Not all fragments arrived in time.
    Reassembly,
    /// There is no route to the network.
    Network,
    /// The host is unreachable.
    Host,
    /// A filter rejected the packet.
    Prohibited,
    /// The packet is too long to be forwarded, and must not be fragmented (RFC 1191 section 4, RFC
    /// 4443 section 3.2).
    TooBig {
        /// The maximum length of a packet in bytes; IPv4 carries at most 65,535.
        mtu: u32,
    },
}

/// Whether a message whose first byte is `kind` is an error, in response to which no error may be
/// sent (RFC 1122 section 3.2.2, RFC 4443 section 2.4 (e)).
pub(super) const fn is_error(v4: bool, kind: u8) -> bool {
    match v4 {
        true => !matches!(kind, V4_ECHO | V4_ECHO_REPLY),
        // RFC 4443 section 2.1.
        false => kind < 128,
    }
}

/// Whether an ICMP error may be sent about a packet (RFC 1122 section 3.2.2, RFC 4443 section 2.4
/// (e)): not about ICMP errors and fragments other than the first, nor to a source that is not one
/// host, nor about a packet to several hosts. A too-long IPv6 packet to several hosts is an
/// exception that is not made.
pub fn may_complain(bytes: &[u8]) -> bool {
    let Ok((headers, bytes)) = ip::check(bytes) else { return false };
    let (src, dst) = headers.addresses(bytes);
    let is_one = |address: IpAddr| {
        let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        !(address.is_unspecified() || address.is_multicast() || is_broadcast)
    };
    let is_first = headers.fragment.is_none_or(|part| part.offset == 0);
    let is_icmp = headers.protocol == if headers.v6 { ip::ICMPV6 } else { ip::ICMP };
    let is_about_error = || {
        let kind = bytes.get(headers.len);
        kind.is_none_or(|kind| is_error(!headers.v6, *kind))
    };
    is_one(src) && is_one(dst) && !src.is_loopback() && is_first && !(is_icmp && is_about_error())
}

/// Builds an error about `original`, and quotes as much of it as the RFCs allow.
pub fn emit_error(
    src: IpAddr,
    dst: IpAddr,
    hop_limit: u8,
    complaint: Complaint,
    original: &[u8],
) -> Packet {
    let v4 = src.is_ipv4();
    let (kind, word) = match (v4, complaint) {
        (true, Complaint::Network) => ([V4_UNREACHABLE, 0], 0),
        (true, Complaint::Host) => ([V4_UNREACHABLE, 1], 0),
        (true, Complaint::Protocol { .. }) => ([V4_UNREACHABLE, 2], 0),
        (true, Complaint::Port) => ([V4_UNREACHABLE, 3], 0),
        // RFC 1812 section 5.2.7.1.
        (true, Complaint::Prohibited) => ([V4_UNREACHABLE, 13], 0),
        (true, Complaint::Reassembly) => ([V4_TIME_EXCEEDED, 1], 0),
        (true, Complaint::TooBig { mtu }) => ([V4_UNREACHABLE, 4], mtu.min(u16::MAX.into())),
        (false, Complaint::Network) => ([V6_UNREACHABLE, 0], 0),
        (false, Complaint::Prohibited) => ([V6_UNREACHABLE, 1], 0),
        (false, Complaint::Host) => ([V6_UNREACHABLE, 3], 0),
        (false, Complaint::Port) => ([V6_UNREACHABLE, 4], 0),
        // RFC 4443 section 3.4: code 1 is an unrecognised next header.
        (false, Complaint::Protocol { pointer }) => ([V6_PARAMETER_PROBLEM, 1], pointer),
        (false, Complaint::Reassembly) => ([V6_TIME_EXCEEDED, 1], 0),
        (false, Complaint::TooBig { mtu }) => ([V6_PACKET_TOO_BIG, 0], mtu),
    };
    let max = match v4 {
        true => V4_ERROR_MAX - ip::V4_HEADER_LEN,
        false => V6_ERROR_MAX - ip::V6_HEADER_LEN,
    };
    let quoted = &original[..original.len().min(max - HEADER_LEN)];
    let mut body = Vec::with_capacity(4 + quoted.len());
    body.extend_from_slice(&u32::to_be_bytes(word));
    body.extend_from_slice(quoted);
    emit(src, dst, hop_limit, kind, &body)
}

/// Builds a message from type, code, checksum, and `body`.
fn emit(src: IpAddr, dst: IpAddr, hop_limit: u8, [kind, code]: [u8; 2], body: &[u8]) -> Packet {
    let protocol = if src.is_ipv4() { ip::ICMP } else { ip::ICMPV6 };
    let mut data = Vec::new();
    let at = ip::start(&mut data, (src, dst), protocol, hop_limit, 4 + body.len(), 0);
    let message = &mut data[at..];
    message[0] = kind;
    message[1] = code;
    message[4..].copy_from_slice(body);
    let sum = match protocol {
        ip::ICMP => checksum(message),
        _ => transport_sum(src, dst, protocol, message),
    };
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    Packet::new(data)
}
