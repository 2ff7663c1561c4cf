//! Two hosts with offloading devices: data in packets of up to 64 KiB.

use airtcp_types::Checksum;
use airtcp_wire::each_segment;

use super::*;
use crate::tcp::{EcnMode, SocketOption, TcpConfig};

const MSS: usize = 1448;

fn offloading() -> Pair {
    let mut pair = Pair::new();
    for host in [&mut pair.client, &mut pair.server] {
        let mut config = host.config().clone();
        config.segmentation_offload = true;
        *host = Host::new(config);
    }
    pair
}

/// A connection whose client window is not filled by the first data.
fn connected(mut pair: Pair, to: &str) -> (Pair, SocketId, SocketId) {
    let listener = pair.server.tcp_listen(address(to), 8).unwrap();
    let mut config = TcpConfig::default();
    config.sender.profile.initial_window = 64;
    let stream = pair.client.tcp_connect(pair.now, address(to), Some(config)).unwrap();
    pair.exchange();
    let (accepted, _) = pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    (pair, stream, accepted)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// The packets that a host sends now.
fn packets(host: &mut Host, now: Instant) -> Vec<Packet> {
    std::iter::from_fn(|| host.poll_transmit(now).map(|(_, packet)| packet)).collect()
}

/// The payload sizes of the segments into which a packet is cut.
fn segments(packet: &Packet) -> Vec<usize> {
    let mut sizes = Vec::new();
    each_segment(packet, |segment| sizes.push(read_segment(segment).payload.len()));
    sizes
}

#[test]
fn data_leaves_in_one_packet_that_shares_it_and_counts_by_segments() {
    for to in ["10.0.0.1:80", "[fd00::1]:80"] {
        let (mut pair, stream, accepted) = connected(offloading(), to);
        let mss = if to.starts_with('[') { MSS - 20 } else { MSS };
        let data = bytes(20 * mss + 100);
        let before = pair.client.counters().tcp_out_segs;
        pair.client.tcp_send(pair.now, stream, &data).unwrap();
        // Nagle's algorithm holds back the last part.
        let sent = packets(&mut pair.client, pair.now);
        assert_eq!(sent.len(), 1);
        assert_eq!(segments(&sent[0]), [mss; 20]);
        assert_eq!(sent[0].segment_size, Some(mss as u16));
        assert_eq!(sent[0].checksum, Checksum::Partial);
        assert!(sent[0].data.len() < 100 && !sent[0].tail.is_empty(), "no byte is copied");
        let sender = pair.client.tcp(stream).unwrap().sender().unwrap();
        assert_eq!(sender.board().in_order_sent().count(), 20);
        assert_eq!(pair.client.counters().tcp_out_segs - before, 20);
        let info = pair.client.tcp(stream).unwrap().info(pair.now);
        assert_eq!((info.data_segs_out, info.segs_out), (20, 22), "and SYN and ACK");

        for packet in sent {
            pair.server.handle_packet(pair.now, PORT, packet);
        }
        let info = pair.server.tcp(accepted).unwrap().info(pair.now);
        assert_eq!(info.data_segs_in, 20);
        pair.exchange();
        assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, data);
    }
}

#[test]
fn little_data_is_copied_and_its_checksum_is_still_the_devices() {
    let (mut pair, stream, _) = connected(offloading(), "10.0.0.1:80");
    for (len, size) in [(100, None), (2 * MSS, Some(MSS as u16))] {
        pair.client.tcp_send(pair.now, stream, &bytes(len)).unwrap();
        let sent = packets(&mut pair.client, pair.now);
        assert_eq!((sent.len(), sent[0].segment_size), (1, size));
        assert_eq!((sent[0].checksum, sent[0].tail.len()), (Checksum::Partial, 0));
        assert_eq!(sent[0].len(), 52 + len);
        sent.into_iter().for_each(|packet| pair.server.handle_packet(pair.now, PORT, packet));
        pair.exchange();
    }
}

#[test]
fn only_what_is_missing_is_sent_again() {
    let (mut pair, stream, accepted) = connected(offloading(), "10.0.0.1:80");
    let data = bytes(40 * MSS);
    pair.client.tcp_send(pair.now, stream, &data).unwrap();
    let sent = packets(&mut pair.client, pair.now);
    pair.now += Duration::from_millis(20);
    let mut number = 0;
    for packet in sent {
        each_segment(&packet, |segment| {
            if ![3, 4, 5, 20].contains(&number) {
                pair.server.handle_packet(pair.now, PORT, segment.clone());
            }
            number += 1;
        });
    }
    assert_eq!(number, 40);
    let mut repairs = Vec::new();
    for _ in 0..20 {
        for ack in packets(&mut pair.server, pair.now) {
            pair.client.handle_packet(pair.now, PORT, ack);
        }
        for packet in packets(&mut pair.client, pair.now) {
            repairs.push(segments(&packet));
            pair.server.handle_packet(pair.now, PORT, packet);
        }
        pair.now += Duration::from_millis(5);
        pair.client.handle_timeout(pair.now);
    }
    assert_eq!(repairs.concat(), [MSS; 4], "{repairs:?}");
    assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, data);
}

/// A transmission kept for the next packet may be partly acknowledged before it is sent.
#[test]
fn a_repair_that_was_kept_begins_where_the_peer_has_got_to() {
    let (mut pair, stream, _) = connected(offloading(), "10.0.0.1:80");
    let data = bytes(40 * MSS);
    pair.client.tcp_send(pair.now, stream, &data).unwrap();
    let sent = packets(&mut pair.client, pair.now);
    pair.now += Duration::from_millis(20);
    let mut number = 0;
    each_segment(&sent[0], |segment| {
        if ![3, 20].contains(&number) {
            pair.server.handle_packet(pair.now, PORT, segment.clone());
        }
        number += 1;
    });
    let acks = packets(&mut pair.server, pair.now);
    let last = acks.last().unwrap().clone();
    acks.into_iter().for_each(|ack| pair.client.handle_packet(pair.now, PORT, ack));
    pair.now += Duration::from_millis(20);
    pair.client.handle_timeout(pair.now);
    let (_, first) = pair.client.poll_transmit(pair.now).unwrap();
    let begin = read_segment(&first).seq;
    assert_eq!(segments(&first), [MSS]);
    // The peer has the first of the two, and 700 bytes of the other.
    let flow = pair.client.tcp(stream).unwrap().flow();
    let flow = FlowId { local: flow.remote, remote: flow.local };
    let ack = begin + 17 * MSS as u32 + 700;
    let heard = read_segment(&last);
    let options = airtcp_wire::options::TcpOptions {
        timestamps: heard.options.timestamps,
        ..Default::default()
    };
    let header = Header { seq: heard.seq, ack: Some(ack), window: 1000, options, ..syn() };
    let header = Header { flags: Flags::ACK, ..header };
    pair.client.handle_packet(pair.now, PORT, tcp::emit(&flow, 64, &header, &[]));
    let (_, second) = pair.client.poll_transmit(pair.now).unwrap();
    let mut shown = Vec::new();
    each_segment(&second, |segment| shown.push(segment.clone()));
    let repair = read_segment(&shown[0]);
    assert_eq!(repair.seq, ack);
    assert_eq!(*repair.payload.contiguous(), data[20 * MSS + 700..21 * MSS]);
}

#[test]
fn a_packet_is_no_longer_than_ip_can_say_and_the_stream_arrives_whole() {
    for to in ["10.0.0.1:80", "[fd00::1]:80"] {
        let (mut pair, stream, accepted) = connected(offloading(), to);
        let data = bytes(3_000_000);
        let (mut written, mut got, mut longest) = (0, Vec::new(), 0);
        while got.len() < data.len() {
            written += pair.client.tcp_send(pair.now, stream, &data[written..]).unwrap_or(0);
            for packet in packets(&mut pair.client, pair.now) {
                longest = longest.max(packet.len());
                pair.server.handle_packet(pair.now, PORT, packet);
            }
            got.extend(read_all(&mut pair.server, pair.now, accepted).0);
            for packet in packets(&mut pair.server, pair.now) {
                pair.client.handle_packet(pair.now, PORT, packet);
            }
            pair.now += Duration::from_millis(1);
            pair.client.handle_timeout(pair.now);
        }
        assert!(got == data);
        assert!((64_000..=65_535).contains(&longest), "{longest}");
        assert_eq!(pair.client.counters().tcp_retrans_segs, 0);
    }
}

#[test]
fn a_fin_rides_on_the_last_segment_alone() {
    let (mut pair, stream, accepted) = connected(offloading(), "10.0.0.1:80");
    pair.client.tcp_send(pair.now, stream, &bytes(3 * MSS + 7)).unwrap();
    pair.client.tcp_shutdown(pair.now, stream).unwrap();
    let sent = packets(&mut pair.client, pair.now);
    let mut flags = Vec::new();
    each_segment(&sent[0], |segment| {
        let Flags { fin, psh, .. } = read_segment(segment).flags;
        flags.push((fin, psh));
    });
    assert_eq!(flags, [(false, false), (false, false), (false, false), (true, true)]);
    sent.into_iter().for_each(|packet| pair.server.handle_packet(pair.now, PORT, packet));
    assert_eq!(read_all(&mut pair.server, pair.now, accepted), (bytes(3 * MSS + 7), true));
}

#[test]
fn pacing_bounds_a_packet() {
    let mut pair = offloading();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let mut config = TcpConfig::default();
    config.sender.pacing = true;
    config.sender.profile.initial_window = 64;
    let stream = pair.client.tcp_connect(pair.now, address("10.0.0.1:80"), Some(config)).unwrap();
    // A round trip from which it gets a pacing rate.
    for packet in packets(&mut pair.client, pair.now) {
        pair.server.handle_packet(pair.now, PORT, packet);
    }
    pair.now += Duration::from_millis(100);
    pair.exchange();
    pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    pair.client.tcp_send(pair.now, stream, b"first").unwrap();
    pair.exchange();
    pair.pass(Duration::from_millis(100));
    pair.client.tcp_send(pair.now, stream, &bytes(60 * MSS)).unwrap();
    let sent: usize = packets(&mut pair.client, pair.now).iter().map(Packet::len).sum();
    assert!(sent > MSS && sent < 30 * MSS, "{sent} bytes at once");
    assert!(pair.client.poll_timeout().is_some_and(|at| at > pair.now));
}

#[test]
fn datagrams_put_together_by_the_device_are_taken_apart() {
    let mut pair = offloading();
    let socket = pair.server.udp_bind(address("10.0.0.1:53")).unwrap();
    let client = pair.client.udp_bind(address("10.0.0.2:53")).unwrap();
    pair.client.udp_send_to(client, &bytes(250), address("10.0.0.1:53")).unwrap();
    let mut packet = packets(&mut pair.client, pair.now).remove(0);
    packet.segment_size = Some(100);
    packet.checksum = Checksum::Partial;
    pair.server.handle_packet(pair.now, PORT, packet);
    let mut buf = [0; 300];
    let mut got = Vec::new();
    while let Some((len, _)) = pair.server.udp_recv_from(socket, &mut buf).unwrap() {
        got.push(buf[..len].to_vec());
    }
    let whole = bytes(250);
    assert_eq!(got, [&whole[..100], &whole[100..200], &whole[200..]]);
    assert_eq!(pair.server.counters().udp_in_datagrams, 3);
}

#[test]
fn every_segment_of_a_marked_super_segment_counts_as_marked() {
    let (mut pair, stream, _) = connected(offloading(), "10.0.0.1:80");
    pair.client.tcp_send(pair.now, stream, &bytes(3 * MSS)).unwrap();
    let mut packet = packets(&mut pair.client, pair.now).remove(0);
    let mut segments = 0;
    each_segment(&packet, |_| segments += 1);
    assert!(packet.segment_size.is_some() && segments > 1);
    // Sets CE, and updates the checksum of the IPv4 header.
    packet.data[1] |= ip::CE;
    packet.data[10..12].fill(0);
    let mut sum = Sum::new();
    sum.add_bytes(&packet.data[..20]);
    let sum = sum.finish();
    packet.data[10..12].copy_from_slice(&sum.to_be_bytes());
    pair.server.handle_packet(pair.now, PORT, packet);
    assert_eq!(pair.server.counters().ip_ext_in_ce_pkts, segments);
}

/// A device that cuts a packet sets CWR only on the first segment, as Linux does: a segment whose
/// ACE value includes that bit is therefore not part of a super-segment.
#[test]
fn every_segment_has_the_whole_ace_field() {
    for marks in 0..8 {
        let mut pair = offloading();
        for host in [&mut pair.client, &mut pair.server] {
            let mut config = host.config().clone();
            config.tcp.ecn = EcnMode::Accurate;
            config.tcp.sender.profile.initial_window = 64;
            *host = Host::new(config);
        }
        let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
        let (stream, accepted) = pair.connect(listener, "10.0.0.1:80");
        for _ in 0..marks {
            pair.server.tcp_send(pair.now, accepted, &bytes(10)).unwrap();
            for packet in packets(&mut pair.server, pair.now) {
                let data = with_header(packet.data.clone(), |header| header[1] |= ip::CE);
                pair.client.handle_packet(pair.now, PORT, Packet { data, ..packet });
            }
            pair.exchange();
        }
        let feedback = pair.client.tcp(stream).unwrap().info(pair.now).accecn.unwrap();
        assert_eq!(feedback.received_ce, marks);
        pair.client.tcp_send(pair.now, stream, &bytes(20 * MSS)).unwrap();
        let sent = packets(&mut pair.client, pair.now);
        let ace = (5 + marks as u8) % 8;
        let mut count = 0;
        for packet in &sent {
            each_segment(packet, |segment| {
                let segment = read_segment(segment);
                assert_eq!((segment.flags.ace(), segment.payload.len()), (ace, MSS));
                count += 1;
            });
        }
        let has_cwr = ace & 0b010 != 0;
        assert_eq!((count, sent.len()), (20, if has_cwr { 20 } else { 1 }), "ACE {ace}");
    }
}

#[test]
fn a_damaged_shared_payload_without_verified_checksum_is_dropped() {
    let (mut pair, stream, accepted) = connected(offloading(), "10.0.0.1:80");
    pair.client.tcp_send(pair.now, stream, &bytes(10 * MSS)).unwrap();
    let packet = packets(&mut pair.client, pair.now).remove(0);
    let mut whole = packet.data.clone();
    packet.tail.iter().for_each(|part| whole.extend_from_slice(part));
    // A packet as a device with a large MTU delivers it: in shared memory, with a complete
    // checksum.
    let sum = {
        let datagram = ip::parse(&whole).unwrap();
        let mut sum = Sum::new();
        sum.add_bytes(&datagram.payload[18..]);
        sum.add_bytes(&datagram.payload[..16]);
        sum.add_pseudo_header(datagram.src, datagram.dst, ip::TCP, datagram.payload.len());
        sum.finish()
    };
    let mut data = packet.data.clone();
    data[36..38].copy_from_slice(&sum.to_be_bytes());
    let large = Packet { data, tail: packet.tail.clone(), ..Packet::default() };
    let mut damaged = large.clone();
    damaged.data[25] ^= 1;
    pair.server.handle_packet(pair.now, PORT, damaged);
    assert_eq!(pair.server.counters().tcp_in_csum_errors, 1);
    pair.server.handle_packet(pair.now, PORT, large);
    assert_eq!(pair.server.counters().tcp_in_csum_errors, 1);
    assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, bytes(10 * MSS));
    // A length that does not include the shared part.
    let mut short = packet;
    short.tail.pop();
    pair.server.handle_packet(pair.now, PORT, short);
    assert_eq!(pair.server.counters().ip_ext_in_truncated_pkts, 1);
}

#[test]
fn a_packet_is_made_in_memory_that_was_given_back() {
    let (mut pair, stream, _) = connected(offloading(), "10.0.0.1:80");
    // More memory than the packets of the connection have.
    let mut given = vec![Packet::new(Vec::with_capacity(5000)), Packet::new(vec![7; 20_000])];
    pair.client.recycle(&mut given);
    assert!(given.is_empty());
    let mut capacities = Vec::new();
    for _ in 0..2 {
        pair.client.tcp_send(pair.now, stream, &bytes(10 * MSS)).unwrap();
        let mut sent = packets(&mut pair.client, pair.now);
        assert_eq!(segments(&sent[0]), [MSS; 10]);
        capacities.push(sent[0].data.capacity());
        pair.client.recycle(&mut sent);
    }
    assert_eq!(capacities, [5000; 2], "what is too long is not kept");
}

#[test]
fn no_more_segments_than_may_leave_as_one_and_a_push_where_they_end() {
    for (most, sizes) in [(2, vec![2, 2, 1]), (u16::MAX, vec![5]), (1, vec![1; 5])] {
        let mut pair = offloading();
        let mut config = pair.client.config().clone();
        config.segments_at_once = most;
        pair.client = Host::new(config);
        let (mut pair, stream, _) = connected(pair, "10.0.0.1:80");
        // The last byte of the last packet is not the last byte written.
        pair.client.tcp_set(pair.now, stream, SocketOption::Cork(true)).unwrap();
        pair.client.tcp_send(pair.now, stream, &bytes(5 * MSS + 1)).unwrap();
        let sent = packets(&mut pair.client, pair.now);
        let segments: Vec<usize> = sent.iter().map(|packet| segments(packet).len()).collect();
        assert_eq!(segments, sizes);
        let pushes: Vec<bool> = sent.iter().map(|packet| packet.data[20 + 13] & 8 != 0).collect();
        assert_eq!(pushes, sizes.iter().map(|size| *size > 1).collect::<Vec<_>>());
    }
}

#[test]
fn the_checksum_of_a_datagram_is_left_to_the_device() {
    for (from, to) in [("10.0.0.2:9", "10.0.0.1:9"), ("[fd00::2]:9", "[fd00::1]:9")] {
        let mut pair = offloading();
        let mut plain = Pair::new();
        for pair in [&mut pair, &mut plain] {
            let socket = pair.client.udp_bind(address(from)).unwrap();
            pair.client.udp_send_to(socket, b"hello", address(to)).unwrap();
        }
        let open = packets(&mut pair.client, pair.now).remove(0);
        let whole = packets(&mut plain.client, plain.now).remove(0);
        assert_eq!((open.checksum, whole.checksum), (Checksum::Partial, Checksum::Full));
        assert_ne!(open.data, whole.data);
        each_segment(&open, |completed| assert_eq!(*completed, whole));
    }
}
