//! Segments per second through the engine alone: two hosts back to back, checksums on, no device.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airtcp::stack::host::{Cidr, Host, HostConfig, SocketId};
use airtcp::types::{Instant, Node};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const BYTES: usize = 8 << 20;
const SMSS: usize = 1448;

fn host(last: u8) -> Host {
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    Host::new(HostConfig::new([Cidr::new(address, 24).expect("a prefix of 24")]))
}

struct Pair {
    now: Instant,
    hosts: [Host; 2],
    listener: SocketId,
}

impl Pair {
    fn new() -> Self {
        let mut hosts = [host(1), host(2)];
        let listener = hosts[1].tcp_listen(Self::server(), 16).expect("a free port");
        Self { now: Instant::ZERO, hosts, listener }
    }

    fn server() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 2], 5001))
    }

    /// Hands over what each host has for the other, once.
    fn exchange(&mut self) {
        self.now += Duration::from_micros(1);
        for from in 0..2 {
            while let Some((port, packet)) = self.hosts[from].poll_transmit(self.now) {
                self.hosts[1 - from].handle_packet(self.now, port, packet);
            }
            let host = &mut self.hosts[from];
            while host.poll_ready().is_some() {}
            if host.poll_timeout().is_some_and(|at| at <= self.now) {
                host.handle_timeout(self.now);
            }
        }
    }

    fn transfer(&mut self) {
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
            self.exchange();
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
        self.hosts[0].tcp_abort(self.now, client).expect("an open socket");
        if let Some(server) = server {
            self.hosts[1].tcp_abort(self.now, server).expect("an open socket");
        }
        self.exchange();
    }
}

fn bulk(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    group.throughput(Throughput::Elements((BYTES / SMSS) as u64));
    group.bench_function("bulk-segments", |b| {
        let mut pair = Pair::new();
        b.iter(|| pair.transfer());
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = bulk
}
criterion_main!(benches);
