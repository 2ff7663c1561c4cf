//! Packets in tunnels, and fragments made by a router.

use std::net::IpAddr;

use etherparse::SlicedPacket;
use proptest::prelude::*;

use crate::ip::{self, CE, ECT_0, ECT_1, NOT_ECT};
use crate::tunnel::{TunnelError, decapsulate, encapsulate, overhead};
use crate::{ParseError, fragment, icmp, udp};

use super::flow;

fn ends(v6: bool) -> (IpAddr, IpAddr) {
    match v6 {
        false => ([192, 0, 2, 1].into(), [198, 51, 100, 1].into()),
        true => ("2001:db8::1".parse().unwrap(), "2001:db8:1::1".parse().unwrap()),
    }
}

#[test]
fn a_packet_leaves_the_tunnel_as_it_entered() {
    for (outer, inner) in [(false, false), (true, true), (false, true), (true, false)] {
        let mut packet = udp::emit(&flow(inner), 9, b"hello").data;
        // DSCP 46 and ECT(0): class 0xba.
        if inner {
            (packet[0], packet[1]) = (0x6b, 0xa0);
        } else {
            packet[1] = 0xba;
            assert!(fragment::complete(&mut packet, ECT_0));
        }
        let made = encapsulate(ends(outer), 64, &packet).unwrap().data;
        assert_eq!(made.len(), packet.len() + overhead(outer));
        let read = SlicedPacket::from_ip(&made).unwrap();
        match read.net.unwrap() {
            etherparse::NetSlice::Ipv4(v4) => {
                let header = v4.header();
                let tos = header.dcp().value() << 2 | header.ecn().value();
                assert_eq!((tos, header.ttl(), header.dont_fragment()), (0xba, 64, true));
                assert_eq!(header.protocol().0, if inner { 41 } else { 4 });
                assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
            }
            etherparse::NetSlice::Ipv6(v6) => {
                assert_eq!((v6.header().traffic_class(), v6.header().hop_limit()), (0xba, 64));
                assert_eq!(v6.header().next_header().0, if inner { 41 } else { 4 });
            }
            other => panic!("{other:?}"),
        }
        let back = decapsulate(&made).unwrap();
        assert_eq!(((back.entry, back.exit), back.packet.data), (ends(outer), packet));
    }
}

/// RFC 6040 figure 4: the outgoing ECN field by the inner and the outer one.
#[test]
fn ecn_leaves_the_tunnel_by_the_table_of_rfc_6040() {
    let rows = [
        (NOT_ECT, [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None]),
        (ECT_0, [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)]),
        (ECT_1, [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)]),
        (CE, [Some(CE), Some(CE), Some(CE), Some(CE)]),
    ];
    for (v6, (inner, outcomes)) in
        [false, true].into_iter().flat_map(|v6| rows.map(|row| (v6, row)))
    {
        for (outer, outcome) in [NOT_ECT, ECT_0, ECT_1, CE].into_iter().zip(outcomes) {
            let mut packet = udp::emit(&flow(v6), 64, b"hello").data;
            ip::set_ecn(&mut packet, inner);
            let mut made = encapsulate(ends(v6), 64, &packet).unwrap().data;
            assert_eq!(ip::ecn(&made), Some(inner));
            ip::set_ecn(&mut made, outer);
            let left = decapsulate(&made);
            match outcome {
                Some(ecn) => {
                    let packet = left.unwrap().packet.data;
                    assert_eq!(ip::ecn(&packet), Some(ecn), "{inner:02b} in {outer:02b}");
                    assert!(ip::parse(&packet).is_ok());
                }
                None => assert_eq!(left, Err(TunnelError::Congestion)),
            }
        }
    }
}

#[test]
fn what_is_no_packet_in_a_tunnel_is_refused() {
    let inner = udp::emit(&flow(false), 64, b"hello").data;
    assert_eq!(decapsulate(&inner), Err(TunnelError::Protocol(ip::UDP)));
    let mut made = encapsulate(ends(false), 64, &inner).unwrap().data;
    // The protocol of IPv6 around IPv4.
    made[9] = ip::IPV6;
    assert!(fragment::complete(&mut made, NOT_ECT));
    assert_eq!(decapsulate(&made), Err(TunnelError::Inner(ParseError::Version(4))));
    assert_eq!(encapsulate(ends(false), 64, &[]), Err(TunnelError::Inner(ParseError::Truncated)));
    let mut long = vec![0; 65_535];
    long[..20].copy_from_slice(&inner[..20]);
    assert!(fragment::complete(&mut long, NOT_ECT));
    assert_eq!(encapsulate(ends(true), 64, &long), Err(TunnelError::Inner(ParseError::Length)));
}

#[test]
fn a_packet_with_df_and_an_ipv6_packet_are_not_cut() {
    for v6 in [false, true] {
        let packet = udp::emit(&flow(v6), 64, &[7; 1_400]).data;
        assert_eq!(fragment::cut(&packet, packet.len() - 1), Err(ParseError::Length));
        assert_eq!(fragment::cut(&packet, packet.len()), Ok(vec![packet]));
    }
}

#[test]
fn options_that_are_not_copied_are_in_the_first_fragment_only() {
    // Record route (not copied), no operation, stream identifier (copied), end.
    let options = [7, 4, 4, 0, 1, 136, 4, 9, 9, 0, 0, 0];
    let mut packet = udp::emit(&flow(false), 64, &[7; 100]).data;
    packet.splice(20..20, options);
    (packet[0], packet[6]) = (0x48, 0);
    assert!(fragment::complete(&mut packet, NOT_ECT));
    let made = fragment::cut(&packet, 80).unwrap();
    assert_eq!(made[0][20..32], options);
    assert_eq!((made[1][0], &made[1][20..24]), (0x46, &[136, 4, 9, 9][..]));
    // An option that ends beyond the header ends the list.
    packet[21] = 200;
    assert!(fragment::complete(&mut packet, NOT_ECT));
    assert_eq!(fragment::cut(&packet, 80).unwrap()[1][0], 0x45);
}

#[test]
fn no_error_is_sent_about_errors_later_fragments_and_crowds() {
    for v6 in [false, true] {
        let of = flow(v6);
        let packet = udp::emit(&of, 64, b"hello").data;
        assert!(icmp::may_complain(&packet));
        let ping = icmp::emit_echo(of.local.ip(), of.remote.ip(), 64, &[0; 4]).data;
        assert!(icmp::may_complain(&ping));
        let why = icmp::Complaint::Port;
        let error = icmp::emit_error(of.local.ip(), of.remote.ip(), 64, why, &packet).data;
        assert!(!icmp::may_complain(&error));
        let crowd: IpAddr = if v6 { "ff02::1".parse() } else { "224.0.0.1".parse() }.unwrap();
        let to_crowd = icmp::emit_echo(of.local.ip(), crowd, 64, &[0; 4]).data;
        let from_crowd = icmp::emit_echo(crowd, of.local.ip(), 64, &[0; 4]).data;
        assert!(!icmp::may_complain(&to_crowd) && !icmp::may_complain(&from_crowd));
        assert!(!icmp::may_complain(&packet[..10]));
    }
    let mut packet = udp::emit(&flow(false), 64, &[7; 100]).data;
    packet[6] = 0;
    assert!(fragment::complete(&mut packet, NOT_ECT));
    let parts = fragment::cut(&packet, 60).unwrap();
    let allowed: Vec<_> = parts.iter().map(|part| icmp::may_complain(part)).collect();
    assert_eq!(allowed, [true, false, false]);
}

proptest! {
    /// Cuts twice, with different limits, and puts the fragments together.
    #[test]
    fn fragments_together_are_the_packet(
        len in 1..3_000_usize, first in 68..1_500_usize, second in 68..1_500_usize, id: u16,
    ) {
        let data: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let mut packet = udp::emit(&flow(false), 64, &data).data;
        packet[6] = 0;
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        prop_assert!(fragment::complete(&mut packet, ECT_0));
        let made = fragment::cut(&packet, first).unwrap();
        let made: Vec<_> =
            made.iter().flat_map(|part| fragment::cut(part, second).unwrap()).collect();
        let mut whole = Vec::new();
        for part in &made {
            prop_assert!(part.len() <= second);
            if made.len() == 1 {
                whole = part.clone();
                break;
            }
            let read = fragment::parse(part).unwrap();
            prop_assert_eq!((read.id, read.ecn), (id.into(), ECT_0));
            if read.offset == 0 {
                whole = read.start();
            }
            prop_assert_eq!(whole.len() - 20, read.offset);
            whole.extend_from_slice(read.payload);
            prop_assert_eq!(read.more, read.end() < packet.len() - 20);
        }
        prop_assert!(fragment::complete(&mut whole, ECT_0));
        prop_assert_eq!(whole, packet);
    }

    #[test]
    fn any_bytes_are_cut_and_unpacked_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        mtu in 0..200_usize,
        protocol in prop::sample::select(vec![4_u8, 41, 6]),
        is_complete: bool,
    ) {
        if is_complete && bytes.len() >= 40 {
            bytes[0] = if bytes[0] & 1 == 0 { 0x45 } else { 0x60 };
            (bytes[6], bytes[9]) = (if bytes[0] == 0x45 { 0 } else { protocol }, protocol);
            fragment::complete(&mut bytes, NOT_ECT);
        }
        for part in fragment::cut(&bytes, mtu).unwrap_or_default() {
            prop_assert!(part.len() <= mtu);
        }
        let _ = decapsulate(&bytes);
        let _ = icmp::may_complain(&bytes);
        if let Ok(made) = encapsulate(ends(false), 64, &bytes) {
            prop_assert!(bytes.starts_with(&decapsulate(&made.data).unwrap().packet.data));
        }
    }
}
