//! Limits that all connections of a host share and that untrusted hosts may exhaust.

use airtcp_wire::checksum::checksum;
use airtcp_wire::icmp::{Complaint, emit_error};

use super::super::Quota;
use crate::tcp::State;

use super::*;

const TO: &str = "10.0.0.1:80";

/// The next sequence number that the server expects from a client that has sent nothing.
fn expected(pair: &Pair, stream: SocketId) -> (FlowId, SeqNumber) {
    let flow = pair.client.tcp(stream).unwrap().flow();
    (flow, pair.client.secret.isn(Instant::ZERO, &flow) + 1)
}

// Shows: RFC5961-7-1, RFC5961-7-2
#[test]
fn challenge_acks_of_all_connections_are_limited_together() {
    let mut pair = Pair::new();
    pair.server.config.challenge_acks = 10;
    let listener = pair.server.tcp_listen(address(TO), 64).unwrap();
    let streams: Vec<_> = (0..40).map(|_| pair.connect(listener, TO)).collect();
    let mut sent = vec![];
    for _ in 0..20 {
        let before = pair.server.counters().clone();
        for (stream, _) in &streams {
            let (flow, next) = expected(&pair, *stream);
            let flags = Flags { rst: true, ..Flags::default() };
            let header = Header { seq: next + 9, flags, ..Header::default() };
            pair.server.handle_packet(pair.now, PORT, tcp::emit(&flow, 64, &header, &[]));
        }
        pair.exchange();
        let after = pair.server.counters();
        let challenges = after.tcp_ext_challenge_ack - before.tcp_ext_challenge_ack;
        let refused = after.tcp_ext_challenge_ack_limit - before.tcp_ext_challenge_ack_limit;
        assert_eq!(challenges + refused, 40);
        sent.push(challenges);
        pair.pass(Duration::from_secs(1));
    }
    assert!(sent.iter().all(|sent| (5..=15).contains(sent)), "{sent:?}");
    assert!(sent.iter().any(|other| *other != sent[0]), "nobody knows how many: {sent:?}");
    for (stream, accepted) in streams {
        pair.client.tcp_send(pair.now, stream, b"alive").unwrap();
        pair.exchange();
        assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, b"alive");
    }
}

#[test]
fn a_port_in_use_or_in_time_wait_is_not_chosen_and_an_error_says_when_all_are() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, TO);
    let first = pair.client.local_addr(stream).unwrap();
    pair.client.tcp_close(pair.now, stream).unwrap();
    pair.exchange();
    pair.server.tcp_close(pair.now, accepted).unwrap();
    pair.exchange();
    let states: Vec<_> = pair.client.tcp_connections().map(|(_, state)| state).collect();
    assert_eq!(states, [State::TimeWait]);
    let client = &mut pair.client;
    let mut chosen = std::collections::BTreeSet::new();
    let error = loop {
        match client.tcp_connect(pair.now, address(TO), None) {
            Ok(stream) => assert!(chosen.insert(client.local_addr(stream).unwrap())),
            Err(error) => break error,
        }
    };
    assert_eq!((error, client.counters().tcp_ext_no_ports), (HostError::NoPorts, 1));
    assert!(chosen.len() == 28_231 && !chosen.contains(&first));
    let other = client.tcp_connect(pair.now, address("10.0.0.1:81"), None).unwrap();
    assert!(
        client.local_addr(other).unwrap().port() >= 32_768,
        "towards another peer all are free"
    );
    // Its port is free only after TIME-WAIT.
    let later = pair.now + Duration::from_secs(60);
    client.handle_timeout(later);
    while client.poll_transmit(later).is_some() {}
    let again = client.tcp_connect(later, address(TO), None).unwrap();
    assert_eq!(client.local_addr(again), Ok(first));
}

#[test]
fn too_big_that_cannot_be_true_shrinks_nothing() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, TO);
    pair.client.tcp_send(pair.now, stream, &[7; 20_000]).unwrap();
    let (_, sent) = pair.client.poll_transmit(pair.now).unwrap();
    let mut forged = sent.data.clone();
    forged[24] ^= 0x40;
    for quoted in [&forged, &sent.data] {
        let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut error = emit_error(src, dst, 64, Complaint::Port, quoted);
        // RFC 1191: code 4, with an MTU that no link has.
        let message = &mut error.data[20..];
        (message[1], message[7]) = (4, 1);
        message[2..4].fill(0);
        let sum = checksum(message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        pair.client.handle_packet(pair.now, PORT, error);
    }
    let counters = pair.client.counters();
    assert_eq!((counters.icmp_in_dest_unreachs, counters.tcp_ext_out_of_window_icmps), (2, 1));
    assert_eq!((counters.tcp_ext_pmtu_refused, counters.tcp_ext_pmtu_lowered), (1, 0));
    assert_eq!(pair.client.tcp(stream).unwrap().info(pair.now).mss, ByteCount(1_448));
    pair.server.handle_packet(pair.now, PORT, sent);
    pair.pass(Duration::from_secs(1));
    assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, [7; 20_000]);
}

/// A host with small quotas, and a listener.
fn with_quotas(quota: Quota, peer_quota: Quota) -> (Pair, SocketId) {
    let mut pair = Pair::new();
    (pair.server.config.quota, pair.server.config.peer_quota) = (quota, peer_quota);
    let listener = pair.server.tcp_listen(address(TO), 64).unwrap();
    (pair, listener)
}

/// A segment with `header` from another stranger.
fn from(host: u8, port: u16, header: &Header) -> Packet {
    let local = SocketAddr::from(([10, 0, 0, host], port));
    tcp::emit(&FlowId { local, remote: address(TO) }, 64, header, &[])
}

#[test]
fn connections_are_limited_for_a_peer_and_for_all() {
    let peer_quota = Quota { connections: 3, ..Quota::PEER };
    let (mut pair, listener) = with_quotas(Quota { connections: 5, ..Quota::ALL }, peer_quota);
    let streams: Vec<_> = (0..3).map(|_| pair.connect(listener, TO)).collect();
    // The client's fourth SYN is dropped, and all SYNs after the fifth connection.
    pair.client.tcp_connect(pair.now, address(TO), None).unwrap();
    pair.exchange();
    for host in 20..30 {
        pair.server.handle_packet(pair.now, PORT, from(host, 9, &syn()));
    }
    pair.exchange();
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_conn_quota_peer, counters.tcp_ext_conn_quota), (1, 8));
    assert_eq!(counters.tcp_ext_listen_drops, 9);
    assert_eq!(pair.server.tcp_connections().count(), 5);
    let refused = pair.server.tcp_connect(pair.now, address("10.0.0.77:9"), None);
    assert_eq!(refused, Err(HostError::TooManyConnections));
    // Existing connections continue.
    for (stream, accepted) in &streams {
        pair.client.tcp_send(pair.now, *stream, b"alive").unwrap();
        pair.exchange();
        assert_eq!(read_all(&mut pair.server, pair.now, *accepted).0, b"alive");
    }
    // The end of one connection makes room for the waiting one.
    pair.client.tcp_abort(pair.now, streams[0].0).unwrap();
    pair.exchange();
    pair.server.tcp_close(pair.now, streams[0].1).unwrap();
    pair.pass(Duration::from_secs(4));
    assert!(pair.server.tcp_accept(pair.now, listener).unwrap().is_some());
}

#[test]
fn half_open_connections_beyond_a_quota_leave_no_state() {
    let peer_quota = Quota { half_open: 3, ..Quota::PEER };
    let (mut pair, listener) = with_quotas(Quota { half_open: 7, ..Quota::ALL }, peer_quota);
    for host in 20..24 {
        for port in 1..=5 {
            pair.server.handle_packet(pair.now, PORT, from(host, port, &syn()));
        }
    }
    assert_eq!(pair.server.tcp_connections().count(), 7);
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_half_open_quota_peer, counters.tcp_ext_half_open_quota), (4, 9));
    assert_eq!(counters.tcp_ext_syncookies_sent, 13);
    // An honest client still gets a connection, and connections that end make room.
    pair.connect(listener, TO);
    assert_eq!(pair.server.counters().tcp_ext_syncookies_recv, 1);
    let reset =
        Header { seq: syn().seq + 1, flags: Flags { rst: true, ..Flags::default() }, ..syn() };
    for (host, port) in [(20, 1), (20, 2), (20, 3), (21, 1), (21, 2), (21, 3), (22, 1)] {
        pair.server.handle_packet(pair.now, PORT, from(host, port, &reset));
    }
    pair.exchange();
    pair.connect(listener, TO);
    assert_eq!(pair.server.counters().tcp_ext_syncookies_recv, 1);
    pair.server.tcp_close(pair.now, listener).unwrap();
    pair.exchange();
    assert_eq!(pair.server.peers.crowded(&pair.server.config, [10, 0, 0, 20].into()), None);
}

#[test]
fn data_out_of_order_is_limited_over_all_connections_and_no_flow_ends() {
    let peer_quota = Quota { out_of_order: ByteCount(20_000), ..Quota::PEER };
    let (mut pair, listener) = with_quotas(Quota::ALL, peer_quota);
    let streams: Vec<_> = (0..4).map(|_| pair.connect(listener, TO)).collect();
    let sent: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    let mut queued = [0; 4];
    // The first segment of each is lost.
    for ((stream, _), queued) in streams.iter().zip(&mut queued) {
        *queued = pair.client.tcp_send(pair.now, *stream, &sent).unwrap();
    }
    let mut lost = std::collections::BTreeSet::new();
    while let Some((_, packet)) = pair.client.poll_transmit(pair.now) {
        let port = tcp::parse(ip::parse(&packet.data).unwrap().payload).unwrap().0;
        if !lost.insert(port) {
            pair.server.handle_packet(pair.now, PORT, packet);
        }
    }
    let peer = pair.server.tcp_socket(streams[0].1).unwrap().peer;
    let room = pair.server.peers.room(&pair.server.config, peer);
    assert!(room < ByteCount(2_000), "{room}");
    assert!(pair.server.counters().tcp_ext_ofo_quota > 0);
    for ((stream, accepted), mut queued) in streams.into_iter().zip(queued) {
        let mut got = Vec::new();
        while got.len() < sent.len() {
            queued += pair.client.tcp_send(pair.now, stream, &sent[queued..]).unwrap_or(0);
            pair.pass(Duration::from_millis(100));
            got.extend(read_all(&mut pair.server, pair.now, accepted).0);
        }
        assert_eq!(got, sent);
    }
    assert_eq!(pair.server.peers.room(&pair.server.config, peer), ByteCount(20_000));
}

#[test]
fn out_of_order_data_leaves_the_quota_with_its_connection() {
    let (mut pair, listener) = with_quotas(Quota::ALL, Quota::PEER);
    let (stream, accepted) = pair.connect(listener, TO);
    pair.client.tcp_send(pair.now, stream, &[0; 10_000]).unwrap();
    // The first segment is lost.
    pair.client.poll_transmit(pair.now).unwrap();
    while let Some((_, packet)) = pair.client.poll_transmit(pair.now) {
        pair.server.handle_packet(pair.now, PORT, packet);
    }
    let peer = pair.server.tcp_socket(accepted).unwrap().peer;
    let room = |pair: &Pair| pair.server.peers.room(&pair.server.config, peer);
    assert!(room(&pair) < Quota::PEER.out_of_order);
    // The application has not noticed the reset yet.
    pair.client.tcp_abort(pair.now, stream).unwrap();
    pair.exchange();
    let ended = pair.server.tcp_recv(pair.now, accepted, &mut [0; 1]);
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(room(&pair), Quota::PEER.out_of_order);
}
