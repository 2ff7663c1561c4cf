//! Runs: consecutive segments that are processed as one.

use airtcp_types::{Checksum, Packet, SeqNumber};

use crate::tcp::flag::{ACK, CWR, ECE, PSH};
use crate::{Layout, checksum, ip};

/// The maximum amount of data in a run (bytes): as much as in one packet of a device.
const LONGEST: usize = 65_535;

/// Returns the length of the run at the start of `packets`: how many of them TCP can process as one
/// packet with the data of all. At least one, unless `packets` is empty.
///
/// The conditions are stricter than those of Linux's `tcp_gro_receive`: consecutive TCP segments
/// with no flags other than ACK, PSH and those of ECN; each has data, which the next one continues;
/// all other header fields are equal, including timestamps and both ECN fields; all have the same
/// amount of data, except that the last one may have less, or the PSH flag. Checksums are not
/// verified: see [`is_sound`].
pub fn length(packets: &[Packet]) -> usize {
    let [first, later @ ..] = packets else { return 0 };
    let Some(head) = (!later.is_empty()).then(|| Head::of(first)).flatten() else { return 1 };
    let mut next = head.seq + head.size as u32;
    let mut total = head.size;
    let mut count = 1;
    let is_pushed = |packet: &Packet| packet.data[head.tcp + 13] & PSH != 0;
    let mut is_open = !is_pushed(first);
    for packet in later {
        let size = packet.data.len().wrapping_sub(head.payload);
        if !is_open
            || size > head.size
            || total + size > LONGEST
            || !head.is_followed_by(first, packet, next)
        {
            break;
        }
        is_open = size == head.size && !is_pushed(packet);
        next = next + size as u32;
        total += size;
        count += 1;
    }
    count
}

/// Whether the checksums of a packet of a run are correct. The TCP checksum is not verified if the
/// device or a local sender has verified it.
pub fn is_sound(packet: &Packet) -> bool {
    let Ok(datagram) = ip::parse(&packet.data) else { return false };
    packet.checksum != Checksum::Full
        || checksum::verify_transport(datagram.src, datagram.dst, ip::TCP, datagram.payload)
}

/// The fields of the first packet of a run.
struct Head {
    v6: bool,
    /// The offsets of the TCP header and of the data.
    tcp: usize,
    payload: usize,
    seq: SeqNumber,
    /// The amount of data in bytes.
    size: usize,
}

impl Head {
    /// Reads a packet; `None` if it cannot be part of a run.
    fn of(packet: &Packet) -> Option<Self> {
        let data = &packet.data[..];
        let is_ordinary = packet.segment_size.is_none() && packet.tail.is_empty();
        let layout = Layout::of(data).filter(|layout| is_ordinary && layout.tcp)?;
        let Layout { v6, transport: tcp, payload, .. } = layout;
        let is_short = tcp == if v6 { ip::V6_HEADER_LEN } else { ip::V4_HEADER_LEN };
        let is_plain = is_short
            && data[tcp + 13] & !(PSH | ECE | CWR) == ACK
            && length_of(v6, data) == data.len();
        let seq = SeqNumber(u32::from_be_bytes(*data[tcp + 4..].first_chunk()?));
        let size = data.len() - payload;
        (is_plain && size > 0).then_some(Self { v6, tcp, payload, seq, size })
    }

    /// Whether `packet` has the headers of `first`, and its data starts at `seq`.
    fn is_followed_by(&self, first: &Packet, packet: &Packet, seq: SeqNumber) -> bool {
        let (a, b) = (&first.data[..], &packet.data[..]);
        let Self { v6, tcp, payload, .. } = *self;
        let is_ordinary = packet.segment_size.is_none() && packet.tail.is_empty();
        if !is_ordinary || b.len() <= payload || length_of(v6, b) != b.len() {
            return false;
        }
        // Except lengths, identification and checksums.
        let same_ip = match v6 {
            true => a[..4] == b[..4] && a[6..40] == b[6..40],
            false => a[..2] == b[..2] && a[6..10] == b[6..10] && a[12..20] == b[12..20],
        };
        let (a, b) = (&a[tcp..payload], &b[tcp..payload]);
        same_ip
            && a[..4] == b[..4]
            && b[4..8] == seq.0.to_be_bytes()
            && a[8..13] == b[8..13]
            && a[13] & !PSH == b[13] & !PSH
            && a[14..16] == b[14..16]
            && a[18..] == b[18..]
    }
}

/// Returns the packet length by the IP header. At least 20 bytes of the header are present, or 40
/// with IPv6.
fn length_of(v6: bool, data: &[u8]) -> usize {
    let number = |at: usize| usize::from(u16::from_be_bytes([data[at], data[at + 1]]));
    if v6 { ip::V6_HEADER_LEN + number(4) } else { number(2) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use airtcp_types::{FlowId, SharedBytes};

    use super::*;
    use crate::options::{TcpOptions, Timestamps};
    use crate::tcp::{Flags, Header, emit_super};

    const SIZE: u16 = 100;

    /// Returns a run with `len` bytes of data in total.
    fn run(v6: bool, len: usize, psh: bool) -> Vec<Packet> {
        let [local, remote] = match v6 {
            true => ["[fd00::1]:1000", "[fd00::2]:80"],
            false => ["10.0.0.1:1000", "10.0.0.2:80"],
        };
        let flow = FlowId { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
        let stamps = Timestamps { val: 7, ecr: 8 };
        let header = Header {
            seq: SeqNumber(u32::MAX - 150),
            ack: Some(SeqNumber(5)),
            flags: Flags { psh, ..Flags::ACK },
            window: 1000,
            options: TcpOptions { timestamps: Some(stamps), ..TcpOptions::default() },
        };
        let buffer = Arc::new((0..len).map(|at| at as u8).collect::<Vec<_>>());
        let payload = std::iter::once(SharedBytes::new(&buffer, 0..len));
        let whole = emit_super(Packet::default(), &flow, 64, &header, payload, SIZE);
        let mut packets = Vec::new();
        crate::into_segments(whole, |segment| packets.push(segment));
        packets
    }

    /// Corrects the checksums.
    fn seal(packet: &mut Packet) {
        let data = &mut packet.data;
        let v6 = data[0] >> 4 == 6;
        let at = if v6 { 40 } else { 20 };
        if !v6 {
            data[10..12].fill(0);
            let sum = checksum::checksum(&data[..20]);
            data[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let Ok(datagram) = ip::parse(data) else { return };
        let mut sum = checksum::Sum::new();
        sum.add_pseudo_header(datagram.src, datagram.dst, ip::TCP, datagram.payload.len());
        data[at + 16..at + 18].fill(0);
        sum.add_bytes(&data[at..]);
        data[at + 16..at + 18].copy_from_slice(&sum.finish().to_be_bytes());
    }

    #[test]
    fn what_a_device_cuts_a_packet_into_is_a_run() {
        for v6 in [false, true] {
            for (len, count) in [(100, 1), (300, 3), (301, 4), (399, 4)] {
                let packets = run(v6, len, true);
                assert_eq!((packets.len(), length(&packets)), (count, count));
                assert!(packets.iter().all(is_sound));
            }
        }
        assert_eq!(length(&[]), 0);
    }

    #[test]
    fn a_short_segment_a_gap_and_64_kib_end_a_run() {
        let mut packets = run(false, 1000, false);
        assert_eq!(length(&packets), 10);
        let missing = packets.remove(4);
        assert_eq!(length(&packets), 4);
        packets.insert(4, missing.clone());
        packets.insert(4, missing);
        assert_eq!(length(&packets), 5, "twice the same");
        let mut short = run(false, 250, false);
        assert_eq!(length(&short), 3);
        // Packets after a short one; then a first packet that is shorter than the next.
        short.extend(run(false, 450, false).drain(3..));
        assert_eq!(length(&short), 3);
        assert_eq!(
            length(&[&run(false, 250, false)[2..], &run(false, 350, false)[3..]].concat()),
            1
        );
        assert_eq!(length(&run(false, 65_400, false)), 654);
        let mut long = run(false, 65_400, false);
        long.extend(run(false, 65_400, false));
        for (at, packet) in long.iter_mut().enumerate() {
            let seq = (u32::MAX - 150).wrapping_add(at as u32 * u32::from(SIZE));
            packet.data[24..28].copy_from_slice(&seq.to_be_bytes());
        }
        assert_eq!(length(&long), LONGEST / usize::from(SIZE));
    }

    #[test]
    fn super_segments_and_what_stands_elsewhere_are_no_part_of_a_run() {
        let packets = run(false, 300, false);
        for change in [
            |packet: &mut Packet| packet.segment_size = Some(50),
            |packet: &mut Packet| packet.tail.push(SharedBytes::default()),
        ] {
            for at in 0..3 {
                let mut packets = packets.clone();
                change(&mut packets[at]);
                assert_eq!(length(&packets), at.max(1));
            }
        }
    }

    /// Any differing bit ends the run, or is found by a checksum if the comparison ignores it.
    #[test]
    fn one_bit_that_differs_ends_a_run_or_is_found_by_a_checksum() {
        for (v6, tcp) in [(false, 20), (true, 40)] {
            let good = run(v6, 300, false);
            for bit in 0..good[1].data.len() * 8 {
                let at = bit / 8;
                let mut packets = good.clone();
                packets[1].data[at] ^= 1 << (bit % 8);
                assert!(length(&packets) == 1 || !is_sound(&packets[1]), "bit {bit}");
                seal(&mut packets[1]);
                // The IPv4 identification may have any value. PSH ends a run after its packet.
                let is_free = !v6 && (4..6).contains(&at);
                let is_sum = !v6 && (10..12).contains(&at) || (tcp + 16..tcp + 18).contains(&at);
                let is_psh = bit == (tcp + 13) * 8 + 3;
                let is_data = at >= tcp + 32;
                let expected = match (is_free || is_sum || is_data, is_psh) {
                    (true, _) => 3,
                    (_, true) => 2,
                    _ => 1,
                };
                assert_eq!(length(&packets), expected, "bit {bit} of the second, v6 {v6}");
                packets = good.clone();
                packets[0].data[at] ^= 1 << (bit % 8);
                seal(&mut packets[0]);
                let expected = if is_psh { 1 } else { expected };
                assert_eq!(length(&packets), expected, "bit {bit} of the first, v6 {v6}");
            }
            for len in 0..good[1].data.len() {
                let mut packets = good.clone();
                packets[1].data.truncate(len);
                assert_eq!(length(&packets), 1);
                packets.swap(0, 1);
                assert_eq!(length(&packets), 1);
            }
        }
    }

    #[test]
    fn options_of_ip_are_for_packets_of_their_own() {
        let mut packets = run(false, 300, false);
        for packet in &mut packets {
            // Four NOP options.
            packet.data.splice(20..20, [1; 4]);
            (packet.data[0], packet.data[3]) = (0x46, packet.data.len() as u8);
        }
        assert_eq!(length(&packets), 1);
        let mut packets = run(true, 300, false);
        for packet in &mut packets {
            // A destination options header with padding only.
            packet.data.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
            (packet.data[5], packet.data[6]) = (packet.data[5] + 8, 60);
        }
        assert!(packets.iter().all(is_sound));
        assert_eq!(length(&packets), 1);
    }

    #[test]
    fn other_flags_are_for_packets_of_their_own() {
        for flags in [0, 0x01, 0x02, 0x04, 0x11, 0x12, 0x14, 0x19, 0x30, 0x40, 0x80, 0xc0, 0xd1] {
            let mut packets = run(false, 300, false);
            packets.iter_mut().for_each(|packet| packet.data[33] = flags);
            assert_eq!(length(&packets), 1, "{flags:#x}");
        }
    }

    /// RFC 9768 section 3.3.4: ACE is a number, so a packet has only one.
    #[test]
    fn segments_with_the_same_ace_are_a_run_and_another_ace_ends_it() {
        let with = |packet: &mut Packet, ace: u8| {
            packet.data[32] = packet.data[32] & !1 | ace >> 2;
            packet.data[33] = packet.data[33] & 0x3f | ace << 6;
        };
        for ace in 0..8 {
            let mut packets = run(false, 400, true);
            packets.iter_mut().for_each(|packet| with(packet, ace));
            assert_eq!(length(&packets), 4);
            for other in (0..8).filter(|&other| other != ace) {
                let mut packets = packets.clone();
                with(&mut packets[2], other);
                assert_eq!(length(&packets), 2, "{ace} {other}");
            }
        }
    }
}
