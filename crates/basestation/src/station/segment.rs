//! A checked view of a TCP segment in its IP packet, and edits of its header that keep checksums as they are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use airtcp_types::options::extension::checksum_at;
use airtcp_types::options::{TcpOptions, Timestamps};
use airtcp_types::{Checksum, Packet, SeqNumber, checksum};

const TCP: u8 = 6;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
/// IPv6 extension headers that are stepped over: hop-by-hop options, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// More extension headers than any packet has.
const MAX_EXTENSIONS: usize = 8;
/// Where things stand in a TCP header (RFC 9293 section 3.1).
const AT_OFFSET: usize = 12;
const AT_WINDOW: usize = 14;
const AT_CHECKSUM: usize = 16;

/// The flags, as they stand in the header's fourteenth byte.
pub(super) mod flag {
    pub(crate) const FIN: u8 = 0x01;
    pub(crate) const SYN: u8 = 0x02;
    pub(crate) const RST: u8 = 0x04;
    pub(crate) const ACK: u8 = 0x10;
    pub(crate) const URG: u8 = 0x20;
    pub(crate) const ECE: u8 = 0x40;
    pub(crate) const CWR: u8 = 0x80;
}

/// What an IP packet says of the one whole TCP segment in it.
///
/// There is none for anything else: fragments, super-segments, packets whose checksum a device is to complete, headers
/// that contradict themselves. Those pass unread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    pub(super) seq: SeqNumber,
    /// Means something only with [`flag::ACK`].
    pub(super) ack: SeqNumber,
    pub(super) flags: u8,
    /// The four bits after the data offset, where TCP-ECN and AccECN have theirs.
    pub(super) reserved: u8,
    /// As it stands in the header, before scaling.
    pub(super) window: u16,
    pub(super) options: TcpOptions,
    /// Bytes of data.
    pub(super) data: u32,
    /// Whether the TCP checksum holds.
    pub(super) is_intact: bool,
    /// Where the TCP header starts.
    at: usize,
    /// Where HACK's checksum stands in the packet, if it is to be kept right (on a SYN it is zero, HACK 3).
    hack: Option<usize>,
}

impl Segment {
    pub(super) fn read(packet: &Packet) -> Option<Self> {
        let is_ordinary = packet.segment_size.is_none() && packet.checksum != Checksum::Partial;
        let (src, dst, at, end) = match packet.data.first().filter(|_| is_ordinary)? >> 4 {
            4 => v4(&packet.data)?,
            6 => v6(&packet.data)?,
            _ => return None,
        };
        let segment = packet.data.get(at..end)?;
        let header: &[u8; TCP_HEADER] = segment.first_chunk()?;
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let word = |at: usize| SeqNumber(u32::from(half(at)) << 16 | u32::from(half(at + 2)));
        let header_len = usize::from(header[AT_OFFSET] >> 4) * 4;
        let list = segment.get(TCP_HEADER..header_len)?;
        let flags = header[13];
        let hack = checksum_at(list).filter(|_| flags & flag::SYN == 0);
        Some(Self {
            src: SocketAddr::new(src, half(0)),
            dst: SocketAddr::new(dst, half(2)),
            seq: word(4),
            ack: word(8),
            flags,
            reserved: header[AT_OFFSET] & 0x0f,
            window: half(AT_WINDOW),
            options: TcpOptions::parse(list).ok()?,
            // An IP packet holds no more.
            data: (segment.len() - header_len) as u32,
            is_intact: packet.checksum == Checksum::Verified
                || checksum::verify_transport(src, dst, TCP, segment),
            at,
            hack: hack.map(|hack| at + TCP_HEADER + hack),
        })
    }

    pub(super) const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// SEG.LEN: the data, and one each for SYN and FIN.
    pub(super) const fn len(&self) -> u32 {
        self.data + self.has(flag::SYN) as u32 + self.has(flag::FIN) as u32
    }

    /// Sets bits of the byte that has the data offset. `packet` is the one this was read from.
    pub(super) fn set_reserved(&self, packet: &mut Packet, bits: u8) {
        let at = self.at + AT_OFFSET;
        let new = [packet.data[at] | (bits & 0x0f), packet.data[at + 1]];
        self.replace(packet, at, new);
    }

    /// Writes the window field. `packet` is the one this was read from.
    pub(super) fn set_window(&self, packet: &mut Packet, window: u16) {
        self.replace(packet, self.at + AT_WINDOW, window.to_be_bytes());
    }

    /// Replaces a word of the header. The TCP checksum, and HACK's, are right after it exactly if they were before: what
    /// was corrupted has to stay so.
    fn replace(&self, packet: &mut Packet, at: usize, new: [u8; 2]) {
        let data = &mut packet.data;
        let two = |data: &[u8], at: usize| [data[at], data[at + 1]];
        let old = two(data, at);
        let sum_at = self.at + AT_CHECKSUM;
        let mut sum = u16::from_be_bytes(two(data, sum_at));
        sum = checksum::update_at(sum, at - self.at, old, new);
        data[at..at + 2].copy_from_slice(&new);
        if let Some(hack) = self.hack {
            let before = two(data, hack);
            let after = checksum::update_at(u16::from_be_bytes(before), at - self.at, old, new);
            let after = after.to_be_bytes();
            data[hack..hack + 2].copy_from_slice(&after);
            sum = checksum::update_at(sum, hack - self.at, before, after);
        }
        data[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Addresses, where the TCP header starts, and where the packet ends.
type Envelope = (IpAddr, IpAddr, usize, usize);

fn v4(data: &[u8]) -> Option<Envelope> {
    let header: &[u8; V4_HEADER] = data.first_chunk()?;
    let len = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if header[9] != TCP || is_fragment || len < V4_HEADER || !checksum::verify(data.get(..len)?) {
        return None;
    }
    let (words, _) = header[12..].as_chunks::<4>();
    let &[src, dst] = words else { return None };
    Some((Ipv4Addr::from(src).into(), Ipv4Addr::from(dst).into(), len, total))
}

fn v6(data: &[u8]) -> Option<Envelope> {
    let header: &[u8; V6_HEADER] = data.first_chunk()?;
    let (addresses, _) = header[8..].as_chunks::<16>();
    let &[src, dst] = addresses else { return None };
    let total = V6_HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let (mut next, mut at) = (header[6], V6_HEADER);
    for _ in 0..MAX_EXTENSIONS {
        if !EXTENSIONS.contains(&next) {
            break;
        }
        let [following, len, _, left] = *data.get(at..)?.first_chunk()?;
        // RFC 8200 section 4.4: with places left to visit the checksum is over another destination.
        if next == EXTENSIONS[1] && left != 0 {
            return None;
        }
        next = following;
        at += (usize::from(len) + 1) * 8;
    }
    (next == TCP).then_some((Ipv6Addr::from(src).into(), Ipv6Addr::from(dst).into(), at, total))
}

/// An ACK that the base station makes in the name of one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MadeAck {
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    pub(super) seq: SeqNumber,
    pub(super) ack: SeqNumber,
    pub(super) window: u16,
    pub(super) timestamps: Option<Timestamps>,
}

impl MadeAck {
    /// The packet, with a hop limit of 64. Addresses of two families make none.
    pub(super) fn build(&self) -> Option<Packet> {
        let options = TcpOptions { timestamps: self.timestamps, ..TcpOptions::default() };
        let mut list = [0; airtcp_types::options::MAX_LEN];
        let list_len = options.encode(&mut list);
        let tcp_len = TCP_HEADER + list_len;
        let mut data = match (self.src.ip(), self.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let [a, b] = ((V4_HEADER + tcp_len) as u16).to_be_bytes();
                let mut header = vec![0x45, 0, a, b, 0, 0, 0x40, 0, 64, TCP, 0, 0];
                header.extend_from_slice(&src.octets());
                header.extend_from_slice(&dst.octets());
                let sum = checksum::checksum(&header).to_be_bytes();
                header[10..12].copy_from_slice(&sum);
                header
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let [a, b] = (tcp_len as u16).to_be_bytes();
                let mut header = vec![0x60, 0, 0, 0, a, b, TCP, 64];
                header.extend_from_slice(&src.octets());
                header.extend_from_slice(&dst.octets());
                header
            }
            _ => return None,
        };
        let at = data.len();
        data.extend_from_slice(&self.src.port().to_be_bytes());
        data.extend_from_slice(&self.dst.port().to_be_bytes());
        data.extend_from_slice(&self.seq.0.to_be_bytes());
        data.extend_from_slice(&self.ack.0.to_be_bytes());
        data.extend_from_slice(&[(tcp_len as u8 / 4) << 4, flag::ACK]);
        data.extend_from_slice(&self.window.to_be_bytes());
        data.extend_from_slice(&[0; 4]);
        data.extend_from_slice(&list[..list_len]);
        let mut sum = checksum::Sum::new();
        sum.add_pseudo_header(self.src.ip(), self.dst.ip(), TCP, tcp_len);
        sum.add_bytes(&data[at..]);
        let sum = sum.finish().to_be_bytes();
        data[at + AT_CHECKSUM..at + AT_CHECKSUM + 2].copy_from_slice(&sum);
        Some(Packet::new(data))
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::options::HackForm;

    use super::super::testkit::{Seg, enclose, from_mobile, key, key_of};
    use super::*;

    #[test]
    fn a_segment_is_read_in_both_families() {
        for number in 0..2 {
            let key = key_of(number);
            let seg =
                Seg { flags: "FA", ack: 9, window: 77, ts: Some((3, 4)), ..Seg::data(5, 100) };
            let segment = Segment::read(&seg.packet(key.fixed, key.mobile)).unwrap();
            assert_eq!((segment.src, segment.dst), (key.fixed, key.mobile));
            assert_eq!((segment.seq, segment.ack), (SeqNumber(5), SeqNumber(9)));
            assert_eq!((segment.window, segment.data, segment.len()), (77, 100, 101));
            assert!(segment.is_intact && segment.has(flag::FIN) && !segment.has(flag::SYN));
            assert_eq!(segment.options.timestamps, Some(Timestamps { val: 3, ecr: 4 }));
        }
    }

    #[test]
    fn extension_headers_are_stepped_over_but_no_route_that_goes_on() {
        let key = key_of(1);
        let (src, dst) = (key.fixed.ip(), key.mobile.ip());
        let tcp = Seg::data(5, 10).packet(key.fixed, key.mobile).data.split_off(40);
        let with = |first: u8, extensions: &[u8]| {
            let payload = [extensions, &tcp].concat();
            Segment::read(&Packet::new(enclose(src, dst, 0, first, &payload)))
        };
        let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
        let destination = [TCP, 0, 1, 4, 0, 0, 0, 0];
        let both = [hop_by_hop, destination].concat();
        assert!(with(0, &both).is_some_and(|segment| segment.is_intact));
        assert!(with(43, &[TCP, 0, 0, 0, 0, 0, 0, 0]).is_some());
        assert_eq!(with(43, &[TCP, 0, 0, 1, 0, 0, 0, 0]), None);
        assert_eq!(with(44, &[TCP, 0, 0, 0, 0, 0, 0, 0]), None, "a fragment");
    }

    #[test]
    fn what_is_not_one_whole_segment_is_none() {
        let whole = Seg::data(5, 10).packet(key().fixed, key().mobile);
        let edit = |edit: &dyn Fn(&mut Packet)| {
            let mut packet = whole.clone();
            edit(&mut packet);
            packet.data[10..12].fill(0);
            let sum = checksum::checksum(&packet.data[..20]).to_be_bytes();
            packet.data[10..12].copy_from_slice(&sum);
            Segment::read(&packet)
        };
        assert!(edit(&|_| {}).is_some());
        assert_eq!(edit(&|packet| packet.data[6] |= 0x20), None, "more fragments");
        assert_eq!(edit(&|packet| packet.data[7] = 1), None, "a later fragment");
        assert_eq!(edit(&|packet| packet.data[9] = 17), None, "UDP");
        assert_eq!(edit(&|packet| packet.data[3] = 255), None, "longer than it is");
        assert_eq!(edit(&|packet| packet.data[3] = 30), None, "too short for a TCP header");
        assert_eq!(
            edit(&|packet| packet.data[32] = 0xf0),
            None,
            "a header longer than the segment"
        );
        assert_eq!(edit(&|packet| packet.data[32] = 0x40), None, "a header shorter than any");
        assert_eq!(edit(&|packet| packet.segment_size = Some(5)), None);
        assert_eq!(edit(&|packet| packet.checksum = Checksum::Partial), None);
        let mut bad = whole.clone();
        bad.data[11] ^= 1;
        assert_eq!(Segment::read(&bad), None, "no host takes it");
    }

    #[test]
    fn another_window_leaves_checksums_right() {
        for hack in [None, Some(HackForm::Kinds)] {
            let (mut packet, segment) = from_mobile(Seg { hack, window: 513, ..Seg::data(5, 33) });
            segment.set_window(&mut packet, 0);
            let after = Segment::read(&packet).unwrap();
            assert!(after.is_intact && after.window == 0);
        }
    }

    #[test]
    fn an_ack_that_is_made_is_one() {
        for number in 0..2 {
            let key = key_of(number);
            let timestamps = Some(Timestamps { val: 7, ecr: 8 });
            let made = MadeAck {
                src: key.mobile,
                dst: key.fixed,
                seq: SeqNumber(1),
                ack: SeqNumber(2),
                window: 3,
                timestamps,
            };
            let segment = Segment::read(&made.build().unwrap()).unwrap();
            assert!(segment.is_intact && segment.flags == flag::ACK && segment.len() == 0);
            assert_eq!((segment.src, segment.dst), (key.mobile, key.fixed));
            assert_eq!((segment.seq.0, segment.ack.0, segment.window), (1, 2, 3));
            assert_eq!(segment.options, TcpOptions { timestamps, ..TcpOptions::default() });
            let mixed = MadeAck { dst: key_of(1 - number).fixed, ..made };
            assert_eq!(mixed.build(), None);
        }
    }
}
