//! Measures stacks on a TUN device with the kernel at the other end: `airtcp serve` beside a bare
//! smoltcp poll loop and beside the kernel itself. The two stacks of a pair alternate in one run,
//! because only ratios are meaningful on a shared machine.
//!
//! `cargo bench --bench tun` measures everything; `-- bulk smoltcp` selects the rows whose names
//! contain both words; `--json FILE` also writes the results to a file. Without root it prints the
//! reason and measures nothing.

mod airtcp_stack;
mod bulk;
mod client;
mod connections;
mod idle;
mod kernel;
mod measurement;
mod pingpong;
mod services;
mod smoltcp_loop;
mod subject;
mod table;
mod vnet;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;

use bulk::{Bulk, Direction};
use connections::{Churn, InParallel, OneByOne};
use idle::Idle;
use measurement::{Effort, Measurement};
use pingpong::{Loaded, PingPong};
use subject::{Kind, SERVE, Settings, Subject};

/// The pairs of stacks to compare.
const PAIRS: [[Kind; 2]; 6] = [
    [Kind::Airtcp, Kind::Smoltcp],
    [Kind::AirtcpOffload, Kind::SmoltcpOffload],
    [Kind::Airtcp, Kind::Kernel],
    [Kind::AirtcpOffload, Kind::Kernel],
    QUEUES,
    OFFLOAD_QUEUES,
];
/// Two queues beside one, which makes a difference only for many flows.
const QUEUES: [Kind; 2] = [Kind::AirtcpQueues, Kind::Airtcp];
const OFFLOAD_QUEUES: [Kind; 2] = [Kind::AirtcpOffloadQueues, Kind::AirtcpOffload];
const QUEUES_FLOWS: usize = 64;
const FLOWS: [usize; 3] = [1, 16, 256];

#[derive(Default)]
struct Arguments {
    /// Words that a row's name must contain.
    words: Vec<String>,
    json: Option<PathBuf>,
    is_bench: bool,
    is_test: bool,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self::default();
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--bench" => arguments.is_bench = true,
                "--test" => arguments.is_test = true,
                "--json" => {
                    let file = given.next().ok_or("--json wants a file")?;
                    arguments.json = Some(file.into());
                }
                unknown if unknown.starts_with('-') => {
                    return Err(format!(
                        "there is no {unknown}; there are words, --test and --json FILE"
                    ));
                }
                word => arguments.words.push(word.to_owned()),
            }
        }
        Ok(arguments)
    }

    /// Whether a row's name, such as `airtcp/smoltcp bulk 16 flows in`, contains all words.
    fn wants(&self, [first, second]: [&str; 2], measurement: &str) -> bool {
        let row = format!("{first}/{second} {measurement}");
        self.words.iter().all(|word| row.contains(word.as_str()))
    }

    /// `cargo test --benches` passes no arguments and only needs a smoke test.
    fn effort(&self) -> Effort {
        if self.is_bench && !self.is_test { Effort::WHOLE } else { Effort::TEST }
    }
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let done = match given.split_first() {
        Some((first, rest)) if first == SERVE => subject::serve(rest),
        _ => Arguments::parse(given.into_iter())
            .map_err(io::Error::other)
            .and_then(|arguments| run(&arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tun bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    if let Err(reason) = airtcp_testbed::requirements() {
        eprintln!("SKIPPED: nothing was measured on TUN devices: {reason}");
        return Ok(());
    }
    client::raise_descriptors()?;
    let cpu = client::first_cpu()?;
    let effort = arguments.effort();
    let (mut values, mut failed) = (Vec::new(), 0);
    for kinds in PAIRS {
        let names = kinds.map(Kind::name);
        let mut wanted = measurements(kinds, cpu);
        wanted.retain(|measurement| arguments.wants(names, &measurement.name()));
        if !wanted.is_empty() {
            table::print_head(names, effort.pairs);
        }
        for measurement in wanted {
            // A failed measurement does not stop the others.
            match compare(kinds, measurement.as_ref(), cpu, &effort) {
                Ok(quantities) => values.extend(quantities),
                Err(error) => {
                    eprintln!("{}: {error}", measurement.name());
                    failed += 1;
                }
            }
        }
    }
    if let Some(file) = &arguments.json {
        std::fs::write(file, serde_json::to_string_pretty(&values)?)?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(io::Error::other(format!("{failed} rows failed"))),
    }
}

fn measurements(kinds: [Kind; 2], cpu: usize) -> Vec<Box<dyn Measurement>> {
    let mut all: Vec<Box<dyn Measurement>> = Vec::new();
    let has_queues = [QUEUES, OFFLOAD_QUEUES].contains(&kinds);
    let flows = if has_queues { &[QUEUES_FLOWS][..] } else { &FLOWS };
    for &flows in flows {
        for direction in Direction::BOTH {
            all.push(Box::new(Bulk { flows, direction }));
        }
    }
    if has_queues {
        return all;
    }
    all.push(Box::new(Bulk { flows: 1, direction: Direction::IntoBuffer }));
    all.push(Box::new(PingPong { cpu }));
    for direction in Direction::BOTH {
        all.push(Box::new(Loaded(direction)));
    }
    all.push(Box::new(OneByOne { cpu }));
    all.push(Box::new(InParallel));
    // The kernel's connections are in no process's memory.
    if !kinds.contains(&Kind::Kernel) {
        all.push(Box::new(Idle));
        all.push(Box::new(Churn));
    }
    all
}

fn compare(
    kinds: [Kind; 2],
    measurement: &dyn Measurement,
    cpu: usize,
    effort: &Effort,
) -> io::Result<Vec<Value>> {
    let settings = Settings {
        echoes: measurement.echoes(),
        is_copied: measurement.is_copied(),
        cpu: measurement.is_pinned().then_some(cpu),
    };
    let mut subjects = [const { None }; 2];
    let mut samples = Vec::new();
    for _ in 0..effort.pairs {
        let mut pair = Vec::new();
        for (kind, subject) in kinds.into_iter().zip(&mut subjects) {
            let of = |error: io::Error| io::Error::other(format!("{}: {error}", kind.name()));
            let started = match subject.take() {
                Some(started) => started,
                None => Subject::start(kind, settings).map_err(of)?,
            };
            pair.push(measurement.measure(&started, effort).map_err(of)?);
            // A subject that is not reused ends before the other one is measured.
            *subject = (!measurement.is_fresh()).then_some(started);
        }
        samples.push(pair);
    }
    let (names, name) = (kinds.map(Kind::name), measurement.name());
    let quantities = measurement.quantities().iter().enumerate().map(|(at, quantity)| {
        let pairs: Vec<_> = samples.iter().map(|pair| [pair[0][at], pair[1][at]]).collect();
        table::print_row(names, &name, quantity, &pairs)
    });
    Ok(quantities.collect())
}
