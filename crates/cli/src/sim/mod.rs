//! `airtcp sim`: simulates scenarios in virtual time.

pub(crate) mod args;
mod report;
mod source;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use airtcp_sim::{RunResult, Scenario, Simulation, toml};
use airtcp_trace::Recorder;
use airtcp_types::Observer;
use anyhow::Context;

use crate::call::Call;
use crate::file::{self, Folder};
use crate::live::{Aside, Work};
use crate::output::{self, Mistake};
use crate::record;
use args::{RunArgs, SimArgs, SimCommand};
use report::Report;

/// The name of the results in the directory of `--out`.
const RESULTS: &str = "sim.json";

/// Runs a command of `airtcp sim`. Ctrl-C ends it at once, without results of the finished runs.
///
/// # Errors
/// The scenario cannot be read or run, or a result cannot be written.
pub(crate) fn run(args: &SimArgs, call: &Call) -> anyhow::Result<()> {
    match &args.command {
        SimCommand::Init => call.print(toml::EXAMPLE.trim_end())?,
        SimCommand::Run(args) => run_scenario(args, call)?,
    }
    Ok(())
}

fn run_scenario(args: &RunArgs, call: &Call) -> anyhow::Result<()> {
    let (scenario, text) = source::scenario(args, call)?;
    let folder = args.out.as_deref().map(|out| Folder::new(out, RESULTS)).transpose()?;
    let in_folder = folder.as_ref().map(|folder| folder.path("states.jsonl"));
    let states = args.state.clone().or(in_folder);
    let report = Report::new(&scenario, runs(args, &scenario, states.as_deref(), call)?);
    if let Some(folder) = &folder {
        folder.write("scenario.toml", &text)?;
        folder.write(RESULTS, &serde_json::to_string_pretty(&report)?)?;
    }
    if args.json {
        call.print_json(&report)?;
    } else {
        call.print(&report.to_string())?;
    }
    Ok(())
}

fn runs(
    args: &RunArgs,
    scenario: &Scenario,
    states: Option<&Path>,
    call: &Call,
) -> anyhow::Result<Vec<RunResult>> {
    // Without random elements, all seeds give the same result.
    let seeds = if scenario.is_random() { u64::from(args.seeds) } else { 1 };
    let end = scenario.seed.checked_add(seeds).ok_or_else(|| {
        Mistake::new(
            "--seed plus --seeds exceeds the largest seed; for example --seed 1".to_owned(),
        )
    })?;
    let count = call.count(seeds);
    let work = Arc::new(Work::of_runs(seeds));
    let title = || format!("airtcp sim run, {}", scenario.name);
    let show = |address| Aside::show(address, title(), work.clone());
    let _page = args.live.map(show).transpose()?;
    let advance = || {
        count.advance_by(1);
        work.advance();
    };
    let mut runs = Vec::new();
    let mut rest = scenario.seed..end;
    if args.trace.is_some() || states.is_some() {
        runs.push(watched(args, scenario, states, call)?);
        rest.start += 1;
        advance();
    }
    let (threads, flag) = (args.threads, call.flag());
    let others = airtcp_sim::run_seeds_with_cancel(scenario, rest, threads, flag, |_| advance());
    runs.extend(others.map_err(source::as_mistake)?);
    Ok(runs)
}

/// Runs the scenario with its own seed, and writes the trace and the states that were requested.
fn watched(
    args: &RunArgs,
    scenario: &Scenario,
    states: Option<&Path>,
    call: &Call,
) -> anyhow::Result<RunResult> {
    let simulation = Simulation::new(scenario).map_err(source::as_mistake)?;
    let simulation = simulation.with_cancel(call.flag());
    let recorder = args.trace.as_deref().map(|path| recorder(path, scenario, &simulation));
    let mut recorder = recorder.transpose()?;
    let observer = recorder.as_mut().map(|recorder| recorder as &mut dyn Observer);
    let run = match states {
        Some(file) => with_states(file, args.every, simulation, observer)?,
        None => simulation.run(observer).map_err(source::as_mistake)?,
    };
    if let (Some(recorder), Some(directory)) = (recorder, &args.trace) {
        let written = recorder.finish().with_context(|| trace_flag(directory))?;
        for file in written.files {
            output::note(format_args!("wrote {}", file.display()));
        }
    }
    Ok(run)
}

fn recorder(
    directory: &Path,
    scenario: &Scenario,
    simulation: &Simulation<'_>,
) -> anyhow::Result<Recorder> {
    let nodes = record::nodes(simulation);
    let title = format!("{}, seed {}", scenario.name, scenario.seed);
    // Virtual time starts at the epoch, so that a trace is the same whenever it is made.
    Recorder::create(directory, &title, &nodes, Duration::ZERO)
        .with_context(|| trace_flag(directory))
}

fn trace_flag(directory: &Path) -> String {
    format!("--trace {}", directory.display())
}

/// Runs the simulation, and writes each state as a line of JSON.
fn with_states(
    path: &Path,
    every: Duration,
    simulation: Simulation<'_>,
    observer: Option<&mut dyn Observer>,
) -> anyhow::Result<RunResult> {
    let context = || path.display().to_string();
    let made = File::create(path).map_err(|error| file::not_made(path, error));
    let mut lines = BufWriter::new(made.with_context(context)?);
    let mut written = Ok(());
    let run = simulation
        .run_with_states(observer, every, &mut |state| {
            if written.is_ok() {
                let line = serde_json::to_string(state).map_err(io::Error::from);
                written = line.and_then(|line| writeln!(lines, "{line}"));
            }
        })
        .map_err(source::as_mistake)?;
    written.and_then(|()| lines.flush()).with_context(context)?;
    output::note(format_args!("wrote {}", path.display()));
    Ok(run)
}
