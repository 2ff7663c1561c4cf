//! Scenarios and traces, read from where they are.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use airtcp_link::Trace;
use airtcp_sim::toml::Source;
use airtcp_sim::{Scenario, SimError};
use anyhow::{Context, bail};

use super::args::RunArgs;
use crate::output::Mistake;

/// No scenario is longer.
const LONGEST_SCENARIO: u64 = 1 << 20;
/// No trace is longer: ten million lines.
const LONGEST_TRACE: u64 = 128 << 20;

/// The scenario that the command line asks for.
///
/// # Errors
/// It cannot be read, or is not understood.
pub(super) fn scenario(args: &RunArgs) -> anyhow::Result<Scenario> {
    let path = &args.scenario;
    let (name, text) = if path.as_os_str() == "-" {
        ("stdin".to_owned(), text(io::stdin(), LONGEST_SCENARIO).context("reading stdin")?)
    } else {
        let name = path.display().to_string();
        let text = file(path, LONGEST_SCENARIO).with_context(|| format!("reading {name}"))?;
        (name, text)
    };
    // A trace is looked for beside the scenario that names it.
    let directory = path.parent().unwrap_or(Path::new(""));
    let load = |trace: &str| {
        let text =
            file(&directory.join(trace), LONGEST_TRACE).map_err(|error| format!("{error:#}"))?;
        Trace::parse(&text).map_err(|error| error.to_string())
    };
    let source = Source { name: &name, text: &text, settings: &args.settings };
    let mut scenario = source.read(load).map_err(|error| match error {
        error @ SimError::Setting { .. } => Mistake::new(format!("--set {error}")).into(),
        error => anyhow::Error::from(error),
    })?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    Ok(scenario)
}

fn file(path: &Path, longest: u64) -> anyhow::Result<String> {
    text(File::open(path)?, longest)
}

fn text(reader: impl Read, longest: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    reader.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        bail!("it is longer than {} MiB", longest >> 20);
    }
    String::from_utf8(bytes).context("it is not text in UTF-8")
}
