//! Compares this crate with etherparse on the same packets: all differences have one of the reasons
//! listed here.

use std::cell::RefCell;
use std::collections::BTreeSet;

use airtcp_types::SeqNumber;
use etherparse::checksum::Sum16BitWords;
use etherparse::{
    IpNumber, IpSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice,
    Ipv6RawExtHeaderSlice, LaxIpSlice, TcpOptionElement, TcpSlice, UdpSlice,
};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::packets::packets;
use super::rows::number::{AUTH, DESTINATION, FRAGMENT, HOP_BY_HOP, ROUTING};
use crate::options::TcpOptions;
use crate::tcp::View;
use crate::{Headers, Layout, MAX_EXTENSIONS, ParseError, fragment, ip, is_accepted, tcp, udp};

/// The ways in which etherparse differs, and the sections that define the correct reading.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Difference {
    /// It does not verify the checksum of an IPv4 header: RFC 1122 section 3.2.1.2.
    HeaderChecksum,
    /// Its lax reader ignores an IPv4 total length that is less than the header's. Here only zero
    /// is ignored, as in super-segments; any other value makes the header invalid: RFC 791 section
    /// 3.1.
    TotalLength,
    /// It takes all bytes as the payload if the IPv6 payload length is zero. For a host the payload
    /// is then empty without the jumbogram option, which is not supported: RFC 8200 section 3, RFC
    /// 2675 section 3.
    PayloadLength,
    /// It skips authentication headers. Here they are an unsupported protocol, and the data behind
    /// them must not be used without verification: RFC 4302 section 3.4.
    Authentication,
    /// It skips routing headers with segments left: RFC 8200 section 4.4.
    SegmentsLeft,
    /// It reads headers behind a fragment header that is not that of an atomic fragment; in later
    /// fragments there are no such headers: RFC 8200 section 4.5.
    BehindFragment,
    /// It accepts several fragment headers: RFC 8200 section 4.1 allows at most one.
    SecondFragment,
    /// It accepts any number of extension headers: RFC 8883 section 3 allows a limit.
    Extensions,
    /// It rejects hop-by-hop options that are not first; here they are an unknown protocol, to
    /// which a host responds with a Parameter Problem: RFC 8200 section 4.1.
    HopByHop,
    /// It takes all bytes as the datagram if the UDP length is zero: RFC 2675 section 4 allows that
    /// only in jumbograms.
    UdpLength,
}
use Difference::*;

const ALL: [Difference; 10] = [
    HeaderChecksum,
    TotalLength,
    PayloadLength,
    Authentication,
    SegmentsLeft,
    BehindFragment,
    SecondFragment,
    Extensions,
    HopByHop,
    UdpLength,
];

/// The result of reading the IP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen<'a> {
    Payload(u8, &'a [u8]),
    Fragment(u8, &'a [u8]),
    Refused,
}

/// Reads a packet with etherparse's readers of single headers, corrected by the differences above;
/// `is_lax`: like [`Headers::of`], otherwise like [`ip::parse`].
fn theirs<'a>(bytes: &'a [u8], is_lax: bool, found: &mut BTreeSet<Difference>) -> Seen<'a> {
    if let Ok(header) = Ipv4HeaderSlice::from_slice(bytes) {
        let (total, len) = (usize::from(header.total_len()), header.slice().len());
        let is_zero = is_lax && total == 0;
        if total < len && !is_zero {
            found.extend(is_lax.then_some(TotalLength));
            return Seen::Refused;
        }
        if !is_lax && bytes.len() < total {
            return Seen::Refused;
        }
        if !is_lax && Sum16BitWords::new().add_slice(header.slice()).ones_complement() != 0 {
            found.insert(HeaderChecksum);
            return Seen::Refused;
        }
        let end = if is_zero { bytes.len() } else { total.min(bytes.len()) };
        let (protocol, payload) = (header.protocol().0, &bytes[len..end]);
        found.extend((protocol == AUTH).then_some(Authentication));
        if header.is_fragmenting_payload() {
            return Seen::Fragment(protocol, payload);
        }
        return Seen::Payload(protocol, payload);
    }
    let Ok(header) = Ipv6HeaderSlice::from_slice(bytes) else { return Seen::Refused };
    let total = 40 + usize::from(header.payload_length());
    if !is_lax && bytes.len() < total {
        return Seen::Refused;
    }
    found.extend((!is_lax && total == 40 && bytes.len() > 40).then_some(PayloadLength));
    let end = if is_lax && total == 40 { bytes.len() } else { total.min(bytes.len()) };
    walk(header.next_header(), &bytes[40..end], found)
}

fn walk<'a>(first: IpNumber, all: &'a [u8], found: &mut BTreeSet<Difference>) -> Seen<'a> {
    let (mut next, mut rest) = (first, all);
    let mut has_fragment = false;
    for count in 0.. {
        let is_extension = [HOP_BY_HOP, DESTINATION, ROUTING, FRAGMENT].contains(&next.0);
        if next.0 == HOP_BY_HOP && count > 0 {
            found.insert(HopByHop);
            return Seen::Payload(HOP_BY_HOP, rest);
        }
        if next.0 == AUTH {
            found.insert(Authentication);
        }
        if !is_extension {
            break;
        }
        if count == MAX_EXTENSIONS {
            found.insert(Extensions);
            return Seen::Refused;
        }
        if next.0 == FRAGMENT {
            if has_fragment {
                found.insert(SecondFragment);
                return Seen::Refused;
            }
            let Ok(header) = Ipv6FragmentHeaderSlice::from_slice(rest) else {
                return Seen::Refused;
            };
            (next, rest) = (header.next_header(), &rest[8..]);
            if header.is_fragmenting_payload() {
                found.insert(BehindFragment);
                return Seen::Fragment(next.0, rest);
            }
            has_fragment = true;
            continue;
        }
        let Ok(header) = Ipv6RawExtHeaderSlice::from_slice(rest) else { return Seen::Refused };
        if next.0 == ROUTING && header.slice()[3] > 0 {
            found.insert(SegmentsLeft);
            return Seen::Refused;
        }
        (next, rest) = (header.next_header(), &rest[header.slice().len()..]);
    }
    Seen::Payload(next.0, rest)
}

/// Reads a packet with etherparse's readers of whole packets, which [`theirs`] has to match where
/// there is no difference.
fn whole(bytes: &[u8], is_lax: bool) -> Seen<'_> {
    let (fragmented, protocol, payload) = if is_lax {
        let Ok((slice, None)) = LaxIpSlice::from_slice(bytes) else { return Seen::Refused };
        let payload = slice.payload();
        (payload.fragmented, payload.ip_number.0, payload.payload)
    } else {
        let Ok(slice) = IpSlice::from_slice(bytes) else { return Seen::Refused };
        let payload = slice.payload();
        (payload.fragmented, payload.ip_number.0, payload.payload)
    };
    match fragmented {
        true => Seen::Fragment(protocol, payload),
        false => Seen::Payload(protocol, payload),
    }
}

fn ours(bytes: &[u8], is_lax: bool) -> Seen<'_> {
    let read = match is_lax {
        true => Headers::of(bytes).map(|headers| (headers, headers.trim(bytes))),
        false => ip::check(bytes),
    };
    let Ok((headers, bytes)) = read else { return Seen::Refused };
    match headers.is_fragment() {
        true => Seen::Fragment(headers.protocol, &bytes[headers.len..]),
        false => Seen::Payload(headers.protocol, &bytes[headers.len..]),
    }
}

/// Returns the options as read by etherparse; `None` if one is unknown to it or invalid.
fn their_options(segment: &TcpSlice<'_>) -> Option<TcpOptions> {
    let mut options = TcpOptions::default();
    let block = |(start, end): (u32, u32)| (SeqNumber(start), SeqNumber(end));
    for element in segment.options_iterator() {
        match element.ok()? {
            TcpOptionElement::Noop => {}
            TcpOptionElement::MaximumSegmentSize(mss) => options.mss = Some(mss),
            TcpOptionElement::WindowScale(shift) => options.window_scale = Some(shift),
            TcpOptionElement::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
            TcpOptionElement::SelectiveAcknowledgement(first, more) => {
                options.sack = [Some(first)].into_iter().chain(more).flatten().map(block).collect();
            }
            TcpOptionElement::Timestamp(val, ecr) => {
                options.timestamps = Some(crate::options::Timestamps { val, ecr });
            }
        }
    }
    Some(options)
}

/// Compares the two readings of a segment; returns whether it is valid, with a correct checksum.
fn compare_tcp(datagram: &ip::Datagram<'_>) -> bool {
    let payload = datagram.payload;
    let (ours, theirs) = (tcp::parse(payload), TcpSlice::from_slice(payload));
    let Ok(theirs) = theirs else {
        assert!(ours.is_err());
        return false;
    };
    let options = their_options(&theirs);
    let (src_port, dst_port, ours) = ours.unwrap();
    assert_eq!((src_port, dst_port), (theirs.source_port(), theirs.destination_port()));
    assert_eq!(
        (ours.seq.0, ours.ack.0),
        (theirs.sequence_number(), theirs.acknowledgment_number())
    );
    let tcp::Flags { fin, syn, rst, psh, ack, urg, ece, cwr, ae } = ours.flags;
    assert_eq!((fin, syn, rst, psh), (theirs.fin(), theirs.syn(), theirs.rst(), theirs.psh()));
    assert_eq!((ack, urg, ece, cwr), (theirs.ack(), theirs.urg(), theirs.ece(), theirs.cwr()));
    assert_eq!((ours.window, ae), (theirs.window_size(), theirs.ns()));
    assert_eq!(ours.reserved & 1 == 1, ae);
    assert_eq!(*ours.payload.contiguous(), *theirs.payload());
    if let Some(options) = options {
        assert_eq!(ours.options, options);
    }
    let sum = match (datagram.src, datagram.dst) {
        (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) => {
            theirs.calc_checksum_ipv4(src.octets(), dst.octets())
        }
        (std::net::IpAddr::V6(src), std::net::IpAddr::V6(dst)) => {
            theirs.calc_checksum_ipv6(src.octets(), dst.octets())
        }
        _ => unreachable!("one packet has one family"),
    };
    same_sum(sum.unwrap(), theirs.checksum())
}

/// Like [`compare_tcp`], for a datagram.
fn compare_udp(datagram: &ip::Datagram<'_>, found: &mut BTreeSet<Difference>) -> bool {
    let payload = datagram.payload;
    let (ours, theirs) = (udp::parse(payload), UdpSlice::from_slice(payload));
    let theirs = match theirs {
        Ok(theirs) if theirs.length() == 0 => {
            assert_eq!(ours, Err(ParseError::Length));
            found.insert(UdpLength);
            return false;
        }
        Ok(theirs) => theirs,
        Err(_) => {
            assert!(ours.is_err());
            return false;
        }
    };
    let ours = ours.unwrap();
    assert_eq!((ours.src_port, ours.dst_port), (theirs.source_port(), theirs.destination_port()));
    assert_eq!((ours.payload, ours.covered), (theirs.payload(), theirs.slice()));
    let header = theirs.to_header();
    match (datagram.src, datagram.dst) {
        (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) => {
            let sum = header.calc_checksum_ipv4_raw(src.octets(), dst.octets(), theirs.payload());
            ours.no_checksum || same_sum(sum.unwrap(), theirs.checksum())
        }
        (std::net::IpAddr::V6(src), std::net::IpAddr::V6(dst)) => {
            let sum = header.calc_checksum_ipv6_raw(src.octets(), dst.octets(), theirs.payload());
            !ours.no_checksum && same_sum(sum.unwrap(), theirs.checksum())
        }
        _ => unreachable!("one packet has one family"),
    }
}

/// In one's complement, all zeros and all ones are both zero.
fn same_sum(one: u16, other: u16) -> bool {
    let normal = |sum: u16| if sum == u16::MAX { 0 } else { sum };
    normal(one) == normal(other)
}

fn compare(bytes: &[u8], found: &mut BTreeSet<Difference>) {
    for is_lax in [false, true] {
        let mut differences = BTreeSet::new();
        let theirs = theirs(bytes, is_lax, &mut differences);
        assert_eq!(ours(bytes, is_lax), theirs, "lax: {is_lax}, {differences:?}");
        if theirs != whole(bytes, is_lax) {
            assert!(!differences.is_empty(), "lax: {is_lax}, {theirs:?}");
            found.append(&mut differences);
        }
    }
    let is_good = match ip::parse(bytes) {
        Ok(datagram) if datagram.protocol == ip::TCP => compare_tcp(&datagram),
        Ok(datagram) if datagram.protocol == ip::UDP => compare_udp(&datagram, found),
        _ => false,
    };
    assert_eq!(is_accepted(bytes), is_good);
    compare_views(bytes);
}

/// Checks that the readers of transport headers find the payload, and stay within the bytes.
fn compare_views(bytes: &[u8]) {
    let transport = match ours(bytes, true) {
        Seen::Payload(protocol, payload) => Some((protocol, payload)),
        _ => None,
    };
    let at = |payload: &[u8]| payload.as_ptr().addr() - bytes.as_ptr().addr();
    let layout = transport.and_then(|(protocol, payload)| {
        let header = match protocol {
            ip::TCP => TcpSlice::from_slice(payload).ok()?.header_slice().len(),
            ip::UDP => (payload.len() >= 8).then_some(8)?,
            _ => return None,
        };
        let (v6, tcp) = (bytes[0] >> 4 == 6, protocol == ip::TCP);
        Some(Layout { v6, tcp, transport: at(payload), payload: at(payload) + header })
    });
    assert_eq!(Layout::of(bytes), layout);
    // In a capture, the options may be truncated.
    if layout.is_some_and(|layout| layout.tcp) {
        let view = View::of(bytes).unwrap();
        let (_, payload) = transport.unwrap();
        let segment = TcpSlice::from_slice(payload).unwrap();
        assert_eq!(view.fields().seq().0, segment.sequence_number());
        assert!(view.data_len() >= segment.payload().len());
        assert_eq!(view.options(), Some(TcpOptions::parse(segment.options())));
    }
    if let Some(view) = View::checked(bytes) {
        let mut edited = bytes.to_vec();
        view.editor().set_window(&mut edited, 0x1234);
        view.editor().set_reserved(&mut edited, 0x08);
        let after = View::checked(&edited).unwrap();
        assert_eq!((after.fields().window(), after.fields().reserved() & 0x08), (0x1234, 0x08));
        assert_eq!(after.is_intact(), view.is_intact());
    }
    if let Ok(part) = fragment::parse(bytes) {
        let headers = Headers::of(bytes).unwrap();
        let read = headers.fragment.unwrap();
        assert_eq!((part.offset, part.more, part.id), (read.offset.into(), read.more, read.id));
        if headers.v6 {
            let header = Ipv6FragmentHeaderSlice::from_slice(&bytes[headers.len - 8..]).unwrap();
            let offset = usize::from(header.fragment_offset().value()) * 8;
            assert_eq!((part.offset, part.more), (offset, header.more_fragments()));
            assert_eq!(part.id, header.identification());
        } else {
            let header = Ipv4HeaderSlice::from_slice(bytes).unwrap();
            let offset = usize::from(header.fragments_offset().value()) * 8;
            assert_eq!((part.offset, part.more), (offset, header.more_fragments()));
            assert_eq!(part.id, u32::from(header.identification()));
        }
    }
}

#[test]
fn both_read_the_same_but_for_what_is_listed() {
    let config = Config { cases: 20_000, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let found = RefCell::new(BTreeSet::new());
    TestRunner::new_with_rng(config, rng)
        .run(&packets(), |packet| {
            compare(&packet, &mut found.borrow_mut());
            Ok(())
        })
        .unwrap();
    // Every listed difference must occur.
    assert_eq!(found.into_inner(), BTreeSet::from(ALL));
}
