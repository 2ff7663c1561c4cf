//! Two hosts on one link, with features that the simulator's scenarios lack: IPv6, ECN, offload,
//! UDP and ICMP.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_link::{Link, Way};
use airtcp_stack::host::{Host, HostConfig, SocketId};
use airtcp_stack::tcp::EcnMode;
use airtcp_types::{Instant, Node, PortId};
use serde_json::json;

use crate::digest::{Packets, Record};

/// Two hosts and a link. In all arrays of two, the client comes first, then the server.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    addresses: [&'static str; 2],
    link: &'static str,
    ecn: EcnMode,
    /// Whether devices segment super-segments and complete checksums.
    offload: bool,
}

const IPV4: [&str; 2] = ["10.0.0.1/24", "10.0.0.2/24"];
const IPV6: [&str; 2] = ["fd00::1/64", "fd00::2/64"];

pub(crate) const PAIRS: &[Pair] = &[
    Pair {
        name: "ipv4",
        addresses: IPV4,
        link: "rate 8mbit delay 10ms loss 1% limit 40 seed 1",
        ecn: EcnMode::Passive,
        offload: false,
    },
    Pair {
        name: "ipv6",
        addresses: IPV6,
        link: "rate 8mbit delay 10ms 4ms loss 1% limit 40 seed 2",
        ecn: EcnMode::Passive,
        offload: false,
    },
    Pair {
        name: "ipv4-ecn-red",
        addresses: IPV4,
        link: "rate 8mbit delay 10ms red min 3 max 9 probability 10% loss 0.5% seed 3",
        ecn: EcnMode::Active,
        offload: false,
    },
    Pair {
        name: "ipv6-ecn-codel",
        addresses: IPV6,
        link: "rate 8mbit delay 10ms loss 1% codel ecn seed 4",
        ecn: EcnMode::Active,
        offload: false,
    },
    Pair {
        name: "ipv6-offload",
        addresses: IPV6,
        link: "rate 8mbit delay 10ms loss 1% limit 40 seed 5",
        ecn: EcnMode::Passive,
        offload: true,
    },
];

const PORT: u16 = 5001;
/// The bytes that the client and the server send.
const SENT: [usize; 2] = [600_000, 150_000];
const TIME: Duration = Duration::from_secs(5);

/// One end of the connection.
struct End {
    socket: Option<SocketId>,
    to_send: usize,
    is_shut: bool,
}

impl End {
    /// Sends, closes and reads as far as possible.
    fn work(&mut self, host: &mut Host, now: Instant, data: &[u8]) {
        let Some(socket) = self.socket else { return };
        while self.to_send > 0 {
            let from = data.len() - self.to_send;
            match host.tcp_send(now, socket, &data[from..]) {
                Ok(taken) if taken > 0 => self.to_send -= taken,
                _ => break,
            }
        }
        if self.to_send == 0 && !self.is_shut {
            self.is_shut = host.tcp_shutdown(now, socket).is_ok();
        }
        let mut buffer = [0; 16_384];
        while host.tcp_recv(now, socket, &mut buffer).is_ok_and(|len| len > 0) {}
    }
}

impl Pair {
    fn host(&self, index: usize, strategies: &str) -> Host {
        let mut config = HostConfig::new([self.addresses[index].parse().unwrap()]);
        config.tcp.sender.combination = strategies.parse().unwrap();
        config.tcp.ecn = self.ecn;
        (config.checksum_offload, config.segmentation_offload) = (self.offload, self.offload);
        Host::new(config)
    }

    fn address(&self, index: usize, port: u16) -> SocketAddr {
        let (address, _) = self.addresses[index].split_once('/').unwrap();
        SocketAddr::new(address.parse().unwrap(), port)
    }

    /// Runs the case with these strategies: one connection with data in both directions, a datagram
    /// that is received, and one that an ICMP error answers.
    pub(crate) fn run(&self, strategies: &str) -> Record {
        let mut hosts = [0, 1].map(|index| self.host(index, strategies));
        let spec = self.link.parse().unwrap();
        let mut link = Link::new(&spec, &spec).unwrap();
        let mut packets = Packets::default();
        let mut now = Instant::ZERO;
        let data: Vec<u8> = (0..SENT[0]).map(|offset| (offset % 251) as u8).collect();
        let mut ends = SENT.map(|to_send| End { socket: None, to_send, is_shut: false });
        let listener = hosts[1].tcp_listen(self.address(1, PORT), 16).unwrap();
        let udp = [0, 1].map(|index| hosts[index].udp_bind(self.address(index, PORT)).unwrap());
        hosts[0].udp_send_to(udp[0], &data[..1000], self.address(1, PORT)).unwrap();
        hosts[0].udp_send_to(udp[0], b"", self.address(1, PORT + 1)).unwrap();
        ends[0].socket = Some(hosts[0].tcp_connect(now, self.address(1, PORT), None).unwrap());
        loop {
            let mut is_moving = false;
            if ends[1].socket.is_none() {
                ends[1].socket = hosts[1].tcp_accept(now, listener).unwrap().map(|(id, _)| id);
            }
            for (index, (end, host)) in (0..).zip(ends.iter_mut().zip(&mut hosts)) {
                end.work(host, now, &data[..SENT[index]]);
                while let Some((_, packet)) = host.poll_transmit(now) {
                    is_moving = true;
                    airtcp_wire::each_segment(&packet, |segment| {
                        packets.add(now, index as u32, segment);
                        link.handle_packet(now, PortId(index as u16), segment.clone());
                    });
                }
            }
            while let Some((PortId(port), packet)) = link.poll_transmit(now) {
                is_moving = true;
                packets.add(now, 2, &packet);
                hosts[usize::from(port)].handle_packet(now, PortId(0), packet);
            }
            if is_moving {
                continue;
            }
            let nodes: [&mut dyn Node; 3] = {
                let [client, server] = &mut hosts;
                [client, server, &mut link]
            };
            let next = nodes.iter().filter_map(|node| node.poll_timeout()).min();
            let Some(next) = next.filter(|next| next.since(Instant::ZERO) < TIME) else { break };
            now = now.max(next);
            for node in nodes {
                if node.poll_timeout().is_some_and(|at| at <= now) {
                    node.handle_timeout(now);
                }
            }
        }
        let infos = [0, 1].map(|index| {
            let info = ends[index].socket.map(|socket| hosts[index].tcp(socket).unwrap().info(now));
            json!(info)
        });
        packets.record(&json!({
            "hosts": [hosts[0].counters(), hosts[1].counters()],
            "connections": infos,
            "link": Way::BOTH.map(|way| *link.counters(way)),
        }))
    }
}
