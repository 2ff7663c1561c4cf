//! Packets on which readers of headers may differ, with the correct reading of each.

use std::net::IpAddr;

use crate::checksum::{Sum, checksum};

/// Protocol numbers and numbers of IPv6 extension headers.
pub(crate) mod number {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const ESP: u8 = 50;
    pub(crate) const AUTH: u8 = 51;
    pub(crate) const DESTINATION: u8 = 60;
    pub(crate) const MOBILITY: u8 = 135;
}
use number::{AUTH, DESTINATION, ESP, FRAGMENT, HOP_BY_HOP, MOBILITY, ROUTING, TCP, UDP};

/// The correct reading of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    /// A TCP segment: the offset of its header, and the length of its data.
    Tcp(usize, usize),
    /// A UDP datagram: the offset of its header, and the length of its data.
    Udp(usize, usize),
    /// A fragment of a packet.
    Fragment,
    /// A packet of another protocol, with its number.
    Other(u8),
    /// A packet that is rejected.
    Refused,
}
use Right::{Fragment, Other, Refused, Tcp, Udp};

pub(crate) struct Row {
    pub(crate) what: &'static str,
    /// The section that defines the correct reading.
    pub(crate) source: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// The reading of a host.
    pub(crate) host: Right,
    /// The reading of an editor or of a capture: checksums are not verified, a length of zero means
    /// that of the bytes, and the packet may be truncated.
    pub(crate) passer_by: Right,
}

/// An extension header: its type, and its bytes with the next-header field to be filled in.
pub(crate) type Extension = (u8, Vec<u8>);

/// Options of eight bytes that contain only padding.
pub(crate) fn options(kind: u8) -> Extension {
    (kind, vec![0, 0, 1, 4, 0, 0, 0, 0])
}

pub(crate) fn routing(segments_left: u8) -> Extension {
    (ROUTING, vec![0, 0, 0, segments_left, 0, 0, 0, 0])
}

pub(crate) fn fragment(offset: u16, more: bool) -> Extension {
    let [high, low] = (offset | u16::from(more)).to_be_bytes();
    (FRAGMENT, vec![0, 0, high, low, 0, 0, 0, 7])
}

/// Returns an IPv6 packet with correct lengths.
pub(crate) fn v6(extensions: &[Extension], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len: usize = extensions.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(((len + payload.len()) as u16).to_be_bytes());
    packet.extend([extensions.first().map_or(protocol, |first| first.0), 64]);
    for last in [1, 2] {
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    let later = extensions.iter().skip(1).map(|(kind, _)| *kind).chain([protocol]);
    for ((_, bytes), next) in extensions.iter().zip(later) {
        packet.push(next);
        packet.extend(&bytes[1..]);
    }
    packet.extend(payload);
    packet
}

/// Returns an IPv4 packet with `options`, correct lengths and a correct checksum.
pub(crate) fn v4(options: &[u8], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header_len = 20 + options.len();
    let [high, low] = ((header_len + payload.len()) as u16).to_be_bytes();
    let first = 0x40 | (header_len / 4) as u8;
    let mut packet = vec![first, 0, high, low, 0, 9, 0x40, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(options);
    packet.extend(payload);
    seal(&mut packet);
    packet
}

/// Corrects the checksum of an IPv4 header.
pub(crate) fn seal(packet: &mut [u8]) {
    let header_len = usize::from(packet[0] & 0x0f) * 4;
    packet[10..12].fill(0);
    let sum = checksum(&packet[..header_len.min(packet.len())]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn edited(mut packet: Vec<u8>, edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    edit(&mut packet);
    if packet[0] >> 4 == 4 {
        seal(&mut packet);
    }
    packet
}

fn ends(is_v6: bool) -> [IpAddr; 2] {
    [1, 2].map(|last| match is_v6 {
        true => [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last].into(),
        false => [10, 0, 0, last].into(),
    })
}

fn sum(is_v6: bool, protocol: u8, segment: &[u8]) -> u16 {
    let [src, dst] = ends(is_v6);
    let mut sum = Sum::new();
    sum.add_pseudo_header(src, dst, protocol, segment.len());
    sum.add_bytes(segment);
    sum.finish()
}

/// Returns a segment with four bytes of options and `data`, with a correct checksum after `edit`.
pub(crate) fn tcp_edited(is_v6: bool, data: &[u8], edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut segment = vec![0x0f, 0xa0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 6 << 4, 0x10, 2, 0];
    segment.extend([0, 0, 0, 0, 1, 1, 1, 1]);
    segment.extend(data);
    edit(&mut segment);
    let sum = sum(is_v6, TCP, &segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    segment
}

pub(crate) fn tcp(is_v6: bool, data: &[u8]) -> Vec<u8> {
    tcp_edited(is_v6, data, |_| ())
}

/// Returns a datagram with `data`, followed by `beyond`, which neither length nor checksum cover.
pub(crate) fn udp(is_v6: bool, data: &[u8], beyond: &[u8]) -> Vec<u8> {
    let [high, low] = (8 + data.len() as u16).to_be_bytes();
    let mut datagram = vec![0x0f, 0xa0, 0, 53, high, low, 0, 0];
    datagram.extend(data);
    let sum = match sum(is_v6, UDP, &datagram) {
        0 => u16::MAX,
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    datagram.extend(beyond);
    datagram
}

/// Returns a datagram with a wrong length field, and a checksum that is correct for all of its
/// bytes.
fn udp_with_length(is_v6: bool, length: u8) -> Vec<u8> {
    let mut datagram = udp(is_v6, &[7; 4], &[]);
    datagram[5] = length;
    datagram[6..8].fill(0);
    let sum = sum(is_v6, UDP, &datagram);
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    datagram
}

/// Returns a datagram over IPv6 whose checksum field is zero, and whose sum is zero, too.
fn udp_without_checksum() -> Vec<u8> {
    let mut datagram = udp(true, &[0; 4], &[]);
    datagram[6..8].fill(0);
    let rest = sum(true, UDP, &datagram);
    datagram[8..10].copy_from_slice(&rest.to_be_bytes());
    datagram
}

fn row(what: &'static str, source: &'static str, right: Right, bytes: Vec<u8>) -> Row {
    Row { what, source, bytes, host: right, passer_by: right }
}

/// Returns all rows.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = v6_rows();
    rows.extend(v4_rows());
    rows.extend(transport_rows());
    rows
}

fn v6_rows() -> Vec<Row> {
    let segment = tcp(true, b"data!");
    let with = |extensions: &[Extension]| v6(extensions, TCP, &segment);
    let destination = || options(DESTINATION);
    let many = |count| vec![destination(); count];
    let authentication =
        (AUTH, vec![0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    vec![
        row("v6: TCP", "RFC 8200 3", Tcp(40, 5), with(&[])),
        row("v6: hop-by-hop options", "RFC 8200 4.3", Tcp(48, 5), with(&[options(HOP_BY_HOP)])),
        row("v6: destination options", "RFC 8200 4.6", Tcp(48, 5), with(&[destination()])),
        row("v6: routing, no segments left", "RFC 8200 4.4", Tcp(48, 5), with(&[routing(0)])),
        row("v6: routing, one segment left", "RFC 8200 4.4, 8.1", Refused, with(&[routing(1)])),
        row(
            "v6: hop-by-hop options behind others",
            "RFC 8200 4.1",
            Other(HOP_BY_HOP),
            with(&[destination(), options(HOP_BY_HOP)]),
        ),
        row("v6: atomic fragment", "RFC 6946 4", Tcp(48, 5), with(&[fragment(0, false)])),
        row(
            "v6: atomic fragment between options",
            "RFC 6946 4, RFC 8200 4.1",
            Tcp(64, 5),
            with(&[options(HOP_BY_HOP), fragment(0, false), destination()]),
        ),
        Row {
            host: Fragment,
            ..row(
                "v6: atomic fragment twice",
                "RFC 8200 4.1",
                Refused,
                with(&[fragment(0, false), fragment(0, false)]),
            )
        },
        row("v6: first fragment", "RFC 8200 4.5", Fragment, with(&[fragment(0, true)])),
        row("v6: last fragment", "RFC 8200 4.5", Fragment, with(&[fragment(1480, false)])),
        row("v6: eight extension headers", "RFC 8200 4.1", Tcp(104, 5), with(&many(8))),
        row("v6: nine extension headers", "RFC 8883 3", Refused, with(&many(9))),
        row("v6: authentication header", "RFC 4302 2.1", Other(AUTH), with(&[authentication])),
        row("v6: ESP", "RFC 4303 2", Other(ESP), v6(&[], ESP, &segment)),
        row(
            "v6: mobility header",
            "RFC 6275 6.1",
            Other(MOBILITY),
            v6(&[options(MOBILITY)], TCP, &segment),
        ),
        row(
            "v6: extension header longer than the packet",
            "RFC 8200 4.6",
            Refused,
            edited(with(&[destination()]), |packet| packet[41] = 255),
        ),
        row(
            "v6: payload length ends in an extension header",
            "RFC 8200 3",
            Refused,
            edited(with(&[destination(), destination()]), |packet| packet[5] = 12),
        ),
        row(
            "v6: payload length ends before TCP",
            "RFC 8200 3",
            Refused,
            edited(with(&[destination()]), |packet| packet[5] = 8),
        ),
        row(
            "v6: bytes behind the packet",
            "RFC 8200 3",
            Tcp(40, 5),
            edited(with(&[]), |packet| packet.extend([9; 7])),
        ),
        Row {
            host: Refused,
            ..row(
                "v6: payload length of zero",
                "RFC 8200 3, RFC 2675 3",
                Tcp(40, 5),
                edited(with(&[]), |packet| packet[5] = 0),
            )
        },
        Row {
            host: Refused,
            ..row(
                "v6: cut off behind the TCP header",
                "RFC 8200 3",
                Tcp(40, 5),
                edited(with(&[]), |packet| packet.truncate(65)),
            )
        },
    ]
}

fn v4_rows() -> Vec<Row> {
    let segment = tcp(false, b"data!");
    let whole = || v4(&[], TCP, &segment);
    vec![
        row("v4: TCP", "RFC 791 3.1", Tcp(20, 5), whole()),
        row("v4: options", "RFC 791 3.1", Tcp(24, 5), v4(&[1; 4], TCP, &segment)),
        row(
            "v4: header of four words",
            "RFC 791 3.1",
            Refused,
            edited(whole(), |packet| packet[0] = 0x44),
        ),
        row(
            "v4: options longer than the packet",
            "RFC 791 3.1",
            Refused,
            edited(whole(), |packet| {
                packet.truncate(42);
                (packet[0], packet[3]) = (0x4f, 42);
            }),
        ),
        row(
            "v4: first fragment",
            "RFC 791 3.2",
            Fragment,
            edited(whole(), |packet| packet[6] = 0x20),
        ),
        row(
            "v4: last fragment",
            "RFC 791 3.2",
            Fragment,
            edited(whole(), |packet| packet[7] = 185),
        ),
        row(
            "v4: total length below that of the header",
            "RFC 791 3.1",
            Refused,
            edited(whole(), |packet| packet[3] = 19),
        ),
        row(
            "v4: bytes behind the packet",
            "RFC 791 3.1",
            Tcp(20, 5),
            edited(whole(), |packet| packet.extend([9; 7])),
        ),
        Row {
            host: Refused,
            ..row(
                "v4: total length of zero",
                "RFC 791 3.1",
                Tcp(20, 5),
                edited(whole(), |packet| packet[3] = 0),
            )
        },
        Row {
            host: Refused,
            ..row(
                "v4: cut off behind the TCP header",
                "RFC 791 3.1",
                Tcp(20, 5),
                edited(whole(), |packet| packet.truncate(45)),
            )
        },
        Row {
            host: Refused,
            ..row("v4: wrong header checksum", "RFC 1122 3.2.1.2", Tcp(20, 5), {
                let mut packet = whole();
                packet[11] ^= 1;
                packet
            })
        },
        row("version 5", "RFC 791 3.1", Refused, edited(whole(), |packet| packet[0] = 0x55)),
    ]
}

fn transport_rows() -> Vec<Row> {
    let v4_tcp = |edit: fn(&mut Vec<u8>)| v4(&[], TCP, &tcp_edited(false, b"data!", edit));
    vec![
        row(
            "TCP: data offset of four words",
            "RFC 9293 3.1",
            Refused,
            v4_tcp(|segment| segment[12] = 4 << 4),
        ),
        row(
            "TCP: data offset beyond the segment",
            "RFC 9293 3.1",
            Refused,
            v4_tcp(|segment| segment[12] = 15 << 4),
        ),
        row(
            "TCP: 19 bytes",
            "RFC 9293 3.1",
            Refused,
            v4(&[], TCP, &tcp_edited(false, &[], |segment| segment.truncate(19))),
        ),
        row(
            "TCP: an option of length zero",
            "RFC 9293 3.1 MUST-7",
            Tcp(20, 5),
            v4_tcp(|segment| segment[20..24].copy_from_slice(&[8, 0, 1, 1])),
        ),
        row("UDP", "RFC 768", Udp(20, 4), v4(&[], UDP, &udp(false, &[7; 4], &[]))),
        row(
            "UDP: without checksum",
            "RFC 768",
            Udp(20, 4),
            v4(&[], UDP, &edited_udp(&udp(false, &[7; 4], &[]))),
        ),
        row(
            "UDP: bytes behind its length",
            "RFC 768, RFC 9868 5",
            Udp(20, 4),
            v4(&[], UDP, &udp(false, &[7; 4], &[1, 2, 3])),
        ),
        Row {
            host: Refused,
            ..row(
                "UDP: length beyond the packet",
                "RFC 768",
                Udp(20, 4),
                v4(&[], UDP, &udp_with_length(false, 13)),
            )
        },
        Row {
            host: Refused,
            ..row(
                "UDP: length of seven",
                "RFC 768",
                Udp(20, 4),
                v4(&[], UDP, &udp_with_length(false, 7)),
            )
        },
        row(
            "UDP: behind an atomic fragment header",
            "RFC 6946 4",
            Udp(48, 4),
            v6(&[fragment(0, false)], UDP, &udp(true, &[7; 4], &[])),
        ),
        Row {
            host: Refused,
            ..row(
                "UDP: without checksum over IPv6",
                "RFC 8200 8.1",
                Udp(40, 4),
                v6(&[], UDP, &udp_without_checksum()),
            )
        },
    ]
}

fn edited_udp(datagram: &[u8]) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    datagram[6..8].fill(0);
    datagram
}
