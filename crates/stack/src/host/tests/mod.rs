//! Two hosts joined without loss, and hand-made packets.

mod any;
mod astray;
mod bound;
mod cases;
mod cookies;
mod flood;
mod fragments;
mod hack;
mod input;
mod limits;
mod memory;
mod path_mtu;
mod paths;
mod requirements;
mod runs;
mod storm;
mod strangers;
mod streams;
mod super_segments;
mod time_wait;
mod writes;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_types::{ByteCount, FlowId, Instant, Node, Packet, PortId, SeqNumber};
use airtcp_wire::checksum::{Sum, checksum};
use airtcp_wire::tcp::{Flags, Header, Segment};
use airtcp_wire::{icmp, ip, tcp};

use crate::counters::Counters;
use crate::tcp::TcpError;

use super::{Host, HostConfig, HostError, SocketId};

const PORT: PortId = PortId(0);

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn host(addresses: [&str; 2]) -> Host {
    let mut config = HostConfig::new(addresses.map(|cidr| cidr.parse().unwrap()));
    config.secret = [addresses[0].len() as u8; 16];
    config.events = true;
    Host::new(config)
}

fn server() -> Host {
    host(["10.0.0.1/24", "fd00::1/64"])
}

/// Two hosts, and their common time.
struct Pair {
    now: Instant,
    client: Host,
    server: Host,
}

impl Pair {
    fn new() -> Self {
        let client = host(["10.0.0.2/24", "fd00::2/64"]);
        Self { now: Instant::ZERO, client, server: server() }
    }

    /// Carries packets both ways until there are none.
    fn exchange(&mut self) {
        for _ in 0..100_000 {
            let mut moved = false;
            while let Some((_, packet)) = self.client.poll_transmit(self.now) {
                self.server.handle_packet(self.now, PORT, packet);
                moved = true;
            }
            while let Some((_, packet)) = self.server.poll_transmit(self.now) {
                self.client.handle_packet(self.now, PORT, packet);
                moved = true;
            }
            if !moved {
                return;
            }
        }
        panic!("the hosts never fall silent");
    }

    /// Advances the time, deadline by deadline, until `end` or until no deadline is left.
    fn run_until(&mut self, end: Instant) {
        for _ in 0..100_000 {
            self.exchange();
            let deadlines = [self.client.poll_timeout(), self.server.poll_timeout()];
            let Some(next) = deadlines.into_iter().flatten().min().filter(|at| *at <= end) else {
                self.now = self.now.max(end);
                return;
            };
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
        panic!("deadlines never end");
    }

    fn pass(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Connects the client to the server's `listener`.
    fn connect(&mut self, listener: SocketId, to: &str) -> (SocketId, SocketId) {
        let stream = self.client.tcp_connect(self.now, address(to), None).unwrap();
        self.exchange();
        let (accepted, peer) = self.server.tcp_accept(self.now, listener).unwrap().unwrap();
        assert_eq!(peer, self.client.tcp(stream).unwrap().flow().local);
        (stream, accepted)
    }
}

impl Pair {
    /// Sends 300,000 bytes from the client, and compares the received data.
    fn carry(&mut self, stream: SocketId, accepted: SocketId) {
        let sent: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
        let (mut queued, mut got) = (0, Vec::new());
        while got.len() < sent.len() {
            queued += self.client.tcp_send(self.now, stream, &sent[queued..]).unwrap_or(0);
            self.pass(Duration::from_millis(50));
            got.extend(read_all(&mut self.server, self.now, accepted).0);
        }
        assert_eq!(got, sent);
    }
}

/// Reads all available data; also returns whether the stream has ended.
fn read_all(host: &mut Host, now: Instant, socket: SocketId) -> (Vec<u8>, bool) {
    let (mut all, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        match host.tcp_recv(now, socket, &mut buf) {
            Ok(0) => return (all, true),
            Ok(n) => all.extend_from_slice(&buf[..n]),
            Err(HostError::Tcp(TcpError::WouldBlock)) => return (all, false),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A flow from a stranger to the server.
fn from_stranger(to: &str) -> FlowId {
    let remote = address(to);
    let local = if remote.is_ipv4() { "10.0.0.9:999" } else { "[fd00::9]:999" };
    FlowId { local: address(local), remote }
}

fn syn() -> Header {
    let flags = Flags { syn: true, ..Flags::default() };
    Header { seq: SeqNumber(1_000), flags, window: 1_000, ..Header::default() }
}

fn segment(to: &str, header: &Header) -> Vec<u8> {
    tcp::emit(&from_stranger(to), 64, header, &[]).data
}

/// The answers of a host to one packet.
fn answers(host: &mut Host, data: Vec<u8>) -> Vec<Packet> {
    let now = Instant::from_millis(1_000);
    host.handle_packet(now, PORT, Packet::new(data));
    std::iter::from_fn(|| host.poll_transmit(now).map(|(_, packet)| packet)).collect()
}

fn read_segment(packet: &Packet) -> Segment<'_> {
    tcp::parse(ip::parse(&packet.data).unwrap().payload).unwrap().2
}

/// Changes the header of an IPv4 packet, and updates its checksum.
fn with_header(mut data: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    change(&mut data);
    with_sum(data)
}

/// Updates the checksum of an IPv4 header.
fn with_sum(mut data: Vec<u8>) -> Vec<u8> {
    let end = (usize::from(data[0] & 0x0f) * 4).max(20);
    data[10..12].fill(0);
    let sum = checksum(&data[..end]);
    data[10..12].copy_from_slice(&sum.to_be_bytes());
    data
}

/// An echo request, made from an echo reply, which differs only in type and checksum.
fn echo(src: IpAddr, dst: IpAddr, echoed: &[u8]) -> Vec<u8> {
    let mut data = icmp::emit_echo_reply(src, dst, 64, echoed).data;
    let (at, kind) = if src.is_ipv4() { (20, 8) } else { (40, 128) };
    let (old, new) = (u16::from(data[at]) << 8, kind << 8);
    let sum = u16::from_be_bytes([data[at + 2], data[at + 3]]);
    let sum = airtcp_wire::checksum::update(sum, old, new);
    data[at] = (new >> 8) as u8;
    data[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
    data
}

/// An ICMP error from a router, or any other host, to the sender of a packet: with a type and a
/// code, `word` after the checksum, and the quote `quoted`.
fn icmp_error(sent: &[u8], kind: [u8; 2], word: u32, quoted: &[u8]) -> Packet {
    let to = ip::parse(sent).unwrap().src;
    let (router, at): (IpAddr, _) = match to {
        IpAddr::V4(_) => ([10, 0, 0, 77].into(), 20),
        IpAddr::V6(_) => ("fd00::77".parse().unwrap(), 40),
    };
    let mut data = icmp::emit_error(router, to, 64, icmp::Complaint::Port, quoted).data;
    let message = &mut data[at..];
    message[..4].copy_from_slice(&[kind[0], kind[1], 0, 0]);
    message[4..8].copy_from_slice(&word.to_be_bytes());
    let mut sum = Sum::new();
    if to.is_ipv6() {
        sum.add_pseudo_header(router, to, ip::ICMPV6, message.len());
    }
    sum.add_bytes(message);
    message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    Packet::new(data)
}

/// Fragmentation Needed or Packet Too Big for a packet.
fn too_big(packet: &[u8], mtu: u32) -> Packet {
    too_big_quoting(packet, packet, mtu)
}

/// As [`too_big`], but with another quote.
fn too_big_quoting(packet: &[u8], quoted: &[u8], mtu: u32) -> Packet {
    let v4 = ip::parse(packet).unwrap().src.is_ipv4();
    icmp_error(packet, if v4 { [3, 4] } else { [2, 0] }, mtu, quoted)
}

/// The names of the counters that changed.
fn moved(before: &Counters, after: &Counters) -> Vec<&'static str> {
    let pairs = before.iter().zip(after.iter());
    pairs.filter(|(before, after)| before.1 != after.1).map(|(_, after)| after.0).collect()
}

fn held_by_connections(host: &Host) -> ByteCount {
    host.sockets
        .iter()
        .filter_map(|socket| match &socket.kind {
            super::Kind::Tcp(tcp) => Some(tcp.held),
            super::Kind::TimeWait(_) => Some(super::time_wait::COST),
            _ => None,
        })
        .sum()
}
