//! Listeners and UDP sockets for every destination.

use crate::tcp::State;

use super::*;

/// Addresses that no host here has.
const FAR: [&str; 2] = ["192.0.2.7:443", "[2001:db8::7]:443"];

/// A client, and a server that listens for every destination.
fn pair(backlog: usize) -> (Pair, SocketId) {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen_any(backlog).unwrap();
    (pair, listener)
}

impl Pair {
    /// Connects the client to `to`, and takes the SYN that the server holds.
    fn call(&mut self, listener: SocketId, to: &str) -> (SocketId, SocketId) {
        let stream = self.client.tcp_connect(self.now, address(to), None).unwrap();
        self.exchange();
        let (pending, flow) = self.server.tcp_next_pending(listener).unwrap().unwrap();
        let local = self.client.tcp(stream).unwrap().flow().local;
        assert_eq!(flow, FlowId { local: address(to), remote: local });
        (stream, pending)
    }

    fn accept(&mut self, pending: SocketId) -> SocketId {
        let accepted = self.server.tcp_accept_pending(self.now, pending).unwrap();
        self.exchange();
        accepted
    }
}

fn state(host: &Host, socket: SocketId) -> State {
    host.tcp(socket).unwrap().state()
}

/// The connections and half-open connections counted in the server's quota.
fn taken(pair: &Pair) -> (usize, usize) {
    let (connections, half_open, ..) = pair.server.peers.taken();
    (connections, half_open)
}

#[test]
fn a_syn_to_any_address_is_answered_when_the_program_accepts_it() {
    for to in FAR {
        let (mut pair, listener) = pair(8);
        let (stream, pending) = pair.call(listener, to);
        assert_eq!(pair.server.counters().tcp_out_segs, 0, "nothing was sent");
        assert_eq!((state(&pair.client, stream), taken(&pair)), (State::SynSent, (1, 1)));
        let accepted = pair.accept(pending);
        assert_eq!(pair.server.local_addr(accepted), Ok(address(to)));
        assert!(pair.server.readiness(accepted).unwrap().connected);
        assert_eq!(taken(&pair), (1, 0));
        pair.carry(stream, accepted);
        assert_eq!(pair.server.tcp_accept_pending(pair.now, pending), Err(HostError::Stale));
    }
}

#[test]
fn a_syn_that_is_refused_gets_a_rst_and_nothing_of_it_stays() {
    let (mut pair, listener) = pair(8);
    let (stream, pending) = pair.call(listener, FAR[0]);
    pair.server.tcp_abort(pair.now, pending).unwrap();
    pair.exchange();
    assert_eq!(pair.client.tcp(stream).unwrap().error(), Some(TcpError::Refused));
    assert_eq!((taken(&pair), pair.server.flows.len(), pair.server.timers.len()), ((0, 0), 0, 0));
}

#[test]
fn a_syn_can_be_refused_as_a_router_would() {
    use crate::tcp::Unreachable;
    for to in FAR {
        for (why, error) in [
            (Unreachable::Prohibited, Some(TcpError::Unreachable(Unreachable::Prohibited))),
            (Unreachable::Protocol, Some(TcpError::Unreachable(Unreachable::Protocol))),
            (Unreachable::Port, Some(TcpError::Refused)),
            // The client keeps trying after a soft error (RFC 1122 section 4.2.3.9).
            (Unreachable::Host, None),
            (Unreachable::Network, None),
        ] {
            let (mut pair, listener) = pair(8);
            let (stream, pending) = pair.call(listener, to);
            pair.server.tcp_refuse_pending(pair.now, pending, why).unwrap();
            assert_eq!((taken(&pair), pair.server.flows.len()), ((0, 0), 0));
            pair.exchange();
            assert_eq!(pair.client.tcp(stream).unwrap().error(), error, "{to} {why}");
            let client = pair.client.counters();
            assert_eq!(client.icmp_in_msgs + client.icmp6_in_msgs, 1);
            assert_eq!((client.tcp_ext_out_of_window_icmps, client.icmp_in_errors), (0, 0));
            assert_eq!(pair.server.counters().tcp_out_rsts, 0);
            let again = pair.server.tcp_refuse_pending(pair.now, pending, why);
            assert_eq!(again, Err(HostError::Stale));
        }
    }
    let (mut pair, listener) = pair(8);
    let refused = pair.server.tcp_refuse_pending(pair.now, listener, Unreachable::Host);
    assert_eq!(refused, Err(HostError::WrongKind));
}

#[test]
fn a_repeated_syn_is_held_once_and_the_last_one_is_answered() {
    let mut host = server();
    let listener = host.tcp_listen_any(8).unwrap();
    let again = Header { seq: SeqNumber(5_000), ..syn() };
    for header in [syn(), syn(), again] {
        assert_eq!(answers(&mut host, segment(FAR[0], &header)), []);
    }
    let (pending, _) = host.tcp_next_pending(listener).unwrap().unwrap();
    assert_eq!(host.tcp_next_pending(listener), Ok(None));
    let now = Instant::from_millis(1_000);
    host.tcp_accept_pending(now, pending).unwrap();
    let (_, packet) = host.poll_transmit(now).unwrap();
    let answer = read_segment(&packet);
    assert!(answer.flags.syn && answer.flags.ack);
    assert_eq!(answer.ack, SeqNumber(5_001));
}

#[test]
fn segments_other_than_syns_leave_a_held_syn_alone() {
    let mut host = server();
    let listener = host.tcp_listen_any(8).unwrap();
    answers(&mut host, segment(FAR[0], &syn()));
    let rst = Header { flags: Flags { rst: true, ..Flags::default() }, ..syn() };
    let ack = Header { flags: Flags::ACK, ack: Some(SeqNumber(1)), ..syn() };
    for header in [rst, ack] {
        assert_eq!(answers(&mut host, segment(FAR[0], &header)), []);
    }
    // A RST is not counted as such a segment.
    assert_eq!(host.counters().tcp_ext_not_a_syn, 1);
    assert!(host.tcp_next_pending(listener).unwrap().is_some());
}

#[test]
fn sockets_at_an_address_of_the_host_go_first() {
    let (mut pair, any) = pair(8);
    let exact = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    let all = pair.server.tcp_listen(address("0.0.0.0:81"), 8).unwrap();
    pair.connect(exact, "10.0.0.1:80");
    pair.connect(all, "10.0.0.1:81");
    for to in ["10.0.0.1:82", "192.0.2.7:80", "192.0.2.7:81"] {
        pair.call(any, to);
    }
    assert_eq!(
        pair.server.tcp_listen_any(8),
        Err(HostError::AddressInUse(super::super::bindings::ANY))
    );
    let call = pair.server.tcp_next_pending(exact);
    assert_eq!(call, Err(HostError::WrongKind));
    assert_eq!(pair.server.tcp_accept(pair.now, any), Err(HostError::WrongKind));
}

#[test]
fn a_full_backlog_drops_syns_and_the_peers_try_again() {
    let (mut pair, listener) = pair(2);
    let held = [0, 1].map(|_| pair.call(listener, FAR[0]));
    let late = pair.client.tcp_connect(pair.now, address(FAR[1]), None).unwrap();
    pair.exchange();
    assert_eq!(pair.server.tcp_next_pending(listener), Ok(None));
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_listen_overflows, counters.tcp_ext_listen_drops), (1, 1));
    assert_eq!(counters.tcp_ext_syncookies_sent, 0);
    pair.accept(held[0].1);
    pair.pass(Duration::from_secs(2));
    let (pending, _) = pair.server.tcp_next_pending(listener).unwrap().unwrap();
    pair.accept(pending);
    assert_eq!(state(&pair.client, late), State::Established);
}

#[test]
fn one_source_holds_no_more_than_its_quota() {
    let (mut pair, listener) = pair(64);
    pair.server.config.peer_quota.half_open = 2;
    pair.server.config.peer_quota.connections = 3;
    let held = [0, 1].map(|_| pair.call(listener, FAR[0]));
    pair.client.tcp_connect(pair.now, address(FAR[0]), None).unwrap();
    pair.exchange();
    assert_eq!(pair.server.tcp_next_pending(listener), Ok(None));
    assert_eq!(pair.server.counters().tcp_ext_half_open_quota_peer, 1);
    // A held SYN counts until the handshake is complete, not only until it is accepted.
    pair.server.tcp_accept_pending(pair.now, held[0].1).unwrap();
    assert_eq!(taken(&pair), (2, 2));
    pair.accept(held[1].1);
    assert_eq!(taken(&pair), (2, 0));
    pair.call(listener, FAR[0]);
    pair.client.tcp_connect(pair.now, address(FAR[0]), None).unwrap();
    pair.exchange();
    assert_eq!(pair.server.counters().tcp_ext_conn_quota_peer, 1);
    // Another source has a quota of its own.
    answers(&mut pair.server, segment(FAR[0], &syn()));
    assert!(pair.server.tcp_next_pending(listener).unwrap().is_some());
}

#[test]
fn no_held_syn_is_accepted_without_memory() {
    let (mut pair, listener) = pair(8);
    let (stream, pending) = pair.call(listener, FAR[0]);
    let memory = std::mem::replace(&mut pair.server.config.quota.memory, ByteCount::ZERO);
    let accepted = pair.server.tcp_accept_pending(pair.now, pending);
    assert_eq!(accepted, Err(HostError::NoMemory));
    assert_eq!(pair.server.counters().tcp_ext_memory_pressures, 1);
    pair.server.config.quota.memory = memory;
    let accepted = pair.accept(pending);
    pair.carry(stream, accepted);
}

#[test]
fn a_held_syn_without_an_answer_expires_silently() {
    let mut host = server();
    let listener = host.tcp_listen_any(8).unwrap();
    for taken in [true, false] {
        let drops = host.counters().tcp_ext_listen_drops;
        answers(&mut host, segment(FAR[0], &syn()));
        let pending = taken.then(|| host.tcp_next_pending(listener).unwrap().unwrap().0);
        let end = host.poll_timeout().unwrap();
        assert_eq!(end, Instant::from_millis(1_000) + super::super::any::PATIENCE);
        host.handle_timeout(end);
        assert_eq!(host.poll_transmit(end), None);
        assert_eq!(host.tcp_next_pending(listener), Ok(None));
        if let Some(pending) = pending {
            assert_eq!(host.tcp_accept_pending(end, pending), Err(HostError::Stale));
        }
        assert_eq!(host.counters().tcp_ext_listen_drops, drops + 1);
        assert_eq!((host.flows.len(), host.peers.taken().0), (0, 0));
    }
}

#[test]
fn a_closing_listener_refuses_held_syns_and_connections_continue() {
    let (mut pair, listener) = pair(8);
    let (stream, pending) = pair.call(listener, FAR[0]);
    let accepted = pair.accept(pending);
    let (seen, pending) = pair.call(listener, FAR[1]);
    let unseen = pair.client.tcp_connect(pair.now, address(FAR[1]), None).unwrap();
    pair.exchange();
    pair.server.tcp_close(pair.now, listener).unwrap();
    pair.exchange();
    for refused in [seen, unseen] {
        assert_eq!(pair.client.tcp(refused).unwrap().error(), Some(TcpError::Refused));
    }
    assert_eq!(pair.server.tcp_accept_pending(pair.now, pending), Err(HostError::Stale));
    pair.carry(stream, accepted);
    // From here on the port is closed.
    let late = pair.client.tcp_connect(pair.now, address(FAR[0]), None).unwrap();
    pair.exchange();
    assert_eq!(pair.client.tcp(late).unwrap().error(), Some(TcpError::Refused));
}

#[test]
fn a_peer_that_resets_in_the_handshake_ends_an_accepted_connection() {
    let (mut pair, listener) = pair(8);
    let (stream, pending) = pair.call(listener, FAR[0]);
    pair.client.tcp_abort(pair.now, stream).unwrap();
    let accepted = pair.accept(pending);
    assert_eq!(pair.server.tcp(accepted).unwrap().error(), Some(TcpError::Reset));
    assert_eq!(taken(&pair), (1, 0));
    pair.server.tcp_close(pair.now, accepted).unwrap();
    pair.exchange();
    assert_eq!(taken(&pair), (0, 0));
}

#[test]
fn datagrams_to_any_address_are_answered_from_it() {
    let mut pair = Pair::new();
    let any = pair.server.udp_bind_any().unwrap();
    let exact = pair.server.udp_bind(address("10.0.0.1:53")).unwrap();
    let mut buf = [0; 16];
    for (to, from) in FAR.into_iter().zip(["10.0.0.2:5000", "[fd00::2]:5000"]) {
        let client = pair.client.udp_bind(address(from)).unwrap();
        pair.client.udp_connect(client, address(to)).unwrap();
        pair.client.udp_send(client, b"question").unwrap();
        pair.exchange();
        let (len, flow) = pair.server.udp_recv_flow(any, &mut buf).unwrap().unwrap();
        assert_eq!(
            (&buf[..len], flow.local, flow.remote),
            (&b"question"[..], address(to), address(from))
        );
        pair.server.udp_send_from(any, b"answer", &flow).unwrap();
        pair.exchange();
        let answer = pair.client.udp_recv_from(client, &mut buf).unwrap();
        assert_eq!(answer, Some((6, address(to))), "a connected socket hears nobody else");
    }
    let client = pair.client.udp_bind(address("10.0.0.2:0")).unwrap();
    pair.client.udp_send_to(client, b"to the host", address("10.0.0.1:53")).unwrap();
    pair.exchange();
    assert_eq!(pair.server.udp_recv_flow(any, &mut buf), Ok(None));
    assert!(pair.server.udp_recv_flow(exact, &mut buf).unwrap().is_some());
}

#[test]
fn a_datagram_is_refused_in_the_name_of_its_destination() {
    let mut pair = Pair::new();
    let any = pair.server.udp_bind_any().unwrap();
    for (to, from) in FAR.into_iter().zip(["10.0.0.2:5000", "[fd00::2]:5000"]) {
        let client = pair.client.udp_bind(address(from)).unwrap();
        pair.client.udp_connect(client, address(to)).unwrap();
        pair.client.udp_send(client, b"question").unwrap();
        pair.exchange();
        let (_, flow) = pair.server.udp_recv_flow(any, &mut [0; 16]).unwrap().unwrap();
        pair.server.udp_refuse(pair.now, any, &flow).unwrap();
        pair.exchange();
        let error = pair.client.udp_take_error(client).unwrap();
        assert_eq!(error, Some(crate::tcp::Unreachable::Port), "{to}");
        let nobody = FlowId { local: address("224.0.0.1:53"), ..flow };
        let refused = pair.server.udp_refuse(pair.now, any, &nobody);
        assert_eq!(refused, Err(HostError::Unroutable(nobody.local)));
    }
}

#[test]
fn datagrams_leave_only_from_and_to_addresses_that_hosts_have() {
    let mut host = server();
    let any = host.udp_bind_any().unwrap();
    let exact = host.udp_bind(address("10.0.0.1:53")).unwrap();
    let flow = |local, remote| FlowId { local: address(local), remote: address(remote) };
    let good = flow("192.0.2.7:53", "10.0.0.2:5000");
    assert_eq!(host.udp_send_from(any, b"", &good), Ok(()));
    assert_eq!(host.udp_send_from(exact, b"", &good), Err(HostError::WrongKind));
    assert_eq!(host.udp_send_to(any, b"", good.remote), Err(HostError::WrongKind));
    for local in ["192.0.2.7:0", "224.0.0.1:53", "0.0.0.0:53", "127.0.0.1:53"] {
        let sent = host.udp_send_from(any, b"", &flow(local, "10.0.0.2:5000"));
        assert_eq!(sent, Err(HostError::Unroutable(address(local))));
    }
    for remote in ["10.0.0.2:0", "10.0.0.255:9", "10.0.0.1:9", "[fd00::2]:9"] {
        let sent = host.udp_send_from(any, b"", &flow("192.0.2.7:53", remote));
        assert_eq!(sent, Err(HostError::Unroutable(address(remote))));
    }
}

#[test]
fn a_datagram_without_a_socket_is_refused_and_a_ping_is_not_answered() {
    let (mut pair, _) = pair(8);
    let client = pair.client.udp_bind(address("10.0.0.2:0")).unwrap();
    pair.client.udp_connect(client, address(FAR[0])).unwrap();
    pair.client.udp_send(client, b"question").unwrap();
    pair.exchange();
    let error = pair.client.udp_take_error(client).unwrap();
    assert_eq!(error, Some(crate::tcp::Unreachable::Port));
    let [near, far, us] = ["10.0.0.1:0", FAR[0], "10.0.0.9:0"].map(|text| address(text).ip());
    assert_eq!(answers(&mut pair.server, echo(us, near, b"ping")).len(), 1);
    assert_eq!(answers(&mut pair.server, echo(us, far, b"ping")), []);
}

#[test]
fn an_icmp_error_about_an_accepted_connection_reaches_it() {
    let (mut pair, listener) = pair(8);
    let (stream, pending) = pair.call(listener, FAR[0]);
    let accepted = pair.accept(pending);
    pair.server.tcp_send(pair.now, accepted, &[7; 1400]).unwrap();
    let (_, packet) = pair.server.poll_transmit(pair.now).unwrap();
    pair.server.handle_packet(pair.now, PORT, too_big(&packet.data, 1_000));
    assert_eq!(pair.server.counters().tcp_ext_pmtu_lowered, 1);
    pair.pass(Duration::from_secs(2));
    assert_eq!(read_all(&mut pair.client, pair.now, stream).0, [7; 1400]);
}

#[test]
fn a_connection_is_opened_from_the_address_of_another_host() {
    for (from, to) in [("192.0.2.7:4000", "10.0.0.2:80"), ("[2001:db8::7]:4000", "[fd00::2]:80")] {
        let mut pair = Pair::new();
        let listener = pair.client.tcp_listen(address(to), 8).unwrap();
        let flow = FlowId { local: address(from), remote: address(to) };
        let stream = pair.server.tcp_connect_as(pair.now, flow, None).unwrap();
        pair.exchange();
        let (accepted, peer) = pair.client.tcp_accept(pair.now, listener).unwrap().unwrap();
        assert_eq!(peer, flow.local);
        pair.carry(accepted, stream);
        let again = pair.server.tcp_connect_as(pair.now, flow, None);
        assert_eq!(again, Err(HostError::FlowInUse(flow)));
    }
}

#[test]
fn a_port_that_another_host_uses_again_ends_a_time_wait() {
    let mut pair = Pair::new();
    let listener = pair.client.tcp_listen(address("10.0.0.2:80"), 8).unwrap();
    let flow = FlowId { local: address("192.0.2.7:4000"), remote: address("10.0.0.2:80") };
    let mut last = None;
    for _ in 0..3 {
        let stream = pair.server.tcp_connect_as(pair.now, flow, None).unwrap();
        pair.exchange();
        assert_eq!(state(&pair.server, stream), State::Established);
        let (accepted, _) = pair.client.tcp_accept(pair.now, listener).unwrap().unwrap();
        let next = pair.server.tcp(stream).unwrap().snd_nxt();
        assert!(last.is_none_or(|last| next > last));
        last = Some(next);
        pair.server.tcp_close(pair.now, stream).unwrap();
        pair.exchange();
        pair.client.tcp_close(pair.now, accepted).unwrap();
        pair.exchange();
        let states: Vec<_> = pair.server.tcp_connections().map(|(_, state)| state).collect();
        assert_eq!(states, [State::TimeWait]);
    }
}

#[test]
fn only_addresses_that_hosts_have_are_connected() {
    let mut host = server();
    for (from, to) in [
        ("192.0.2.7:0", "10.0.0.2:80"),
        ("192.0.2.7:4000", "10.0.0.2:0"),
        ("127.0.0.1:4000", "10.0.0.2:80"),
        ("192.0.2.7:4000", "224.0.0.1:80"),
        ("192.0.2.7:4000", "[fd00::2]:80"),
        // The host's own.
        ("10.0.0.1:4000", "10.0.0.2:80"),
    ] {
        let flow = FlowId { local: address(from), remote: address(to) };
        let connected = host.tcp_connect_as(Instant::ZERO, flow, None);
        assert_eq!(connected, Err(HostError::Unroutable(flow.remote)), "{from} {to}");
    }
}

#[test]
fn without_such_a_socket_packets_to_others_are_dropped() {
    let mut host = server();
    host.tcp_listen(address("0.0.0.0:443"), 8).unwrap();
    assert_eq!(answers(&mut host, segment(FAR[0], &syn())), []);
    assert_eq!(host.counters().ip_in_addr_errors, 1);
}
