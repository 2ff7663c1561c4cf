//! TCP segments (RFC 9293 section 3.1).

mod view;

use std::net::IpAddr;

use airtcp_types::{Checksum, FlowId, Packet, SeqNumber, SharedBytes};
use smoltcp::wire::{TcpPacket, TcpSeqNumber};

use crate::checksum::Sum;
use crate::header_checksum::seal_header;
use crate::options::TcpOptions;
use crate::payload::Payload;
use crate::{ParseError, ip};

pub use view::{Editor, View};

/// The length of a TCP header without options, in bytes.
pub const HEADER_LEN: usize = 20;
/// The amount of data in bytes below which a super-segment copies it: sharing would prevent
/// appending to the buffer.
const SHARED: usize = 8 * 1024;

/// AE of RFC 9768, formerly NS, in the thirteenth byte of the header: the last of the four bits
/// after the data offset. RFC 9293 reserves the other three.
pub const AE: u8 = 0x01;

/// The control bits in the fourteenth byte of the header.
#[expect(missing_docs, reason = "the names are RFC 9293's")]
pub mod flag {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const URG: u8 = 0x20;
    pub const ECE: u8 = 0x40;
    pub const CWR: u8 = 0x80;
}

/// The control bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "the names are those of RFC 9293 and RFC 9768")]
pub struct Flags {
    pub fin: bool,
    pub syn: bool,
    pub rst: bool,
    pub psh: bool,
    pub ack: bool,
    pub urg: bool,
    pub ece: bool,
    pub cwr: bool,
    pub ae: bool,
}

impl Flags {
    /// Only ACK.
    pub const ACK: Self = Self {
        fin: false,
        syn: false,
        rst: false,
        psh: false,
        ack: true,
        urg: false,
        ece: false,
        cwr: false,
        ae: false,
    };

    /// Returns AE, CWR and ECE as a three-bit number with ECE lowest: the ACE field of RFC 9768
    /// section 3.2.2.
    pub const fn ace(self) -> u8 {
        (self.ae as u8) << 2 | (self.cwr as u8) << 1 | self.ece as u8
    }

    /// Returns the flags with the ACE field set to the lower three bits of `ace`.
    #[must_use]
    pub const fn with_ace(self, ace: u8) -> Self {
        Self { ae: ace & 0b100 != 0, cwr: ace & 0b010 != 0, ece: ace & 0b001 != 0, ..self }
    }
}

/// The fixed fields of a TCP header, read in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields<'a>(&'a [u8; HEADER_LEN]);

impl<'a> Fields<'a> {
    /// Reads the first 20 bytes of a segment and checks the data offset.
    #[inline]
    fn of(segment: &'a [u8]) -> Result<Self, ParseError> {
        let fields = Self(segment.first_chunk().ok_or(ParseError::Truncated)?);
        // RFC 9293 section 3.1: the data starts behind these fields.
        if fields.header_len() < HEADER_LEN { Err(ParseError::Length) } else { Ok(fields) }
    }

    #[inline]
    const fn half(self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    #[inline]
    const fn word(self, at: usize) -> SeqNumber {
        SeqNumber((self.half(at) as u32) << 16 | self.half(at + 2) as u32)
    }

    /// Source port.
    #[inline]
    pub const fn src_port(self) -> u16 {
        self.half(0)
    }

    /// Destination port.
    #[inline]
    pub const fn dst_port(self) -> u16 {
        self.half(2)
    }

    /// SEG.SEQ.
    #[inline]
    pub const fn seq(self) -> SeqNumber {
        self.word(4)
    }

    /// SEG.ACK; valid only with the ACK flag.
    #[inline]
    pub const fn ack(self) -> SeqNumber {
        self.word(8)
    }

    /// The length of the header with options, in bytes; at least 20.
    #[inline]
    pub const fn header_len(self) -> usize {
        (self.0[12] >> 4) as usize * 4
    }

    /// The four bits after the data offset, including [`AE`], at their positions in the byte.
    #[inline]
    pub const fn reserved(self) -> u8 {
        self.0[12] & 0x0f
    }

    /// The control bits; see [`flag`].
    #[inline]
    pub const fn flags(self) -> u8 {
        self.0[13]
    }

    /// Whether any of these control bits is set.
    #[inline]
    pub const fn has(self, flags: u8) -> bool {
        self.flags() & flags != 0
    }

    /// SEG.WND on the wire, unscaled.
    #[inline]
    pub const fn window(self) -> u16 {
        self.half(14)
    }
}

/// A received segment. The caller has verified its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; valid only with the ACK flag.
    pub ack: SeqNumber,
    /// The control bits.
    pub flags: Flags,
    /// The four bits after the data offset, including [`AE`], at their positions in the byte.
    pub reserved: u8,
    /// The ECN field of the packet that carried the segment, set by the caller: it belongs to IP.
    pub ecn: u8,
    /// SEG.WND on the wire, unscaled.
    pub window: u16,
    /// The options.
    pub options: TcpOptions,
    /// The data.
    pub payload: Payload<'a>,
    /// If the segment was joined from several on the wire: their size in bytes of data, which only
    /// the last one may be below.
    pub size: Option<u16>,
}

impl Segment<'_> {
    /// SEG.LEN: the data, plus one each for SYN and FIN.
    #[expect(clippy::len_without_is_empty, reason = "SEG.LEN is RFC 9293's name")]
    pub fn len(&self) -> u32 {
        // An IP packet has at most 2^32 bytes, even a jumbogram.
        self.payload.len() as u32 + u32::from(self.flags.syn) + u32::from(self.flags.fin)
    }

    /// The number of segments on the wire.
    pub fn count(&self) -> u32 {
        let size = self.size.map_or(usize::MAX, |size| usize::from(size.max(1)));
        self.payload.len().div_ceil(size).max(1) as u32
    }
}

/// The header of a segment to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK. The ACK flag is set if and only if this is `Some`, regardless of `flags`.
    pub ack: Option<SeqNumber>,
    /// The control bits.
    pub flags: Flags,
    /// SEG.WND on the wire.
    pub window: u16,
    /// The options.
    pub options: TcpOptions,
}

/// Splits a segment into the fixed fields, the option list, and the data.
#[inline]
pub(crate) fn split(bytes: &[u8]) -> Result<(Fields<'_>, &[u8], &[u8]), ParseError> {
    let fields = Fields::of(bytes)?;
    let (header, data) =
        bytes.split_at_checked(fields.header_len()).ok_or(ParseError::Truncated)?;
    Ok((fields, &header[HEADER_LEN..], data))
}

/// Reads a TCP segment; returns source port, destination port and the segment, without the fields
/// that come from IP.
///
/// The checksum is not verified, because it covers the addresses (see
/// [`verify_transport`](crate::checksum::verify_transport)).
#[inline]
pub fn parse(bytes: &[u8]) -> Result<(u16, u16, Segment<'_>), ParseError> {
    let (fields, options, payload) = split(bytes)?;
    let segment = Segment {
        seq: fields.seq(),
        ack: fields.ack(),
        flags: Flags {
            fin: fields.has(flag::FIN),
            syn: fields.has(flag::SYN),
            rst: fields.has(flag::RST),
            psh: fields.has(flag::PSH),
            ack: fields.has(flag::ACK),
            urg: fields.has(flag::URG),
            ece: fields.has(flag::ECE),
            cwr: fields.has(flag::CWR),
            ae: fields.reserved() & AE != 0,
        },
        reserved: fields.reserved(),
        ecn: ip::NOT_ECT,
        window: fields.window(),
        options: TcpOptions::parse(options),
        payload: payload.into(),
        size: None,
    };
    Ok((fields.src_port(), fields.dst_port(), segment))
}

/// Builds the IP packet of a segment from `flow.local` to `flow.remote`.
///
/// Computes the header checksum of a HACK option, except on a SYN, where it is zero (HACK 3). The
/// packet must not be longer than its IP header allows: 65,535 bytes with IPv4.
pub fn emit(flow: &FlowId, hop_limit: u8, header: &Header, payload: &[u8]) -> Packet {
    emit_into(Packet::default(), flow, hop_limit, header, std::iter::once(payload))
}

/// Like [`emit`], but takes the data in pieces and reuses the memory of `packet`, which must be
/// empty.
pub fn emit_into<'a>(
    mut packet: Packet,
    flow: &FlowId,
    hop_limit: u8,
    header: &Header,
    payload: impl Iterator<Item = &'a [u8]> + Clone,
) -> Packet {
    let len = payload.clone().map(<[u8]>::len).sum();
    let at = start(&mut packet.data, flow, hop_limit, header, len);
    payload.for_each(|part| packet.data.extend_from_slice(part));
    let (src, dst, segment) = (flow.local.ip(), flow.remote.ip(), &mut packet.data[at..]);
    if header.options.hack.is_some() && !header.flags.syn {
        seal_header(src, dst, segment);
    }
    let sum = transport_sum(src, dst, ip::TCP, segment);
    TcpPacket::new_unchecked(segment).set_checksum(sum);
    packet
}

/// Builds a packet whose checksum the device completes, and which the device splits into segments
/// with `size` bytes of data. The data is shared; less than 8 KiB is copied.
pub fn emit_super(
    mut packet: Packet,
    flow: &FlowId,
    hop_limit: u8,
    header: &Header,
    payload: impl Iterator<Item = SharedBytes>,
    size: u16,
) -> Packet {
    packet.tail.extend(payload);
    let len: usize = packet.tail.iter().map(|part| part.len()).sum();
    let at = start(&mut packet.data, flow, hop_limit, header, len);
    let mut sum = Sum::new();
    let (src, dst, segment) = (flow.local.ip(), flow.remote.ip(), &mut packet.data[at..]);
    sum.add_pseudo_header(src, dst, ip::TCP, segment.len() + len);
    TcpPacket::new_unchecked(segment).set_checksum(sum.folded());
    if len < SHARED {
        packet.tail.iter().for_each(|part| packet.data.extend_from_slice(part));
        packet.tail.clear();
    }
    packet.segment_size = (len > usize::from(size)).then_some(size);
    packet.checksum = Checksum::Partial;
    packet
}

/// Writes the headers of a packet with `len` bytes of data; returns the offset of the TCP header.
fn start(data: &mut Vec<u8>, flow: &FlowId, hop_limit: u8, header: &Header, len: usize) -> usize {
    let header_len = HEADER_LEN + header.options.encoded_len();
    let ends = (flow.local.ip(), flow.remote.ip());
    let at = ip::start(data, ends, ip::TCP, hop_limit, header_len, len);
    write_header(&mut data[at..], flow, header, header_len);
    at
}

fn write_header(segment: &mut [u8], flow: &FlowId, header: &Header, header_len: usize) {
    header.options.encode(&mut segment[HEADER_LEN..header_len]);
    let mut packet = TcpPacket::new_unchecked(segment);
    packet.set_src_port(flow.local.port());
    packet.set_dst_port(flow.remote.port());
    packet.set_seq_number(TcpSeqNumber(header.seq.0 as i32));
    packet.set_ack_number(TcpSeqNumber(header.ack.unwrap_or_default().0 as i32));
    packet.set_header_len(header_len as u8);
    packet.set_fin(header.flags.fin);
    packet.set_syn(header.flags.syn);
    packet.set_rst(header.flags.rst);
    packet.set_psh(header.flags.psh);
    packet.set_ack(header.ack.is_some());
    packet.set_urg(header.flags.urg);
    packet.set_ece(header.flags.ece);
    packet.set_cwr(header.flags.cwr);
    packet.set_ns(header.flags.ae);
    packet.set_window_len(header.window);
}

/// Returns the checksum of a transport segment whose checksum field is zero.
pub(super) fn transport_sum(src: IpAddr, dst: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    let mut sum = Sum::new();
    sum.add_pseudo_header(src, dst, protocol, segment.len());
    sum.add_bytes(segment);
    sum.finish()
}
