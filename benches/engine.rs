//! Measures segments per second through the engine alone.

mod pair;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pair::{Pair, SEGMENTS};

fn bulk(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    group.throughput(Throughput::Elements(SEGMENTS as u64));
    group.bench_function("bulk-segments", |b| {
        let mut pair = Pair::new(false);
        b.iter(|| pair.transfer(&mut ()));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = bulk
}
criterion_main!(benches);
