//! `airtcp gateway split`: a gateway in the path that needs no far gateway.

use std::time::Duration;

use airtcp_device::{Tun, TunFile};
use airtcp_gateway::split::{Split, bypass, link_config, local_config};
use airtcp_net::{Stack, StackThread};
use airtcp_recovery::Combination;
use airtcp_testbed::here;
use anyhow::{Context, anyhow};
use clap::Args;
use tokio::time::timeout;

use super::{CLIENTS, PATIENCE, settings, stopping};
use crate::output::Mistake;
use crate::signals::Signals;
use crate::ss::Served;
use crate::{device, output, value};

/// The time limit for resetting the remaining connections.
const RESETTING: Duration = Duration::from_millis(100);

/// `airtcp gateway split`.
#[derive(Args, Debug)]
pub(super) struct SplitArgs {
    /// TUN device for the side of the clients or servers; created if it does not exist. Routes into
    /// it are yours to make
    #[arg(long, value_name = "NAME", default_value = "split0", value_parser = value::tun)]
    local_tun: String,
    /// TUN device for the side of the link; created if it does not exist. Routes into it are yours
    /// to make
    #[arg(long, value_name = "NAME", default_value = "split1", value_parser = value::tun)]
    link_tun: String,
    /// MTU of both devices: at most that of every device of this machine that carries their traffic
    #[arg(long, value_name = "BYTES", default_value = "1500", allow_negative_numbers = true, value_parser = mtu)]
    mtu: u16,
    /// Strategies for what is sent to the link: rack/cubic or le/westwood/dcr:timer [default:
    /// rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    strategies: Option<Combination>,
    /// Strategies for what is sent to the other side [default: rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    local_strategies: Option<Combination>,
    /// The most connections at a time from each side; one address may have seven eighths of them
    #[arg(long, value_name = "NUMBER", default_value_t = CLIENTS, allow_negative_numbers = true,
          value_parser = settings::clients)]
    clients: u32,
    /// Print the status as JSON on stdout at exit
    #[arg(long)]
    json: bool,
}

/// Parses `--mtu`: IPv6 needs 1280 (RFC 8200 section 5).
fn mtu(text: &str) -> Result<u16, String> {
    value::whole(1280, u16::MAX, "--mtu 1500")(text)
}

impl SplitArgs {
    /// Rejects settings that cannot work.
    ///
    /// # Errors
    /// Both sides have the same device, or strategies need help of the other end.
    pub(super) fn check(&self) -> Result<(), Mistake> {
        if self.local_tun == self.link_tun {
            return Err(Mistake::new(format!(
                "--local-tun and --link-tun are both {}: each side needs a device of its own",
                self.link_tun
            )));
        }
        match [&self.strategies, &self.local_strategies]
            .into_iter()
            .flatten()
            .find(|asked| asked.needs().hack)
        {
            Some(asked) => Err(Mistake::new(format!(
                "{asked} needs packets with damaged payloads, which kernels drop: omit the judge hack"
            ))),
            None => Ok(()),
        }
    }

    /// Opens one of the devices, and sets it up.
    async fn open(&self, name: &str) -> anyhow::Result<TunFile> {
        let opened = device::open(name, Some(self.mtu), true, 1)?;
        here::configure(name, &[], &[]).await.with_context(|| {
            format!("setting {name} up: run this as root, or type: ip link set {name} up")
        })?;
        opened.files.into_iter().next().context("a device without a queue")
    }
}

/// Serves until a signal to stop, then waits for connections to end. A second signal stops at once.
///
/// # Errors
/// A device cannot be opened or is gone.
pub(super) async fn run(args: SplitArgs) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let (local, link) = (args.open(&args.local_tun).await?, args.open(&args.link_tun).await?);
    let [mut local_host, mut link_host] = [local_config(args.mtu), link_config(args.mtu)];
    local_host.tcp.sender.combination = args.local_strategies.clone().unwrap_or_default();
    link_host.tcp.sender.combination = args.strategies.clone().unwrap_or_default();
    let mut other = None;
    let thread = StackThread::start("split", || {
        let (local, link) = bypass(Tun::new(local)?, Tun::new(link)?);
        other = Some(Stack::new(local, local_host)?);
        Stack::new(link, link_host).context("starting the stack of the link")
    });
    let thread = thread?;
    let (local, link) = (other.context("no stack was started")?, thread.stack().clone());
    let split = Split::new(local.clone(), link.clone(), args.clients);
    let mut task = thread.spawn(split.clone().run());
    let stacks = vec![local.clone(), link.clone()];
    let device = format!("{},{}", args.local_tun, args.link_tun);
    Served { command: "gateway split", device, stacks }.listen_by_default();
    output::note("ready");

    let ended = tokio::select! {
        _ = signals.wait() => Ok(()),
        ended = &mut task => match ended {
            Ok(Err(error)) => Err(anyhow!("nothing is carried any more: {error}")),
            Ok(Ok(never)) => match never {},
            Err(error) => Err(error.into()),
        },
    };
    // Refuses connections from now on.
    task.abort();
    stopping(split.status().open as usize);
    tokio::select! {
        _ = timeout(PATIENCE, split.drained()) => {}
        _ = signals.wait() => {}
    }
    split.reset();
    // Even after a timeout, each connection has had its turn to reset.
    let _ = timeout(RESETTING, split.drained()).await;
    let status = split.status();
    if args.json {
        output::print_json(&status)?;
    }
    output::note(format_args!(
        "carried {} connections, refused {}; {} to the link, {} from it",
        status.opened,
        status.refused,
        output::bytes(status.sent),
        output::bytes(status.received)
    ));
    for stack in [&local, &link] {
        stack.reset_connections();
        stack.shutdown_within(Duration::ZERO).await;
    }
    thread.join();
    ended
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        split: SplitArgs,
    }

    fn args(line: &str) -> SplitArgs {
        let words = std::iter::once("split").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().split
    }

    #[test]
    fn each_side_has_a_device_and_no_sender_needs_damaged_packets() {
        assert!(args("").check().is_ok());
        assert!(args("--strategies rack/cubic --local-strategies le/westwood").check().is_ok());
        for (line, words) in [
            ("--local-tun split1", "each side needs a device of its own"),
            ("--strategies le/westwood/hack", "omit the judge hack"),
            ("--local-strategies le/westwood/hack", "omit the judge hack"),
        ] {
            let mistake = args(line).check().unwrap_err().to_string();
            assert!(mistake.contains(words), "{mistake}");
        }
    }

    #[test]
    fn an_mtu_that_is_too_small_for_ipv6_is_refused() {
        assert!(mtu("1279").unwrap_err().contains("1280 to 65535"));
        assert_eq!(mtu("1280"), Ok(1280));
    }
}
