//! What being watched costs the engine: two hosts back to back, nobody watching, events made and thrown away, and
//! everything written to a disk.
//!
//! The runs take turns, and what is told are ratios within a turn: how fast the machine is meanwhile cancels out.
//! "off, again" is a second run of the first kind: what it differs by is noise. The code that asks whether anybody
//! watches cannot be taken out for a comparison, so its share is an estimate: as many tests of a flag as a
//! watched run has events, and as many again for what would have been none, each as dear as one by itself.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant as Clock};

use airtcp::stack::host::{Cidr, Host, HostConfig, SocketId};
use airtcp::trace::{NodeInfo, NodeKind, Recorder};
use airtcp::types::{Crossing, Event, Instant, Node, NodeId, Observer, Packet};

const BYTES: usize = 8 << 20;
const SMSS: usize = 1448;
const TURNS: usize = 31;

#[derive(Clone, Copy, PartialEq)]
enum Watched {
    No,
    Events,
    Recorded,
}

/// Counts what it is shown.
#[derive(Default)]
struct Count(u64);

impl Observer for Count {
    fn on_event(&mut self, _: NodeId, _: &Event) {
        self.0 += 1;
    }
}

struct Pair {
    now: Instant,
    hosts: [Host; 2],
    listener: SocketId,
}

impl Pair {
    fn new(events: bool) -> Self {
        let host = |last: u8| {
            let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
            let cidr = Cidr::new(address, 24).expect("a prefix of 24");
            let mut config = HostConfig::new([cidr]);
            config.events = events;
            Host::new(config)
        };
        let mut hosts = [host(1), host(2)];
        let listener = hosts[1].tcp_listen(Self::server(), 16).expect("a free port");
        Self { now: Instant::ZERO, hosts, listener }
    }

    fn server() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 2], 5001))
    }

    /// Hands over what each host has for the other, once.
    fn exchange(&mut self, mut observer: Option<&mut dyn Observer>) {
        self.now += Duration::from_micros(1);
        for from in 0..2 {
            while let Some((port, packet)) = self.hosts[from].poll_transmit(self.now) {
                if let Some(observer) = &mut observer {
                    self.show(*observer, from, &packet);
                }
                self.hosts[1 - from].handle_packet(self.now, port, packet);
            }
            let host = &mut self.hosts[from];
            while host.poll_ready().is_some() {}
            if host.poll_timeout().is_some_and(|at| at <= self.now) {
                host.handle_timeout(self.now);
            }
        }
    }

    fn show(&mut self, observer: &mut dyn Observer, from: usize, packet: &Packet) {
        let nodes = [NodeId(0), NodeId(1)];
        observer.on_packet(self.now, nodes[from], Crossing::Out, packet);
        observer.on_packet(self.now, nodes[1 - from], Crossing::In, packet);
        for (host, node) in self.hosts.iter_mut().zip(nodes) {
            while let Some(event) = host.poll_event() {
                observer.on_event(node, &event);
            }
        }
    }

    fn transfer(&mut self, mut observer: Option<&mut dyn Observer>) {
        let client = self.hosts[0]
            .tcp_connect(self.now, Self::server(), None)
            .expect("a connection to begin");
        let chunk = [0x5a; 65_536];
        let mut buffer = [0; 65_536];
        let (mut sent, mut received) = (0, 0);
        let mut server = None;
        while received < BYTES {
            let left = chunk.len().min(BYTES - sent);
            sent += self.hosts[0].tcp_send(self.now, client, &chunk[..left]).unwrap_or(0);
            match &mut observer {
                Some(observer) => self.exchange(Some(*observer)),
                None => self.exchange(None),
            }
            server = server.or_else(|| {
                let accepted = self.hosts[1].tcp_accept(self.now, self.listener);
                accepted.ok().flatten().map(|(socket, _)| socket)
            });
            if let Some(server) = server {
                while let Ok(len @ 1..) = self.hosts[1].tcp_recv(self.now, server, &mut buffer) {
                    received += len;
                }
            }
        }
    }
}

/// Nanoseconds per segment of one transfer. What a recorder draws at the end is not in it.
fn nanos(watched: Watched) -> f64 {
    let mut pair = Pair::new(watched != Watched::No);
    let directory = tempfile::tempdir().expect("a directory");
    let mut recorder = (watched == Watched::Recorded).then(|| {
        let node = |name: &str| NodeInfo { name: name.to_owned(), kind: NodeKind::Host };
        let nodes = [node("client"), node("server")];
        Recorder::create(directory.path(), "a bench", &nodes, Duration::ZERO).expect("a trace")
    });
    let mut nobody = ();
    let observer: Option<&mut dyn Observer> = match (watched, &mut recorder) {
        (Watched::No, _) => None,
        (_, Some(recorder)) => Some(recorder),
        (_, None) => Some(&mut nobody),
    };
    let began = Clock::now();
    pair.transfer(observer);
    began.elapsed().as_nanos() as f64 / (BYTES / SMSS) as f64
}

fn events_per_segment() -> f64 {
    let mut count = Count::default();
    Pair::new(true).transfer(Some(&mut count));
    count.0 as f64 / (BYTES / SMSS) as f64
}

/// Nanoseconds of a test of a flag that is in memory and not set.
fn nanos_of_a_test() -> f64 {
    const TESTS: u32 = 20_000_000;
    let flag = false;
    let (mut set, began) = (0_u32, Clock::now());
    for _ in 0..TESTS {
        if *black_box(&flag) {
            set += 1;
        }
    }
    black_box(set);
    began.elapsed().as_nanos() as f64 / f64::from(TESTS)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}

fn main() {
    // `cargo test` runs it too, to see that it runs.
    let turns = if std::env::args().any(|arg| arg == "--bench") { TURNS } else { 1 };
    let kinds = [
        ("off, again", Watched::No),
        ("events made, nobody looks", Watched::Events),
        ("recorded", Watched::Recorded),
    ];
    let (mut off, mut ratios) = (Vec::new(), kinds.map(|_| Vec::new()));
    nanos(Watched::No);
    for _ in 0..turns {
        let first = nanos(Watched::No);
        off.push(first);
        for ((_, watched), ratios) in kinds.iter().zip(&mut ratios) {
            ratios.push(nanos(*watched) / first);
        }
    }
    let [low, off, high] = quartiles(off);
    println!("off: {off:.0} ns per segment, half of {turns} turns in {low:.0} to {high:.0}");
    for ((name, _), ratios) in kinds.iter().zip(ratios) {
        let [low, median, high] = quartiles(ratios);
        println!("{name}: {median:.3} times off, half of the turns in {low:.3} to {high:.3}");
    }
    let (events, test) = (events_per_segment(), nanos_of_a_test());
    println!(
        "off, tests whether anybody watches: about {:.2} %, by estimate ({events:.1} events per segment, two tests for each, {test:.2} ns a test)",
        2.0 * events * test / off * 100.0
    );
}
