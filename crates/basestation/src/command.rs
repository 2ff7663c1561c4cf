//! The command `basestation`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use airtcp_device::{Device, DeviceError, Tun};
use clap::Parser;
use clap::error::ErrorKind;
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::{Bridge, Counters, DeviceGone, Forwarder, Side};

/// Bridges a wired and a wireless TUN device: what comes in on one leaves by the other.
///
/// Makes the devices that do not exist, and removes them when it ends. Prints `ready` on stderr
/// when both are open; their links may still be down. Prints its counters on stdout when it ends
/// (Ctrl-C, SIGTERM) and on SIGUSR1. RUST_LOG says what to log, for example RUST_LOG=debug.
#[derive(Debug, Parser)]
#[command(name = "basestation", version)]
struct Args {
    /// The TUN device on the wired side, for example tun0
    #[arg(long, value_name = "TUN")]
    wired: String,
    /// The TUN device on the wireless side, for example tun1
    #[arg(long, value_name = "TUN")]
    wireless: String,
    /// Packets held towards each side
    #[arg(long, value_name = "PACKETS", default_value = "512", value_parser = queue)]
    queue: usize,
    /// Print the counters as JSON, one line each time
    #[arg(long)]
    json: bool,
}

fn queue(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|packets| (1..=65_536).contains(packets))
        .ok_or_else(|| "it takes 1 to 65536 packets, for example 512".to_owned())
}

#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(
        "--wired and --wireless are both `{0}`: name two devices, for example \
         `basestation --wired tun0 --wireless tun1`"
    )]
    SameDevice(String),
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error("{0}; start again to make it anew")]
    Gone(#[from] DeviceGone),
    #[error("signals cannot be had: {0}")]
    Signals(io::Error),
    #[error("the runtime cannot be started: {0}")]
    Runtime(io::Error),
}

/// Runs the command line of this process.
///
/// Exits with 0 after Ctrl-C or SIGTERM, with 1 when a device cannot be opened or is gone, with 2
/// when the arguments are wrong.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            eprintln!("basestation: {}", one_line(&error));
            return ExitCode::from(2);
        }
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .init();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("basestation: {error}");
            ExitCode::from(if matches!(error, CommandError::SameDevice(_)) { 2 } else { 1 })
        }
    }
}

/// What is wrong with the arguments, in one line with an example.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let parts: Vec<_> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let text = parts.join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    if error.kind() == ErrorKind::ValueValidation {
        // Our own parser names an example.
        return text.to_owned();
    }
    format!("{text}; for example: basestation --wired tun0 --wireless tun1")
}

fn run(args: &Args) -> Result<(), CommandError> {
    if args.wired == args.wireless {
        return Err(CommandError::SameDevice(args.wired.clone()));
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CommandError::Runtime)?
        .block_on(serve(args))
}

async fn serve(args: &Args) -> Result<(), CommandError> {
    // Before `ready`, so that whoever waits for it may send signals.
    let catch = |kind| signal(kind).map_err(CommandError::Signals);
    let mut interrupt = catch(SignalKind::interrupt())?;
    let mut terminate = catch(SignalKind::terminate())?;
    let mut report = catch(SignalKind::user_defined1())?;
    let (wired, wireless) = (Tun::open(&args.wired)?, Tun::open(&args.wireless)?);
    let mut forwarder = Forwarder::new(Bridge::new(args.queue), wired, wireless);
    eprintln!("ready");
    tracing::info!(wired = args.wired, wireless = args.wireless, "forwarding");
    let outcome = loop {
        tokio::select! {
            Err(gone) = forwarder.run() => break Err(gone.into()),
            () = caught(&mut interrupt) => break Ok(()),
            () = caught(&mut terminate) => break Ok(()),
            () = caught(&mut report) => Report::of(&forwarder).print(args.json),
        }
    };
    Report::of(&forwarder).print(args.json);
    outcome
}

async fn caught(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        // It will not be caught any more, which is no reason to act as if it had been.
        std::future::pending().await
    }
}

#[derive(Debug, Serialize)]
struct Report {
    wired: SideReport,
    wireless: SideReport,
}

/// What arrived from a device and what became of it; then what the device says of the packets it
/// was given.
#[derive(Debug, Serialize)]
struct SideReport {
    device: String,
    #[serde(flatten)]
    received: Counters,
    sent_packets: u64,
    sent_bytes: u64,
    sent_dropped_link_down: u64,
    sent_errors: u64,
}

impl Report {
    fn of<A: Device, B: Device>(forwarder: &Forwarder<A, B>) -> Self {
        let bridge = forwarder.bridge();
        Self {
            wired: SideReport::of(bridge, Side::Wired, forwarder.wired()),
            wireless: SideReport::of(bridge, Side::Wireless, forwarder.wireless()),
        }
    }

    fn print(&self, json: bool) {
        let text = if json {
            serde_json::to_string(self).unwrap_or_default()
        } else {
            [(Side::Wired, &self.wired), (Side::Wireless, &self.wireless)]
                .map(|(side, report)| report.line(side))
                .join("\n")
        };
        // Whoever read stdout may have gone; there is nobody left to tell.
        let _ = writeln!(io::stdout(), "{text}");
    }
}

impl SideReport {
    fn of(bridge: &Bridge, side: Side, device: &impl Device) -> Self {
        let sent = device.counters();
        Self {
            device: device.name().to_owned(),
            received: *bridge.counters(side),
            sent_packets: sent.tx_packets,
            sent_bytes: sent.tx_bytes,
            sent_dropped_link_down: sent.tx_dropped,
            sent_errors: sent.tx_errors,
        }
    }

    fn line(&self, side: Side) -> String {
        let Self { device, received, .. } = self;
        format!(
            "{:8} {device}: in {} packets, {} bytes, dropped {} not IP, {} queue full; \
             out {} packets, {} bytes, dropped {} link down, {} refused",
            side.name(),
            received.packets,
            received.bytes,
            received.dropped_not_ip,
            received.dropped_full,
            self.sent_packets,
            self.sent_bytes,
            self.sent_dropped_link_down,
            self.sent_errors,
        )
    }
}

#[cfg(test)]
mod tests {
    use airtcp_device::memory;
    use clap::CommandFactory;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Args, String> {
        let arguments = [&["basestation"], arguments].concat();
        Args::try_parse_from(arguments).map_err(|error| one_line(&error))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_mistake_is_one_line_with_what_is_allowed_and_an_example() {
        assert_eq!(
            parse(&["--wired", "a", "--wireless", "b", "--queue", "0"]).unwrap_err(),
            "invalid value '0' for '--queue <PACKETS>': it takes 1 to 65536 packets, for example 512"
        );
        assert_eq!(
            parse(&["--wired", "tun0"]).unwrap_err(),
            "the following required arguments were not provided: --wireless <TUN>; for example: \
             basestation --wired tun0 --wireless tun1"
        );
    }

    #[test]
    fn one_device_cannot_be_both_sides() {
        let args = parse(&["--wired", "tun0", "--wireless", "tun0"]).unwrap();
        let error = run(&args).unwrap_err().to_string();
        assert!(error.contains("`tun0`") && error.contains("--wireless tun1"), "{error}");
    }

    #[test]
    fn a_name_that_cannot_be_is_told_before_any_privilege_is_asked() {
        let args = parse(&["--wired", "a/b", "--wireless", "tun0"]).unwrap();
        let error = run(&args).unwrap_err().to_string();
        assert!(error.contains("\"a/b\"") && error.contains("for example tun0"), "{error}");
    }

    #[test]
    fn the_report_has_the_names_that_it_promises() {
        let ((_a, wired), (_b, wireless)) = (memory::pair(1500, 1), memory::pair(1500, 1));
        let forwarder = Forwarder::new(Bridge::new(1), wired, wireless);
        let json = serde_json::to_value(Report::of(&forwarder)).unwrap();
        for side in ["wired", "wireless"] {
            assert_eq!(json[side]["device"], "memory");
            for counter in ["packets", "bytes", "dropped_not_ip", "dropped_full"] {
                assert_eq!(json[side][counter], 0, "{side} {counter}");
            }
            assert_eq!(json[side]["sent_dropped_link_down"], 0);
        }
    }
}
