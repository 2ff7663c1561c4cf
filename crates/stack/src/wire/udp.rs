//! UDP datagrams (RFC 768).

use airtcp_types::checksum::Sum;
use airtcp_types::{Checksum, FlowId, Packet};
use smoltcp::wire::UdpPacket;

use super::tcp::transport_sum;
use super::{ParseError, ip};

/// A UDP header, in bytes.
pub const HEADER_LEN: usize = 8;

/// A datagram that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The port it came from.
    pub src_port: u16,
    /// The port it is for.
    pub dst_port: u16,
    /// Whether its sender left the checksum out, which IPv4 alone allows.
    pub no_checksum: bool,
    /// The data.
    pub payload: &'a [u8],
    /// Header and data, for the checksum.
    pub covered: &'a [u8],
}

/// Reads a UDP datagram. Bytes after its length are left out; the checksum is not verified here.
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

/// Builds the IP packet of a datagram from `flow.local` to `flow.remote`; with an `open` checksum the device completes it.
pub fn emit(flow: &FlowId, hop_limit: u8, payload: &[u8], open: bool) -> Packet {
    let len = HEADER_LEN + payload.len();
    let (src, dst) = (flow.local.ip(), flow.remote.ip());
    let mut data = Vec::new();
    let at = ip::start(&mut data, (src, dst), ip::UDP, hop_limit, len, 0);
    let datagram = &mut data[at..];
    datagram[HEADER_LEN..].copy_from_slice(payload);
    let mut packet = UdpPacket::new_unchecked(&mut datagram[..]);
    packet.set_src_port(flow.local.port());
    packet.set_dst_port(flow.remote.port());
    packet.set_len(u16::try_from(len).unwrap_or(u16::MAX));
    if open {
        let mut sum = Sum::new();
        sum.add_pseudo_header(src, dst, ip::UDP, len);
        packet.set_checksum(sum.folded());
        return Packet { checksum: Checksum::Partial, ..Packet::new(data) };
    }
    // RFC 768: a sum that comes out as zero is sent as all ones.
    let sum = match transport_sum(src, dst, ip::UDP, datagram) {
        0 => u16::MAX,
        sum => sum,
    };
    UdpPacket::new_unchecked(datagram).set_checksum(sum);
    Packet::new(data)
}
