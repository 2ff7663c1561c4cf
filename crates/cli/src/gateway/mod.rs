//! `airtcp gateway`: carries the traffic of unmodified programs, between two machines or in the
//! path.

mod carrier;
mod check;
mod claim;
mod ctl;
mod descriptors;
mod far;
mod intercept;
pub(crate) mod keys;
mod live;
mod near;
mod peer;
mod reach;
mod report;
mod routes;
mod settings;
mod split;

use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(test)]
pub(crate) use report::exported;

use clap::{Args, Subcommand};

use crate::example;
use crate::output::{self, Mistake};
use crate::settings::{Merge, read_if_given};
use ctl::CtlArgs;
use keys::{KeygenArgs, PubkeyArgs};
use settings::{FarSettings, NearSettings, SplitSettings};

/// The time limit for connections to end after a signal to stop.
const PATIENCE: Duration = Duration::from_secs(3);

/// The default number of programs that a near gateway serves at a time.
const CLIENTS: u32 = 4096;

/// `airtcp gateway`.
#[derive(Args, Debug)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a private key
    Keygen(KeygenArgs),
    /// Print the public key of a private key
    Pubkey(PubkeyArgs),
    /// Run the near gateway, which programs use, until Ctrl-C
    Near(Box<NearArgs>),
    /// Run the far gateway, which connects to the destinations, until Ctrl-C
    Far(Box<FarArgs>),
    /// Run a gateway in the path next to a bad link, until Ctrl-C: it splits TCP connections, and
    /// needs no second gateway. Routes are yours to make
    Split(Box<SplitArgs>),
    /// Measure loss, delay and MTU to the far gateway. Takes the options of near; refused while a
    /// near gateway with the same key is running on this machine
    Check(Box<NearArgs>),
    /// Query or change a running gateway
    Ctl(CtlArgs),
}

/// `airtcp gateway far`.
#[derive(Args, Debug)]
struct FarArgs {
    /// TOML file with the same keys as the flags, such as: listen-port = 51820; flags override it.
    /// Repeated flags are lists: peers, allow, deny
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: FarSettings,
}

/// `airtcp gateway near`.
#[derive(Args, Debug)]
struct NearArgs {
    /// TOML file with the same keys as the flags, such as: socks5 = "127.0.0.1:1080"; flags
    /// override it. --intercept and the flags that go with it are keys of the table [intercept]:
    /// enabled, tun, route, exclude, answer-early
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: NearSettings,
}

/// `airtcp gateway split`.
#[derive(Args, Debug)]
struct SplitArgs {
    /// TOML file with the same keys as the flags, such as: clients = 4096; flags override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: SplitSettings,
}

/// Runs the command.
///
/// # Errors
/// The command failed, or the settings have a mistake.
pub(crate) fn run(args: GatewayArgs) -> anyhow::Result<()> {
    match args.command {
        Command::Keygen(args) => keys::keygen(&args),
        Command::Pubkey(args) => keys::pubkey(&args),
        Command::Ctl(args) => ctl::run(&args),
        Command::Check(args) => {
            let plan =
                args.settings.or(of_near_file(args.config.as_deref())?).link(example::CHECK)?;
            block_on(check::run(plan))
        }
        Command::Split(args) => {
            let plan = args.settings.or(read_if_given(args.config.as_deref())?).plan()?;
            block_on(split::run(plan))
        }
        Command::Far(args) => {
            let plan = args.settings.or(read_if_given(args.config.as_deref())?).plan()?;
            block_on(far::run(plan))
        }
        Command::Near(args) => {
            let plan = args.settings.or(of_near_file(args.config.as_deref())?).plan()?;
            block_on(near::run(plan))
        }
    }
}

/// Prints why a gateway still runs after a signal to stop.
fn stopping(open: usize) {
    if open > 0 {
        output::note(format_args!(
            "stopping: {open} connections have {} s to end; a second signal resets them",
            PATIENCE.as_secs()
        ));
    }
}

/// Reads the file of a near gateway. For a key of interception outside its table, the error names
/// the table.
fn of_near_file(config: Option<&Path>) -> anyhow::Result<NearSettings> {
    read_if_given(config).map_err(|error| {
        let text = error.to_string();
        let is_of_table = |key: &&str| text.contains(&format!("unknown key `{key}`"));
        match ["enabled", "tun", "route", "exclude", "answer-early"].into_iter().find(is_of_table) {
            Some(key) => {
                Mistake::new(format!("{text}; write `{key}` below a line [intercept]")).into()
            }
            None => error,
        }
    })
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(work);
    // A hanging lookup does not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}
