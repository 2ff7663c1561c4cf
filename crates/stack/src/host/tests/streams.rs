//! Sockets over a path without loss.

use airtcp_types::EventKind;

use crate::tcp::{KeepAlive, SocketOption, State, TcpConfig};

use super::*;

#[test]
fn closing_takes_no_longer_than_it_may() {
    for limit in [0, 300] {
        let mut pair = Pair::new();
        let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 4).unwrap();
        let (stream, accepted) = pair.connect(listener, "10.0.0.1:80");
        let linger = SocketOption::Linger(Some(Duration::from_millis(limit)));
        pair.client.tcp_set(pair.now, stream, linger).unwrap();
        pair.client.tcp_send(pair.now, stream, b"lost on the way").unwrap();
        while pair.client.poll_transmit(pair.now).is_some() {}
        pair.client.tcp_close(pair.now, stream).unwrap();
        // Packets sent before the limit are lost, too.
        let end = pair.now + Duration::from_millis(limit);
        while pair.client.poll_timeout().is_some_and(|at| at < end) {
            pair.now = pair.client.poll_timeout().unwrap();
            pair.client.handle_timeout(pair.now);
            while pair.client.poll_transmit(pair.now).is_some() {}
        }
        pair.now = end;
        pair.client.handle_timeout(pair.now);
        pair.exchange();
        assert_eq!(pair.client.tcp_connections().count(), 0, "{limit}");
        assert_eq!(pair.server.tcp(accepted).unwrap().error(), Some(TcpError::Reset));
        let aborts = pair.client.counters().tcp_ext_abort_on_linger;
        assert_eq!(aborts, u64::from(limit > 0));
        let late = pair.client.tcp_set(pair.now, stream, SocketOption::Linger(None));
        assert_eq!(late, Err(HostError::Stale));
    }
}

// Shows: RFC9293-MUST-21
#[test]
fn a_user_time_out_ends_an_unanswered_connection() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 4).unwrap();
    let (stream, _) = pair.connect(listener, "10.0.0.1:80");
    let limit = Duration::from_secs(3);
    pair.client.tcp_set(pair.now, stream, SocketOption::UserTimeout(Some(limit))).unwrap();
    let begin = pair.now;
    pair.client.tcp_send(begin, stream, b"lost on the way").unwrap();
    while pair.client.tcp(stream).unwrap().error().is_none() {
        while pair.client.poll_transmit(pair.now).is_some() {}
        pair.now = pair.client.poll_timeout().unwrap();
        pair.client.handle_timeout(pair.now);
    }
    assert_eq!(pair.client.tcp(stream).unwrap().error(), Some(TcpError::TimedOut));
    assert_eq!(pair.now, begin + limit);
}

#[test]
fn bytes_go_both_ways_and_all_state_is_freed() {
    for to in ["10.0.0.1:80", "[fd00::1]:80"] {
        let mut pair = Pair::new();
        let listener = pair.server.tcp_listen(address(to), 8).unwrap();
        let (stream, accepted) = pair.connect(listener, to);
        pair.carry(stream, accepted);
        pair.client.tcp_shutdown(pair.now, stream).unwrap();
        pair.server.tcp_send(pair.now, accepted, b"thanks").unwrap();
        pair.exchange();
        assert_eq!(read_all(&mut pair.server, pair.now, accepted), (vec![], true));
        pair.server.tcp_close(pair.now, accepted).unwrap();
        pair.exchange();
        assert_eq!(read_all(&mut pair.client, pair.now, stream), (b"thanks".to_vec(), true));
        pair.client.tcp_close(pair.now, stream).unwrap();
        assert_eq!(pair.client.tcp(stream).err(), Some(HostError::Stale));
        pair.exchange();
        assert_eq!(pair.client.tcp_connections().count(), 1, "TIME-WAIT goes on without a handle");
        assert_eq!(pair.server.counters().tcp_curr_estab, 0);
        pair.pass(Duration::from_secs(200));
        for host in [&pair.client, &pair.server] {
            assert_eq!(host.tcp_connections().count(), 0);
            assert_eq!((host.held(), host.flows.len()), (ByteCount::ZERO, 0));
            assert_eq!(host.poll_timeout(), None);
        }
    }
}

#[test]
fn readiness_is_reported_once_per_change() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("0.0.0.0:80"), 8).unwrap();
    let stream = pair.client.tcp_connect(pair.now, address("10.0.0.1:80"), None).unwrap();
    assert_eq!(pair.client.poll_ready(), None);
    pair.exchange();
    let (ready, readiness) = pair.client.poll_ready().unwrap();
    assert!(ready == stream && readiness.connected && readiness.writable && !readiness.readable);
    assert_eq!(pair.client.poll_ready(), None);
    let (ready, readiness) = pair.server.poll_ready().unwrap();
    assert!(ready == listener && readiness.readable);
    let (accepted, _) = pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    pair.exchange();
    let reported: Vec<_> = std::iter::from_fn(|| pair.server.poll_ready()).collect();
    assert_eq!(reported.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [listener, accepted]);
    pair.client.tcp_send(pair.now, stream, b"x").unwrap();
    pair.exchange();
    // Read and filled again before the application polled: the change is reported nevertheless.
    pair.server.poll_ready().unwrap();
    read_all(&mut pair.server, pair.now, accepted);
    pair.client.tcp_send(pair.now, stream, b"y").unwrap();
    pair.pass(Duration::from_secs(1));
    let (ready, readiness) = pair.server.poll_ready().unwrap();
    assert!(ready == accepted && readiness.readable);
    pair.server.tcp_abort(pair.now, accepted).unwrap();
    assert_eq!(pair.server.poll_ready(), None, "no readiness of a closed socket");
}

#[test]
fn a_refused_connection_says_so() {
    let mut pair = Pair::new();
    let stream = pair.client.tcp_connect(pair.now, address("10.0.0.1:80"), None).unwrap();
    pair.exchange();
    assert_eq!(pair.client.tcp(stream).unwrap().error(), Some(TcpError::Refused));
    assert!(pair.client.readiness(stream).unwrap().closed);
    assert_eq!(pair.client.flows.len(), 0, "its ports are free");
    pair.client.tcp_close(pair.now, stream).unwrap();
    pair.exchange();
    assert_eq!(pair.client.tcp_connections().count(), 0);
}

#[test]
fn a_full_backlog_drops_syns_and_counts_them() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 2).unwrap();
    let to = address("10.0.0.1:80");
    for _ in 0..3 {
        // Each handshake completes before the next one starts: connections that wait to be accepted
        // count as well.
        pair.client.tcp_connect(pair.now, to, None).unwrap();
        pair.exchange();
    }
    assert_eq!(pair.server.tcp_connections().count(), 2);
    assert_eq!(pair.server.counters().tcp_ext_listen_overflows, 1);
    assert!(pair.server.tcp_accept(pair.now, listener).unwrap().is_some());
    // The third SYN is retransmitted, and there is room now.
    pair.pass(Duration::from_secs(2));
    assert_eq!(pair.server.tcp_connections().count(), 3);
    // Closing the listener resets the two connections that were not accepted.
    pair.server.tcp_close(pair.now, listener).unwrap();
    pair.exchange();
    assert_eq!(pair.server.tcp_connections().count(), 1);
    assert_eq!(pair.client.tcp_connections().filter(|(_, s)| *s == State::Closed).count(), 2);
    assert_eq!(pair.server.tcp_accept(pair.now, listener), Err(HostError::Stale));
}

#[test]
fn a_host_out_of_memory_refuses_connections() {
    let mut pair = Pair::new();
    pair.server.config.quota.memory = ByteCount(1);
    pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    for _ in 0..2 {
        pair.client.tcp_connect(pair.now, address("10.0.0.1:80"), None).unwrap();
    }
    pair.exchange();
    assert_eq!(pair.server.tcp_connections().count(), 1);
    assert_eq!(pair.server.counters().tcp_ext_memory_pressures, 1);
    assert_eq!(
        pair.server.tcp_connect(pair.now, address("10.0.0.2:1"), None),
        Err(HostError::NoMemory)
    );
    assert_eq!(pair.server.held(), held_by_connections(&pair.server));
}

// Shows: RFC9293-MUST-46
#[test]
fn addresses_are_checked() {
    let mut host = server();
    let any = host.tcp_listen(address("0.0.0.0:80"), 1).unwrap();
    assert_eq!(
        host.tcp_listen(address("0.0.0.0:80"), 1),
        Err(HostError::AddressInUse(address("0.0.0.0:80")))
    );
    assert!(matches!(host.tcp_listen(address("10.0.0.2:80"), 1), Err(HostError::NotLocal(_))));
    let free = host.tcp_listen(address("10.0.0.1:0"), 1).unwrap();
    assert!(host.local_addr(free).unwrap().port() >= 32_768);
    for to in ["10.0.0.1:80", "0.0.0.0:80", "10.0.0.3:0", "224.0.0.1:80"] {
        let result = host.tcp_connect(Instant::ZERO, address(to), None);
        assert_eq!(result, Err(HostError::Unroutable(address(to))));
    }
    assert_eq!(host.tcp_send(Instant::ZERO, any, b"x"), Err(HostError::WrongKind));
    assert_eq!(host.udp_send_to(any, b"x", address("10.0.0.3:1")), Err(HostError::WrongKind));
}

#[test]
fn ports_are_chosen_from_their_range_and_never_twice() {
    let mut host = server();
    let to = address("10.0.0.3:80");
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..500 {
        let stream = host.tcp_connect(Instant::ZERO, to, None).unwrap();
        assert!(seen.insert(host.local_addr(stream).unwrap()));
    }
    assert!(seen.iter().all(|local| (32_768..61_000).contains(&local.port())));
}

#[test]
fn datagrams_go_both_ways_within_bounds() {
    let mut pair = Pair::new();
    for (any, to) in [("0.0.0.0:53", "10.0.0.1:53"), ("[::]:53", "[fd00::1]:53")] {
        let service = pair.server.udp_bind(address(any)).unwrap();
        let socket = pair.client.udp_bind(address(any)).unwrap();
        pair.client.udp_send_to(socket, b"question", address(to)).unwrap();
        pair.exchange();
        let mut buf = [0; 4];
        let (len, from) = pair.server.udp_recv_from(service, &mut buf).unwrap().unwrap();
        assert_eq!((len, &buf), (4, b"ques"));
        pair.server.udp_send_to(service, b"", from).unwrap();
        pair.exchange();
        assert_eq!(pair.client.udp_recv_from(socket, &mut buf), Ok(Some((0, address(to)))));
        assert_eq!(pair.client.udp_recv_from(socket, &mut buf), Ok(None));
        assert!(matches!(
            pair.client.udp_send_to(socket, &[0; 1_473], address(to)),
            Err(HostError::MessageSize { len: 1_473, .. })
        ));
        // A queue that is not read is bounded, and so is the queue of packets to send.
        for _ in 0..300 {
            let result = pair.client.udp_send_to(socket, &[0; 1_400], address(to));
            if result == Err(HostError::WouldBlock) {
                pair.exchange();
            }
        }
        pair.exchange();
        assert!(pair.server.held() <= pair.server.config().udp_receive_buffer);
        assert!(pair.server.counters().udp_rcvbuf_errors > 0);
        pair.server.udp_close(service).unwrap();
        pair.client.udp_close(socket).unwrap();
        assert_eq!(pair.server.held(), ByteCount::ZERO);
    }
}

#[test]
fn a_socket_sends_until_the_transmit_queue_has_its_limit() {
    for (limit, room) in [(0, 1), (32, 32), (usize::MAX, 256)] {
        let mut pair = Pair::new();
        let config = pair.client.config().clone();
        pair.client = Host::new(HostConfig { udp_send_queue: limit, ..config });
        let socket = pair.client.udp_bind(address("0.0.0.0:53")).unwrap();
        for count in 0..room {
            assert!(pair.client.udp_has_room(), "{count}");
            pair.client.udp_send_to(socket, b"x", address("10.0.0.1:53")).unwrap();
        }
        assert!(!pair.client.udp_has_room());
        let refused = pair.client.udp_send_to(socket, b"x", address("10.0.0.1:53"));
        assert_eq!(refused, Err(HostError::WouldBlock));
        pair.client.poll_transmit(pair.now).unwrap();
        assert!(pair.client.udp_has_room());
    }
}

// Shows: RFC9293-MUST-54
#[test]
fn unreachable_reaches_the_connection_it_is_about() {
    use airtcp_wire::icmp::{Complaint, emit_error};
    let mut pair = Pair::new();
    let stream = pair.client.tcp_connect(pair.now, address("10.0.0.1:80"), None).unwrap();
    let (_, syn) = pair.client.poll_transmit(pair.now).unwrap();
    let mut forged = syn.data.clone();
    forged[27] ^= 0x40;
    for (quoted, closed) in [(forged, false), (syn.data, true)] {
        let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let error = emit_error(src, dst, 64, Complaint::Port, &quoted);
        pair.client.handle_packet(pair.now, PORT, error);
        assert_eq!(pair.client.readiness(stream).unwrap().closed, closed);
    }
    assert_eq!(pair.client.tcp(stream).unwrap().error(), Some(TcpError::Refused));
    let counters = pair.client.counters();
    assert_eq!((counters.icmp_in_dest_unreachs, counters.tcp_attempt_fails), (2, 1));
    assert_eq!(counters.tcp_ext_out_of_window_icmps, 1, "the forged one quotes another number");
}

#[test]
fn a_new_syn_replaces_time_wait() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, "10.0.0.1:80");
    let flow = pair.client.tcp(stream).unwrap().flow();
    pair.server.tcp_close(pair.now, accepted).unwrap();
    pair.exchange();
    pair.client.tcp_close(pair.now, stream).unwrap();
    pair.exchange();
    assert_eq!(pair.server.tcp_connections().next().unwrap().1, State::TimeWait);
    // The same ports again, from a client without the old state: a later clock, a higher ISN.
    pair.now += Duration::from_secs(5);
    let header = Header { seq: SeqNumber(0), ..syn() };
    let isn = pair.client.secret.isn(pair.now, &flow);
    let data = tcp::emit(&flow, 64, &Header { seq: isn, ..header }, &[]).data;
    pair.server.handle_packet(pair.now, PORT, Packet::new(data));
    assert_eq!(pair.server.counters().tcp_ext_tw_recycled, 1);
    let states: Vec<_> = pair.server.tcp_connections().map(|(_, state)| state).collect();
    assert_eq!(states, [State::SynReceived]);
}

#[test]
fn a_connection_that_replaces_time_wait_starts_above_its_sequence_numbers() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, "10.0.0.1:80");
    let flow = pair.client.tcp(stream).unwrap().flow();
    let unpaced = "rack/cubic".parse().unwrap();
    pair.server.tcp_set(pair.now, accepted, SocketOption::Combination(unpaced)).unwrap();
    // Sends more bytes than the ISN clock has ticks, without any time passing.
    for _ in 0..100 {
        pair.server.tcp_send(pair.now, accepted, &[0; 10_000]).unwrap();
        pair.exchange();
        read_all(&mut pair.client, pair.now, stream);
    }
    pair.server.tcp_close(pair.now, accepted).unwrap();
    pair.exchange();
    pair.client.tcp_close(pair.now, stream).unwrap();
    pair.exchange();
    pair.pass(Duration::from_millis(50));
    let before = pair.server.secret.isn(Instant::ZERO, &swapped(flow)) + 1_000_002;
    let isn = pair.client.secret.isn(pair.now, &flow);
    let header = Header { seq: isn, ..syn() };
    let data = tcp::emit(&flow, 64, &header, &[]).data;
    pair.server.handle_packet(pair.now, PORT, Packet::new(data));
    let (_, syn_ack) = pair.server.poll_transmit(pair.now).unwrap();
    assert_eq!(read_segment(&syn_ack).seq, before + 65_537);
}

pub(super) fn swapped(flow: FlowId) -> FlowId {
    FlowId { local: flow.remote, remote: flow.local }
}

#[test]
fn a_peer_that_is_gone_is_found_out() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 4).unwrap();
    let (stream, _) = pair.connect(listener, "10.0.0.1:80");
    let settings =
        KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 2 };
    pair.client.tcp_set(pair.now, stream, SocketOption::KeepAlive(Some(settings))).unwrap();
    pair.pass(Duration::from_secs(100));
    // One probe every ten seconds; each is answered.
    let counters = pair.client.counters();
    assert_eq!((counters.tcp_ext_keep_alive, counters.tcp_ext_abort_on_timeout), (10, 0));
    // From here on no packet arrives.
    for _ in 0..10 {
        let Some(next) = pair.client.poll_timeout() else { break };
        pair.now = next;
        pair.client.handle_timeout(next);
        while pair.client.poll_transmit(next).is_some() {}
    }
    assert_eq!(pair.client.tcp(stream).unwrap().error(), Some(TcpError::TimedOut));
    assert_eq!(pair.client.counters().tcp_ext_keep_alive, 12);
    assert!(pair.client.readiness(stream).unwrap().readable);
}

#[test]
fn connections_take_turns() {
    let mut pair = Pair::new();
    pair.client.config.tcp.sender.combination = "sack/fixed:40".parse().unwrap();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let streams: Vec<_> = (0..3).map(|_| pair.connect(listener, "10.0.0.1:80").0).collect();
    for &stream in &streams {
        pair.client.tcp_send(pair.now, stream, &[0; 58_000]).unwrap();
    }
    let ports: Vec<_> = std::iter::from_fn(|| pair.client.poll_transmit(pair.now))
        .map(|(_, packet)| tcp::parse(ip::parse(&packet.data).unwrap().payload).unwrap().0)
        .collect();
    let turns: Vec<_> = ports.chunk_by(|a, b| a == b).map(|turn| (turn[0], turn.len())).collect();
    let port = |n: usize| pair.client.local_addr(streams[n]).unwrap().port();
    let round = |packets| [0, 1, 2].map(|n| (port(n), packets));
    assert_eq!(turns, [round(16), round(16), round(8)].concat());
}

#[test]
fn aborting_all_ends_every_connection() {
    let mut pair = Pair::new();
    let to = "10.0.0.1:80";
    let listener = pair.server.tcp_listen(address(to), 8).unwrap();
    let (_, held) = pair.connect(listener, to);
    let (_, orphan) = pair.connect(listener, to);
    pair.server.tcp_close(pair.now, orphan).unwrap();
    pair.client.tcp_connect(pair.now, address(to), None).unwrap();
    pair.exchange();
    pair.server.handle_packet(pair.now, PORT, Packet::new(segment(to, &syn())));
    while pair.server.poll_transmit(pair.now).is_some() {}
    assert_eq!(pair.server.tcp_connections().count(), 4);
    pair.server.tcp_abort_all(pair.now);
    let resets: Vec<_> = std::iter::from_fn(|| pair.server.poll_transmit(pair.now)).collect();
    assert_eq!(resets.len(), 4);
    assert!(resets.iter().all(|(_, packet)| read_segment(packet).flags.rst));
    assert_eq!(pair.server.tcp(held).unwrap().error(), Some(TcpError::Aborted));
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_curr_estab, counters.tcp_estab_resets), (0, 2));
    assert_eq!(counters.tcp_attempt_fails, 1);
    // The connections held by the application, and one that can still be accepted.
    assert_eq!(pair.server.tcp_connections().count(), 2);
}

#[test]
fn closing_with_data_unread_is_counted() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, "10.0.0.1:80");
    pair.client.tcp_send(pair.now, stream, b"x").unwrap();
    pair.exchange();
    pair.server.tcp_close(pair.now, accepted).unwrap();
    pair.exchange();
    assert_eq!(pair.server.counters().tcp_ext_abort_on_close, 1);
    assert_eq!(pair.client.tcp(stream).unwrap().error(), Some(TcpError::Reset));
    assert_eq!(pair.client.counters().tcp_estab_resets, 1);
}

#[test]
fn events_carry_their_flow() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let (stream, _) = pair.connect(listener, "10.0.0.1:80");
    let flow = pair.client.tcp(stream).unwrap().flow();
    let events: Vec<_> = std::iter::from_fn(|| pair.client.poll_event()).collect();
    assert!(events.iter().all(|event| event.flow == Some(flow)));
    let established = |kind: &EventKind| matches!(kind, EventKind::State { to: "ESTABLISHED", .. });
    assert!(events.iter().any(|event| established(&event.kind)));
}

#[test]
fn a_connection_may_have_settings_of_its_own() {
    let mut pair = Pair::new();
    let config = TcpConfig { mtu: 9_000, timestamps: false, ..TcpConfig::default() };
    pair.client.tcp_connect(pair.now, address("10.0.0.1:80"), Some(config)).unwrap();
    let (_, packet) = pair.client.poll_transmit(pair.now).unwrap();
    let options = read_segment(&packet).options;
    assert_eq!(
        (options.mss, options.timestamps),
        (Some(1_460), None),
        "the host's MTU is the limit"
    );
}

#[test]
fn a_host_gets_other_strategies_for_what_is_there_and_what_comes() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let (_, before) = pair.connect(listener, "10.0.0.1:80");
    let over = pair.connect(listener, "10.0.0.1:80").1;
    pair.server.tcp_abort(pair.now, over).unwrap();
    let wanted = "sack/westwood".parse().unwrap();
    assert_eq!(pair.server.tcp_set_combination(pair.now, &wanted), 1);
    let (_, after) = pair.connect(listener, "10.0.0.1:80");
    for socket in [before, after] {
        assert_eq!(pair.server.tcp(socket).unwrap().combination(), Ok(&wanted));
    }
    // No connection has negotiated HACK.
    let hack = "rack/cubic/hack".parse().unwrap();
    assert_eq!(pair.server.tcp_set_combination(pair.now, &hack), 0);
    assert_eq!(pair.server.tcp(after).unwrap().combination(), Ok(&wanted));
}

#[test]
fn a_blocked_writer_is_notified_of_room_made_before_settle() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, "10.0.0.1:80");
    // Time stands still here, so that a paced sender would not send.
    let unpaced = "rack/cubic".parse().unwrap();
    pair.client.tcp_set(pair.now, stream, SocketOption::Combination(unpaced)).unwrap();
    let fill = |pair: &mut Pair| {
        while pair.client.tcp_send(pair.now, stream, &[7; 9_000]).is_ok() {}
    };
    // Sends up to `most` packets and delivers their ACKs.
    let go = |pair: &mut Pair, most: usize| {
        let mut acks = Vec::new();
        for _ in 0..most {
            let Some((_, packet)) = pair.client.poll_transmit(pair.now) else { break };
            pair.server.on_packet(pair.now, &packet);
            read_all(&mut pair.server, pair.now, accepted);
            acks.extend(std::iter::from_fn(|| pair.server.poll_transmit(pair.now)));
        }
        acks.iter().for_each(|(_, packet)| pair.client.on_packet(pair.now, packet));
        pair.client.readiness(stream).unwrap().writable
    };
    fill(&mut pair);
    while !go(&mut pair, usize::MAX) {}
    pair.client.settle(pair.now);
    while pair.client.poll_ready().is_some() {}
    // It was writable when it was last settled, and is writable again.
    fill(&mut pair);
    assert!(!go(&mut pair, 0));
    while !go(&mut pair, 1) {}
    pair.client.settle(pair.now);
    assert_eq!(pair.client.poll_ready().map(|(_, readiness)| readiness.writable), Some(true));
}

#[test]
fn readiness_changes_are_reported_while_a_connection_waits_to_send() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let (stream, accepted) = pair.connect(listener, "10.0.0.1:80");
    pair.client.tcp_set(pair.now, stream, SocketOption::NoDelay(true)).unwrap();
    while pair.server.poll_ready().is_some() {}
    let readiness_after_data = |pair: &mut Pair| {
        pair.client.tcp_send(pair.now, stream, b"x").unwrap();
        let packets: Vec<_> =
            std::iter::from_fn(|| pair.client.poll_transmit(pair.now)).map(|(_, p)| p).collect();
        assert_eq!(packets.len(), 1);
        pair.server.on_packet(pair.now, &packets[0]);
        pair.server.settle(pair.now);
        pair.server.poll_ready().map(|(id, readiness)| {
            assert_eq!(id, accepted);
            (readiness.readable, readiness.writable)
        })
    };
    assert_eq!(readiness_after_data(&mut pair), Some((true, true)));
    // From here on data waits.
    pair.server.tcp_send(pair.now, accepted, &[7; 2_000]).unwrap();
    let memory = std::mem::take(&mut pair.server.config.quota.memory);
    assert_eq!(readiness_after_data(&mut pair), Some((true, false)), "the host is short of memory");
    pair.server.config.quota.memory = memory;
    assert_eq!(readiness_after_data(&mut pair), Some((true, true)));
    assert_eq!(readiness_after_data(&mut pair), None);
    read_all(&mut pair.server, pair.now, accepted);
    assert_eq!(readiness_after_data(&mut pair), Some((true, true)));
}
