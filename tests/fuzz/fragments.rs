//! Fragments in any order, cut anywhere, some with a false end of their packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use airtcp_stack::host::{Host, HostConfig};
use airtcp_types::{ByteCount, FlowId, Instant, Node, Packet, PortId};
use airtcp_wire::{ip, udp};

use super::feed::Feed;

const PORT: u16 = 53;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
/// The protocol number of IPv6's fragment header.
const V6_FRAGMENT: u8 = 44;

/// Checks that a reassembled datagram is one that was sent. Returns the number of reassembled
/// datagrams.
pub(crate) fn run(data: &[u8]) -> usize {
    let mut feed = Feed(data);
    let own = [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), "fd00::1".parse().expect("an address")];
    let mut config =
        HostConfig::new(["10.0.0.1/24", "fd00::1/64"].map(|c| c.parse().expect("a CIDR")));
    config.quota.fragments = ByteCount::from_kib(32);
    config.peer_quota.fragments = ByteCount::from_kib(16);
    config.secret = [7; 16];
    let mut host = Host::new(config);
    let sockets = own.map(|own| host.udp_bind(SocketAddr::new(own, PORT)).expect("a free port"));
    let mut now = Instant::ZERO;
    let mut whole = 0;
    while !feed.is_empty() {
        match feed.choice(8) {
            0 => now += Duration::from_millis(u64::from(feed.word())),
            1 => host.handle_packet(now, PortId(0), Packet::new(feed.bytes(100).to_vec())),
            _ => {
                let (who, id) = (feed.byte(), feed.byte() % 8);
                let payload = udp_of(who, id, own[usize::from(who % 2)]);
                let fragment = cut(&mut feed, who, id, &payload);
                host.handle_packet(now, PortId(0), Packet::new(fragment));
            }
        }
        if host.poll_timeout().is_some_and(|at| at <= now) {
            host.handle_timeout(now);
        }
        while host.poll_transmit(now).is_some() {}
        for socket in sockets {
            let mut buf = [0; 65_536];
            while let Some((len, from)) =
                host.udp_recv_from(socket, &mut buf).expect("the socket is there")
            {
                // The raw packets may be whole datagrams of any kind.
                let Some((who, id)) = sender_of(from) else { continue };
                assert!(buf[..len] == *content(who, id), "{from} {len}");
                whole += 1;
            }
        }
    }
    // No fragment waits forever.
    for _ in 0..1000 {
        let Some(next) = host.poll_timeout() else { return whole };
        host.handle_timeout(next.max(now));
    }
    panic!("fragments wait for ever");
}

/// The source of a datagram; its port identifies the datagram.
fn source(who: u8, id: u8) -> SocketAddr {
    let host = who % 8;
    let ip = if who.is_multiple_of(2) {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, 100 + host))
    } else {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, u16::from(host)))
    };
    SocketAddr::new(ip, 40_000 + u16::from(id))
}

fn sender_of(from: SocketAddr) -> Option<(u8, u8)> {
    (0..8)
        .flat_map(|who| (0..8).map(move |id| (who, id)))
        .find(|(who, id)| source(*who, *id) == from)
}

fn content(who: u8, id: u8) -> Vec<u8> {
    let (who, len) = (who % 8, 1 + 700 * usize::from(id % 8));
    (0..len).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ (who << 4) ^ id).collect()
}

fn udp_of(who: u8, id: u8, to: IpAddr) -> Vec<u8> {
    let flow = FlowId { local: source(who, id), remote: SocketAddr::new(to, PORT) };
    let packet = udp::emit(&flow, 64, &content(who, id));
    packet.data[if to.is_ipv4() { V4_HEADER } else { V6_HEADER }..].to_vec()
}

/// A fragment of a datagram, from any offset and of any length; sometimes its more-fragments flag
/// is false.
fn cut(feed: &mut Feed<'_>, who: u8, id: u8, payload: &[u8]) -> Vec<u8> {
    let unit = usize::from(feed.byte()) * 4 % (payload.len() / 8 + 1);
    let units = usize::from(feed.byte());
    let kind = feed.byte();
    let start = unit * 8;
    let end = (start + units * 8 + usize::from(kind >> 5)).min(payload.len());
    let more = (end < payload.len()) != (kind & 15 == 1);
    let (src, body) = (source(who, id).ip(), &payload[start..end]);
    let offset = (unit as u16) << 3;
    match src {
        IpAddr::V4(_) => {
            let dst = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
            let mut data = Vec::new();
            let at = ip::start(&mut data, (src, dst), ip::UDP, 64, body.len(), 0);
            data[at..].copy_from_slice(body);
            data[4..6].copy_from_slice(&u16::from(id).to_be_bytes());
            let field = (unit as u16) | if more { 0x2000 } else { 0 };
            data[6..8].copy_from_slice(&field.to_be_bytes());
            data[10..12].fill(0);
            let sum = airtcp_wire::checksum::checksum(&data[..V4_HEADER]);
            data[10..12].copy_from_slice(&sum.to_be_bytes());
            data
        }
        IpAddr::V6(_) => {
            let dst: IpAddr = "fd00::1".parse().expect("an address");
            let mut data = Vec::new();
            let at = ip::start(&mut data, (src, dst), V6_FRAGMENT, 64, 8 + body.len(), 0);
            let field = offset | u16::from(more);
            data[at] = ip::UDP;
            data[at + 2..at + 4].copy_from_slice(&field.to_be_bytes());
            data[at + 7] = id;
            data[at + 8..].copy_from_slice(body);
            data
        }
    }
}
