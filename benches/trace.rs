//! Measures the cost of observers for the engine with two directly connected hosts: without an
//! observer, with events made and discarded, and with everything recorded on disk.
//!
//! The kinds of run alternate, and the results are ratios within a turn, so that the machine's
//! speed cancels out. "off, again" is a second run without an observer, so its difference is noise.
//! The check for an observer cannot be removed for a comparison, so its share is an estimate: two
//! checks of a flag per event of an observed run (one for the event itself, one for the places that
//! would have made none), each at the cost of one check alone.

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

/// Counts the events that it sees.
#[derive(Default)]
struct Count(u64);

impl Observer for Count {
    fn on_event(&mut self, _: NodeId, _: &Event) {
        self.0 += 1;
    }
}

/// Nanoseconds per segment of one transfer. What a recorder writes at the end is not included.
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

/// The nanoseconds of a check of an unset flag in memory.
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
    // `cargo test` runs this too, as a smoke test.
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
