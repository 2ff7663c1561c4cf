//! `basestation`: a base station, or a plain bridge, between two TUN devices.

mod ctl;
mod foreign;
mod handoff;
mod home;
mod live;
mod metrics;
mod middle;
mod report;
mod request;
mod settings;

#[cfg(test)]
pub(crate) use metrics::exported;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airtcp_device::{Clock, Tun, TunOptions};
use airtcp_link::radio::PARTS;
use airtcp_net::Driver;
use airtcp_trace::NodeKind;
use clap::{CommandFactory, Parser, Subcommand};
use tokio::sync::{mpsc, oneshot};

use crate::args::Refusal;
use crate::control::{self, Control};
use crate::device::{exists, with_offload_if_possible};
use crate::generate::{self, CompletionsArgs, ManArgs};
use crate::global::GlobalArgs;
use crate::output;
use crate::record::Recording;
use crate::settings::Merge;
use crate::signals::Runner;
use crate::table::parts;
use ctl::CtlArgs;
use foreign::ForeignAgentArgs;
use home::HomeAgentArgs;
use middle::Middle;
use report::Report;
use request::Request;
use settings::{Plan, Settings};

const EXAMPLE: &str =
    "basestation --wired tun0 --wireless tun1 --radio \"error 20%\" --policy tcp-ecn";

/// A base station: forwards packets between a wired and a wireless TUN device, over an emulated
/// radio.
///
/// Creates devices that do not exist, and removes them at exit. Prints `ready` on stderr when both
/// devices are open, and counters on stdout on SIGUSR1 and at exit (Ctrl-C, SIGTERM). RUST_LOG
/// selects the log messages.
///
/// Exit codes: 0 after Ctrl-C or SIGTERM, 1 for a failure, 2 for a mistake on the command line or
/// in the file.
#[derive(Debug, Parser)]
#[command(
    name = "basestation",
    version,
    max_term_width = 80,
    args_conflicts_with_subcommands = true,
    after_long_help = explained()
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// TOML file with the same keys as the flags, such as: radio = "error 20%"; flags override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Query or control a running base station
    Ctl(CtlArgs),
    /// Run a Mobile IP home agent: tunnel packets to mobiles in other networks
    HomeAgent(HomeAgentArgs),
    /// Run a Mobile IP foreign agent: relay registrations of visiting mobiles, and end their tunnels
    ForeignAgent(ForeignAgentArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print the man page of a command, or write all to a directory
    Man(ManArgs),
}

/// Returns the words of a radio's description, for `--help`.
fn explained() -> String {
    let begin = "The SPEC of a radio is a list of these, in any order; see docs/basestation.md.\n";
    begin.to_owned() + &parts(PARTS)
}

/// Runs the command line of this process, and returns its exit code: 0 after Ctrl-C or SIGTERM, 2
/// for a mistake on the command line or in the file, 1 for a later failure.
pub fn basestation() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
            let example = match words.find(|word| !word.starts_with('-')).as_deref() {
                Some("ctl") => "basestation ctl status",
                Some("home-agent") => "basestation home-agent --config home-agent.toml",
                Some("foreign-agent") => "basestation foreign-agent --config foreign-agent.toml",
                Some("completions") => "basestation completions bash",
                Some("man") => "basestation man ctl | man -l -",
                _ => EXAMPLE,
            };
            return Refusal::new(&error, example).report();
        }
    };
    cli.global.install();
    crate::start_logging();
    crate::finish(run(cli))
}

fn run(cli: Cli) -> anyhow::Result<()> {
    match &cli.command {
        Some(Command::Ctl(args)) => return ctl::run(args),
        Some(Command::HomeAgent(args)) => return home::run(args),
        Some(Command::ForeignAgent(args)) => return foreign::run(args),
        Some(Command::Completions(args)) => return generate::completions(args, Cli::command()),
        Some(Command::Man(args)) => return generate::man(args, Cli::command()),
        None => {}
    }
    let file = crate::settings::read_if_given(cli.config.as_deref())?;
    let plan = cli.settings.or(file).plan()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(&plan))
}

async fn serve(plan: &Plan) -> anyhow::Result<()> {
    let mut runner = Runner::new()?;
    let [wired, wireless] = &plan.devices;
    let new: Vec<&str> =
        plan.devices.iter().map(String::as_str).filter(|name| !exists(name)).collect();
    let open = |name: &str| {
        with_offload_if_possible(name, plan.offload, |offload| {
            Tun::open_with(name, TunOptions { offload, ..TunOptions::default() })
        })
    };
    let devices = [open(wired)?, open(wireless)?];
    let mut control =
        plan.control.as_deref().map(|path| Control::open(path, Request::STATUS)).transpose()?;
    // The trace shows whatever is behind a device as a host.
    let nodes = [
        (wired.as_str(), NodeKind::Host),
        ("station", NodeKind::Other),
        (wireless, NodeKind::Host),
    ];
    let start = |directory: &PathBuf| Recording::start(&free(directory), "basestation", &nodes);
    let recording = plan.trace.as_ref().map(start).transpose()?;
    let clock = recording.as_ref().map_or_else(Clock::start, Recording::clock);
    let node = Middle::new(plan, recording.is_some())?;
    let mut driver = Driver::new(node, devices, clock)?;
    if let Some(recording) = &recording {
        recording.watch_between(&mut driver);
    }
    let (asker, mut looks) = mpsc::channel::<Look>(1);
    if let Some(address) = plan.metrics {
        let asker = asker.clone();
        crate::metrics::listen(address, move || look(asker.clone(), Report::of)).await?;
    }
    if let Some(address) = plan.live {
        let title = format!("basestation, {wired} and {wireless}");
        let asker = asker.clone();
        crate::live::listen(address, title, move || look(asker.clone(), live::snapshot)).await?;
    }
    if plan.persist {
        // Only now: a station that fails to start leaves no device.
        [0, 1].into_iter().try_for_each(|port| driver.device(port).persist())?;
    }
    output::note("ready");
    if !new.is_empty() {
        let are = if new.len() == 1 { "is" } else { "are" };
        output::note(format!(
            "{} {are} new: down, without address or route, so that packets may go past the station; \
             docs/basestation.md, \"On a router\", has the commands",
            new.join(" and ")
        ));
    }
    let report = |driver: &Driver<_, _>| Report::of(driver).print(plan.json);
    let outcome = loop {
        tokio::select! {
            ended = runner.run(&mut driver, report) => break ended,
            ask = control::asked(control.as_mut()) => {
                let answer = request::answer(&ask.request, &mut driver);
                ask.answer(answer);
            }
            Some(look) = looks.recv() => look(&driver),
        }
    };
    let outcome = outcome.and(report(&driver));
    // Finish the trace even if printing failed.
    let recorded = recording.map(Recording::finish).transpose();
    outcome.and(recorded.map(drop))
}

/// A function that another task has run on the driver.
type Look = Box<dyn FnOnce(&Driver<Middle, Tun>) + Send>;

/// Runs `read` on the driver, for another task; returns `None` if the station has ended.
async fn look<T: Send + 'static>(
    asker: mpsc::Sender<Look>,
    read: fn(&Driver<Middle, Tun>) -> T,
) -> Option<T> {
    let (reply, seen) = oneshot::channel();
    // The caller may have been dropped.
    let look: Look = Box::new(move |driver: &Driver<_, _>| drop(reply.send(read(driver))));
    asker.send(look).await.ok()?;
    seen.await.ok()
}

/// Returns the directory, or the first numbered one below it without a trace: after a restart under
/// running flows, an earlier trace must not keep the station from starting.
fn free(directory: &Path) -> PathBuf {
    let is_free = |path: &PathBuf| !airtcp_trace::is_trace(path);
    let numbered = (2..).map(|number: u64| directory.join(number.to_string()));
    std::iter::once(directory.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(words: &[&str]) -> String {
        let line = [&["basestation"], words].concat();
        let refusal = Refusal::new(&Cli::try_parse_from(line).unwrap_err(), EXAMPLE);
        assert!(refusal.is_mistake && refusal.text.lines().count() == 1, "{}", refusal.text);
        refusal.text
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_mistake_is_one_line_with_what_is_allowed_and_an_example() {
        let policy = mistake(&["--policy", "ecn"]);
        assert!(policy.contains("expected one of `plain`, `tcp-ecn`, `snoop`"), "{policy}");
        let arq = mistake(&["--arq", "tail"]);
        assert!(arq.contains("off, mac, mac+link or head"), "{arq}");
        let radio = mistake(&["--radio", "tries 0"]);
        assert!(radio.contains("at byte 6, `0`: expected a whole number"), "{radio}");
        for (flag, range) in
            [("--mark-bits", "1 to 15"), ("--flows", "1 to "), ("--unproven", "1 to ")]
        {
            for value in ["0", "99999999999", "-1", "x"] {
                let line = mistake(&[flag, value]);
                assert!(line.contains(range) && line.contains("for example --"), "{line}");
            }
        }
        let unknown = mistake(&["--wire", "tun0"]);
        assert!(unknown.contains("for example: basestation --wired tun0"), "{unknown}");
        let command = mistake(&["ctl", "stop"]);
        assert!(
            command.contains("status, flows, freeze, disconnect, reconnect, leave, join"),
            "{command}"
        );
    }

    /// The command line and the file of this project's unit are valid.
    #[test]
    fn the_units_command_and_its_file_are_understood() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/");
        let unit = std::fs::read_to_string(format!("{root}basestation.service")).unwrap();
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        assert_eq!(cli.config.as_deref(), Some("/etc/airtcp/basestation.toml".as_ref()));
        let file = crate::settings::read(format!("{root}basestation.toml").as_ref()).unwrap();
        let plan = cli.settings.or(file).plan().unwrap();
        assert_eq!(plan.control.as_deref(), Some(ctl::DEFAULT.as_ref()));
        assert!(plan.persist && plan.station.is_some());
        let capabilities: Vec<_> = unit
            .lines()
            .filter(|line| line.contains("CAP_"))
            .filter_map(|line| line.split_once('='))
            .collect();
        let only = "CAP_NET_ADMIN";
        assert_eq!(capabilities, [("AmbientCapabilities", only), ("CapabilityBoundingSet", only)]);
    }
}
