//! Reads scenarios and their traces.

use std::path::Path;

use airtcp_sim::toml::{Setting, Source};
use airtcp_sim::{Scenario, SimError};

use super::args::RunArgs;
use crate::call::Call;
use crate::file;
use crate::output::{self, Mistake};

/// The maximum size of a scenario, in bytes.
const LONGEST_SCENARIO: u64 = 1 << 20;

/// Reads the scenario of the command line, and returns it with its text, in which the settings of
/// the command line are comments.
///
/// # Errors
/// It cannot be read, or is invalid.
pub(super) fn scenario(args: &RunArgs, call: &Call) -> anyhow::Result<(Scenario, String)> {
    let path = &args.scenario;
    let (name, text) = if path.as_os_str() == "-" {
        call.input(LONGEST_SCENARIO)?
    } else {
        let name = path.display().to_string();
        let text = file::read(path, LONGEST_SCENARIO).map_err(|error| {
            let advice =
                "give a scenario file; `airtcp sim init > scenario.toml` writes an example";
            output::if_missing(error.context(format!("reading {name}")), advice)
        })?;
        (name, text)
    };
    // The path of a trace is relative to the scenario that names it.
    let directory = path.parent().unwrap_or(Path::new(""));
    let load = |trace: &str| file::link_trace(&directory.join(trace));
    let source = Source { name: &name, text: &text, settings: &args.settings };
    let mut scenario = source.read(load).map_err(as_mistake).map_err(|error| {
        match file::is_experiment(&text) {
            true => output::with_advice(
                error,
                format_args!("to run an experiment file, type airtcp lab run {name}"),
            ),
            false => error,
        }
    })?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    let line = |setting: &Setting| format!("# --set {setting}").replace('\n', " ") + "\n";
    let settings = args.settings.iter().map(line);
    Ok((scenario, settings.chain([text]).collect()))
}

/// Converts an error, which is a mistake if the scenario causes it.
pub(super) fn as_mistake(error: SimError) -> anyhow::Error {
    match error {
        error @ SimError::Setting { .. } => Mistake::new(format!("--set {error}")).into(),
        error @ (SimError::File { .. } | SimError::Senseless { .. } | SimError::Link { .. }) => {
            Mistake::new(error.to_string()).into()
        }
        error => error.into(),
    }
}
