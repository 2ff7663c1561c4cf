//! The cost of observers for the engine: two hosts back to back, nobody watching, events made and
//! thrown away, and everything written to a disk.
//!
//! The runs take turns, and what is told are ratios within a turn: how fast the machine is
//! meanwhile cancels out. "off, again" is a second run of the first kind: what it differs by is
//! noise. The code that asks whether anybody watches cannot be taken out for a comparison, so its
//! share is an estimate: as many tests of a flag as a watched run has events, and as many again for
//! what would have been none, each as dear as one by itself.

mod pair;

use std::hint::black_box;
use std::time::{Duration, Instant};

use airtcp_trace::{NodeInfo, NodeKind, Recorder};
use airtcp_types::{Event, NodeId, Observer};
use pair::{Pair, SEGMENTS};

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

/// Nanoseconds per segment of one transfer. What a recorder draws at the end is not in it.
fn nanos(watched: Watched) -> f64 {
    let mut pair = Pair::new(watched != Watched::No);
    let directory = tempfile::tempdir().expect("a directory");
    let mut recorder = (watched == Watched::Recorded).then(|| {
        let node = |name: &str| NodeInfo { name: name.to_owned(), kind: NodeKind::Host };
        let nodes = [node("client"), node("server")];
        Recorder::create(directory.path(), "a bench", &nodes, Duration::ZERO).expect("a trace")
    });
    let began = Instant::now();
    match &mut recorder {
        Some(recorder) => pair.transfer(recorder),
        None => pair.transfer(&mut ()),
    }
    began.elapsed().as_nanos() as f64 / SEGMENTS as f64
}

fn events_per_segment() -> f64 {
    let mut count = Count::default();
    Pair::new(true).transfer(&mut count);
    count.0 as f64 / SEGMENTS as f64
}

/// Nanoseconds of a test of a flag that is in memory and not set.
fn nanos_of_a_test() -> f64 {
    const TESTS: u32 = 20_000_000;
    let flag = false;
    let (mut set, began) = (0_u32, Instant::now());
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
