//! Measures the simulator's speed with checksums and without observers: one flow for 100 s over a
//! lossless 100 Mbit/s link with an RTT of 20 ms; the cost of an event and the memory of a flow
//! when many flows share that link; and the cost of an event beside idle flows.

use std::time::{Duration, Instant};

use airtcp_sim::{App, FlowSpec, RunResult, Scenario, Topology, Wire, run};
use airtcp_types::ByteCount;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const VIRTUAL: Duration = Duration::from_secs(100);

/// 100 Mbit/s with an RTT of 20 ms and a queue of one bandwidth-delay product.
const LINK: &str = "rate 100mbit delay 10ms limit 167";

/// One flow over [`LINK`].
fn bulk(duration: Duration) -> Scenario {
    over(LINK, duration)
}

fn over(link: &str, duration: Duration) -> Scenario {
    let bottleneck = Wire::both(link.parse().expect("a link"));
    let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
    let flow = FlowSpec::new("sack/cubic".parse().expect("a combination"));
    Scenario { flows: vec![flow], duration, ..Scenario::new("bulk", topology) }
}

/// `flows` flows over one link, whose starts are spread over the first second.
fn shared(link: &str, flows: u32, duration: Duration) -> Scenario {
    let mut scenario = over(link, duration);
    scenario.flows[0].count = flows;
    scenario.flows[0].stagger = Duration::from_secs(1) / flows;
    scenario
}

/// One bulk flow beside `idle` flows that exchange one request in the first two seconds and are
/// then silent.
fn beside_idle(idle: u32, duration: Duration) -> Scenario {
    let app = App::RequestResponse {
        request: ByteCount(100),
        response: ByteCount(100),
        think: Duration::from_secs(1_000_000_000),
        count: None,
    };
    let silent = FlowSpec {
        app,
        count: idle,
        stagger: Duration::from_secs(2) / idle,
        ..FlowSpec::new("sack/cubic".parse().expect("a combination"))
    };
    let mut scenario = bulk(duration);
    scenario.flows.push(silent);
    scenario
}

fn timed(scenario: &Scenario) -> (RunResult, Duration) {
    let began = Instant::now();
    let result = run(scenario, None).expect("a sound scenario");
    (result, began.elapsed())
}

fn report_bulk() {
    let (result, took) = timed(&bulk(VIRTUAL));
    let each = |n: u64| took.as_nanos() as f64 / n as f64;
    println!(
        "bulk: {:.0} ns per event, {:.0} ns per data packet, {:.1} times real time",
        each(result.events),
        each(result.flows[0].segments_sent),
        VIRTUAL.as_secs_f64() / took.as_secs_f64()
    );
}

/// Reports the cost of an event when all flows send, and the memory that each flow adds to that of
/// one at most.
fn report_shared() {
    let mut alone = None;
    for flows in [1, 100, 1_000, 10_000] {
        let before = begin_peak();
        let (result, took) = timed(&shared(LINK, flows, Duration::from_secs(20)));
        let grown = peak().saturating_sub(before);
        let alone = *alone.get_or_insert(grown);
        println!(
            "{flows} flows: {:.0} ns per event, {:.1} kB per flow, {:.1} times real time",
            took.as_nanos() as f64 / result.events as f64,
            grown.saturating_sub(alone) as f64 / f64::from(flows),
            20.0 / took.as_secs_f64()
        );
    }
    // Each flow has the share of one of 10,000: the events are of the same kinds, but the memory
    // of all flows fits into the cache.
    let (result, took) =
        timed(&shared("rate 1mbit delay 10ms limit 2", 100, Duration::from_secs(200)));
    println!(
        "100 flows, each with the share of one of 10,000: {:.0} ns per event",
        took.as_nanos() as f64 / result.events as f64
    );
}

/// Resets the process's peak memory and returns the current peak in kB.
fn begin_peak() -> u64 {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    peak()
}

/// The process's peak memory in kB; zero if the system does not report it.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    most.and_then(|kb| kb.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

/// Reports the cost of an event once the other flows are silent.
fn report_idle(idle: u32) {
    let (short, before) = timed(&beside_idle(idle, Duration::from_secs(5)));
    let (long, took) = timed(&beside_idle(idle, Duration::from_secs(15)));
    let nanos = took.saturating_sub(before).as_nanos() as f64;
    println!(
        "beside {idle} idle flows: {:.0} ns per event",
        nanos / (long.events - short.events) as f64
    );
}

fn speed(c: &mut Criterion) {
    report_bulk();
    report_shared();
    for idle in [10, 100, 1_000, 10_000] {
        report_idle(idle);
    }
    let mut group = c.benchmark_group("sim");
    let scenario = bulk(Duration::from_secs(10));
    let events = run(&scenario, None).expect("a sound scenario").events;
    group.throughput(Throughput::Elements(events));
    group.bench_function("bulk-10s", |b| b.iter(|| run(&scenario, None)));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = speed
}
criterion_main!(benches);
