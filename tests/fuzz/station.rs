//! Sends a base station arbitrary packets of strangers from either side, beside one honest flow.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airtcp_basestation::station::{MobileConfig, Origin, StationCounters};
use airtcp_basestation::{Policy, Side, Station, StationConfig};
use airtcp_stack::host::{Host, HostConfig, SocketId};
use airtcp_types::{ByteCount, FlowId, Instant, Node, Packet, PortId, SeqNumber};
use airtcp_wire::options::{TcpOptions, Timestamps};
use airtcp_wire::tcp::{self, Flags, Header};

use super::feed::Feed;

/// Bytes that the fixed host sends.
const LEN: usize = 60_000;
const RADIOS: [&str; 4] = ["", "error 30% tries 2 queue 20", "queue 3", "error 10% delay 5ms rts"];
const POLICIES: [Policy; 4] = [Policy::TcpEcn, Policy::TcpEcn, Policy::Snoop, Policy::Plain];
/// The most proven flows, and the most unproven flows.
const FLOWS: usize = 4;
/// The most memory for the state of a flow: 256 ranges, the frames of a queue and the segment that
/// was not trusted.
const FLOW: usize = 16 << 10;
const BUFFER: ByteCount = ByteCount::from_kib(16);
/// The hop limit that marks strangers' packets, which are dropped before they reach a host.
const STRANGE: u8 = 63;
/// Strangers do not see the flow, so their numbers are at least this far from its own, which is
/// more than any window.
const FAR: u32 = 1 << 24;
/// The latest time of the strangers' packets.
const REIGN: Instant = Instant::from_millis(100_000);
/// When the flow must be complete: a sender whose window was closed and not reopened probes at ever
/// longer intervals.
const END: Instant = Instant::from_millis(2_000_000);

struct World {
    fixed: Host,
    station: Station,
    mobile: Host,
    now: Instant,
    sender: SocketId,
    reader: Option<SocketId>,
    ports: [u16; 2],
    /// For each side, the host's latest packet, and in `next` the sequence number after it.
    last: [Packet; 2],
    next: [SeqNumber; 2],
    sent: usize,
    read: usize,
}

/// Checks that the station keeps its bounds and that the flow completes despite the strangers.
/// Returns the station's counters, and whether it heard a mobile without a name.
pub(crate) fn run(data: &[u8]) -> (StationCounters, bool) {
    let mut feed = Feed(data);
    let mut world = World::new(&mut feed);
    while !feed.is_empty() {
        world.step(&mut feed);
        world.work();
    }
    world.complete();
    let mobiles = world.station.mobiles(world.now);
    let has_heard = mobiles.iter().any(|mobile| mobile.origin == Origin::Heard);
    (*world.station.counters(), has_heard)
}

fn named_mobile() -> MobileConfig {
    MobileConfig {
        name: "m1".to_owned(),
        addresses: vec!["192.168.0.2/32".parse().expect("a network")],
        radio: "error 10%".to_owned(),
        hold: None,
        hold_packets: Some(4),
    }
}

fn host(address: &str, secret: u8) -> Host {
    let mut config = HostConfig::new([address.parse().expect("a CIDR")]);
    config.secret = [secret; 16];
    Host::new(config)
}

impl World {
    /// Makes a world in which the handshake is complete.
    fn new(feed: &mut Feed<'_>) -> Self {
        let bits = feed.byte();
        let config = StationConfig {
            radio: RADIOS[usize::from(bits & 3)].parse().expect("a radio"),
            policy: POLICIES[usize::from(bits >> 2 & 3)],
            flows: FLOWS,
            unproven: FLOWS,
            hold: BUFFER,
            cache: BUFFER,
            absence: Duration::from_secs(if bits & 16 == 0 { 5 } else { 900 }),
            // The mobile may have a name; strangers are heard then.
            mobile: if bits < 0xe0 { Vec::new() } else { vec![named_mobile()] },
            heard: if bits < 0xe0 { 0 } else { 2 },
            ..StationConfig::default()
        };
        let station = Station::new(&config).expect("settings that fit together");
        let (mut fixed, mut mobile) = (host("10.0.0.1/8", 1), host("192.168.0.2/24", 2));
        let now = Instant::ZERO;
        let server = "192.168.0.2:80".parse().expect("an address");
        let listener = mobile.tcp_listen(server, 1).expect("a free port");
        let sender = fixed.tcp_connect(now, server, None).expect("a free port");
        let local = fixed.tcp_connections().map(|(flow, _)| flow.local.port()).next();
        let ports = [local.expect("it has a port"), 80];
        let (last, next) = (std::array::from_fn(|_| Packet::new(Vec::new())), [SeqNumber(0); 2]);
        let mut world = Self {
            fixed,
            station,
            mobile,
            now,
            sender,
            reader: None,
            ports,
            last,
            next,
            sent: 0,
            read: 0,
        };
        world.run(Instant::from_millis(10_000), |world| {
            let accepted = world.mobile.tcp_accept(world.now, listener).expect("a listener");
            world.reader = accepted.map(|(socket, _)| socket);
            world.reader.is_some()
        });
        world
    }

    fn step(&mut self, feed: &mut Feed<'_>) {
        let side = |feed: &mut Feed<'_>| Side::BOTH[feed.choice(2)];
        match feed.choice(16) {
            0 => self.pass_time(Duration::from_micros(u64::from(feed.word()))),
            1 => self.pass_time(Duration::from_millis(u64::from(feed.word()))),
            2 => self.station.freeze(self.now),
            3 => self.station.disconnect(self.now),
            4 => self.station.reconnect(self.now),
            5 => {
                let side = side(feed);
                self.arrives(side, Packet::new(feed.bytes(120).to_vec()));
            }
            6 => {
                // Repeat a host's packet, possibly damaged.
                let side = side(feed);
                let mut packet = self.last[side as usize].clone();
                if feed.byte() & 1 == 1 && packet.len() > 20 {
                    let at = 20 + usize::from(feed.word()) % (packet.len() - 20);
                    packet.data[at] ^= 1 << feed.choice(8);
                }
                self.arrives(side, packet);
            }
            7..10 => self.other_flow(side(feed), feed),
            10 => self.write(1 + usize::from(feed.word() >> 4)),
            _ => self.forge(side(feed), feed),
        }
    }

    /// Delivers a stranger's packet.
    fn arrives(&mut self, side: Side, mut packet: Packet) {
        let at = if packet.data.first().is_some_and(|first| first >> 4 == 6) { 7 } else { 8 };
        let Some(hops) = packet.data.get_mut(at) else { return };
        let old = std::mem::replace(hops, STRANGE);
        if at == 8 && packet.len() >= 12 {
            let sum = u16::from_be_bytes([packet.data[10], packet.data[11]]);
            let words = [u16::from_be_bytes([old, 0]), u16::from_be_bytes([STRANGE, 0])];
            let sum = airtcp_wire::checksum::update(sum, words[0], words[1]);
            packet.data[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        self.station.handle_packet(self.now, side.port(), packet);
    }

    /// Sends a segment with the addresses of the honest flow.
    fn forge(&mut self, side: Side, feed: &mut Feed<'_>) {
        let far = |own: SeqNumber, feed: &mut Feed<'_>| {
            let number = SeqNumber(u32::from(feed.word()) << 16 | u32::from(feed.word()));
            let is_near = number.distance(own).unsigned_abs() < FAR;
            if is_near { number + 2 * FAR } else { number }
        };
        let [own, other] = [side as usize, side.other() as usize];
        let seq = far(self.next[own], feed);
        let bits = feed.byte();
        let ack = if bits & 1 == 0 { self.next[other] } else { far(self.next[other], feed) };
        let flow = self.flow(side, self.ports);
        self.put(side, flow, seq, ack, feed);
    }

    /// Sends a segment of one of a few flows that do not exist; its numbers may be consecutive.
    fn other_flow(&mut self, side: Side, feed: &mut Feed<'_>) {
        let bits = feed.byte();
        let port = 1_000 + u16::from(bits & 7);
        let [seq, ack] = [bits >> 3 & 3, bits >> 5 & 3].map(|n| SeqNumber(u32::from(n) << 7));
        self.put(side, self.flow(side, [port, 80]), seq, ack, feed);
    }

    fn flow(&self, side: Side, ports: [u16; 2]) -> FlowId {
        let hosts = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 168, 0, 2)].map(IpAddr::from);
        let [fixed, mobile] = [0, 1].map(|at| SocketAddr::new(hosts[at], ports[at]));
        match side {
            Side::Wired => FlowId { local: fixed, remote: mobile },
            Side::Wireless => FlowId { local: mobile, remote: fixed },
        }
    }

    fn put(
        &mut self,
        side: Side,
        flow: FlowId,
        seq: SeqNumber,
        ack: SeqNumber,
        feed: &mut Feed<'_>,
    ) {
        let bits = feed.byte();
        let has = |bit: u8| bits >> bit & 1 == 1;
        let flags =
            Flags { fin: has(0), syn: has(1), rst: has(2), ece: has(3), ..Flags::default() };
        let stamp = Timestamps { val: u32::from(feed.byte()) << 24, ecr: 0 };
        let options = TcpOptions {
            timestamps: has(5).then_some(stamp),
            window_scale: has(1).then_some(bits >> 4),
            ..TcpOptions::default()
        };
        let header =
            Header { seq, ack: (!has(4)).then_some(ack), flags, window: feed.word(), options };
        let payload = vec![7; if has(6) { 128 } else { 0 }];
        self.arrives(side, tcp::emit(&flow, 64, &header, &payload));
    }

    fn pass_time(&mut self, time: Duration) {
        let until = (self.now + time).min(REIGN);
        self.run(until, |_| false);
        self.now = self.now.max(until);
    }

    /// Runs until `until`, or until the condition holds.
    fn run(&mut self, until: Instant, mut is_done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..1_000_000 {
            self.work();
            if is_done(self) {
                return;
            }
            // The condition may have written data.
            self.work();
            let nodes: [&dyn Node; 3] = [&self.fixed, &self.station, &self.mobile];
            let next = nodes.iter().filter_map(|node| node.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= until) else { return };
            self.now = self.now.max(next);
        }
        panic!("it never ends");
    }

    /// Runs due timers, and carries packets between the hosts and the station.
    fn work(&mut self) {
        let now = self.now;
        let nodes: [&mut dyn Node; 3] = [&mut self.fixed, &mut self.station, &mut self.mobile];
        for node in nodes {
            if node.poll_timeout().is_some_and(|at| at <= now) {
                node.handle_timeout(now);
            }
        }
        let mut is_moved = true;
        while is_moved {
            is_moved = false;
            for side in Side::BOTH {
                let host = if side == Side::Wired { &mut self.fixed } else { &mut self.mobile };
                while let Some((_, packet)) = host.poll_transmit(now) {
                    is_moved = true;
                    self.next[side as usize] = end_of(&packet);
                    self.last[side as usize] = packet.clone();
                    self.station.handle_packet(now, side.port(), packet);
                }
            }
            while let Some((port, packet)) = self.station.poll_transmit(now) {
                is_moved = true;
                let hops = if packet.data[0] >> 4 == 6 { 7 } else { 8 };
                match (packet.data[hops], Side::of(port)) {
                    (STRANGE, _) => {}
                    (_, Some(Side::Wired)) => self.fixed.handle_packet(now, PortId(0), packet),
                    _ => self.mobile.handle_packet(now, PortId(0), packet),
                }
            }
            self.read();
        }
        self.check();
    }

    fn check(&self) {
        let status = self.station.status(self.now);
        assert!(status.memory - status.cached <= 2 * FLOWS * FLOW, "{}", status.memory);
        assert!(status.flows + status.frozen <= FLOWS && status.unproven <= FLOWS);
        assert!(ByteCount(status.held_bytes as u64) <= BUFFER, "{}", status.held_bytes);
        assert!(ByteCount(status.cached as u64) <= BUFFER, "{}", status.cached);
    }

    fn write(&mut self, len: usize) {
        let data: Vec<u8> = (self.sent..(self.sent + len).min(LEN)).map(pattern).collect();
        self.sent += self.fixed.tcp_send(self.now, self.sender, &data).unwrap_or(0);
    }

    fn read(&mut self) {
        let Some(reader) = self.reader else { return };
        let mut buf = [0; 4_096];
        while let Ok(len @ 1..) = self.mobile.tcp_recv(self.now, reader, &mut buf) {
            for byte in &buf[..len] {
                assert_eq!(*byte, pattern(self.read));
                self.read += 1;
            }
        }
    }

    /// Ends the attack and reconnects the mobile: all data arrives.
    fn complete(&mut self) {
        self.station.reconnect(self.now);
        self.run(END, |world| {
            world.write(LEN);
            world.read == LEN
        });
        assert_eq!(self.read, LEN);
        self.fixed.tcp_shutdown(self.now, self.sender).expect("the connection is open");
        let reader = self.reader.expect("it was accepted");
        let mut buf = [0; 1];
        self.run(END + Duration::from_secs(100), |world| {
            matches!(world.mobile.tcp_recv(world.now, reader, &mut buf), Ok(0))
        });
        assert!(matches!(self.mobile.tcp_recv(self.now, reader, &mut buf), Ok(0)), "no FIN");
    }
}

/// The sequence number after the segment in an IPv4 packet without options.
fn end_of(packet: &Packet) -> SeqNumber {
    let (_, _, segment) = tcp::parse(&packet.data[20..]).expect("its segments are whole");
    segment.seq + segment.len()
}

fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}
