//! Measures the time of `quickget` over slow links with real packets in real time: RRTP beside the
//! kernel's TCP and this stack's.
//!
//! `cargo bench --bench quick` runs each transfer ten times, many at a time, each over its own link
//! between two namespaces. It skips transfers that take more than half an hour; `-- satellite 10MB`
//! names the link and file of such a transfer. `-- cdma 100kB` selects the rows whose names contain
//! both words. `--runs N` and `--parallel N` change the numbers; `--json FILE` writes each run when
//! it ends. Without network namespaces it prints the reason and measures nothing.

mod link;
mod table;
mod transfer;

use std::collections::VecDeque;
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use airtcp_testbed::requirements;
use link::LINKS;
use transfer::{SENDERS, Site, Transfer};

/// A transfer longer than this runs only if its link and its file are named.
const LONG: Duration = Duration::from_secs(30 * 60);

struct Arguments {
    words: Vec<String>,
    runs: u64,
    parallel: usize,
    json: Option<String>,
    is_test: bool,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments =
            Self { words: Vec::new(), runs: 10, parallel: 40, json: None, is_test: false };
        while let Some(argument) = given.next() {
            let mut number = || given.next().and_then(|text| text.parse().ok());
            match argument.as_str() {
                "--bench" => {}
                "--test" => arguments.is_test = true,
                "--runs" => arguments.runs = number().ok_or("--runs wants a number")?,
                "--parallel" => {
                    arguments.parallel = number().ok_or("--parallel wants a number")? as usize;
                }
                "--json" => arguments.json = Some(given.next().ok_or("--json wants a file")?),
                unknown if unknown.starts_with('-') => {
                    return Err(format!("there is no {unknown}"));
                }
                word => arguments.words.push(word.to_owned()),
            }
        }
        Ok(arguments)
    }

    /// All transfers to run, the longest first.
    fn transfers(&self) -> Vec<Transfer> {
        let mut all = Vec::new();
        for link in &LINKS {
            for (size, sender) in
                link.sizes.iter().flat_map(|size| SENDERS.map(|sender| (size, sender)))
            {
                let one = |seed| Transfer { link, size, sender, seed };
                let has = |word: &String| one(0).name().contains(word.as_str());
                let named = |name: &str| self.words.iter().any(|word| word == name);
                let wanted =
                    link.ideal(size.bytes) <= LONG || (named(link.name) && named(size.name));
                if wanted && self.words.iter().all(has) {
                    all.extend((1..=self.runs).map(one));
                }
            }
        }
        all.sort_by_key(|one| std::cmp::Reverse(one.link.ideal(one.size.bytes)));
        all
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) if arguments.is_test => return ExitCode::SUCCESS,
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("{why}; there are words, --runs N, --parallel N and --json FILE");
            return ExitCode::from(2);
        }
    };
    if let Err(why) = requirements() {
        eprintln!("nothing is measured: {why}");
        return ExitCode::SUCCESS;
    }
    match measure(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let transfers = arguments.transfers();
    let site = Arc::new(Site::new(&transfers)?);
    let queue = Arc::new(Mutex::new(VecDeque::from(transfers)));
    let file = arguments.json.as_ref().map(std::fs::File::create).transpose()?;
    let results = Arc::new(Mutex::new((Vec::new(), file)));
    let workers: Vec<_> = (0..arguments.parallel)
        .map(|_| {
            let (site, queue, results) = (site.clone(), queue.clone(), results.clone());
            thread::spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(transfer) = next else { return };
                    let outcome = transfer.run(&site);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = transfer.name();
                    match &outcome {
                        Ok(seconds) => eprintln!("{name}: {seconds:.2} s"),
                        Err(error) => eprintln!("{name}: {error}"),
                    }
                    let seconds = outcome.ok();
                    if let Some(file) = &mut results.1 {
                        let line = serde_json::json!({
                            "name": name, "seed": transfer.seed, "seconds": seconds,
                        });
                        let _ = writeln!(file, "{line}");
                    }
                    results.0.push((transfer, seconds));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().map_err(|_| "a worker panicked")?;
    }
    let results = results.lock().unwrap_or_else(PoisonError::into_inner);
    print!("{}", table::of(&results.0));
    Ok(())
}
