//! The command line of `airtcp sim`.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_sim::toml::Setting;
use clap::{ArgGroup, Args, Subcommand};

use crate::{live, value};

/// `airtcp sim`.
#[derive(Args, Debug)]
pub(crate) struct SimArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

/// The commands of `airtcp sim`.
#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// Print a commented example scenario
    Init,
    /// Simulate a scenario, once per seed
    Run(RunArgs),
}

/// `airtcp sim run`.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("states").args(["state", "out"]).multiple(true)))]
pub(crate) struct RunArgs {
    /// Scenario file, or `-` for stdin
    #[arg(value_name = "SCENARIO.toml")]
    pub(crate) scenario: PathBuf,
    /// Override a value of the file, as in flow.0.congestion=reno; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) settings: Vec<Setting>,
    /// Number of seeds, starting from --seed; scenarios without random elements run once
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = value::seeds)]
    pub(crate) seeds: u32,
    /// First seed [default: that of the scenario]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::seed)]
    pub(crate) seed: Option<u64>,
    /// Number of threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::threads)]
    pub(crate) threads: Option<NonZero<usize>>,
    /// Print the full record of every run and the means as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the scenario, the results as JSON and the states of the first seed to this directory,
    /// for `airtcp report DIR`
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write a trace of the first seed to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Write windows, round-trip times, rates and queues of the first seed over time to this file,
    /// as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Simulated time between two samples of --state or --out
    #[arg(long, value_name = "SECONDS", default_value = "0.1", requires = "states", allow_negative_numbers = true, value_parser = value::seconds)]
    pub(crate) every: Duration,
    /// Show the progress on a page at http://ADDR/ while the command runs: a port of 127.0.0.1, or
    /// ADDRESS:PORT. No login
    #[arg(long, value_name = "ADDR", value_parser = live::address)]
    pub(crate) live: Option<SocketAddr>,
}
