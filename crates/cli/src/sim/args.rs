//! What `airtcp sim` takes.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_sim::toml::Setting;
use clap::{Args, Subcommand};

use crate::value;

/// `airtcp sim`.
#[derive(Args, Debug)]
pub(crate) struct SimArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

/// The commands of `airtcp sim`.
#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// Print a commented scenario to begin with
    Init,
    /// Run a scenario in virtual time, once for each seed
    Run(RunArgs),
}

/// `airtcp sim run`.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The scenario file; `-` for stdin
    #[arg(value_name = "SCENARIO.toml")]
    pub(crate) scenario: PathBuf,
    /// Put a value in the place of the file's, as in flow.0.congestion=reno; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) settings: Vec<Setting>,
    /// How many seeds, counted on from the first; one does where nothing is random
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = value::seeds)]
    pub(crate) seeds: u32,
    /// The first seed [default: the scenario's]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::seed)]
    pub(crate) seed: Option<u64>,
    /// How many threads run seeds; the results are the same [default: one for each core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::threads)]
    pub(crate) threads: Option<NonZero<usize>>,
    /// Every run's full record and the means over them as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write what the first seed's packets did into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the first seed's windows, round-trip times, rates and queues over time into this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// How many seconds of virtual time lie between two samples of --state
    #[arg(long, value_name = "SECONDS", default_value = "0.1", requires = "state", allow_negative_numbers = true, value_parser = value::seconds)]
    pub(crate) every: Duration,
}
