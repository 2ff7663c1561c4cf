//! How fast the simulator is: lossless 100 Mbit/s, 20 ms, 100 s, one flow, nobody watching, checksums on; and what an
//! event costs beside idle flows.

use std::time::{Duration, Instant};

use airtcp_sim::{App, FlowSpec, RunResult, Scenario, Topology, Wire, run};
use airtcp_types::ByteCount;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const VIRTUAL: Duration = Duration::from_secs(100);

/// One flow over 100 Mbit/s and 20 ms, with a queue of one bandwidth-delay product.
fn bulk(duration: Duration) -> Scenario {
    let bottleneck = Wire::both("rate 100mbit delay 10ms limit 167".parse().expect("a link"));
    let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
    let flow = FlowSpec::new("sack/cubic".parse().expect("a combination"));
    Scenario { flows: vec![flow], duration, ..Scenario::new("bulk", topology) }
}

/// The same beside flows that have one exchange in the first two seconds and are silent from then on.
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

/// What events cost once the others are silent.
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
