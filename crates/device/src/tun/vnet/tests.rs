use std::sync::Arc;

use airtcp_types::SharedBytes;
use airtcp_wire::checksum::verify;
use proptest::prelude::*;

use super::*;

/// Returns a TCP packet without options and with `len` bytes of payload.
fn tcp(v6: bool, len: usize) -> Vec<u8> {
    let ip = if v6 { 40 } else { 20 };
    let mut data = vec![7; ip + 20 + len];
    data[0] = if v6 { 0x60 } else { 0x45 };
    data[6..8].fill(0);
    data[if v6 { 6 } else { 9 }] = 6;
    data[ip + 12..ip + 14].copy_from_slice(&[5 << 4, 0]);
    data
}

fn behind(flags: u8, gso_type: u8, numbers: [u16; 4], packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![flags, gso_type];
    bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    bytes.extend_from_slice(packet);
    bytes
}

#[test]
fn what_is_written_is_read_again() {
    for (v6, segment_size, checksum) in [
        (false, Some(1000), Checksum::Partial),
        (true, Some(1), Checksum::Partial),
        (false, None, Checksum::Partial),
        (true, None, Checksum::Full),
    ] {
        let packet = Packet { segment_size, checksum, ..Packet::new(tcp(v6, 3000)) };
        let header = header_of(&packet).unwrap();
        let payload = Some(if v6 { 60 } else { 40 });
        let mut bytes = [&header[..], &packet.data].concat();
        assert_eq!(read(&mut bytes), Some(Received { checksum, segment_size, payload }));
        assert_eq!(bytes[LENGTH..], packet.data, "nothing was changed");
    }
}

#[test]
fn the_virtio_header_has_the_offsets() {
    let mut packet = Packet::new(tcp(true, 3000));
    assert_eq!(header_of(&packet), Some([0; LENGTH]));
    packet.checksum = Checksum::Partial;
    packet.segment_size = Some(1440);
    packet.tail.push(SharedBytes::new(&Arc::new(packet.data.split_off(60)), 0..3000));
    let expected = |kind| behind(NEEDS_CSUM, kind, [60, 1440, 40, 16], &[]);
    assert_eq!(header_of(&packet).unwrap()[..], expected(GSO_TCPV6));
    packet.data[40 + 13] = CWR;
    assert_eq!(header_of(&packet).unwrap()[..], expected(GSO_TCPV6 | GSO_ECN));
    packet.data[6] = 17;
    let udp = behind(NEEDS_CSUM, GSO_UDP_L4, [48, 1440, 40, 6], &[]);
    assert_eq!(header_of(&packet).unwrap()[..], udp);
    packet.data[6] = 47;
    assert_eq!(header_of(&packet), None, "nothing that can be cut");
}

#[test]
fn headers_that_do_not_fit_their_packet_are_refused() {
    let good = [40, 1000, 20, 16];
    let packet = tcp(false, 3000);
    let read = |flags, kind, numbers, packet: &[u8]| {
        super::read(&mut behind(flags, kind, numbers, packet))
    };
    assert!(read(NEEDS_CSUM, GSO_TCPV4, good, &packet).is_some());
    assert!(read(NEEDS_CSUM, GSO_TCPV4 | GSO_ECN, good, &packet).is_some());
    // Wrong type; unsupported type (UFO, 3); no segment size; wrong place of the checksum.
    assert!(read(NEEDS_CSUM, GSO_TCPV6, good, &packet).is_none());
    assert!(read(NEEDS_CSUM, 3, good, &packet).is_none());
    assert!(read(NEEDS_CSUM, GSO_TCPV4, [40, 0, 20, 16], &packet).is_none());
    assert!(read(NEEDS_CSUM, GSO_TCPV4, [40, 1000, 20, 6], &packet).is_none());
    // A checksum beyond the end (twice); not a TCP packet; shorter than the virtio header.
    assert!(read(NEEDS_CSUM, GSO_NONE, [40, 0, 3040, 0], &packet).is_none());
    assert!(read(NEEDS_CSUM, GSO_NONE, [40, 0, u16::MAX, u16::MAX], &packet).is_none());
    assert!(read(0, GSO_TCPV4, good, &[0x45; 19]).is_none());
    assert_eq!(super::read(&mut [0; LENGTH - 1]), None);
}

#[test]
fn virtio_flags_give_the_checksum_state() {
    let packet = tcp(false, 3000);
    let read = |flags, kind| {
        let mut bytes = behind(flags, kind, [40, 1000, 20, 16], &packet);
        super::read(&mut bytes).unwrap().checksum
    };
    assert_eq!(read(0, GSO_NONE), Checksum::Full);
    assert_eq!(read(DATA_VALID, GSO_NONE), Checksum::Verified);
    assert_eq!(read(NEEDS_CSUM, GSO_NONE), Checksum::Partial);
    assert_eq!(read(0, GSO_TCPV4), Checksum::Verified);
}

#[test]
fn a_partial_checksum_of_another_protocol_is_completed() {
    // Another transport protocol, with its checksum at byte 2, which covers only its own bytes.
    let mut packet = tcp(false, 100);
    packet[9] = 33;
    packet[22..24].fill(0);
    let mut bytes = behind(NEEDS_CSUM, GSO_NONE, [40, 0, 20, 2], &packet);
    let expected = Received { checksum: Checksum::Full, segment_size: None, payload: None };
    assert_eq!(read(&mut bytes), Some(expected));
    assert!(!verify(&packet[20..]) && verify(&bytes[LENGTH + 20..]));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..160),
        flags in 0..4u8,
        kind in 0..6u8,
        numbers in prop::array::uniform4(0..70u16),
        protocol in prop_oneof![Just(6), Just(17), any::<u8>()],
        v6 in any::<bool>(),
        shaped in any::<bool>(),
    ) {
        if shaped && bytes.len() > LENGTH + 20 {
            let mut header = behind(flags, kind, numbers, &[if v6 { 0x60 } else { 0x45 }]);
            header.resize(LENGTH + 6, 0);
            header.extend(if v6 { [protocol, 0, 64, 0] } else { [0, 0, 64, protocol] });
            bytes[..header.len()].copy_from_slice(&header);
        }
        let before = bytes.len();
        if let Some(received) = read(&mut bytes) {
            prop_assert!(received.payload.is_none_or(|payload| payload <= before - LENGTH));
            prop_assert!(received.segment_size != Some(0));
            let packet = Packet {
                segment_size: received.segment_size,
                checksum: received.checksum,
                ..Packet::new(bytes.split_off(LENGTH))
            };
            prop_assert!(header_of(&packet).is_some(), "what was received can be sent");
        }
    }
}
