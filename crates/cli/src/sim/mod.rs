//! `airtcp sim`: scenarios in virtual time.

pub(crate) mod args;
mod report;
mod source;

use std::path::Path;
use std::time::Duration;

use airtcp_sim::{RunResult, Scenario, toml};
use airtcp_trace::Recorder;
use anyhow::Context;

use crate::output::{self, Mistake};
use crate::progress::Progress;
use crate::record;
use args::{RunArgs, SimArgs, SimCommand};
use report::Report;

/// Runs one of its commands. Ctrl-C ends it at once: nothing is printed before all runs are done.
///
/// # Errors
/// The scenario cannot be read or run, or printing fails.
pub(crate) fn run(args: &SimArgs) -> anyhow::Result<()> {
    match &args.command {
        SimCommand::Init => output::print(toml::EXAMPLE.trim_end())?,
        SimCommand::Run(args) => run_scenario(args)?,
    }
    Ok(())
}

fn run_scenario(args: &RunArgs) -> anyhow::Result<()> {
    let scenario = source::scenario(args)?;
    let report = Report::new(&scenario, runs(args, &scenario)?);
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    Ok(())
}

fn runs(args: &RunArgs, scenario: &Scenario) -> anyhow::Result<Vec<RunResult>> {
    // All seeds have the same result where nothing is drawn.
    let seeds = if scenario.is_random() { u64::from(args.seeds) } else { 1 };
    let end = scenario.seed.checked_add(seeds).ok_or_else(|| {
        Mistake::new("--seeds counts past the largest seed; for example --seed 1".to_owned())
    })?;
    let progress = Progress::start(seeds);
    let mut runs = Vec::new();
    let mut rest = scenario.seed..end;
    if let Some(directory) = &args.trace {
        runs.push(traced(directory, scenario)?);
        rest.start += 1;
        progress.advance();
    }
    let others = airtcp_sim::run_seeds(scenario, rest, args.threads, |_| progress.advance());
    runs.extend(others?);
    Ok(runs)
}

/// Runs the scenario with its own seed, and writes what its packets did.
fn traced(directory: &Path, scenario: &Scenario) -> anyhow::Result<RunResult> {
    let nodes = record::nodes(scenario)?;
    let context = || format!("--trace {}", directory.display());
    let title = format!("{}, seed {}", scenario.name, scenario.seed);
    // Virtual time begins with the epoch: a trace is the same whenever it is made.
    let mut recorder =
        Recorder::create(directory, &title, &nodes, Duration::ZERO).with_context(context)?;
    let run = airtcp_sim::run(scenario, Some(&mut recorder))?;
    for file in recorder.finish().with_context(context)?.files {
        output::note(format_args!("wrote {}", file.display()));
    }
    Ok(run)
}
