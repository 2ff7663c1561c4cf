//! TCP segments in IP packets, as far as a picture needs them.

use std::net::{IpAddr, SocketAddr};

use airtcp_types::SeqNumber;
use airtcp_types::options::TcpOptions;

const PROTOCOL_TCP: u8 = 6;
/// IPv6 extension headers: hop-by-hop, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// More extension headers than any packet has.
const MAX_EXTENSIONS: usize = 8;

/// A TCP segment. The packet may have been cut off anywhere behind the TCP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seq: SeqNumber,
    /// What it acknowledges; `None` without the flag.
    pub(crate) ack: Option<SeqNumber>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) psh: bool,
    /// As it stands in the header, before scaling.
    pub(crate) window: u16,
    /// Bytes of payload, as they were sent.
    pub(crate) len: u32,
    pub(crate) options: TcpOptions,
}

impl Segment {
    /// Reads an IP packet; `None` if it holds no TCP header.
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        let (source, destination, at, end) = match packet.first()? >> 4 {
            4 => ipv4(packet)?,
            6 => ipv6(packet)?,
            _ => return None,
        };
        let tcp = packet.get(at..)?;
        let header: &[u8; 20] = tcp.first_chunk()?;
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let header_len = usize::from(header[12] >> 4) * 4;
        let flags = header[13];
        let options = tcp.get(20..header_len).and_then(|bytes| TcpOptions::parse(bytes).ok());
        Some(Self {
            from: SocketAddr::new(source, half(0)),
            to: SocketAddr::new(destination, half(2)),
            seq: SeqNumber(word(4)),
            ack: (flags & 0x10 != 0).then(|| SeqNumber(word(8))),
            syn: flags & 0x02 != 0,
            fin: flags & 0x01 != 0,
            rst: flags & 0x04 != 0,
            psh: flags & 0x08 != 0,
            window: half(14),
            len: u32::try_from(end.checked_sub(at + header_len.max(20))?).ok()?,
            options: options.unwrap_or_default(),
        })
    }
}

/// Addresses, where the TCP header starts, and where the packet ended when it was sent.
type Envelope = (IpAddr, IpAddr, usize, usize);

fn ipv4(packet: &[u8]) -> Option<Envelope> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    if header[9] != PROTOCOL_TCP || fragment != 0 {
        return None;
    }
    let [source, destination] = [12, 16].map(|at| {
        let [a, b, c, d] = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        IpAddr::from([a, b, c, d])
    });
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // A packet that an offloading device is to cut has no length.
    let end = if total == 0 { packet.len() } else { total };
    Some((source, destination, usize::from(header[0] & 15) * 4, end))
}

fn ipv6(packet: &[u8]) -> Option<Envelope> {
    let header: &[u8; 40] = packet.first_chunk()?;
    let (addresses, _) = header[8..].as_chunks::<16>();
    let [source, destination] = addresses else { return None };
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let end = if payload == 0 { packet.len() } else { 40 + payload };
    let (mut next, mut at) = (header[6], 40);
    for _ in 0..MAX_EXTENSIONS {
        if !EXTENSIONS.contains(&next) {
            break;
        }
        let [following, len] = *packet.get(at..)?.first_chunk()?;
        next = following;
        at += (usize::from(len) + 1) * 8;
    }
    (next == PROTOCOL_TCP).then_some((IpAddr::from(*source), IpAddr::from(*destination), at, end))
}
