//! Encoding of data frames, to decide how a corrupted one is received.

use super::FrameNo;

/// The header: the number, the length of the packet, and the CRC of both.
const HEADER: usize = 8 + 2 + 4;
/// The CRC of the whole frame.
const TRAILER: usize = 4;

/// The result of decoding a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Received {
    /// The frame is intact.
    Whole { no: FrameNo, packet: Vec<u8> },
    /// The header is intact, the packet is damaged.
    Damaged { no: FrameNo, packet: Vec<u8> },
    /// The header is damaged.
    Unreadable,
}

/// Encodes the frame that carries a packet. The header's CRC-32 also covers an IPv6 header, which
/// has no checksum of its own.
pub(super) fn encode(no: FrameNo, packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER + packet.len() + TRAILER);
    frame.extend_from_slice(&no.0.to_be_bytes());
    // An IP packet is at most 65,535 bytes long.
    frame.extend_from_slice(&(packet.len() as u16).to_be_bytes());
    frame.extend_from_slice(&header_crc(&frame, packet).to_be_bytes());
    frame.extend_from_slice(packet);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// Decodes a frame from any bytes.
pub(super) fn decode(frame: &[u8]) -> Received {
    let Some((body, trailer)) = frame.split_last_chunk::<TRAILER>() else {
        return Received::Unreadable;
    };
    let Some((header, packet)) = body.split_at_checked(HEADER) else { return Received::Unreadable };
    let (fields, crc) = header.split_at(HEADER - 4);
    let fits = usize::from(u16::from_be_bytes([fields[8], fields[9]])) == packet.len();
    if !fits || crc != header_crc(fields, packet).to_be_bytes() {
        return Received::Unreadable;
    }
    let (no, packet) = (FrameNo(number(fields)), packet.to_vec());
    if crc32fast::hash(body).to_be_bytes() == *trailer {
        Received::Whole { no, packet }
    } else {
        Received::Damaged { no, packet }
    }
}

fn number(fields: &[u8]) -> u64 {
    fields[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn header_crc(fields: &[u8], packet: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(fields);
    if packet.first().is_some_and(|first| first >> 4 == 6) {
        crc.update(packet.get(..40).unwrap_or(packet));
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::{ipv4_tcp, ipv6_udp};

    const NO: FrameNo = FrameNo(0x0102_0304_0506_0708);

    #[test]
    fn flips_in_the_packet_and_in_the_header_are_distinguished() {
        let packet = ipv4_tcp(100, 0).data;
        let frame = encode(NO, &packet);
        assert_eq!(decode(&frame), Received::Whole { no: NO, packet: packet.clone() });
        for bit in 0..frame.len() * 8 {
            let mut hit = frame.clone();
            hit[bit / 8] ^= 0x80 >> (bit % 8);
            match decode(&hit) {
                Received::Damaged { no, packet: damaged } => {
                    assert!(bit / 8 >= HEADER, "{bit}");
                    assert_eq!(no, NO);
                    // A flip in the trailer leaves the packet intact.
                    assert_eq!(damaged == packet, bit / 8 >= frame.len() - TRAILER);
                }
                other => {
                    // A changed version in the first byte also changes the range that the header's
                    // CRC covers.
                    assert_eq!((other, bit / 8 <= HEADER), (Received::Unreadable, true), "{bit}");
                }
            }
        }
    }

    #[test]
    fn an_ipv6_header_is_covered() {
        let mut frame = encode(NO, &ipv6_udp(10).data);
        frame[HEADER + 39] ^= 1;
        assert_eq!(decode(&frame), Received::Unreadable);
        let mut frame = encode(NO, &ipv6_udp(10).data);
        frame[HEADER + 40] ^= 1;
        assert!(matches!(decode(&frame), Received::Damaged { .. }));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Received::Whole { no, packet } = decode(&bytes) {
                prop_assert_eq!(encode(no, &packet), bytes);
            }
        }

        #[test]
        fn any_packet_comes_back(packet in prop::collection::vec(any::<u8>(), 0..200), no: u64) {
            let no = FrameNo(no);
            prop_assert_eq!(decode(&encode(no, &packet)), Received::Whole { no, packet });
        }
    }
}
