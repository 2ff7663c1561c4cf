//! Probes hosts for the features in docs/capabilities.md.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_stack::host::{Host, HostConfig, HostError, SocketId};
use airtcp_stack::tcp::{EcnMode, TcpConfig, TcpError};
use airtcp_types::{Instant, Node, Packet, PortId};
use airtcp_wire::checksum::{Sum, checksum};
use airtcp_wire::ip;
use airtcp_wire::options::TcpOptions;

const NOW: Instant = Instant::ZERO;
const SERVER: &str = "10.0.0.1";
const CLIENT: &str = "10.0.0.2";

fn host(addresses: &[&str]) -> Host {
    Host::new(HostConfig::new(addresses.iter().map(|address| address.parse().unwrap())))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(text: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address(text), port)
}

/// Returns an IP packet between two addresses.
fn packet(from: &str, to: &str, protocol: u8, payload: &[u8]) -> Packet {
    let (mut data, ends) = (Vec::new(), (address(from), address(to)));
    let start = ip::start(&mut data, ends, protocol, 64, payload.len(), 0);
    data[start..].copy_from_slice(payload);
    Packet::new(data)
}

/// Returns the packets that a host sends in response to a packet.
fn answers(host: &mut Host, packet: Packet) -> Vec<Packet> {
    host.handle_packet(NOW, PortId(0), packet);
    sent(host, NOW)
}

fn sent(host: &mut Host, now: Instant) -> Vec<Packet> {
    std::iter::from_fn(|| host.poll_transmit(now)).map(|(_, packet)| packet).collect()
}

pub(crate) fn answers_echo() -> bool {
    let mut host = host(&["10.0.0.1/24", "fd00::1/64"]);
    let mut v4 = vec![8, 0, 0, 0, 0, 1, 0, 1, b'?'];
    let sum = checksum(&v4);
    v4[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut v6 = vec![128, 0, 0, 0, 0, 1, 0, 1, b'?'];
    let mut sum = Sum::new();
    sum.add_pseudo_header(address("fd00::2"), address("fd00::1"), ip::ICMPV6, v6.len());
    sum.add_bytes(&v6);
    v6[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    let v4 = answers(&mut host, packet(CLIENT, SERVER, ip::ICMP, &v4));
    let v6 = answers(&mut host, packet("fd00::2", "fd00::1", ip::ICMPV6, &v6));
    let is_reply = |packets: &[Packet], header: usize, kind: u8| {
        packets.len() == 1 && packets[0].data[header] == kind && packets[0].data.ends_with(b"?")
    };
    is_reply(&v4, 20, 0) && is_reply(&v6, 40, 129)
}

/// Returns a datagram to port 9, without a checksum, as IPv4 allows.
fn datagram(to: &str) -> Packet {
    packet(CLIENT, to, ip::UDP, &[0, 7, 0, 9, 0, 10, 0, 0, b'h', b'i'])
}

fn received(host: &mut Host, socket: SocketId) -> Vec<u8> {
    let mut buffer = [0; 64];
    let length = host.udp_recv_from(socket, &mut buffer).unwrap().map_or(0, |(length, _)| length);
    buffer[..length].to_vec()
}

pub(crate) fn speaks_udp() -> bool {
    let mut host = host(&["10.0.0.1/24"]);
    let socket = host.udp_bind(at(SERVER, 9)).unwrap();
    answers(&mut host, datagram(SERVER));
    host.udp_send_to(socket, b"you too", at(CLIENT, 7)).unwrap();
    let out = sent(&mut host, NOW);
    received(&mut host, socket) == b"hi" && out.len() == 1 && out[0].data.ends_with(b"you too")
}

pub(crate) fn reports_closed_ports() -> bool {
    let mut host = host(&["10.0.0.1/24"]);
    let out = answers(&mut host, datagram(SERVER));
    out.len() == 1 && out[0].data[20..22] == [3, 3]
}

/// Sends a datagram in two fragments: 16 bytes, and the rest.
pub(crate) fn reassembles() -> bool {
    let mut host = host(&["10.0.0.1/24"]);
    let socket = host.udp_bind(at(SERVER, 9)).unwrap();
    let whole = [&[0, 7, 0, 9, 0, 18, 0, 0][..], b"in pieces!"].concat();
    for (offset, more, part) in [(0, 0x20, &whole[..16]), (2, 0, &whole[16..])] {
        let mut fragment = packet(CLIENT, SERVER, ip::UDP, part);
        let header = &mut fragment.data[..20];
        header[6..8].copy_from_slice(&[more, offset]);
        header[10..12].fill(0);
        let sum = checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        answers(&mut host, fragment);
    }
    received(&mut host, socket) == b"in pieces!"
}

/// Returns whether a host sends a datagram that exceeds the MTU.
pub(crate) fn fragments() -> bool {
    let mut host = host(&["10.0.0.1/24"]);
    let socket = host.udp_bind(at(SERVER, 9)).unwrap();
    host.udp_send_to(socket, &[7; 3000], at(CLIENT, 7)).is_ok()
}

pub(crate) fn routes() -> bool {
    let mut host = host(&["10.0.0.1/24"]);
    !answers(&mut host, datagram("10.0.0.99")).is_empty()
}

/// The first SYN of a host.
pub(crate) struct Syn {
    pub(crate) options: TcpOptions,
    /// Whether ECE or CWR is set.
    pub(crate) ecn_flags: bool,
}

pub(crate) fn syn() -> Syn {
    let mut client = host(&["10.0.0.2/24"]);
    client.tcp_connect(NOW, at(SERVER, 9), None).unwrap();
    let syn = sent(&mut client, NOW).remove(0).data;
    let options = TcpOptions::parse(&syn[40..]);
    Syn { options, ecn_flags: syn[33] & 0b1100_0000 != 0 }
}

/// Returns whether a SYN with ECE and CWR, from a client with ECN enabled, is answered by a SYN-ACK
/// with ECE only.
pub(crate) fn grants_ecn() -> bool {
    let (mut server, mut client) = (host(&["10.0.0.1/24"]), host(&["10.0.0.2/24"]));
    server.tcp_listen(at(SERVER, 9), 8).unwrap();
    let config = TcpConfig { ecn: EcnMode::Active, ..TcpConfig::default() };
    client.tcp_connect(NOW, at(SERVER, 9), Some(config)).unwrap();
    let syn = sent(&mut client, NOW).remove(0);
    let asks = syn.data[33] >> 6;
    let answer = answers(&mut server, syn).remove(0);
    (asks, answer.data[33] >> 6) == (0b11, 0b01)
}

/// Returns whether a listener in this mode answers a SYN for AccECN according to RFC 9768: with CWR
/// and without ECE, for a SYN that arrived as Not-ECT.
pub(crate) fn grants_accecn(ecn: EcnMode) -> bool {
    let (mut server, mut client) = (host(&["10.0.0.1/24"]), host(&["10.0.0.2/24"]));
    let listener = server.tcp_listen(at(SERVER, 9), 8).unwrap();
    let config = TcpConfig { ecn, ..TcpConfig::default() };
    server.tcp_set_listener_config(listener, config).unwrap();
    let config = TcpConfig { ecn: EcnMode::Accurate, ..TcpConfig::default() };
    client.tcp_connect(NOW, at(SERVER, 9), Some(config)).unwrap();
    let syn = sent(&mut client, NOW).remove(0);
    let asks = (syn.data[32] & 1, syn.data[33] >> 6);
    let answer = answers(&mut server, syn).remove(0);
    asks == (1, 0b11) && (answer.data[32] & 1, answer.data[33] >> 6) == (0, 0b10)
}

/// Two hosts with a connection between them, and their sockets.
struct Pair {
    server: Host,
    client: Host,
    accepted: SocketId,
    connected: SocketId,
}

impl Pair {
    fn new() -> Self {
        let (mut server, mut client) = (host(&["10.0.0.1/24"]), host(&["10.0.0.2/24"]));
        let listener = server.tcp_listen(at(SERVER, 9), 8).unwrap();
        let connected = client.tcp_connect(NOW, at(SERVER, 9), None).unwrap();
        exchange(&mut server, &mut client);
        let (accepted, _) = server.tcp_accept(NOW, listener).unwrap().unwrap();
        Self { server, client, accepted, connected }
    }

    fn exchange(&mut self) {
        exchange(&mut self.server, &mut self.client);
    }
}

fn exchange(one: &mut Host, other: &mut Host) {
    loop {
        let (from_one, from_other) = (sent(one, NOW), sent(other, NOW));
        if from_one.is_empty() && from_other.is_empty() {
            return;
        }
        from_one.into_iter().for_each(|packet| other.handle_packet(NOW, PortId(0), packet));
        from_other.into_iter().for_each(|packet| one.handle_packet(NOW, PortId(0), packet));
    }
}

pub(crate) fn half_closes() -> bool {
    let mut pair = Pair::new();
    let mut buffer = [0; 64];
    pair.client.tcp_send(NOW, pair.connected, b"question").unwrap();
    pair.client.tcp_shutdown(NOW, pair.connected).unwrap();
    pair.exchange();
    let asked = pair.server.tcp_recv(NOW, pair.accepted, &mut buffer).unwrap();
    let ended = pair.server.tcp_recv(NOW, pair.accepted, &mut buffer) == Ok(0);
    pair.server.tcp_send(NOW, pair.accepted, b"answer").unwrap();
    pair.exchange();
    let answered = pair.client.tcp_recv(NOW, pair.connected, &mut buffer).unwrap();
    asked == 8 && ended && buffer[..answered] == *b"answer"
}

pub(crate) fn resets() -> bool {
    let mut pair = Pair::new();
    pair.server.tcp_abort(NOW, pair.accepted).unwrap();
    pair.exchange();
    let outcome = pair.client.tcp_recv(NOW, pair.connected, &mut [0; 64]);
    outcome == Err(HostError::Tcp(TcpError::Reset))
}

/// Sends an ICMP message for a full-size packet to its sender, with an MTU of 1000 bytes, and
/// returns whether the retransmission obeys it.
pub(crate) fn obeys_too_big() -> bool {
    let mut pair = Pair::new();
    pair.client.tcp_send(NOW, pair.connected, &[7; 3000]).unwrap();
    let long = sent(&mut pair.client, NOW).remove(0);
    assert_eq!(long.len(), 1500);
    let mut message = [&[3, 4, 0, 0, 0, 0, 3, 0xe8][..], &long.data[..28]].concat();
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let too_big = packet(SERVER, CLIENT, ip::ICMP, &message);
    let at_once = answers(&mut pair.client, too_big);
    let later = NOW + Duration::from_secs(5);
    pair.client.handle_timeout(later);
    let repeated = at_once.into_iter().chain(sent(&mut pair.client, later)).next();
    repeated.expect("a lost packet is sent again").len() <= 1000
}

/// Returns whether a listener answers more SYNs than its queue holds, which requires SYN cookies.
pub(crate) fn answers_every_syn() -> bool {
    let (mut server, mut client) = (host(&["10.0.0.1/24"]), host(&["10.0.0.2/24"]));
    server.tcp_listen(at(SERVER, 9), 1).unwrap();
    let syns = 16;
    let answered = (0..syns).filter(|_| {
        client.tcp_connect(NOW, at(SERVER, 9), None).unwrap();
        let syn = sent(&mut client, NOW).remove(0);
        !answers(&mut server, syn).is_empty()
    });
    answered.count() == syns
}
