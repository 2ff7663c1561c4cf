//! Each kind of bad input is counted under its name, and dropped.

use airtcp_types::Checksum;
use airtcp_wire::udp;

use crate::logged::logged;
use crate::tcp::Unreachable;

use super::*;

/// Delivers one packet to a server, and checks which counters change, that the drop is logged, and
/// that nothing else happens.
#[track_caller]
fn dropped(data: Vec<u8>, counters: &[&str]) {
    let mut host = server();
    host.tcp_listen(address("0.0.0.0:80"), 4).unwrap();
    host.tcp_listen(address("[::]:80"), 4).unwrap();
    let before = host.counters().clone();
    let lines = logged(|| {
        let answers = answers(&mut host, data);
        assert!(answers.is_empty(), "{answers:?}");
    });
    assert_eq!(moved(&before, host.counters()), counters);
    assert!(lines.iter().any(|line| line.starts_with("DEBUG ")), "nothing logged: {lines:?}");
    assert_eq!(host.tcp_connections().count(), 0);
}

const V4: &str = "10.0.0.1:80";
const V6: &str = "[fd00::1]:80";

fn from_to(src: &str, dst: &str) -> Vec<u8> {
    let flow = FlowId { local: address(src), remote: address(dst) };
    tcp::emit(&flow, 64, &syn(), &[]).data
}

#[test]
fn a_good_syn_is_answered() {
    for to in [V4, V6] {
        let mut host = server();
        host.tcp_listen(address("0.0.0.0:80"), 4).unwrap();
        host.tcp_listen(address("[::]:80"), 4).unwrap();
        let answers = answers(&mut host, segment(to, &syn()));
        let flags = read_segment(&answers[0]).flags;
        assert_eq!((answers.len(), flags.syn, flags.ack), (1, true, true));
    }
}

#[test]
fn nothing_and_other_versions() {
    dropped(vec![], &["IpInReceives", "IpExtInTruncatedPkts"]);
    dropped(vec![0x55; 60], &["IpInReceives", "IpInHdrErrors"]);
}

#[test]
fn packets_cut_short() {
    let mut v4 = segment(V4, &syn());
    v4.pop();
    dropped(v4, &["IpInReceives", "IpExtInTruncatedPkts"]);
    let mut v6 = segment(V6, &syn());
    v6.pop();
    dropped(v6, &["Ip6InReceives", "Ip6InTruncatedPkts"]);
    let short = with_header(segment(V4, &syn())[..30].to_vec(), |data| data[3] = 30);
    dropped(short, &["IpInReceives", "IpInDelivers", "TcpInSegs", "TcpInErrs"]);
}

#[test]
fn length_fields_too_large_and_too_small() {
    let large = with_header(segment(V4, &syn()), |data| data[3] += 1);
    dropped(large, &["IpInReceives", "IpExtInTruncatedPkts"]);
    let small = with_header(segment(V4, &syn()), |data| data[3] = 19);
    dropped(small, &["IpInReceives", "IpInHdrErrors"]);
    let header = with_header(segment(V4, &syn()), |data| data[0] = 0x44);
    dropped(header, &["IpInReceives", "IpInHdrErrors"]);
    let mut v6 = segment(V6, &syn());
    v6[5] += 1;
    dropped(v6, &["Ip6InReceives", "Ip6InTruncatedPkts"]);
}

#[test]
fn a_source_route_that_is_not_at_its_end() {
    let mut v6 = segment(V6, &syn());
    // RFC 8200 section 4.4: the next header is TCP, and one address remains to be visited.
    v6.splice(40..40, [6, 0, 0, 1, 0, 0, 0, 0]);
    v6[5] += 8;
    v6[6] = 43;
    dropped(v6, &["Ip6InReceives", "Ip6InHdrErrors"]);
}

// Shows: RFC9293-MUST-3
#[test]
fn checksums_that_are_wrong() {
    let mut header = segment(V4, &syn());
    header[8] ^= 1;
    dropped(header, &["IpInReceives", "IpInHdrErrors", "IpExtInCsumErrors"]);
    for to in [V4, V6] {
        let mut data = segment(to, &syn());
        let last = data.len() - 1;
        data[last - 6] ^= 1;
        let v6 = data[0] >> 4 == 6;
        let ip =
            if v6 { ["Ip6InReceives", "Ip6InDelivers"] } else { ["IpInReceives", "IpInDelivers"] };
        dropped(data, &[&ip[..], &["TcpInSegs", "TcpInErrs", "TcpInCsumErrors"]].concat());
    }
}

#[test]
fn a_checksum_that_others_vouch_for_is_not_looked_at() {
    for checksum in [Checksum::Verified, Checksum::Partial] {
        let mut host = server();
        host.tcp_listen(address(V4), 4).unwrap();
        let mut data = segment(V4, &syn());
        data[36] ^= 1;
        let packet = Packet { data, checksum, ..Packet::default() };
        host.handle_packet(Instant::ZERO, PORT, packet);
        assert_eq!(host.tcp_connections().count(), 1);
    }
}

/// A SYN to the server with these bytes of options, a multiple of four.
fn syn_with(list: &[u8]) -> Vec<u8> {
    let mut data = segment(V4, &syn());
    data.extend_from_slice(list);
    data[3] = data.len() as u8;
    data[32] = ((20 + list.len()) as u8 / 4) << 4;
    data[36..38].fill(0);
    let FlowId { local, remote } = from_stranger(V4);
    let mut sum = Sum::new();
    sum.add_pseudo_header(local.ip(), remote.ip(), ip::TCP, data.len() - 20);
    sum.add_bytes(&data[20..]);
    data[36..38].copy_from_slice(&sum.finish().to_be_bytes());
    with_sum(data)
}

// Shows: RFC9293-MUST-6, RFC9293-MUST-7
#[test]
fn options_that_make_no_sense_cost_themselves_and_not_the_segment() {
    // The bytes are between an MSS option and a window scale option, which is parsed only if the
    // length leads to it.
    for (between, scale) in [
        // An unknown kind, and known kinds with wrong lengths: skipped, as in Linux.
        (&[77, 4, 9, 9][..], true),
        (&[4, 4, 0, 0], true),
        (&[2, 3, 9, 1], true),
        // Lengths that do not lead to the next option.
        (&[77, 0, 1, 1], false),
        (&[77, 1, 1, 1], false),
        (&[77, 40, 1, 1], false),
        (&[8, 0, 1, 1], false),
    ] {
        let list = [&[2, 4, 0x03, 0xe8], between, &[1, 3, 3, 5]].concat();
        let mut host = server();
        host.tcp_listen(address(V4), 4).unwrap();
        let before = host.counters().clone();
        let answers = answers(&mut host, syn_with(&list));
        assert_eq!(answers.len(), 1, "{between:?}");
        let answer = read_segment(&answers[0]);
        assert!(answer.flags.syn && answer.flags.ack, "{between:?}");
        assert_eq!(answer.options.window_scale.is_some(), scale, "{between:?}");
        let is_counted = moved(&before, host.counters()).contains(&"TcpExtBadOptions");
        assert_eq!(is_counted, between != [77, 4, 9, 9], "{between:?}");
    }
}

// Shows: RFC9293-MUST-63
#[test]
fn sources_that_no_host_has() {
    let martians = [
        "10.0.0.1:1",
        "224.0.0.1:1",
        "255.255.255.255:1",
        "10.0.0.255:1",
        "0.0.0.0:1",
        "127.0.0.1:1",
    ];
    for src in martians {
        dropped(from_to(src, V4), &["IpInReceives", "IpInAddrErrors"]);
    }
    for src in ["[fd00::1]:1", "[ff02::1]:1", "[::]:1", "[::1]:1", "[::ffff:10.0.0.9]:1"] {
        dropped(from_to(src, V6), &["Ip6InReceives", "Ip6InAddrErrors"]);
    }
}

// Shows: RFC9293-MUST-57
#[test]
fn packets_for_others_and_for_all() {
    dropped(from_to("10.0.0.9:1", "10.0.0.3:80"), &["IpInReceives", "IpInAddrErrors"]);
    dropped(from_to("10.0.0.9:1", "10.0.0.255:80"), &["IpInReceives", "IpExtInMcastPkts"]);
    dropped(from_to("[fd00::9]:1", "[ff02::1]:80"), &["Ip6InReceives", "Ip6InMcastPkts"]);
}

#[test]
fn unknown_protocols_are_complained_of() {
    let mut host = server();
    let data = with_header(segment(V4, &syn()), |data| data[9] = 200);
    let complaint = answers(&mut host, data.clone());
    let message = icmp::parse(&ip::parse(&complaint[0].data).unwrap());
    let reason = icmp::Reason::Protocol;
    assert_eq!(message, Ok(icmp::Message::Error { reason, quoted: &data }));
    let mut data = segment(V6, &syn());
    data[6] = 200;
    let complaint = answers(&mut host, data.clone());
    let datagram = ip::parse(&complaint[0].data).unwrap();
    let message = icmp::parse(&datagram);
    assert_eq!(message, Ok(icmp::Message::Error { reason, quoted: &data }));
    assert_eq!(datagram.payload[7], 6, "the next header field");
    assert_eq!(
        (host.counters().ip_in_unknown_protos, host.counters().ip6_in_unknown_protos),
        (1, 1)
    );
}

#[test]
fn echo_is_answered_over_both_versions() {
    for to in [V4, V6] {
        let mut host = server();
        let flow = from_stranger(to);
        let (src, dst) = (flow.local.ip(), flow.remote.ip());
        let mut data = echo(src, dst, b"\0\x07\0\x01ping");
        let replies = answers(&mut host, data.clone());
        assert_eq!(replies, [icmp::emit_echo_reply(dst, src, 64, b"\0\x07\0\x01ping")]);
        *data.last_mut().unwrap() ^= 1;
        assert!(answers(&mut host, data).is_empty());
        let counters = host.counters();
        let errors = [counters.icmp_in_csum_errors, counters.icmp6_in_csum_errors];
        assert_eq!(errors.iter().sum::<u64>(), 1);
    }
}

#[test]
fn every_error_is_counted_under_its_name() {
    let v4 = [
        (3, 1, "IcmpInDestUnreachs"),
        (3, 4, "IcmpInDestUnreachs"),
        (11, 0, "IcmpInTimeExcds"),
        (12, 0, "IcmpInParmProbs"),
    ];
    let v6 = [
        (1, 0, "Icmp6InDestUnreachs"),
        (2, 0, "Icmp6InPktTooBigs"),
        (3, 0, "Icmp6InTimeExcds"),
        (4, 1, "Icmp6InParmProblems"),
    ];
    for (to, kinds) in [(V4, v4), (V6, v6)] {
        for (kind, code, name) in kinds {
            // An error to the server about a packet with an unreadable header.
            let flow = FlowId { local: address(to), remote: from_stranger(to).local };
            let sent = udp::emit(&flow, 64, b"x").data;
            let data = icmp_error(&sent, [kind, code], 0, &[0; 40]).data;
            let (ip, unread) = if to == V4 {
                (["IpInReceives", "IpInDelivers", "IcmpInMsgs"], "IcmpInErrors")
            } else {
                (["Ip6InReceives", "Ip6InDelivers", "Icmp6InMsgs"], "Icmp6InErrors")
            };
            // Parameter Problem does not report on the path, whatever the packet.
            let parameter = name == "IcmpInParmProbs";
            let icmp = if parameter { vec![name] } else { vec![unread, name] };
            dropped(data, &[&ip[..], &icmp].concat());
        }
    }
}

#[test]
fn an_error_is_never_answered() {
    let mut host = server();
    let original = udp::emit(&from_stranger(V4), 64, b"x").data;
    let flow = from_stranger(V4);
    let error =
        icmp::emit_error(flow.local.ip(), flow.remote.ip(), 64, icmp::Complaint::Port, &original);
    assert!(answers(&mut host, error.data).is_empty());
    assert_eq!(host.counters().icmp_in_dest_unreachs, 1);
}

#[test]
fn a_datagram_to_a_closed_port_is_complained_of_at_a_bounded_rate() {
    for to in [V4, V6] {
        let mut host = server();
        let data = udp::emit(&from_stranger(to), 64, b"x").data;
        let sent: usize = (0..200).map(|_| answers(&mut host, data.clone()).len()).sum();
        assert_eq!(sent, 50);
        assert_eq!(host.counters().udp_no_ports, 200);
    }
}

#[test]
fn refused_segments_get_the_right_reset() {
    let mut host = server();
    // RFC 9293 section 3.10.7.1: without ACK, <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>.
    let reset = answers(&mut host, segment(V4, &syn()));
    let read = read_segment(&reset[0]);
    assert_eq!((read.seq, read.ack), (SeqNumber(0), SeqNumber(1_001)));
    assert_eq!(read.flags, Flags { rst: true, ..Flags::ACK });
    // With ACK, <SEQ=SEG.ACK><CTL=RST>.
    let header = Header { ack: Some(SeqNumber(5)), ..syn() };
    let reset = answers(&mut host, segment(V6, &header));
    let read = read_segment(&reset[0]);
    assert_eq!((read.seq, read.flags), (SeqNumber(5), Flags { rst: true, ..Flags::default() }));
    // A RST is never answered.
    let header = Header { flags: Flags { rst: true, ..Flags::default() }, ..syn() };
    assert!(answers(&mut host, segment(V4, &header)).is_empty());
    assert_eq!(host.counters().tcp_out_rsts, 2);
}

#[test]
fn a_listener_takes_syns_alone() {
    let mut host = server();
    host.tcp_listen(address(V4), 4).unwrap();
    let with = |flags, ack| segment(V4, &Header { flags, ack, ..syn() });
    let rst = Flags { rst: true, syn: true, ..Flags::default() };
    assert!(answers(&mut host, with(rst, None)).is_empty());
    let fin = Flags { fin: true, syn: true, ..Flags::default() };
    assert!(answers(&mut host, with(fin, None)).is_empty());
    assert!(answers(&mut host, with(Flags::default(), None)).is_empty());
    let reset = answers(&mut host, with(Flags::ACK, Some(SeqNumber(9))));
    assert_eq!(read_segment(&reset[0]).seq, SeqNumber(9));
    assert_eq!(host.tcp_connections().count(), 0);
}

#[test]
fn an_icmp_error_about_a_datagram_reaches_the_socket_of_that_peer() {
    let (mut server, mut client) = (server(), host(["10.0.0.2/24", "fd00::2/64"]));
    let now = Instant::ZERO;
    for (local, peer, other) in
        [("10.0.0.2:5", "10.0.0.1:9", "10.0.0.1:8"), ("[fd00::2]:5", "[fd00::1]:9", "[fd00::1]:8")]
    {
        let socket = client.udp_bind(address(local)).unwrap();
        let mut complaint_of = |client: &mut Host, to| {
            client.udp_send_to(socket, b"?", address(to)).unwrap();
            let (_, packet) = client.poll_transmit(now).unwrap();
            server.handle_packet(now, PORT, packet);
            let (_, complaint) = server.poll_transmit(now).unwrap();
            client.handle_packet(now, PORT, complaint);
        };
        complaint_of(&mut client, peer);
        assert_eq!(client.udp_take_error(socket), Ok(None), "it has no peer");
        client.udp_connect(socket, address(peer)).unwrap();
        complaint_of(&mut client, other);
        assert!(!client.readiness(socket).unwrap().readable, "not of its peer");
        let counters = client.counters();
        assert!(counters.icmp_in_errors + counters.icmp6_in_errors > 0);
        complaint_of(&mut client, peer);
        assert!(client.readiness(socket).unwrap().readable);
        let refused = Err(HostError::Unreachable(Unreachable::Port));
        assert_eq!(client.udp_send(socket, b"?"), refused);
        assert!(!client.readiness(socket).unwrap().readable, "the error is reported once");
        complaint_of(&mut client, peer);
        let received = client.udp_recv_from(socket, &mut [0; 1]);
        assert_eq!(received, Err(HostError::Unreachable(Unreachable::Port)));
    }
}
