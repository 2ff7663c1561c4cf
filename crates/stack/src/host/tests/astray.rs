//! Hosts with the same addresses, and packets that reach the wrong one.

use airtcp_types::Checksum;
use airtcp_wire::udp;

use super::fragments::cut;
use super::*;
use crate::tcp::State;

use super::super::Share;
use super::super::outbox::MAX_WAITING;

const TO: &str = "10.0.0.1:80";
const SIBLINGS: u16 = 3;

/// A client, and three hosts that act as one server.
struct Family {
    now: Instant,
    client: Host,
    hosts: Vec<Host>,
    /// Returns the index of the host that receives the packet with this number.
    spread: fn(usize) -> usize,
    /// The number of packets sent by the client.
    sent: usize,
    /// The numbers of packets that the hosts sent: those that are not RSTs, and RSTs.
    answers: [usize; 2],
}

impl Family {
    fn new(spread: fn(usize) -> usize) -> Self {
        let host = |index| {
            let mut config = server().config;
            config.share = Share { index, of: SIBLINGS };
            config.backlog = 2;
            Host::new(config)
        };
        let client = host_of_client();
        let hosts = (0..SIBLINGS).map(host).collect();
        Self { now: Instant::from_millis(1_000), client, hosts, spread, sent: 0, answers: [0; 2] }
    }

    /// Creates a family whose hosts all have a listener.
    fn listening(spread: fn(usize) -> usize) -> (Self, Vec<SocketId>) {
        let mut family = Self::new(spread);
        let listen = |host: &mut Host| host.tcp_listen(address(TO), 2).unwrap();
        let listeners = family.hosts.iter_mut().map(listen).collect();
        (family, listeners)
    }

    /// Delivers a packet to a host, passes on what the hosts pass on, and returns the answers of
    /// all hosts.
    fn deliver(&mut self, to: usize, packet: Packet) -> Vec<Packet> {
        self.hosts[to].handle_packet(self.now, PORT, packet);
        // A packet passes each host at most once.
        for step in 0..self.hosts.len() {
            let (from, next) = ((to + step) % self.hosts.len(), (to + step + 1) % self.hosts.len());
            while let Some(astray) = self.hosts[from].poll_astray() {
                self.hosts[next].on_astray(self.now, astray);
            }
        }
        assert!(self.hosts.iter_mut().all(|host| host.poll_astray().is_none()), "it circles");
        let now = self.now;
        let packets = self
            .hosts
            .iter_mut()
            .flat_map(|host| std::iter::from_fn(|| host.poll_transmit(now).map(|(_, p)| p)));
        packets.collect()
    }

    /// Carries packets both ways until there are none.
    fn exchange(&mut self) {
        while let Some((_, packet)) = self.client.poll_transmit(self.now) {
            let to = (self.spread)(self.sent);
            self.sent += 1;
            for answer in self.deliver(to, packet) {
                let is_reset = ip::parse(&answer.data).unwrap().protocol == ip::TCP
                    && read_segment(&answer).flags.rst;
                self.answers[usize::from(is_reset)] += 1;
                self.client.handle_packet(self.now, PORT, answer);
            }
        }
    }

    /// The sum of the counters of all hosts.
    fn counters(&self) -> Counters {
        self.hosts.iter().map(|host| host.counters().clone()).sum()
    }

    fn connect(&mut self) -> SocketId {
        let stream = self.client.tcp_connect(self.now, address(TO), None).unwrap();
        self.exchange();
        assert!(self.client.readiness(stream).unwrap().connected);
        stream
    }
}

fn host_of_client() -> Host {
    host(["10.0.0.2/24", "fd00::2/64"])
}

/// Distributes packets over the hosts in turn; the first packet of a connection goes to host 0.
fn anywhere(n: usize) -> usize {
    n % usize::from(SIBLINGS)
}

#[test]
fn a_flow_is_one_whichever_host_its_packets_reach() {
    let (mut family, listeners) = Family::listening(anywhere);
    let stream = family.connect();
    let (accepted, _) = family.hosts[0].tcp_accept(family.now, listeners[0]).unwrap().unwrap();
    let sent: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let (mut queued, mut got) = (0, Vec::new());
    while got.len() < sent.len() {
        queued += family.client.tcp_send(family.now, stream, &sent[queued..]).unwrap_or(0);
        family.exchange();
        got.extend(read_all(&mut family.hosts[0], family.now, accepted).0);
        family.now += Duration::from_millis(50);
        family.client.handle_timeout(family.now);
        family.hosts[0].handle_timeout(family.now);
        for answer in
            std::iter::from_fn(|| family.hosts[0].poll_transmit(family.now)).collect::<Vec<_>>()
        {
            family.client.handle_packet(family.now, PORT, answer.1);
        }
    }
    assert!(got == sent);
    let (counters, client) = (family.counters(), family.client.counters());
    // Each packet is counted once, whether it is passed on or not.
    assert_eq!(counters.tcp_in_segs, family.sent as u64);
    assert_eq!(
        (counters.ip_in_receives, counters.ip_in_delivers),
        (counters.tcp_in_segs, counters.tcp_in_segs)
    );
    assert_eq!((counters.tcp_out_rsts, counters.tcp_passive_opens), (0, 1));
    assert_eq!((client.tcp_retrans_segs, family.answers[1]), (0, 0));
    assert!(
        counters.ip_ext_handed_over > family.sent as u64 / 2,
        "{}",
        counters.ip_ext_handed_over
    );
}

#[test]
fn a_segment_of_no_flow_visits_each_host_once_and_gets_one_reset() {
    for listens in [true, false] {
        for to in 0..usize::from(SIBLINGS) {
            let (mut family, _) = if listens {
                Family::listening(anywhere)
            } else {
                (Family::new(anywhere), Vec::new())
            };
            let flags = Flags::ACK;
            let header = Header { ack: Some(SeqNumber(77)), flags, ..syn() };
            let answers = family.deliver(to, Packet::new(segment(TO, &header)));
            assert_eq!(answers.len(), 1);
            assert!(read_segment(&answers[0]).flags.rst);
            assert_eq!(read_segment(&answers[0]).seq, SeqNumber(77));
            let counters = family.counters();
            assert_eq!((counters.ip_ext_handed_over, counters.tcp_in_segs), (2, 1));
            assert_eq!((counters.ip_in_receives, counters.ip_in_delivers), (1, 1));
            let seen: Vec<_> =
                family.hosts.iter().map(|h| h.counters().ip_ext_handed_over).collect();
            assert_eq!(seen[(to + 2) % 3], 0, "{seen:?}");
            // A RST gets no answer, however often it is passed on.
            let flags = Flags { rst: true, ..Flags::default() };
            let reset = Header { flags, ..syn() };
            assert!(family.deliver(to, Packet::new(segment(TO, &reset))).is_empty());
        }
    }
}

#[test]
fn a_connection_that_a_sibling_opens_is_found_and_its_port_is_no_others() {
    let mut family = Family::new(anywhere);
    let listener = family.client.tcp_listen(address("10.0.0.2:9"), 8).unwrap();
    let mut ports = std::collections::BTreeSet::new();
    for index in 0..usize::from(SIBLINGS) {
        let stream =
            family.hosts[index].tcp_connect(family.now, address("10.0.0.2:9"), None).unwrap();
        ports.insert(family.hosts[index].local_addr(stream).unwrap().port());
        let (_, packet) = family.hosts[index].poll_transmit(family.now).unwrap();
        family.client.handle_packet(family.now, PORT, packet);
        family.exchange();
        assert!(family.hosts[index].readiness(stream).unwrap().connected);
        assert!(family.client.tcp_accept(family.now, listener).unwrap().is_some());
    }
    assert_eq!((ports.len(), family.answers[1]), (3, 0));
}

#[test]
fn a_listener_or_a_socket_may_be_at_one_host_alone() {
    let mut family = Family::new(anywhere);
    let listener = family.hosts[2].tcp_listen(address(TO), 2).unwrap();
    family.connect();
    assert!(family.hosts[2].tcp_accept(family.now, listener).unwrap().is_some());

    let socket = family.hosts[1].udp_bind(address("10.0.0.1:9")).unwrap();
    let datagram = udp::emit(&from_stranger("10.0.0.1:9"), 64, b"hello");
    assert!(family.deliver(2, datagram).is_empty());
    assert_eq!(family.hosts[1].udp_recv_from(socket, &mut [0; 9]).unwrap().unwrap().0, 5);
    // A datagram to a closed port gets one ICMP error.
    let datagram = udp::emit(&from_stranger("10.0.0.1:10"), 64, b"hello");
    assert_eq!(family.deliver(2, datagram).len(), 1);
    let counters = family.counters();
    assert_eq!((counters.udp_no_ports, counters.udp_in_datagrams), (1, 1));
    assert_eq!(counters.icmp_out_dest_unreachs, 1);
}

#[test]
fn icmp_errors_reach_the_connection_at_a_sibling() {
    let (mut family, listeners) = Family::listening(|_| 1);
    family.connect();
    let (accepted, _) = family.hosts[1].tcp_accept(family.now, listeners[1]).unwrap().unwrap();
    family.hosts[1].tcp_send(family.now, accepted, &[7; 5_000]).unwrap();
    let (_, sent) = family.hosts[1].poll_transmit(family.now).unwrap();
    assert_eq!(sent.data.len(), 1_500);
    for (at, mtu) in [(1, 1_300), (2, 1_200), (0, 1_100)] {
        family.deliver(at, too_big(&sent.data, mtu));
        assert_eq!(
            family.hosts[1].tcp(accepted).unwrap().info(family.now).pmtu,
            ByteCount(mtu.into())
        );
    }
    let counters = family.counters();
    assert_eq!((counters.icmp_in_msgs, counters.icmp_in_dest_unreachs), (3, 3));
    assert_eq!((counters.tcp_ext_pmtu_lowered, counters.ip_ext_handed_over), (3, 3));
    assert_eq!(counters.icmp_in_errors, 0);

    // An ICMP error about a flow that no host has.
    let nobodys =
        tcp::emit(&FlowId { local: address(TO), remote: address("10.0.0.9:1") }, 64, &syn(), &[]);
    family.deliver(0, too_big(&nobodys.data, 39));
    let counters = family.counters();
    assert_eq!((counters.icmp_in_msgs, counters.icmp_in_errors), (4, 1));
}

#[test]
fn a_segment_in_fragments_gets_to_the_connection_whole() {
    let (mut family, listeners) = Family::listening(|_| 2);
    let stream = family.connect();
    let (accepted, _) = family.hosts[2].tcp_accept(family.now, listeners[2]).unwrap().unwrap();
    family.client.tcp_send(family.now, stream, &[7; 1_000]).unwrap();
    let (_, whole) = family.client.poll_transmit(family.now).unwrap();
    assert_eq!(whole.checksum, Checksum::Full);
    let length = whole.data.len() - 20;
    assert!(family.deliver(0, Packet::new(cut(&whole.data, 1, 0, 512))).is_empty());
    family.deliver(0, Packet::new(cut(&whole.data, 1, 512, length)));
    assert_eq!(read_all(&mut family.hosts[2], family.now, accepted).0, [7; 1_000]);
    assert_eq!(family.counters().ip_ext_handed_over, 2);

    // A fragmented SYN is accepted by the host that reassembles it.
    let syn = tcp::emit(&from_stranger(TO), 64, &syn(), &[7; 20]).data;
    family.deliver(0, Packet::new(cut(&syn, 2, 0, 32)));
    let answers = family.deliver(0, Packet::new(cut(&syn, 2, 32, 40)));
    assert!(read_segment(&answers[0]).flags.syn);
    assert_eq!(family.hosts[0].tcp_connections().count(), 1);
}

#[test]
fn segments_for_a_time_wait_reach_its_host() {
    let (mut family, listeners) = Family::listening(|_| 1);
    let stream = family.connect();
    let (accepted, _) = family.hosts[1].tcp_accept(family.now, listeners[1]).unwrap().unwrap();
    // The server closes first, so that it enters TIME-WAIT.
    family.hosts[1].tcp_close(family.now, accepted).unwrap();
    let (_, fin) = family.hosts[1].poll_transmit(family.now).unwrap();
    family.client.handle_packet(family.now, PORT, fin);
    family.client.tcp_close(family.now, stream).unwrap();
    let mut last = None;
    while let Some((_, packet)) = family.client.poll_transmit(family.now) {
        last = Some(packet.clone());
        family.deliver(1, packet);
    }
    let states: Vec<_> = family.hosts[1].tcp_connections().map(|(_, state)| state).collect();
    assert_eq!(states, [State::TimeWait]);
    // A repeated FIN arrives at another host.
    let answers = family.deliver(2, last.unwrap());
    assert_eq!(answers.len(), 1);
    let answer = read_segment(&answers[0]);
    assert!(answer.flags.ack && !answer.flags.rst);
}

/// A stranger's SYN, or its ACK of `cookie`.
fn of_stranger(port: u16, cookie: Option<SeqNumber>) -> Packet {
    let flow = FlowId { local: SocketAddr::from(([10, 0, 0, 9], port)), remote: address(TO) };
    let header = match cookie {
        None => syn(),
        Some(number) => {
            Header { seq: syn().seq + 1, ack: Some(number + 1), flags: Flags::ACK, ..syn() }
        }
    };
    tcp::emit(&flow, 64, &header, &[])
}

#[test]
fn a_cookie_opens_a_connection_wherever_it_comes_back() {
    for also_floods_the_other in [false, true] {
        let (mut family, _) = Family::listening(anywhere);
        let flooded = if also_floods_the_other { &[0, 2][..] } else { &[2][..] };
        let mut cookies = Vec::new();
        for &host in flooded {
            for port in 1..=3 {
                let port = port + 10 * host as u16;
                let answers = family.deliver(host, of_stranger(port, None));
                cookies.push(read_segment(&answers[0]).seq);
            }
        }
        let cookie = *cookies.last().unwrap();
        let before = family.counters();
        assert!(family.deliver(0, of_stranger(23, Some(cookie))).is_empty());
        let after = family.counters();
        assert_eq!(after.tcp_ext_syncookies_recv, before.tcp_ext_syncookies_recv + 1);
        assert_eq!(after.tcp_ext_syncookies_failed, 0);
        let at = if also_floods_the_other { 0 } else { 2 };
        let is_open = family.hosts[at].tcp_connections().any(|(flow, _)| flow.remote.port() == 23);
        assert!(is_open);
        // A guessed cookie gets one RST.
        let answers = family.deliver(0, of_stranger(24, Some(cookie)));
        assert!(answers.len() == 1 && read_segment(&answers[0]).flags.rst);
    }
}

#[test]
fn segments_after_a_refused_cookie_get_no_reset_from_a_sibling() {
    let (mut family, _) = Family::listening(anywhere);
    let answers: Vec<_> =
        (1..=3).flat_map(|port| family.deliver(0, of_stranger(port, None))).collect();
    let cookie = read_segment(&answers[2]).seq;
    family.hosts[0].config.peer_quota.connections = 0;
    assert!(family.deliver(0, of_stranger(3, Some(cookie))).is_empty());
    assert!(family.deliver(0, of_stranger(3, Some(cookie + 100))).is_empty());
    assert_eq!(family.counters().tcp_out_rsts, 0);
    assert_eq!(family.counters().tcp_ext_listen_drops, 2, "each counts once");
}

#[test]
fn astray_packets_beyond_the_limit_are_dropped_and_counted() {
    let (mut family, _) = Family::listening(anywhere);
    let header = Header { ack: Some(SeqNumber(77)), flags: Flags::ACK, ..syn() };
    for _ in 0..MAX_WAITING + 5 {
        family.hosts[0].handle_packet(family.now, PORT, Packet::new(segment(TO, &header)));
    }
    let counters = family.hosts[0].counters();
    assert_eq!(
        (counters.ip_ext_handed_over, counters.ip_ext_hand_over_drops),
        (MAX_WAITING as u64, 5)
    );
    family.hosts[0].on_astray_lost(2);
    assert_eq!(family.counters().ip_ext_hand_over_drops, 7);
}
