//! Compares checksums of every packet and every figure, for every strategy in every kind of
//! network, in virtual time.
//!
//! `records.txt` has one line per case: the network, the sender's strategies, a checksum of all
//! packets with their times, and a checksum of all figures and counters. A change that preserves
//! behaviour leaves the file unchanged. For a change of behaviour it shows the affected cases:
//! `AIRTCP_RECORD=1 cargo test --test records` rewrites the file.

mod digest;
mod hosts;
#[path = "../engine/parallel.rs"]
mod parallel;
mod scenarios;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use airtcp_recovery::Combination;

use digest::Record;
use hosts::Pair;
use parallel::in_parallel;
use scenarios::Network;

/// A network of the simulator, or two hosts on a link.
#[derive(Clone, Copy)]
enum World {
    Network(&'static Network),
    Pair(&'static Pair),
}

struct Case {
    world: World,
    strategies: String,
}

impl Case {
    /// The start of the case's line, which is no prefix of another case's.
    fn key(&self) -> String {
        let name = match self.world {
            World::Network(network) => network.name,
            World::Pair(pair) => pair.name,
        };
        format!("{name} {} ", self.strategies)
    }

    fn run(&self) -> Record {
        match self.world {
            World::Network(network) => network.run(&self.strategies),
            World::Pair(pair) => pair.run(&self.strategies),
        }
    }
}

/// Every detection with every control, and every detection with every judge, in every network.
fn cases() -> Vec<Case> {
    let combinations = Combination::all().into_iter().chain(Combination::all_judged());
    let combinations = combinations.chain([Combination::default()]);
    let tcp: Vec<_> = combinations.map(|combination| combination.to_string()).collect();
    let mut cases = Vec::new();
    let mut add = |world, strategies: &mut dyn Iterator<Item = String>| {
        cases.extend(strategies.map(|strategies| Case { world, strategies }));
    };
    for network in scenarios::NETWORKS {
        let rrtp = scenarios::RRTP.iter().filter(|_| network.carries_rrtp);
        let rrtp = rrtp.map(ToString::to_string);
        add(World::Network(network), &mut tcp.iter().cloned().chain(rrtp));
    }
    for pair in hosts::PAIRS {
        add(World::Pair(pair), &mut tcp.iter().cloned());
    }
    cases
}

/// Describes the difference between a recorded line and a new one; `None` if they are equal.
fn difference(was: Option<&str>, is: Option<&str>) -> Option<&'static str> {
    match (was, is) {
        (None, Some(_)) => Some("is not recorded"),
        (Some(_), None) => Some("is recorded, and there is no such case"),
        (Some(was), Some(is)) if was == is => None,
        (Some(was), Some(is)) if was.split(' ').next() == is.split(' ').next() => {
            Some("has other figures, and the same packets")
        }
        _ => Some("has other packets"),
    }
}

#[test]
fn every_case_is_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/records.txt");
    let cases = cases();
    let lines = in_parallel(&cases, |case| (case.key(), case.run().to_string()));
    if std::env::var_os("AIRTCP_RECORD").is_some() {
        let text: String = lines.iter().map(|(key, record)| format!("{key}{record}\n")).collect();
        fs::write(&path, text).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let recorded: BTreeMap<_, _> = recorded
        .lines()
        .map(|line| {
            let mut places = line.match_indices(' ').map(|(place, _)| place + 1);
            line.split_at(places.nth(1).unwrap_or(line.len()))
        })
        .collect();
    let found: BTreeMap<_, _> = lines.iter().map(|(key, is)| (key.as_str(), is.as_str())).collect();
    assert_eq!(found.len(), lines.len(), "two cases have the same name");
    let keys = found.keys().chain(recorded.keys().filter(|key| !found.contains_key(*key)));
    let differences: Vec<_> = keys
        .filter_map(|key| {
            let what = difference(recorded.get(key).copied(), found.get(key).copied())?;
            Some(format!("{key}{what}"))
        })
        .collect();
    assert!(
        differences.is_empty(),
        "{} of {} cases differ from tests/records/records.txt:\n{}\nIf the change is wanted, record them anew: \
         AIRTCP_RECORD=1 cargo test --test records",
        differences.len(),
        found.len(),
        differences.join("\n")
    );
}
