//! Measures the cost of a packet through an emulated link. The link runs alone, driven by its own
//! deadlines as in the simulator, and packets are reused so that no allocation is measured.

use std::hint::black_box;
use std::time::Duration;

use airtcp_link::Link;
use airtcp_types::{Instant, Node, Packet, PortId};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Bytes per packet: 120 us at 100 Mbit/s.
const SIZE: usize = 1_500;
/// Packets arrive in bursts, as from a sender with a window, so that the queue is used.
const BURST: u64 = 8;
const PER_ITERATION: u64 = 1_000;

struct Driven {
    link: Link,
    spare: Vec<Packet>,
    now: Instant,
    arrived: u64,
}

impl Driven {
    fn new(spec: &str, events: bool) -> Self {
        let spec = spec.parse().expect("the description is right");
        let mut link = Link::new(&spec, &spec).expect("a link of it can be made");
        link.set_events(events);
        Self { link, spare: Vec::new(), now: Instant::ZERO, arrived: 0 }
    }

    /// Sends a burst of packets and runs the timers due before the next burst.
    fn burst(&mut self) {
        for _ in 0..BURST {
            let packet = self.spare.pop().unwrap_or_else(|| Packet::new(vec![0; SIZE]));
            self.link.handle_packet(self.now, PortId(0), packet);
            self.take(self.now);
        }
        let next = self.now + Duration::from_micros(121 * BURST);
        while let Some(at) = self.link.poll_timeout().filter(|at| *at < next) {
            self.link.handle_timeout(at);
            self.take(at);
        }
        self.now = next;
    }

    fn take(&mut self, now: Instant) {
        while let Some((_, packet)) = self.link.poll_transmit(now) {
            self.arrived += 1;
            self.spare.push(packet);
        }
        while let Some(event) = self.link.poll_event() {
            black_box(event);
        }
    }
}

fn links(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("link");
    group.throughput(Throughput::Elements(PER_ITERATION));
    let plain = "rate 100mbit delay 10ms limit 200";
    for (name, more, events) in [
        ("plain", "", false),
        ("plain, watched", "", true),
        ("random loss", " loss 1% seed 7", false),
        ("gilbert-elliott", " loss gemodel 1% 10% 75% 0.1% seed 7", false),
        ("bit errors", " biterror 1e-7 seed 7", false),
        ("codel", " codel", false),
        ("half duplex", " half 1us", false),
    ] {
        let mut driven = Driven::new(&format!("{plain}{more}"), events);
        group.bench_function(name, |bencher| {
            bencher.iter(|| (0..PER_ITERATION / BURST).for_each(|_| driven.burst()));
        });
        black_box(driven.arrived);
    }
    let jitter = "rate 100mbit delay 10ms 1ms distribution normal limit 200";
    let mut driven = Driven::new(jitter, false);
    group.bench_function("normal jitter", |bencher| {
        bencher.iter(|| (0..PER_ITERATION / BURST).for_each(|_| driven.burst()));
    });
    group.finish();
}

criterion_group!(benches, links);
criterion_main!(benches);
