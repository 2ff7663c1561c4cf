//! Parses the command line; rejects mistakes in one line with an example.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use airtcp_link::{Arq, RadioSpec};
use airtcp_recovery::{Combination, Profile};
use airtcp_types::ByteCount;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::attach::AttachArgs;
use crate::client::args::{ConnectArgs, GetArgs, PutArgs};
use crate::client::quick::args::{QuickGetArgs, QuickServeArgs};
use crate::compare::CompareArgs;
use crate::example;
use crate::gateway::GatewayArgs;
use crate::generate::{CompletionsArgs, ManArgs};
use crate::global::{self, GlobalArgs};
use crate::lab::LabArgs;
use crate::link::LinkArgs;
use crate::live;
use crate::output;
use crate::plot::PlotArgs;
use crate::report::ReportArgs;
use crate::sim::args::SimArgs;
use crate::ss::SsArgs;
use crate::sweep::SweepArgs;
use crate::value::{self, LinkPair, Several};

/// The radio of `demo --radio` unless one is described. One frame in forty fails all four tries,
/// and later frames overtake it.
const RADIO: &str = "error 40% tries 4 seed 1";

/// The links of `demo --lossy` and `demo --gateway` unless one is described.
const LOSSY_LINK: &str = "rate 20mbit delay 20ms limit 70 loss 1% only forth seed 1";
const CARRIED_LINK: &str = "rate 20mbit delay 25ms limit 84 loss 2% seed 1";

/// `airtcp` and its commands.
#[derive(Parser, Debug)]
#[command(
    name = "airtcp",
    version,
    max_term_width = 80,
    about = "A user-space TCP/IP stack on TUN devices with interchangeable loss recovery and congestion control",
    after_help = "The base station is a separate program: basestation --help.\n\
                  RUST_LOG selects the log messages on stderr, for example RUST_LOG=airtcp=debug;\n\
                  if it is not set, -q, -v and -vv select the levels error, info and debug.\n\n\
                  Exit codes: 0 success, 1 failure, 2 mistake on the command line or in a file of\n\
                  settings, a scenario or an experiment; 129 (SIGHUP), 130 (SIGINT) and 143\n\
                  (SIGTERM) if the signal came before the result. Commands that run until Ctrl-C\n\
                  then end with 0."
)]
pub(crate) struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

/// The commands, in the order in which a new user needs them. Each has one line in `--help`.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Transfer a file between the Linux kernel and airtcp, both ways
    Demo(Box<DemoArgs>),
    /// Rank senders on a simulated link by goodput, drops and delay
    Compare(Box<CompareArgs>),
    /// List the strategies of senders, and the named links
    Names(NamesArgs),
    /// Emulate a link between two TUN devices
    Link(Box<LinkArgs>),
    /// Simulate a network; `sim init` prints an example
    Sim(SimArgs),
    /// Simulate every combination of some values with many seeds
    Sweep(Box<SweepArgs>),
    /// Serve files over HTTP from a stack on a TUN device
    Serve(Box<ServeArgs>),
    /// Download a file by HTTP, over a stack on a TUN device
    Get(Box<GetArgs>),
    /// Upload a file by HTTP, over a stack on a TUN device
    Put(Box<PutArgs>),
    /// Connect stdin and stdout to a TCP port, over a TUN device
    Connect(Box<ConnectArgs>),
    /// Serve files over RRTP, the kernel's TCP or airtcp's TCP
    Quickserve(Box<QuickServeArgs>),
    /// Download a file from `quickserve` and verify its SHA-256
    Quickget(Box<QuickGetArgs>),
    /// Carry the traffic of other programs over a lossy link
    Gateway(GatewayArgs),
    /// List the connections of running servers and gateways
    Ss(SsArgs),
    /// Repeat experiments of papers, and check their claims
    Lab(LabArgs),
    /// Draw the time-sequence graph of a flow from a trace or capture
    Plot(PlotArgs),
    /// Write results as one HTML page: verdicts, tables and charts
    Report(ReportArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print the man page of a command, or write all to a directory
    Man(ManArgs),
}

/// The strategies of a sender.
#[derive(Args, Debug)]
pub(crate) struct SenderArgs {
    /// Detection, congestion control and judges in one value: rack/cubic or
    /// le/westwood/hack+dcr:timer [default: rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies,
          conflicts_with_all = ["detection", "congestion", "judge"])]
    strategies: Option<Combination>,
    /// Loss detection: a name from `airtcp names`
    #[arg(long, alias = "recovery", value_name = "NAME", value_parser = value::detection)]
    detection: Option<String>,
    /// Congestion control: a name from `airtcp names`
    #[arg(long, value_name = "NAME", value_parser = value::congestion)]
    congestion: Option<String>,
    /// Judges, which classify losses: names from `airtcp names`, joined by `+`
    #[arg(long, value_name = "NAME[+NAME]", value_parser = value::judge)]
    judge: Option<String>,
    /// Set of defaults: modern, paper, ns-2.26, ns-2.35 or linux-2.2
    #[arg(long, value_name = "PROFILE", default_value = "modern", value_parser = value::profile)]
    pub(crate) profile: Profile,
    /// Pace segments over the round trip, even if the congestion control sets no pacing rate
    #[arg(long)]
    pub(crate) pacing: bool,
    /// Write HACK's options as experimental options with an ExID (RFC 6994) instead of kinds 14 and
    /// 15
    #[arg(long)]
    pub(crate) hack_exid: bool,
}

impl SenderArgs {
    /// Settings with `strategies`, and the defaults otherwise.
    pub(crate) fn of(strategies: Option<Combination>) -> Self {
        let (detection, congestion, judge) = (None, None, None);
        Self {
            strategies,
            detection,
            congestion,
            judge,
            profile: Profile::modern(),
            pacing: false,
            hack_exid: false,
        }
    }

    /// Returns the combination: `--strategies`, or `--detection`, `--congestion` and `--judge`
    /// together.
    pub(crate) fn combination(&self) -> anyhow::Result<Combination> {
        if let Some(whole) = &self.strategies {
            return Ok(whole.clone());
        }
        let parts = (self.detection.as_deref(), self.congestion.as_deref(), self.judge.as_deref());
        Ok(Combination::from_parts(parts.0, parts.1, parts.2)?)
    }
}

/// `airtcp serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
    /// Behind a base station that marks (TCP-ECN): suppress duplicate ACKs for segments that the
    /// radio lost, for at most 150 ms
    #[arg(long)]
    pub(crate) mark_aware_receiver: bool,
    /// Number of device queues, 1 to 256. Each queue has a thread with its own stack, and the
    /// kernel distributes the flows. Use at most one queue per core
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = value::queues)]
    pub(crate) queues: u16,
    /// Print counters and connections as JSON on stdout at exit
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a capture, an event log and pictures to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Serve Prometheus metrics at http://ADDR/metrics over the kernel's TCP, for example
    /// 127.0.0.1:9464
    #[arg(long, value_name = "ADDR", value_parser = value::socket)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Show flows, rates and losses on a page at http://ADDR/, over the kernel's TCP: a port of
    /// 127.0.0.1, or ADDRESS:PORT. Without login
    #[arg(long, value_name = "ADDR", value_parser = live::address)]
    pub(crate) live: Option<SocketAddr>,
    /// echo:PORT, sink:PORT (answers with the number of bytes, 8 bytes big-endian),
    /// source:PORT or http:PORT:DIR (GET, HEAD and PUT)
    #[arg(value_name = "SERVICE", required = true, value_parser = value::service)]
    pub(crate) services: Vec<ServiceSpec>,
}

/// One service and its port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServiceSpec {
    /// The port that it listens on.
    pub(crate) port: u16,
    /// The protocol that it serves.
    pub(crate) kind: ServiceKind,
}

/// The protocol of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ServiceKind {
    /// Sends back what it reads.
    Echo,
    /// Reads to the end and answers with the number of bytes.
    Sink,
    /// Writes until the peer closes.
    Source,
    /// Serves the files below a directory over HTTP.
    Http(PathBuf),
}

/// `airtcp names`.
#[derive(Args, Debug)]
pub(crate) struct NamesArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `airtcp demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) sender: SenderArgs,
    /// File size, in bytes or as 64MiB
    #[arg(long, value_name = "BYTES", default_value = "64MiB", allow_negative_numbers = true, value_parser = value::size)]
    pub(crate) size: ByteCount,
    /// Compare this stack with the kernel's congestion controls on a lossy link, and draw the
    /// transfers
    #[arg(long, conflicts_with = "size", group = "timed", group = "over_link")]
    pub(crate) lossy: bool,
    /// Download with curl over a lossy link, directly and through two gateways
    #[arg(long, conflicts_with_all = ["size", "lossy", "with", "trace"], group = "timed", group = "over_link")]
    pub(crate) gateway: bool,
    /// Link of --lossy and --gateway: a description (see `airtcp link --help`) or a named link
    /// [default: 20 Mbit/s; 40 ms and 1 % of the data packets lost, or with --gateway 50 ms and 2 %
    /// of the packets lost both ways]
    #[arg(long, value_name = "SPEC", requires = "over_link", value_parser = value::link)]
    link: Option<LinkPair>,
    /// Link in the direction of the ACKs, if it differs from --link: a description, or a named link
    /// (its uplink)
    #[arg(long, value_name = "SPEC", requires = "over_link", value_parser = value::link)]
    back: Option<LinkPair>,
    /// Send from the kernel through a base station and a radio to a mobile that is out of reach for
    /// a while, once per policy of the base station. The value describes the radio (see
    /// `basestation --help`); by default 40 % of the frames are corrupted, and a frame is tried
    /// four times
    #[arg(long, value_name = "RADIO", num_args = 0..=1, default_missing_value = RADIO, value_parser = value::radio,
          conflicts_with_all = ["size", "lossy", "gateway", "with", "SenderArgs"], group = "timed")]
    pub(crate) radio: Option<RadioSpec>,
    /// Link-layer retransmission of --radio: off, mac, mac+link or head; with mac and mac+link the
    /// radio carries one frame per round trip of its own
    #[arg(long, value_name = "MODE", requires = "radio", value_parser = value::arq, default_value = "mac+link")]
    pub(crate) arq: Arq,
    /// Time that the mobile of --radio is out of reach
    #[arg(long, value_name = "SECONDS", requires = "radio", allow_negative_numbers = true,
          value_parser = value::seconds, default_value = "10")]
    pub(crate) away: Duration,
    /// Duration of each transfer of --lossy [default: 2.5] or --gateway [default: 8]; with --radio,
    /// the time before the mobile leaves and after it returns [default: 8]
    #[arg(long, value_name = "SECONDS", requires = "timed", allow_negative_numbers = true,
          value_parser = value::seconds)]
    seconds: Option<Duration>,
    /// Further combinations for --lossy, separated by commas
    #[arg(long, value_name = "A,B,C", requires = "lossy", value_parser = value::several::<Combination>,
          default_value = "rack/cubic,sack/cubic,rack/westwood-plus,le/westwood,rack/cubic/dcr:timer")]
    pub(crate) with: Several<Combination>,
    /// Write a capture, an event log and pictures of this stack to this directory [default of
    /// --lossy and --radio: a new directory airtcp-demo, or airtcp-demo-2 and so on, in the current
    /// one]
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Print the results as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

impl DemoArgs {
    /// Returns how long each transfer sends: with --radio, each phase before and after the outage.
    pub(crate) fn phase(&self) -> Duration {
        let default = if self.lossy { 2.5 } else { 8.0 };
        self.seconds.unwrap_or(Duration::from_secs_f64(default))
    }

    /// Returns both directions of the link of --lossy or --gateway.
    pub(crate) fn link(&self) -> LinkPair {
        let default = if self.gateway { CARRIED_LINK } else { LOSSY_LINK };
        let link = self.link.clone().unwrap_or_else(|| value::link(default).expect("a link"));
        link.with_back(self.back.as_ref())
    }

    /// Returns the radio of --radio.
    pub(crate) fn radio_spec(&self) -> RadioSpec {
        self.radio.clone().unwrap_or_default()
    }
}

/// Parses the command line.
///
/// # Errors
/// Returns the text to print and the exit code: help and version with code 0, a mistake as one line
/// with code 2.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Cli, Refusal> {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let mut commands = words.iter().filter(|word| !word.starts_with('-') && **word != "help");
    match commands.next() {
        Some(&"basestation") => return Err(Refusal::mistake(base_station())),
        Some(&"ctl") => return Err(Refusal::mistake(CTL.to_owned())),
        _ => {}
    }
    let cli = Cli::try_parse_from(&arguments).map_err(|error| {
        let has_tip = error.get(ContextKind::SuggestedSubcommand).is_some();
        let all = match error.kind() {
            ErrorKind::InvalidSubcommand if !has_tip => {
                format!("; all commands: {}", commands_below(&words))
            }
            _ => String::new(),
        };
        Refusal::new(&error, &format!("{}{all}", example::of(&words)))
    })?;
    let checked = match &cli.command {
        Command::Serve(serve) => serve.check(),
        Command::Get(get) => get.check(),
        Command::Put(put) => put.attach.check(),
        Command::Connect(connect) => connect.attach.check(),
        Command::Quickserve(serve) => serve.check(),
        Command::Quickget(get) => get.check(),
        Command::Link(link) => link.check(),
        _ => Ok(()),
    };
    match checked {
        Ok(()) => Ok(cli),
        Err(text) => Err(Refusal::mistake(text)),
    }
}

/// Lists the commands of the program, or of the deepest command in `words` that has subcommands.
fn commands_below(words: &[&str]) -> String {
    let mut command = &Cli::command();
    for word in words {
        let below = command.find_subcommand(word).filter(|below| below.has_subcommands());
        command = below.unwrap_or(command);
    }
    command.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>().join(", ")
}

/// The message for `ctl` without the program that it controls.
const CTL: &str = "`ctl` belongs to a program: type airtcp gateway ctl status for a gateway, or basestation ctl status \
                   for a base station; airtcp ss lists connections";

/// Says how to run the base station, with the path of its program if that lies beside this one.
fn base_station() -> String {
    let beside = std::env::current_exe().map(|own| own.with_file_name("basestation"));
    let program = match beside {
        Ok(path) if path.exists() => path.display().to_string(),
        _ => "basestation".to_owned(),
    };
    format!("the base station is a separate program: type {program} --help")
}

impl ServeArgs {
    /// Checks the options against each other.
    fn check(&self) -> Result<(), String> {
        for (index, service) in self.services.iter().enumerate() {
            if self.services[..index].iter().any(|other| other.port == service.port) {
                return Err(format!(
                    "port {} is given to two services: each needs a port of its own; for example \
                     echo:7 sink:9",
                    service.port
                ));
            }
        }
        self.attach.check()
    }
}

/// The reason why no command runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The text to print.
    pub(crate) text: String,
    /// Whether this is a mistake, printed on stderr with exit code 2. Otherwise the text is help or
    /// a version, which the user asked for.
    pub(crate) is_mistake: bool,
    /// The text with colours, if it is help.
    help: Option<StyledStr>,
}

impl Refusal {
    /// Returns the refusal of a mistake that clap does not detect.
    fn mistake(text: String) -> Self {
        Self { text: format!("error: {text}"), is_mistake: true, help: None }
    }

    /// Converts an error of clap: a mistake to one line with `example`, help unchanged.
    pub(crate) fn new(error: &clap::Error, example: &str) -> Self {
        let text = error.to_string();
        let is_mistake =
            !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        if !is_mistake || is_help {
            let help = (!is_mistake).then(|| error.render());
            return Self { text: text.trim_end().to_owned(), is_mistake, help };
        }
        let mut line = String::new();
        for part in text.lines().map(str::trim) {
            if part.starts_with("Usage:") || part.starts_with("For more information") {
                break;
            }
            if let Some(tip) = part.strip_prefix("tip: ") {
                // Nobody means an option as a value.
                if !tip.starts_with("to pass ") {
                    line.push_str("; ");
                    line.push_str(tip);
                }
            } else if !part.is_empty() {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(part);
            }
        }
        let is_word = error.kind() == ErrorKind::UnknownArgument && !text.contains("argument '-");
        if is_word && example.contains('"') {
            line.push_str("; put a description of several words in quotes");
        }
        // The parsers of this program name an example themselves.
        if error.kind() != ErrorKind::ValueValidation {
            line.push_str("; for example: ");
            line.push_str(example);
        }
        Self { text: line, is_mistake, help: None }
    }

    /// Prints the text, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        GlobalArgs::of_refused(std::env::args_os()).install();
        if self.is_mistake {
            match self.text.strip_prefix("error: ") {
                Some(what) => output::error(what),
                None => output::print_stderr(&self.text),
            }
            return ExitCode::from(2);
        }
        let help = self.help.as_ref().filter(|_| global::has_colors(&std::io::stdout()));
        let help = help.map_or_else(|| self.text.clone(), |help| help.ansi().to_string());
        crate::finish(output::print(help.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basestation_as_a_command_names_the_other_program() {
        assert!(error("airtcp basestation --wired tun0").contains("type "));
        assert!(error("airtcp help basestation").contains("basestation --help"));
        assert!(parse(["airtcp", "help"]).unwrap_err().text.contains("basestation --help"));
    }

    #[test]
    fn an_unknown_command_lists_all_commands_and_a_misspelt_one_does_not() {
        let unknown = error("airtcp frobnicate");
        assert!(unknown.contains("; all commands: demo, compare, names, link, "), "{unknown}");
        let below = error("airtcp gateway frobnicate");
        assert!(
            below.ends_with("; all commands: keygen, pubkey, near, far, split, check, ctl"),
            "{below}"
        );
        assert!(!error("airtcp serv").contains("all commands"));
    }

    #[test]
    fn a_description_without_quotes_is_recognised() {
        for line in ["airtcp compare rate 1mbit", "airtcp link --a x --b y rate 1mbit delay 5ms"] {
            assert!(error(line).contains("; put a description of several words in quotes"));
        }
        assert!(!error("airtcp compare wek-4g").contains("quotes"));
        assert!(!error("airtcp compare lte --flow 2").contains("quotes"));
    }

    #[test]
    fn help_describes_each_command_in_one_line() {
        let cli = Cli::command();
        let commands: Vec<_> = cli.get_subcommands().collect();
        let width = commands.iter().map(|command| command.get_name().len()).max().unwrap();
        for command in commands {
            let about = command.get_about().unwrap().to_string();
            // Two blanks before the name and two behind it, in 80 columns.
            assert!(about.len() + width + 4 <= 80, "{about}");
        }
    }

    fn error(arguments: &str) -> String {
        let refusal = parse(arguments.split(' ')).unwrap_err();
        assert!(refusal.is_mistake);
        assert_eq!(refusal.text.lines().count(), 1, "{}", refusal.text);
        refusal.text
    }

    #[test]
    fn a_bad_value_is_one_line_with_the_accepted_values_and_an_example() {
        assert_eq!(
            error("airtcp serve --tun t --address 10.0.0.2/24 --congestion tahoe echo:7"),
            "error: invalid value 'tahoe' for '--congestion <NAME>': no congestion control \
             `tahoe`: use one of reno, cubic[:rfc], fixed:N, westwood, westwood-plus, vegas, veno, \
             bbr, bbr3; for example --congestion cubic"
        );
        assert_eq!(
            error("airtcp demo --detection rack/cubic/hack"),
            "error: invalid value 'rack/cubic/hack' for '--detection <NAME>': this names more than \
             one part: use --strategies rack/cubic/hack"
        );
        assert!(error("airtcp demo --strategies rack//hack").contains("`rack//hack` is not a"));
        let both = error("airtcp demo --strategies rack/cubic --judge hack");
        assert!(both.contains("'--strategies <A/B[/C]>' cannot be used with '--judge"), "{both}");
        assert_eq!(
            error("airtcp serve --tun t --address 10.0.0.2/24 echo:70000"),
            "error: invalid value 'echo:70000' for '<SERVICE>...': the port is a number from 1 to \
             65535; for example echo:7"
        );
        assert_eq!(
            error("airtcp serve --tun t --address 10.0.0.2/24 --mtu 80 echo:7"),
            "error: invalid value '80' for '--mtu <BYTES>': the MTU is 576 to 65535 bytes; for \
             example --mtu 1500"
        );
        assert_eq!(
            error("airtcp demo --size 64MB2"),
            "error: invalid value '64MB2' for '--size <BYTES>': a size is 1 to 68719476736 bytes, \
             alone or with KiB, MiB, GiB, kB, MB or GB; for example 64MiB"
        );
        assert_eq!(
            error("airtcp demo --profile old"),
            "error: invalid value 'old' for '--profile <PROFILE>': no profile `old`: use one of \
             modern, paper, ns-2.26, ns-2.35, linux-2.2; for example --profile modern"
        );
        assert_eq!(
            error("airtcp serve --tun t --address 10.0.0.2/24 --ecn on echo:7"),
            "error: invalid value 'on' for '--ecn <MODE>': `on` is not an ECN mode: use off, passive, \
             active, accurate, active-accurate or passive-accurate; for example --ecn accurate"
        );
        assert_eq!(
            error("airtcp serve --tun a-name-too-long-for-it --address 10.0.0.2/24 echo:7"),
            "error: invalid value 'a-name-too-long-for-it' for '--tun <NAME>': a device's name has \
             1 to 15 bytes without white space, `/`, `:` and `%`; for example tun0"
        );
        let address = error("airtcp serve --tun t --address 10.0.0.2/33 echo:7");
        assert!(address.starts_with(
            "error: invalid value '10.0.0.2/33' for '--address <CIDR>': expected an address with a \
             prefix length"
        ));
        assert!(address.ends_with("for example --address 10.0.0.2/24 or --address fd00::2/64"));
        for queues in ["0", "257", "many"] {
            let line =
                format!("airtcp serve --tun t --address 10.0.0.2/24 --queues {queues} echo:7");
            assert_eq!(
                error(&line),
                format!(
                    "error: invalid value '{queues}' for '--queues <N>': a TUN device has 1 to 256 \
                     queues; for example --queues 2"
                )
            );
        }
        let one = error("airtcp get --tun t --address 10.0.0.2/24 --queues 2 http://a/b");
        assert!(one.contains("unexpected argument '--queues'"), "{one}");
    }

    #[test]
    fn a_missing_or_unknown_argument_is_one_line() {
        let missing = error("airtcp serve --address 10.0.0.2/24 echo:7");
        assert!(missing.contains("--tun <NAME>"), "{missing}");
        let meant = error("airtcp link --a t0 --c t1 delay");
        assert!(meant.contains("--c") && meant.contains("for example: airtcp link"), "{meant}");
        let unknown = error("airtcp serve --tun t --adress 10.0.0.2/24 echo:7");
        assert!(unknown.contains("--adress"), "{unknown}");
        let behind = error("airtcp -q names --nothing");
        assert!(behind.ends_with("for example: airtcp names --json"), "{behind}");
        let command = error("airtcp server");
        assert!(command.contains("'server'") && command.contains("'serve'"), "{command}");
    }

    #[test]
    fn a_change_of_strategies_has_an_example_of_the_value() {
        let example = "; for example: airtcp gateway ctl set strategies rack/cubic";
        let missing = error("airtcp gateway ctl set strategies");
        assert!(missing.contains("<A/B[/C]>") && missing.ends_with(example), "{missing}");
        let unknown = error("airtcp gateway ctl set strategies rack/cubci");
        assert!(unknown.ends_with(&format!("; did you mean `cubic`?{example}")), "{unknown}");
        assert!(error("airtcp gateway ctl set strategies BBR3").contains("write rack/bbr3"));
        assert!(error("airtcp gateway ctl --what").contains("airtcp gateway ctl status"));
    }

    #[test]
    fn a_negative_number_is_refused_as_a_value() {
        for line in [
            "airtcp sim run a.toml --seeds -3",
            "airtcp sim run a.toml --seed -3",
            "airtcp sim run a.toml --threads -3",
            "airtcp lab run self/loss --seeds -3",
            "airtcp compare weak-4g --seconds -3",
            "airtcp compare weak-4g --flows -3",
            "airtcp demo --size -3",
            "airtcp serve --queues -3",
            "airtcp plot a.pcap --from -3",
        ] {
            let text = error(line);
            assert!(text.starts_with("error: invalid value '-3' for '--"), "{text}");
        }
    }

    #[test]
    fn a_number_out_of_range_names_the_range() {
        assert_eq!(
            error("airtcp compare weak-4g --flows 0"),
            "error: invalid value '0' for '--flows <N>': expected a number from 1 to 10000; for \
             example --flows 4"
        );
        for line in ["airtcp compare weak-4g --flows 4294967296", "airtcp plot a.pcap --flow 0"] {
            assert!(error(line).contains("a number from 1 to "), "{line}");
        }
    }

    #[test]
    fn values_that_do_not_fit_together_are_refused() {
        assert!(
            error("airtcp serve --tun t --address 10.0.0.2/24 echo:7 sink:7").contains("port 7")
        );
        assert!(
            error("airtcp serve --tun t --address fd00::2/64 --address fd00::2/48 echo:7")
                .contains("fd00::2 is given twice")
        );
        assert!(
            error("airtcp serve --tun t --address fd00::2/64 --mtu 600 echo:7").contains("1280")
        );
    }

    #[test]
    fn help_and_version_are_no_mistakes() {
        for arguments in ["airtcp --version", "airtcp serve --help"] {
            assert!(!parse(arguments.split(' ')).unwrap_err().is_mistake);
        }
        assert_eq!(
            parse(["airtcp", "--version"]).unwrap_err().text,
            concat!("airtcp ", env!("CARGO_PKG_VERSION"))
        );
    }

    #[test]
    fn recovery_is_an_alias_of_detection() {
        let Command::Demo(demo) =
            parse("airtcp demo --recovery newreno".split(' ')).unwrap().command
        else {
            panic!("that is demo");
        };
        assert_eq!(demo.sender.combination().unwrap().to_string(), "newreno/bbr3/spike");
        assert!(error("airtcp demo --recovery sakc").contains("'--detection <NAME>'"));
    }

    #[test]
    fn a_complete_serve_command_is_parsed() {
        let line = "airtcp serve --tun t --address 10.0.0.2/24 --address fd00::2/64 --detection \
                    newreno --congestion fixed:32 --profile paper --mtu 1400 --json echo:7 \
                    http:80:/tmp";
        let Command::Serve(serve) = parse(line.split_whitespace()).unwrap().command else {
            panic!("that is serve");
        };
        assert_eq!(serve.attach.sender.combination().unwrap().to_string(), "newreno/fixed:32");
        assert_eq!(serve.attach.sender.profile, Profile::paper());
        assert_eq!(
            (serve.attach.address.len(), serve.attach.mtu, serve.json),
            (2, Some(1400), true)
        );
        assert_eq!(serve.services[0], ServiceSpec { port: 7, kind: ServiceKind::Echo });
        assert_eq!(serve.services[1].kind, ServiceKind::Http("/tmp".into()));
    }
}
