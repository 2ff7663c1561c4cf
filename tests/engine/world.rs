//! Two hosts with an impaired path between them, in virtual time.
//!
//! Not modelled, because the tests do not need it: corrupted headers, routing, more hosts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use std::time::Duration;

use airtcp_recovery::Combination;
use airtcp_stack::host::{Cidr, Host, HostConfig};
use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Event, Instant, Node, Packet, PortId, Rate};
use airtcp_wire::{checksum, each_segment};

use crate::liar::Liar;

pub(crate) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(crate) const PORT: u16 = 5001;
/// The ECN field in IPv4's second byte; with both bits set it is CE.
const ECN: u8 = 0b11;

pub(crate) fn server() -> SocketAddr {
    SocketAddr::new(SERVER, PORT)
}

/// The impairments of one direction of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Impairment {
    /// The one-way delay.
    pub(crate) delay: Duration,
    /// The maximum of a uniform random delay added per packet, so that packets overtake each other.
    pub(crate) jitter: Duration,
    /// The probability that a packet is lost; `duplicate` is the one of duplication.
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    /// The probability that a packet gets the delay twice, so that later ones overtake it.
    pub(crate) reorder: f64,
    /// The probability that a packet's last byte is damaged; a segment without data is then lost.
    pub(crate) corrupt: f64,
    /// The probability that an ECN-capable packet is marked (CE, RFC 3168).
    pub(crate) mark: f64,
    /// The rate of the bottleneck, and the number of packets in its queue.
    pub(crate) bottleneck: Option<(Rate, usize)>,
}

impl Impairment {
    pub(crate) fn delay(delay: Duration) -> Self {
        Self {
            delay,
            jitter: Duration::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            mark: 0.0,
            bottleneck: None,
        }
    }
}

struct Direction {
    impairment: Impairment,
    loss: Stream,
    duplicate: Stream,
    reorder: Stream,
    jitter: Stream,
    corrupt: Stream,
    mark: Stream,
    free_at: Instant,
}

impl Direction {
    fn new(impairment: Impairment, seed: u64, number: u64) -> Self {
        let stream = |cause| Stream::new(seed, number * 16 + cause);
        Self {
            impairment,
            loss: stream(0),
            duplicate: stream(1),
            reorder: stream(2),
            jitter: stream(3),
            corrupt: stream(4),
            mark: stream(5),
            free_at: Instant::ZERO,
        }
    }

    /// Returns when the copies of a packet that enters now arrive: none, one or two.
    fn arrivals(&mut self, now: Instant, len: usize) -> Vec<Instant> {
        let Impairment { delay, jitter, loss, duplicate, reorder, bottleneck, .. } =
            self.impairment;
        // Every packet draws from every stream, so that one impairment never shifts another.
        let lost = self.loss.chance(loss);
        let copies = 1 + usize::from(self.duplicate.chance(duplicate));
        let held = self.reorder.chance(reorder);
        let jitter = jitter.mul_f64(self.jitter.next_f64());
        let mut leaves = now;
        if let Some((rate, queue)) = bottleneck {
            let packet = ByteCount::from(len);
            if self.free_at.since(now) > rate.time_for(packet * queue as u64) {
                return Vec::new();
            }
            self.free_at = self.free_at.max(now) + rate.time_for(packet);
            leaves = self.free_at;
        }
        if lost {
            return Vec::new();
        }
        let arrives = leaves + delay + jitter + if held { delay } else { Duration::ZERO };
        (0..copies as u64).map(|copy| arrives + Duration::from_micros(copy)).collect()
    }
}

/// Observes everything that happens, in its order.
pub(crate) trait Observer {
    fn on_event(&mut self, _host: usize, _event: &Event) {}
    /// A packet arrives at a host.
    fn on_arrival(&mut self, _host: usize, _packet: &Packet) {}
    /// A packet leaves a host.
    fn on_departure(&mut self, _host: usize, _packet: &Packet) {}
    /// The latest packet that left a host is damaged on the path.
    fn on_damage(&mut self, _host: usize) {}
}

impl Observer for () {}

/// Two hosts, the path between them, and a clock.
pub(crate) struct World<O = ()> {
    pub(crate) now: Instant,
    pub(crate) hosts: [Host; 2],
    directions: [Direction; 2],
    /// The packets in flight by arrival time, then in the order sent.
    wire: BTreeMap<(Instant, u64), (usize, Packet)>,
    order: u64,
    /// Sends false packets in the server's name.
    liar: Option<Liar>,
    /// The number of packets that have left the client, and the numbers of those to lose.
    left: u64,
    drops: BTreeSet<u64>,
    pub(crate) observer: O,
}

/// The client is host 0, the server host 1.
pub(crate) const CLIENT_HOST: usize = 0;
pub(crate) const SERVER_HOST: usize = 1;

pub(crate) fn host_config(address: IpAddr, combination: &Combination, events: bool) -> HostConfig {
    let mut config = HostConfig::new([Cidr::new(address, 24).unwrap()]);
    config.tcp.sender.combination = combination.clone();
    config.events = events;
    config
}

impl<O: Observer> World<O> {
    pub(crate) fn new(
        client: HostConfig,
        server: HostConfig,
        path: Impairment,
        seed: u64,
        observer: O,
    ) -> Self {
        Self {
            now: Instant::ZERO,
            hosts: [Host::new(client), Host::new(server)],
            directions: [Direction::new(path, seed, 0), Direction::new(path, seed, 1)],
            wire: BTreeMap::new(),
            order: 0,
            liar: None,
            left: 0,
            drops: BTreeSet::new(),
            observer,
        }
    }

    /// Sets another path from the server to the client.
    pub(crate) fn with_path_back(mut self, path: Impairment, seed: u64) -> Self {
        self.directions[SERVER_HOST] = Direction::new(path, seed, 1);
        self
    }

    /// Loses these packets of the client, which are numbered from 1.
    pub(crate) fn with_drops<const N: usize>(mut self, drops: [u64; N]) -> Self {
        self.drops = drops.into();
        self
    }

    /// Adds a liar beside the server.
    pub(crate) fn with_liar(mut self, liar: Option<Liar>) -> Self {
        self.liar = liar;
        self
    }

    /// Puts the hosts' outgoing packets on the wire.
    pub(crate) fn pump(&mut self) {
        for from in [CLIENT_HOST, SERVER_HOST] {
            while let Some((_, packet)) = self.hosts[from].poll_transmit(self.now) {
                self.report_events(from);
                // If the host segments in its device, the device cuts here.
                each_segment(&packet, |segment| self.put_on_wire(from, segment.clone()));
            }
            self.report_events(from);
        }
    }

    fn put_on_wire(&mut self, from: usize, mut packet: Packet) {
        self.observer.on_departure(from, &packet);
        let direction = &mut self.directions[from];
        if direction.corrupt.chance(direction.impairment.corrupt) {
            self.observer.on_damage(from);
            packet.data.last_mut().into_iter().for_each(|last| *last ^= 0x10);
        }
        let is_marked = direction.mark.chance(direction.impairment.mark);
        if is_marked && packet.data[1] & ECN != 0 {
            set_ce(&mut packet.data);
        }
        let lie = match &mut self.liar {
            Some(liar) if from == SERVER_HOST => liar.lie_after(&packet),
            Some(liar) => {
                liar.hear(&packet);
                None
            }
            None => None,
        };
        self.left += u64::from(from == CLIENT_HOST);
        if from == CLIENT_HOST && self.drops.contains(&self.left) {
            return;
        }
        for arrives in self.directions[from].arrivals(self.now, packet.len()) {
            for packet in std::iter::once(&packet).chain(&lie) {
                self.order += 1;
                self.wire.insert((arrives, self.order), (1 - from, packet.clone()));
            }
        }
    }

    fn report_events(&mut self, host: usize) {
        while let Some(event) = self.hosts[host].poll_event() {
            self.observer.on_event(host, &event);
        }
    }

    /// Advances to the next event and runs it; returns `false` if there is none.
    pub(crate) fn step(&mut self) -> bool {
        self.pump();
        let arrival = self.wire.first_key_value().map(|(&(at, _), _)| at);
        let deadline = self.hosts.iter().filter_map(Node::poll_timeout).min();
        let Some(next) = arrival.into_iter().chain(deadline).min() else { return false };
        self.now = self.now.max(next);
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, packet) = entry.remove();
            self.observer.on_arrival(to, &packet);
            self.hosts[to].handle_packet(self.now, PortId(0), packet);
            self.report_events(to);
        }
        for host in &mut self.hosts {
            if host.poll_timeout().is_some_and(|at| at <= self.now) {
                host.handle_timeout(self.now);
            }
        }
        self.pump();
        true
    }
}

/// Sets CE in an IPv4 packet.
fn set_ce(data: &mut [u8]) {
    let word = |low| u16::from_be_bytes([data[0], low]);
    let (old, new) = (word(data[1]), word(data[1] | ECN));
    let sum = checksum::update(u16::from_be_bytes([data[10], data[11]]), old, new);
    data[1] |= ECN;
    data[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The byte of a test stream at an offset, chosen so that a wrong order or place shows.
fn pattern(offset: u64) -> u8 {
    let mixed = (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32;
    (mixed ^ (offset >> 13)) as u8
}

/// Returns `len` bytes of a test stream from the offset `from` on.
pub(crate) fn pattern_bytes(from: u64, len: usize) -> Cow<'static, [u8]> {
    /// The first bytes of each stream: the longest transfer of the table of goodput, 10 Mbit/s for
    /// 30 s. The table carries 30 GB, whose bytes would be computed twice each.
    static FIRST: LazyLock<Vec<u8>> = LazyLock::new(|| (0..37_500_000).map(pattern).collect());
    let start = usize::try_from(from).unwrap();
    match FIRST.get(start..start + len) {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned((from..from + len as u64).map(pattern).collect()),
    }
}
