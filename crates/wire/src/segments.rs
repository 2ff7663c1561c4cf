//! Splitting of super-segments into segments of MTU size, as in an offloading device.

use airtcp_types::{Checksum, Packet};

use crate::checksum::{Sum, checksum};
use crate::headers::addresses;
use crate::tcp::flag;
use crate::{Headers, Layout, ip};

/// Calls `each` with the packets that `packet` becomes on the wire: the packet itself if it is
/// ordinary and its checksum is complete; otherwise its segments in order, with their checksums.
///
/// Splits as the Linux kernel does: FIN and PSH are only in the last segment, CWR only in the
/// first, and the IPv4 identification increases. A packet that is neither TCP nor UDP is not split.
/// A packet whose checksum is complete, but whose data is shared, keeps its checksum.
pub fn each_segment(packet: &Packet, mut each: impl FnMut(&Packet)) {
    if is_ordinary(packet) {
        return each(packet);
    }
    cut(packet, |segment| each(&segment));
}

/// Like [`each_segment`], but passes the packets by value.
pub fn into_segments(packet: Packet, mut each: impl FnMut(Packet)) {
    if is_ordinary(&packet) {
        return each(packet);
    }
    cut(&packet, each);
}

fn cut(packet: &Packet, mut each: impl FnMut(Packet)) {
    let mut whole = packet.data.clone();
    packet.tail.iter().for_each(|part| whole.extend_from_slice(part));
    let is_cut = packet.segment_size.is_some() || packet.checksum == Checksum::Partial;
    let Some(layout) = Layout::of(&whole).filter(|_| is_cut) else {
        return each(Packet { data: whole, checksum: packet.checksum, ..Packet::default() });
    };
    let whole = Headers::of(&whole).map_or(&whole[..], |headers| headers.trim(&whole));
    let (headers, payload) = whole.split_at(layout.payload);
    let size = packet.segment_size.map_or(payload.len(), usize::from).max(1);
    let count = payload.len().div_ceil(size).max(1);
    for index in 0..count {
        let from = index * size;
        let part = &payload[from..payload.len().min(from + size)];
        let mut segment = [headers, part].concat();
        let place = Place { index, offset: from, is_last: index + 1 == count };
        finish(&mut segment, layout, place);
        each(Packet::new(segment));
    }
}

/// Whether the packet is as on the wire: not a super-segment, no shared data, a complete checksum.
fn is_ordinary(packet: &Packet) -> bool {
    packet.segment_size.is_none() && packet.tail.is_empty() && packet.checksum != Checksum::Partial
}

/// The position of a segment in its super-segment.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    /// The offset in bytes of payload.
    offset: usize,
    is_last: bool,
}

/// Adapts the copied headers to the segment.
fn finish(segment: &mut [u8], layout: Layout, place: Place) {
    let Layout { v6, tcp, transport, .. } = layout;
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
    let (src, dst) = addresses(v6, segment);
    if v6 {
        let len = length(segment.len() - ip::V6_HEADER_LEN);
        segment[4..6].copy_from_slice(&len);
    } else {
        let len = length(segment.len());
        segment[2..4].copy_from_slice(&len);
        let id = u16::from_be_bytes([segment[4], segment[5]]).wrapping_add(place.index as u16);
        segment[4..6].copy_from_slice(&id.to_be_bytes());
        segment[10..12].fill(0);
        let sum = checksum(&segment[..transport]);
        segment[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let bytes = &mut segment[transport..];
    if tcp {
        let seq = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        bytes[4..8].copy_from_slice(&seq.wrapping_add(place.offset as u32).to_be_bytes());
        if !place.is_last {
            bytes[13] &= !(flag::FIN | flag::PSH);
        }
        if place.index > 0 {
            bytes[13] &= !flag::CWR;
        }
    } else {
        let len = length(bytes.len());
        bytes[4..6].copy_from_slice(&len);
    }
    let at = layout.checksum();
    bytes[at..at + 2].fill(0);
    let mut sum = Sum::new();
    sum.add_pseudo_header(src, dst, layout.protocol(), bytes.len());
    sum.add_bytes(bytes);
    let sum = match sum.finish() {
        // RFC 768: zero means that there is no checksum.
        0 if !tcp => u16::MAX,
        sum => sum,
    };
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use airtcp_types::SharedBytes;

    use super::*;
    use crate::checksum::{verify, verify_transport};

    /// Returns a super-segment with `len` bytes of payload in two shared pieces.
    fn super_segment(v6: bool, protocol: u8, len: usize, size: u16) -> Packet {
        let (ip, transport) = (if v6 { 40 } else { 20 }, if protocol == 6 { 32 } else { 8 });
        let mut data = vec![0; ip + transport];
        data[0] = if v6 { 0x60 } else { 0x45 };
        if v6 {
            data[6] = protocol;
            data[23] = 1;
            data[39] = 2;
        } else {
            data[9] = protocol;
            data[4..6].copy_from_slice(&[0xff, 0xff]);
            data[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        }
        if protocol == 6 {
            data[ip + 4..ip + 8].copy_from_slice(&(u32::MAX - 50).to_be_bytes());
            data[ip + 12] = 8 << 4;
            data[ip + 13] = flag::CWR | flag::FIN | flag::PSH | flag::ACK;
        }
        let payload = Arc::new((0..len).map(|at| (at % 251) as u8).collect::<Vec<u8>>());
        let tail =
            vec![SharedBytes::new(&payload, 0..len / 3), SharedBytes::new(&payload, len / 3..len)];
        Packet { data, tail, segment_size: Some(size), checksum: Checksum::Partial }
    }

    fn segments(packet: &Packet) -> Vec<Packet> {
        let mut segments = Vec::new();
        each_segment(packet, |segment| segments.push(segment.clone()));
        segments
    }

    #[test]
    fn segments_are_whole_packets_that_carry_what_the_super_segment_did() {
        for (v6, protocol) in [(false, 6), (true, 6), (false, 17), (true, 17)] {
            let segments = segments(&super_segment(v6, protocol, 250, 100));
            let mut payload = Vec::new();
            for segment in &segments {
                let data = &segment.data;
                assert_eq!((segment.segment_size, segment.checksum), (None, Checksum::Full));
                let layout = Layout::of(data).unwrap();
                let (src, dst): (IpAddr, IpAddr) = match v6 {
                    true => ([0, 0, 0, 0, 0, 0, 0, 1].into(), [0, 0, 0, 0, 0, 0, 0, 2].into()),
                    false => ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
                };
                assert!(verify_transport(src, dst, protocol, &data[layout.transport..]));
                let (at, rest) = if v6 { (4, data.len() - 40) } else { (2, data.len()) };
                assert_eq!(data[at..at + 2], (rest as u16).to_be_bytes());
                assert!(v6 || verify(&data[..20]));
                payload.extend_from_slice(&data[layout.payload..]);
            }
            assert!(payload.into_iter().eq((0..250).map(|at| (at % 251) as u8)));
            let lengths: Vec<usize> = segments.iter().map(Packet::len).collect();
            let headers = if v6 { 40 } else { 20 } + if protocol == 6 { 32 } else { 8 };
            assert_eq!(lengths, [headers + 100, headers + 100, headers + 50]);
        }
    }

    #[test]
    fn headers_between_are_repeated_and_counted() {
        let mut packet = super_segment(true, 6, 250, 100);
        packet.data[6] = 60;
        packet.data.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
        let segments = segments(&packet);
        let lengths: Vec<usize> = segments.iter().map(Packet::len).collect();
        assert_eq!(lengths, [180, 180, 130]);
        for segment in segments {
            let data = &segment.data;
            assert_eq!(data[4..6], ((data.len() - 40) as u16).to_be_bytes());
            assert_eq!(data[40..48], [6, 0, 1, 4, 0, 0, 0, 0]);
            let ends = [1, 2].map(|last| IpAddr::from([0, 0, 0, 0, 0, 0, 0, last]));
            assert!(verify_transport(ends[0], ends[1], 6, &data[48..]));
        }
    }

    #[test]
    fn numbers_count_up_and_flags_stand_where_they_belong() {
        let segments = segments(&super_segment(false, 6, 250, 100));
        let field = |at: usize, len: usize| -> Vec<u64> {
            let read = |bytes: &[u8]| bytes.iter().fold(0, |sum, &b| sum << 8 | u64::from(b));
            segments.iter().map(|segment| read(&segment.data[at..at + len])).collect()
        };
        assert_eq!(field(4, 2), [0xffff, 0, 1]);
        assert_eq!(field(24, 4), [u64::from(u32::MAX) - 50, 49, 149]);
        assert_eq!(field(33, 1), [0x90, 0x10, 0x19]);
    }

    #[test]
    fn an_ordinary_packet_is_shown_as_it_is_and_a_partial_checksum_is_completed() {
        let mut packet = super_segment(false, 6, 50, 100);
        let whole = segments(&packet);
        assert_eq!(whole.len(), 1);
        assert_eq!(segments(&whole[0]), whole);
        packet.segment_size = None;
        assert_eq!(segments(&packet), whole);
    }

    #[test]
    fn they_are_given_as_they_are_shown() {
        let given = |packet: Packet| {
            let mut given = Vec::new();
            into_segments(packet, |segment| given.push(segment));
            given
        };
        let packet = super_segment(false, 6, 250, 100);
        let shown = segments(&packet);
        assert_eq!(given(packet), shown);
        let place = shown[0].data.as_ptr();
        assert_eq!(given(shown.into_iter().next().unwrap())[0].data.as_ptr(), place, "not copied");
    }

    #[test]
    fn bytes_behind_the_packet_are_no_data() {
        for v6 in [false, true] {
            let mut packet = super_segment(v6, 6, 250, 100);
            let (at, len) = if v6 { (4, packet.len() - 40) } else { (2, packet.len()) };
            packet.data[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
            let whole = segments(&packet);
            packet.tail.push(SharedBytes::new(&Arc::new(vec![9; 80]), 0..80));
            assert_eq!(segments(&packet), whole);
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = super_segment(false, 6, 50, 100);
        packet.data[36..38].copy_from_slice(&[0xba, 0xad]);
        (packet.segment_size, packet.checksum) = (None, Checksum::Full);
        let shown = segments(&packet);
        assert_eq!(shown[0].data[36..38], [0xba, 0xad]);
        assert_eq!((shown.len(), shown[0].len(), shown[0].tail.len()), (1, packet.len(), 0));
    }

    #[test]
    fn what_cannot_be_cut_is_shown_whole() {
        let mut packet = super_segment(false, 6, 250, 100);
        packet.data[9] = 1;
        let shown = segments(&packet);
        assert_eq!((shown.len(), shown[0].len()), (1, packet.len()));
        packet.data.clear();
        packet.tail.clear();
        assert_eq!(segments(&packet).len(), 1);
    }
}
