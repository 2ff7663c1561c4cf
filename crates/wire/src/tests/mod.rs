//! Written packets are read by etherparse; any input is read without a panic.

mod beside_etherparse;
mod packets;
mod rows;
mod table;
mod tunnel;

use std::net::{IpAddr, SocketAddr};

use airtcp_types::{FlowId, SeqNumber};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::icmp::{Complaint, Message, Reason};
use super::tcp::{Flags, Header};
use super::{ParseError, icmp, ip, tcp, udp};
use crate::options::{TcpOptions, Timestamps};

fn flow(v6: bool) -> FlowId {
    let [local, remote]: [SocketAddr; 2] = if v6 {
        ["[fd00::1]:4000".parse().unwrap(), "[fd00::2]:80".parse().unwrap()]
    } else {
        ["10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap()]
    };
    FlowId { local, remote }
}

fn header() -> Header {
    Header {
        seq: SeqNumber(u32::MAX - 2),
        ack: Some(SeqNumber(77)),
        flags: Flags { psh: true, ece: true, ae: true, ..Flags::ACK },
        window: 512,
        options: TcpOptions {
            timestamps: Some(Timestamps { val: 5, ecr: 6 }),
            sack: [(SeqNumber(9), SeqNumber(12))].into_iter().collect(),
            ..TcpOptions::default()
        },
    }
}

fn addresses(packet: &SlicedPacket<'_>) -> (IpAddr, IpAddr) {
    match packet.net.as_ref().unwrap() {
        NetSlice::Ipv4(v4) => {
            let header = v4.header();
            assert!(header.dont_fragment() && header.identification() == 0 && header.ttl() == 64);
            assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
            (header.source_addr().into(), header.destination_addr().into())
        }
        NetSlice::Ipv6(v6) => {
            assert!(v6.header().flow_label().value() == 0 && v6.header().hop_limit() == 64);
            (v6.header().source_addr().into(), v6.header().destination_addr().into())
        }
        other => panic!("{other:?}"),
    }
}

// Shows: RFC9293-MUST-2, RFC9293-MUST-68
#[test]
fn etherparse_reads_the_segments_we_write() {
    for v6 in [false, true] {
        let flow = flow(v6);
        let packet = tcp::emit(&flow, 64, &header(), b"hello");
        let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
        assert_eq!(addresses(&sliced), (flow.local.ip(), flow.remote.ip()));
        let Some(TransportSlice::Tcp(read)) = &sliced.transport else { panic!("no TCP") };
        let sum = match sliced.net.as_ref().unwrap() {
            NetSlice::Ipv4(v4) => {
                read.calc_checksum_ipv4(v4.header().source(), v4.header().destination())
            }
            NetSlice::Ipv6(v6) => {
                read.calc_checksum_ipv6(v6.header().source(), v6.header().destination())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(sum.unwrap(), read.checksum());
        assert_eq!((read.source_port(), read.destination_port()), (4000, 80));
        assert_eq!((read.sequence_number(), read.acknowledgment_number()), (u32::MAX - 2, 77));
        assert_eq!((read.psh(), read.ack(), read.ece(), read.syn()), (true, true, true, false));
        assert_eq!((read.ns(), read.cwr()), (true, false));
        assert_eq!((read.window_size(), read.payload()), (512, &b"hello"[..]));
        let options: Vec<_> = read.options_iterator().map(Result::unwrap).collect();
        use etherparse::TcpOptionElement::{Noop, SelectiveAcknowledgement, Timestamp};
        assert_eq!(
            options,
            [Noop, Noop, Timestamp(5, 6), Noop, Noop, SelectiveAcknowledgement((9, 12), [None; 3]),]
        );
    }
}

#[test]
fn a_packet_that_may_be_marked_differs_in_nothing_else() {
    for v6 in [false, true] {
        let mut packet = tcp::emit(&flow(v6), 64, &header(), b"hello");
        let plain = ip::parse(&packet.data).unwrap().ecn;
        ip::set_ecn(&mut packet.data, ip::ECT_0);
        let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
        addresses(&sliced);
        let field = match sliced.net.as_ref().unwrap() {
            NetSlice::Ipv4(v4) => v4.header().dcp().value() << 2 | v4.header().ecn().value(),
            NetSlice::Ipv6(v6) => v6.header().traffic_class(),
            other => panic!("{other:?}"),
        };
        assert_eq!((field, plain, ip::parse(&packet.data).unwrap().ecn), (0b10, 0, 0b10));
        assert!(sliced.transport.is_some());
    }
}

#[test]
fn edits_of_an_ip_header_keep_its_checksum_right_or_wrong() {
    for v6 in [false, true] {
        let whole = tcp::emit(&flow(v6), 64, &header(), b"hello").data;
        for (ecn, hop_limit) in [(0, 64), (1, 63), (2, 0), (3, 255)] {
            let mut data = whole.clone();
            ip::set_ecn(&mut data, ecn);
            ip::set_hop_limit(&mut data, hop_limit);
            assert_eq!((ip::ecn(&data), ip::hop_limit(&data)), (Some(ecn), Some(hop_limit)));
            let read = ip::parse(&data).unwrap();
            assert_eq!((read.ecn, read.hop_limit), (ecn, hop_limit));
            ip::set_ecn(&mut data, 0);
            ip::set_hop_limit(&mut data, 64);
            assert_eq!(data, whole, "nothing else was touched");
            if !v6 {
                data[10] ^= 1;
                ip::set_ecn(&mut data, ecn);
                ip::set_hop_limit(&mut data, hop_limit);
                assert_eq!(ip::parse(&data), Err(ParseError::HeaderChecksum));
            }
        }
        let mut short = whole[..if v6 { 39 } else { 19 }].to_vec();
        let before = short.clone();
        ip::set_ecn(&mut short, 3);
        ip::set_hop_limit(&mut short, 1);
        assert_eq!(short, before);
        assert_eq!((ip::ecn(&short), ip::hop_limit(&short)), (None, None));
    }
}

#[test]
fn etherparse_reads_the_datagrams_we_write() {
    for v6 in [false, true] {
        let flow = flow(v6);
        let packet = udp::emit(&flow, 64, b"odd");
        let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
        assert_eq!(addresses(&sliced), (flow.local.ip(), flow.remote.ip()));
        let Some(TransportSlice::Udp(read)) = &sliced.transport else { panic!("no UDP") };
        assert_eq!((read.source_port(), read.destination_port()), (4000, 80));
        assert_eq!(read.payload(), b"odd");
        let header = read.to_header();
        let sum = match sliced.net.as_ref().unwrap() {
            NetSlice::Ipv4(v4) => header.calc_checksum_ipv4(&v4.header().to_header(), b"odd"),
            NetSlice::Ipv6(v6) => header.calc_checksum_ipv6(&v6.header().to_header(), b"odd"),
            other => panic!("{other:?}"),
        };
        assert_eq!(sum.unwrap(), read.checksum());
    }
}

#[test]
fn etherparse_reads_the_errors_we_write() {
    use etherparse::{Icmpv4Type, Icmpv6Type, icmpv4, icmpv6};
    let long = vec![0x42; 3_000];
    for v6 in [false, true] {
        let flow = flow(v6);
        let original = udp::emit(&flow, 64, &long[..1_400]).data;
        let (src, dst) = (flow.remote.ip(), flow.local.ip());
        let packet = icmp::emit_error(src, dst, 64, Complaint::Port, &original);
        let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
        assert_eq!(addresses(&sliced), (src, dst));
        match sliced.transport.unwrap() {
            TransportSlice::Icmpv4(read) => {
                let wanted =
                    Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Port);
                assert_eq!(read.icmp_type(), wanted);
                assert_eq!(packet.len(), 576);
                assert!(original.starts_with(read.payload()));
            }
            TransportSlice::Icmpv6(read) => {
                let wanted = Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Port);
                assert_eq!(read.icmp_type(), wanted);
                assert_eq!(packet.len(), 1280);
                assert!(original.starts_with(read.payload()));
                let NetSlice::Ipv6(v6) = sliced.net.unwrap() else { panic!("no IPv6") };
                assert!(read.is_checksum_valid(v6.header().source(), v6.header().destination()));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_error_leads_back_to_the_segment_it_quotes() {
    let complaints = [
        (Complaint::Port, Reason::Port),
        (Complaint::Protocol { pointer: 6 }, Reason::Protocol),
        (Complaint::Network, Reason::Network),
        (Complaint::Host, Reason::Host),
        (Complaint::Prohibited, Reason::Prohibited),
        (Complaint::Reassembly, Reason::HopLimit),
        (Complaint::TooBig { mtu: 1480 }, Reason::TooBig(1480)),
    ];
    for (v6, (complaint, expected)) in
        [false, true].into_iter().flat_map(|v6| complaints.map(|complaint| (v6, complaint)))
    {
        let flow = flow(v6);
        let original = tcp::emit(&flow, 64, &header(), &[]).data;
        let (src, dst) = (flow.remote.ip(), flow.local.ip());
        let packet = icmp::emit_error(src, dst, 64, complaint, &original);
        let datagram = ip::parse(&packet.data).unwrap();
        let message = icmp::parse(&datagram);
        let Ok(Message::Error { reason, quoted }) = message else { panic!("{message:?}") };
        assert_eq!(reason, expected);
        assert_eq!(icmp::quoted(&datagram), Some(quoted));
        let quote = icmp::parse_quote(quoted).unwrap();
        assert_eq!(
            (quote.flow, quote.protocol, quote.seq),
            (flow, ip::TCP, SeqNumber(u32::MAX - 2))
        );
    }
}

#[test]
fn a_segment_is_read_as_it_was_written() {
    let packet = tcp::emit(&flow(true), 64, &header(), b"abc");
    let (src, dst, segment) = tcp::parse(ip::parse(&packet.data).unwrap().payload).unwrap();
    assert_eq!((src, dst, segment.len()), (4000, 80, 3));
    assert_eq!((segment.seq, Some(segment.ack)), (header().seq, header().ack));
    assert_eq!((segment.flags, segment.options), (header().flags, header().options));
    assert_eq!((segment.flags.ace(), segment.reserved), (0b101, tcp::AE));
    assert_eq!(*segment.payload.contiguous(), *b"abc");
}

#[test]
fn the_three_ecn_flags_are_a_number() {
    for ace in 0..8 {
        let header = Header { flags: Flags::ACK.with_ace(ace), ..header() };
        let data = tcp::emit(&flow(false), 64, &header, b"abc").data;
        // RFC 9768 figure 3: the last bit of one byte, and the first two of the next.
        assert_eq!((data[32] & 0x0f, data[33] >> 6), (ace >> 2, ace & 0b11));
        let read = tcp::parse(ip::parse(&data).unwrap().payload).unwrap().2;
        assert_eq!((read.flags.ace(), read.flags), (ace, header.flags));
        let other = Flags::ACK.with_ace(!ace).with_ace(ace);
        assert_eq!(other, header.flags);
    }
}

#[test]
fn lengths_that_contradict_each_other_are_refused() {
    let v4 = tcp::emit(&flow(false), 64, &header(), &[0; 3]).data;
    let v6 = tcp::emit(&flow(true), 64, &header(), &[0; 3]).data;
    for whole in [&v4, &v6] {
        for len in 0..whole.len() {
            assert_eq!(ip::parse(&whole[..len]), Err(ParseError::Truncated), "{len}");
        }
        let trailing = [&whole[..], &[0; 9]].concat();
        assert_eq!(ip::parse(&trailing), ip::parse(whole), "bytes after the end are left out");
    }
    let segment = &v4[ip::V4_HEADER_LEN..];
    let with_offset = |words: u8| {
        let mut segment = segment.to_vec();
        segment[12] = words << 4;
        tcp::parse(&segment).map(|_| ())
    };
    assert_eq!(with_offset(4), Err(ParseError::Length));
    assert_eq!(with_offset(15), Err(ParseError::Truncated));
    assert_eq!(udp::parse(&[0, 1, 0, 2, 0, 7, 0, 0]).map(|_| ()), Err(ParseError::Length));
    assert_eq!(udp::parse(&[0, 1, 0, 2, 0, 9, 0, 0]).map(|_| ()), Err(ParseError::Truncated));
}

#[test]
fn extension_headers_are_stepped_over() {
    let plain = udp::emit(&flow(true), 64, b"x").data;
    let mut data = plain[..ip::V6_HEADER_LEN].to_vec();
    data[6] = 0;
    data[5] = (plain.len() - ip::V6_HEADER_LEN + 24) as u8;
    data.extend([60, 0, 1, 4, 0, 0, 0, 0, ip::UDP, 1, 1, 12]);
    data.extend([0; 12]);
    data.extend(&plain[ip::V6_HEADER_LEN..]);
    let read = ip::parse(&data).unwrap();
    assert_eq!((read.protocol, read.pointer), (ip::UDP, 48));
    assert_eq!(read.payload, &plain[ip::V6_HEADER_LEN..]);
    data[40] = 0;
    let read = ip::parse(&data).unwrap();
    assert_eq!((read.protocol, read.pointer), (0, 40), "hop-by-hop options stand first");
    data[40] = 44;
    assert_eq!(ip::parse(&data), Err(ParseError::Fragment));
}

#[test]
fn an_urgent_pointer_takes_nothing_out_of_the_data() {
    let header = Header { flags: Flags { urg: true, ..Flags::ACK }, ..header() };
    let mut data = tcp::emit(&flow(false), 64, &header, &[7; 10]).data;
    for pointer in [0u16, 1, 5, 10, 11, 65_535] {
        data[38..40].copy_from_slice(&pointer.to_be_bytes());
        let read = tcp::parse(ip::parse(&data).unwrap().payload).unwrap().2;
        assert!(read.flags.urg);
        assert_eq!(*read.payload.contiguous(), [7; 10]);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        first in prop::option::of(prop::sample::select(vec![0x45u8, 0x4f, 0x60])),
    ) {
        if let (Some(first), Some(byte)) = (first, bytes.first_mut()) {
            *byte = first;
        }
        let _ = ip::parse(&bytes);
        let _ = tcp::parse(&bytes);
        let _ = udp::parse(&bytes);
        for (address, protocol) in
            [(IpAddr::from([10, 0, 0, 1]), ip::ICMP), (IpAddr::from([0; 16]), ip::ICMPV6)]
        {
            let _ = icmp::parse(&ip::Datagram {
                src: address,
                dst: address,
                protocol,
                pointer: 0,
                hop_limit: 64,
                ecn: ip::NOT_ECT,
                atomic: false,
                payload: &bytes,
            });
        }
        let _ = icmp::parse_quote(&bytes);
    }
}
