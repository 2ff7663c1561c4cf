//! The commands of the programs `airtcp` and `basestation`: [`main`] and [`basestation`] parse the
//! command line and run one command. A [`Call`] runs a command that simulates, and returns its
//! results.
//!
//! Results go to stdout, everything else to stderr. The exit code is 0 for success, 2 for a mistake
//! on the command line or in a file of settings, a scenario or an experiment, and 1 for a failure;
//! one line on stderr says what is wrong and what to do. A command that SIGINT, SIGTERM or SIGHUP
//! stops before it has a result exits with 128 plus the signal's number; `serve` and other commands
//! that run until they are stopped exit with 0.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     airtcp_cli::main()
//! }
//! ```
//!
//! A program with strategies of its own registers them before it calls [`main`]. Then `names` lists
//! them, and `compare`, `sim`, `lab` and `serve` take them by name:
//!
//! ```no_run
//! # use std::process::ExitCode;
//! # use airtcp_recovery::{CongestionControl, Entry, Registry, RegistryError, control::Reno};
//! # static GENTLE: Entry<dyn CongestionControl> = Entry {
//! #     name: "gentle",
//! #     summary: "as reno",
//! #     source: "RFC 5681",
//! #     make: |_, params| Ok(Box::new(Reno::new(params))),
//! #     ..Entry::BLANK
//! # };
//! fn main() -> Result<ExitCode, RegistryError> {
//!     Registry::new().with_control(&GENTLE)?.install()?;
//!     Ok(airtcp_cli::main())
//! }
//! ```
#![forbid(unsafe_code)]

mod args;
mod attach;
mod call;
mod client;
mod compare;
mod control;
mod demo;
mod device;
mod example;
mod file;
mod gateway;
mod generate;
mod global;
mod lab;
mod link;
mod live;
mod metrics;
mod names;
mod output;
#[cfg(test)]
mod pages;
mod plot;
mod progress;
mod record;
mod report;
mod serve;
mod services;
mod settings;
mod signals;
mod sim;
mod ss;
mod station;
mod sweep;
mod table;
mod taken;
mod upload;
mod value;

use std::process::ExitCode;

use clap::CommandFactory;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, Command};
use crate::signals::Interrupted;

pub use call::{Call, CallError};
pub use station::basestation;

/// Parses the command line, runs the command, and returns the exit code of the process.
///
/// Call it in `main` before any thread is started: `demo` may have to enter a user namespace.
/// Register strategies of your own before: see
/// [`Registry::install`](airtcp_recovery::Registry::install).
pub fn main() -> ExitCode {
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(refusal) => return refusal.report(),
    };
    cli.global.install();
    start_logging();
    match cli.command {
        Command::Demo(args) => finish(demo::run(&args)),
        Command::Compare(args) => finish(compare::run(&args, &Call::of_terminal())),
        Command::Names(args) => finish(names::run(&args)),
        Command::Link(args) => finish(link::run(&args)),
        Command::Sim(args) => finish(sim::run(&args, &Call::of_terminal())),
        Command::Sweep(args) => finish(sweep::run(&args, &Call::of_terminal())),
        Command::Serve(args) => finish(serve::run(*args)),
        Command::Get(args) => finish(client::get::run(&args)),
        Command::Put(args) => finish(client::put::run(&args)),
        Command::Connect(args) => finish(client::connect::run(&args)),
        Command::Quickserve(args) => finish(client::quick::serve::run(&args)),
        Command::Quickget(args) => finish(client::quick::get::run(&args)),
        Command::Gateway(args) => finish(gateway::run(args)),
        Command::Ss(args) => finish(ss::run(&args)),
        Command::Lab(args) => finish(lab::run(&args)),
        Command::Plot(args) => finish(plot::run(&args, &Call::of_terminal())),
        Command::Report(args) => finish(report::run(&args)),
        Command::Completions(args) => finish(generate::completions(&args, Cli::command())),
        Command::Man(args) => finish(generate::man(&args, Cli::command())),
    }
}

fn start_logging() {
    // As in most programs, a value that cannot be parsed counts as not set.
    let chosen = std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = chosen.and_then(|filter| filter.parse::<Targets>().ok());
    let filter = filter.or_else(|| global::log_level().parse().ok()).unwrap_or_default();
    let logger = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(global::has_colors(&std::io::stderr()))
        .with_writer(std::io::stderr);
    // It fails only if a logger is already set, which then remains in use.
    let _ = match std::env::var_os("JOURNAL_STREAM") {
        // The journal adds the time itself.
        Some(_) => logger.without_time().finish().with(filter).try_init(),
        None => logger.finish().with(filter).try_init(),
    };
}

fn finish(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(output::explain(&error));
            match error.downcast_ref::<Interrupted>() {
                Some(interrupted) => interrupted.exit_code(),
                None if error.is::<output::Mistake>() => ExitCode::from(2),
                None => ExitCode::FAILURE,
            }
        }
    }
}
