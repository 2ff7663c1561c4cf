//! Sends arbitrary packets to a host in any state, while applications make arbitrary calls.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use airtcp_stack::host::{Host, HostConfig, Quota, SocketId};
use airtcp_stack::tcp::{EcnMode, KeepAlive, SocketOption, State};
use airtcp_types::{ByteCount, FlowId, Instant, Node, Packet, PortId, SeqNumber, SharedBytes};
use airtcp_wire::checksum::verify_transport;
use airtcp_wire::options::{AccEcn, Order, SackBlocks, TcpOptions, Timestamps};
use airtcp_wire::tcp::{Flags, Header};
use airtcp_wire::{ip, tcp, udp};

use super::feed::Feed;

const MEMORY: ByteCount = ByteCount::from_kib(512);
const MTU: usize = 1500;
const CONNECTIONS: usize = 12;
/// The values of a call byte from here on are calls that were added later.
const RARE: u8 = 252;
/// The number of flows whose state is kept.
const FLOWS: usize = 6;
const COMBINATIONS: [&str; 7] = [
    "rack/bbr3/spike",
    "rack/cubic",
    "reno/reno",
    "newreno/westwood",
    "sack/cubic/dcr:timer",
    "fack/reno/hack",
    "le/westwood-plus/rr",
];

/// A flow of the host as its peer sees it, from which plausible next segments are made.
struct Peer {
    flow: FlowId,
    /// The sequence number that the host expects next.
    seq: SeqNumber,
    /// The host's next sequence number.
    ack: SeqNumber,
    /// The host's latest timestamp.
    val: u32,
    /// The host's latest packet.
    last: Vec<u8>,
}

struct World {
    host: Host,
    now: Instant,
    listeners: [SocketId; 2],
    datagrams: SocketId,
    streams: Vec<SocketId>,
    /// The buffers of shared writes.
    shared: Vec<Weak<Vec<u8>>>,
    peers: Vec<Peer>,
    reached: BTreeSet<State>,
}

/// Checks that the host sends only valid packets, stays within its memory, becomes silent, and
/// frees the state of closed connections. Returns the states that its connections reached.
pub(crate) fn run(data: &[u8]) -> BTreeSet<State> {
    let mut feed = Feed(data);
    let mut world = World::new(&mut feed);
    while !feed.is_empty() {
        world.step(&mut feed);
        world.settle();
    }
    world.leave();
    world.reached
}

impl World {
    fn new(feed: &mut Feed<'_>) -> Self {
        let mut config =
            HostConfig::new(["10.0.0.1/24", "fd00::1/64"].map(|c| c.parse().expect("a CIDR")));
        (config.backlog, config.time_waits, config.secret) = (3, 2, [5; 16]);
        config.quota =
            Quota { connections: CONNECTIONS, half_open: 4, memory: MEMORY, ..Quota::ALL };
        config.peer_quota = Quota { connections: 8, half_open: 3, ..Quota::PEER };
        let combination = COMBINATIONS[feed.choice(COMBINATIONS.len())];
        config.tcp.ecn = EcnMode::PassiveAccurate;
        config.tcp.sender.combination = combination.parse().expect("a combination");
        let mut host = Host::new(config);
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let listeners = ["10.0.0.1:80", "[fd00::1]:80"]
            .map(|local| host.tcp_listen(address(local), 3).expect("a free port"));
        let datagrams = host.udp_bind(address("10.0.0.1:53")).expect("a free port");
        let peers = [("10.0.0.9:999", "10.0.0.1:80"), ("[fd00::9]:999", "[fd00::1]:80")].map(
            |(local, remote)| Peer::new(FlowId { local: address(local), remote: address(remote) }),
        );
        let (streams, shared, reached) = (Vec::new(), Vec::new(), BTreeSet::new());
        let peers = peers.into();
        Self { host, now: Instant::ZERO, listeners, datagrams, streams, shared, peers, reached }
    }

    fn step(&mut self, feed: &mut Feed<'_>) {
        match feed.choice(16) {
            0 => self.arrives(feed.bytes(120).to_vec()),
            1 => self.reflect(feed),
            2 => self.complain(feed),
            3 => self.datagram(feed),
            4 => self.now += Duration::from_micros(u64::from(feed.word())),
            5 => self.now += Duration::from_millis(u64::from(feed.word())),
            6 => self.deadline(),
            7..10 => self.call(feed),
            10 => self.handshake(feed),
            _ => self.segment(feed),
        }
    }

    fn arrives(&mut self, data: Vec<u8>) {
        self.host.handle_packet(self.now, PortId(0), Packet::new(data));
    }

    fn deadline(&mut self) {
        if let Some(at) = self.host.poll_timeout() {
            self.now = self.now.max(at);
        }
    }

    fn peer(&self, feed: &mut Feed<'_>) -> &Peer {
        &self.peers[feed.choice(self.peers.len())]
    }

    /// Sends a segment that a peer might send next, or one close to it; sometimes several
    /// consecutive segments at once.
    fn segment(&mut self, feed: &mut Feed<'_>) {
        let bits = feed.byte();
        let has = |bit: u8| bits >> bit & 1 == 1;
        let flags = Flags {
            fin: has(0),
            syn: has(1),
            rst: has(2),
            psh: has(3),
            urg: has(5),
            ece: has(6),
            cwr: has(7),
            ae: has(5) && has(6),
            ..Flags::default()
        };
        let peer = self.peer(feed);
        let header = Header {
            seq: near(peer.seq, feed),
            ack: (!has(4)).then(|| near(peer.ack, feed)),
            flags,
            window: feed.word(),
            options: options(peer, feed),
        };
        let word = feed.word();
        let payload: Vec<u8> = (0..word & 0x3ff).map(|at| at as u8).collect();
        let more = if word >> 13 == 7 { u32::from(word >> 10 & 7) } else { 0 };
        let header = match more {
            0 => header,
            _ => Header { seq: peer.seq, ack: Some(peer.ack), flags: Flags::ACK, ..header },
        };
        let mut packets: Vec<_> = (0..=more)
            .map(|index| {
                let seq = header.seq + index * payload.len() as u32;
                tcp::emit(&peer.flow, 64, &Header { seq, ..header }, &payload)
            })
            .collect();
        if more > 0 {
            let data = &mut packets[feed.choice(16).min(more as usize)].data;
            let at = usize::from(feed.word()) % data.len();
            data[at] ^= feed.byte();
        }
        self.host.handle_packets(self.now, &packets);
    }

    /// A whole handshake from a new flow, or from one of a few known flows.
    fn handshake(&mut self, feed: &mut Feed<'_>) {
        let which = feed.choice(2);
        let mut flow = self.peers[which].flow;
        flow.local.set_port(1000 + u16::from(feed.byte() & 7));
        let known = self.peers.iter().position(|peer| peer.flow == flow);
        let iss = SeqNumber(u32::from(feed.byte()) << 24 | 0x00ff_fff0);
        let timestamps = (feed.byte() & 1 == 1).then_some(Timestamps { val: 1, ecr: 0 });
        let options = TcpOptions {
            mss: Some(1000),
            window_scale: Some(feed.byte() & 15),
            sack_permitted: true,
            timestamps,
            ..TcpOptions::default()
        };
        let syn = Flags { syn: true, ..Flags::default() };
        let header = Header { seq: iss, flags: syn, window: 2000, options, ..Header::default() };
        if known.is_none() {
            self.know(Peer::new(flow));
        }
        self.arrives(tcp::emit(&flow, 64, &header, &[]).data);
        self.settle();
        let Some(peer) = self.peers.iter().find(|peer| peer.flow == flow) else { return };
        let header = Header {
            seq: peer.seq,
            ack: Some(peer.ack),
            window: 2000,
            options: TcpOptions {
                timestamps: timestamps.map(|_| Timestamps { val: 2, ecr: peer.val }),
                ..TcpOptions::default()
            },
            ..Header::default()
        };
        self.arrives(tcp::emit(&flow, 64, &header, &[]).data);
    }

    /// Sends a packet of the host back to it, possibly with bits flipped.
    fn reflect(&mut self, feed: &mut Feed<'_>) {
        let mut data = self.peer(feed).last.clone();
        let there = feed.byte() & 1 == 1;
        if there && data.first().is_some_and(|first| first >> 4 == 4) && data.len() >= 20 {
            let (from, to) = data[12..20].split_at_mut(4);
            from.swap_with_slice(to);
        }
        for _ in 0..feed.choice(4) {
            let at = usize::from(feed.word()) % data.len().max(1);
            if let Some(byte) = data.get_mut(at) {
                *byte ^= 1 << feed.choice(8);
            }
        }
        self.arrives(data);
    }

    /// Sends an ICMP error that quotes the host's latest packet, possibly altered.
    fn complain(&mut self, feed: &mut Feed<'_>) {
        let peer = self.peer(feed);
        let (src, dst) = (peer.flow.local.ip(), peer.flow.remote.ip());
        let len = usize::from(feed.byte());
        let mut quoted = peer.last[..peer.last.len().min(len)].to_vec();
        if let Some(byte) = quoted.get_mut(usize::from(feed.byte())) {
            *byte ^= feed.byte();
        }
        let protocol = if src.is_ipv4() { ip::ICMP } else { ip::ICMPV6 };
        let mut data = Vec::new();
        let at = ip::start(&mut data, (src, dst), protocol, 64, 8 + quoted.len(), 0);
        data[at] = if src.is_ipv4() { [3, 3, 11, 12][feed.choice(4)] } else { 1 + feed.byte() % 4 };
        data[at + 1] = feed.byte() & 15;
        let mtu = feed.word().to_be_bytes();
        data[at + 6..at + 8].copy_from_slice(&mtu);
        data[at + 8..].copy_from_slice(&quoted);
        let mut sum = airtcp_wire::checksum::Sum::new();
        if src.is_ipv6() {
            sum.add_pseudo_header(src, dst, protocol, 8 + quoted.len());
        }
        sum.add_bytes(&data[at..]);
        let sum = sum.finish().to_be_bytes();
        data[at + 2..at + 4].copy_from_slice(&sum);
        self.arrives(data);
    }

    fn datagram(&mut self, feed: &mut Feed<'_>) {
        let local = SocketAddr::new(self.peers[0].flow.local.ip(), feed.word());
        let remote =
            SocketAddr::new(self.peers[0].flow.remote.ip(), 53 + u16::from(feed.byte() & 1));
        if local.is_ipv4() && remote.is_ipv4() {
            let packet = udp::emit(&FlowId { local, remote }, 64, feed.bytes(32));
            self.arrives(packet.data);
        }
    }

    /// Makes an application's call. Its errors are ignored.
    fn call(&mut self, feed: &mut Feed<'_>) {
        let (host, now) = (&mut self.host, self.now);
        let which = feed.choice(self.streams.len());
        let stream = self.streams.get(which).copied();
        let call = feed.byte();
        if call >= RARE {
            return self.call_rarely(feed, stream);
        }
        match (call % 14, stream) {
            (0, _) => {
                let to = [("10.0.0.9", 443), ("fd00::9", 443)][feed.choice(2)];
                let to = SocketAddr::new(to.0.parse().expect("an address"), to.1);
                self.streams.extend(host.tcp_connect(now, to, None));
            }
            (1..4, _) => {
                let listener = self.listeners[feed.choice(2)];
                let accepted = host.tcp_accept(now, listener).expect("a listener");
                self.streams.extend(accepted.map(|(id, _)| id));
            }
            (4, Some(id)) => {
                let _ = host.tcp_send(now, id, &vec![1; usize::from(feed.word())]);
            }
            // The same bytes as shared memory, without changing the meaning of old corpus files.
            (5, Some(id)) => {
                let len = usize::from(feed.word());
                let buffer = Arc::new(vec![1; len + 2]);
                self.shared.push(Arc::downgrade(&buffer));
                let _ = host.tcp_send_shared(now, id, &SharedBytes::new(&buffer, 1..len + 1));
            }
            (6 | 7, Some(id)) => {
                let _ = host.tcp_recv(now, id, &mut vec![0; usize::from(feed.word())]);
            }
            (8, Some(id)) => {
                let _ = host.tcp_shutdown(now, id);
            }
            (9, Some(id)) => {
                self.streams.swap_remove(which);
                let _ = host.tcp_close(now, id);
            }
            (10, Some(id)) => {
                self.streams.swap_remove(which);
                let _ = host.tcp_abort(now, id);
                let _ = host.tcp_close(now, id);
            }
            (11, Some(id)) => {
                let _ = host.tcp_set(now, id, SocketOption::NoDelay(feed.byte() & 1 == 1));
            }
            (12, Some(id)) => {
                let settings = (feed.byte() & 1 == 1).then(KeepAlive::default);
                let _ = host.tcp_set(now, id, SocketOption::KeepAlive(settings));
            }
            (13, Some(id)) => {
                let combination = COMBINATIONS[feed.choice(COMBINATIONS.len())];
                let combination = combination.parse().expect("a combination");
                let _ = host.tcp_set(now, id, SocketOption::Combination(combination));
            }
            _ => {
                let _ = host.udp_recv_from(self.datagrams, &mut [0; 100]);
                let to = SocketAddr::new(self.peers[0].flow.local.ip(), 53);
                let _ = host.udp_send_to(self.datagrams, feed.bytes(16), to);
            }
        }
    }

    /// Calls that were added later, without changing the meaning of old corpus files.
    fn call_rarely(&mut self, feed: &mut Feed<'_>, stream: Option<SocketId>) {
        let (host, now) = (&mut self.host, self.now);
        let peer = |port| SocketAddr::new(self.peers[0].flow.local.ip(), port);
        match (feed.choice(6), stream) {
            (0, Some(id)) => {
                let limit = Duration::from_millis(u64::from(feed.word()));
                let limit = (!limit.is_zero()).then_some(limit);
                let _ = host.tcp_set(now, id, SocketOption::UserTimeout(limit));
            }
            (1, Some(id)) => {
                let limit = Duration::from_millis(u64::from(feed.word()));
                let _ = host.tcp_set(now, id, SocketOption::Linger(Some(limit)));
            }
            (2, Some(id)) => {
                let mut buf = vec![0; usize::from(feed.word())];
                let _ = host.tcp(id).map(|tcp| tcp.peek(&mut buf));
            }
            (3, Some(id)) => {
                if let Ok(connecting) = host.tcp_connect_from(now, id, peer(443), None) {
                    self.streams.retain(|stream| *stream != id);
                    self.streams.push(connecting);
                }
            }
            (4, _) => {
                let local = SocketAddr::new(self.peers[0].flow.remote.ip(), feed.word());
                self.streams.extend(host.tcp_bind(local));
            }
            _ => {
                let _ = host.udp_connect(self.datagrams, peer(53 + u16::from(feed.byte() & 1)));
                let _ = host.udp_send(self.datagrams, feed.bytes(16));
            }
        }
    }

    /// Runs due timers, takes the outgoing packets and checks them.
    fn settle(&mut self) {
        for _ in 0..1000 {
            if self.host.poll_timeout().is_none_or(|at| at > self.now) {
                break;
            }
            self.host.handle_timeout(self.now);
            self.host.settle(self.now);
        }
        assert!(self.host.poll_timeout().is_none_or(|at| at > self.now), "a deadline stays due");
        let mut sent = 0;
        while let Some((_, packet)) = self.host.poll_transmit(self.now) {
            self.leaves(packet.data);
            sent += 1;
            assert!(sent < 10_000, "it never falls silent");
        }
        while let Some((id, _)) = self.host.poll_ready() {
            assert!(
                self.host.readiness(id).is_ok(),
                "{id:?} is reported as ready and does not exist"
            );
        }
        // Each connection may hold three unread segments, and less than one unsent segment.
        let reserve = ByteCount::from(CONNECTIONS * 4 * MTU);
        assert!(self.host.held() <= MEMORY + reserve, "{}", self.host.held());
        self.reached.extend(self.host.tcp_connections().map(|(_, state)| state));
    }

    fn leaves(&mut self, data: Vec<u8>) {
        assert!(data.len() <= MTU, "{}", data.len());
        let datagram = ip::parse(&data).expect("what it sends is a packet");
        if datagram.protocol != ip::TCP {
            return;
        }
        assert!(verify_transport(datagram.src, datagram.dst, ip::TCP, datagram.payload));
        let (from, to, segment) = tcp::parse(datagram.payload).expect("and its segment is one");
        let flow = FlowId {
            local: SocketAddr::new(datagram.dst, to),
            remote: SocketAddr::new(datagram.src, from),
        };
        let known = self.peers.iter().position(|peer| peer.flow == flow);
        if known.is_none() {
            self.know(Peer::new(flow));
        }
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.flow == flow) else { return };
        let next = segment.seq + segment.len();
        if segment.flags.syn || next > peer.ack {
            peer.ack = next;
        }
        if segment.flags.ack {
            peer.seq = segment.ack;
        }
        peer.val = segment.options.timestamps.map_or(peer.val, |stamps| stamps.val);
        peer.last = data.clone();
    }

    /// Adds a peer, and removes an older one if there are too many. The first two always stay.
    fn know(&mut self, peer: Peer) {
        if self.peers.len() >= FLOWS {
            self.peers.remove(2);
        }
        self.peers.push(peer);
    }

    /// Closes all connections and checks that nothing is left.
    fn leave(&mut self) {
        for listener in self.listeners {
            while let Ok(Some((id, _))) = self.host.tcp_accept(self.now, listener) {
                self.streams.push(id);
            }
        }
        for stream in std::mem::take(&mut self.streams) {
            let _ = self.host.tcp_close(self.now, stream);
        }
        self.host.tcp_abort_all(self.now);
        self.settle();
        for _ in 0..10_000 {
            let Some(at) = self.host.poll_timeout() else { break };
            self.now = self.now.max(at);
            self.settle();
        }
        assert_eq!(self.host.tcp_connections().count(), 0, "connections of nobody");
        let _ = self.host.udp_take_error(self.datagrams);
        while let Ok(Some(_)) = self.host.udp_recv_from(self.datagrams, &mut []) {}
        assert_eq!(self.host.held(), ByteCount::ZERO);
        let is_shared = |buffer: &Weak<_>| buffer.strong_count() > 0;
        assert!(!self.shared.iter().any(is_shared), "memory of a shared write is kept");
    }
}

impl Peer {
    fn new(flow: FlowId) -> Self {
        Self { flow, seq: SeqNumber(1000), ack: SeqNumber(0), val: 0, last: Vec::new() }
    }
}

/// Usually the number itself, else one close to it, or any number.
fn near(number: SeqNumber, feed: &mut Feed<'_>) -> SeqNumber {
    match feed.byte() {
        0..160 => number,
        160..200 => number + u32::from(feed.byte()),
        200..240 => number - u32::from(feed.byte()),
        240..250 => number + (u32::from(feed.word()) << 4),
        _ => SeqNumber(u32::from(feed.word()) << 16 | u32::from(feed.word())),
    }
}

fn options(peer: &Peer, feed: &mut Feed<'_>) -> TcpOptions {
    let bits = feed.byte();
    let mut options = TcpOptions::default();
    if bits & 1 == 0 {
        let val = u32::from(feed.byte()) + 2;
        let ecr = peer.val.wrapping_sub(u32::from(bits >> 4));
        options.timestamps = Some(Timestamps { val, ecr });
    }
    if bits & 6 == 6 {
        options.mss = Some(feed.word());
        options.window_scale = Some(feed.byte());
        options.sack_permitted = bits & 8 == 8;
    } else if bits & 2 == 2 {
        let mut sack = SackBlocks::EMPTY;
        for _ in 0..feed.choice(4) {
            let start = near(peer.ack, feed) - u32::from(feed.word());
            sack.push(start, start + u32::from(feed.word()));
        }
        options.sack = sack;
    } else if bits & 4 == 4 {
        // This takes nothing from the feed, so that the corpus reaches the same states as before.
        let counters = [peer.val, peer.ack.0, u32::from(bits)];
        options.accecn = Some(AccEcn::new(Order::One, &counters[..usize::from(bits >> 6)]));
    }
    options
}
