//! `airtcp serve`: services on a TUN device, until Ctrl-C or SIGTERM.

mod accept;
mod device;
mod summary;

pub(crate) use device::exists;

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_recovery::SenderConfig;
use airtcp_stack::tcp::MarkAware;
use airtcp_stack::{HostConfig, Stack, TcpListener};
use airtcp_trace::NodeKind;
use airtcp_types::NodeId;
use airtcp_types::options::HackForm;
use anyhow::{Context, anyhow};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::args::{SenderArgs, ServeArgs, ServiceKind};
use crate::output;
use crate::record::{self, Recording};
use crate::services::{Files, Service, Stop};
use summary::Summary;

/// How long connections may take to come to their end, and then the stack to say goodbye.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many connections may wait to be accepted at each listener.
const BACKLOG: usize = 4096;

/// Serves until it is told to stop. A second signal stops at once.
///
/// # Errors
/// The device cannot be opened, or goes away; a service cannot listen.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve(args));
    // A file system that hangs shall not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// The settings of a host from the command line.
///
/// # Errors
/// The strategies do not go together.
pub(crate) fn host_config(
    addresses: impl IntoIterator<Item = airtcp_stack::host::Cidr>,
    sender: &SenderArgs,
) -> anyhow::Result<HostConfig> {
    let mut config = HostConfig::new(addresses);
    config.tcp.sender = SenderConfig {
        combination: sender.combination()?,
        profile: sender.profile.clone(),
        ..SenderConfig::default()
    };
    if sender.hack_exid {
        config.tcp.hack_form = HackForm::ExId;
    }
    Ok(config)
}

async fn serve(args: ServeArgs) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let device::Opened { tun, mtu, is_new } = device::open(&args.tun, args.mtu)?;
    let mut config = host_config(args.address.iter().copied(), &args.sender)?;
    config.mtu = mtu;
    config.tcp.mark_aware = args.mark_aware_receiver.then(MarkAware::default);
    config.backlog = BACKLOG;
    let recording = match &args.trace {
        Some(directory) => {
            Some(Recording::start(directory, "airtcp serve", &[("airtcp", NodeKind::Host)])?)
        }
        None => None,
    };
    let stack =
        record::stack(recording.as_ref(), NodeId(0), tun, config).context("starting the stack")?;
    let asked = args.sender.combination()?.to_string();

    let (stopping, stop) = Stop::new();
    let summary = Summary::new(&asked);
    let mut listeners = JoinSet::new();
    for (listener, service) in listen(&stack, &args)? {
        listeners.spawn(accept::run(listener, service, stop.clone(), summary.clone()));
    }
    if is_new {
        output::note(format_args!("note: {}", device::how_to_reach(&args.tun, &args.address)));
    }
    output::note("ready");

    let ended = tokio::select! {
        () = signals.wait() => Ok(()),
        error = stack.closed() => Err(anyhow!("{error}; start again to make it anew")),
    };
    let farewell = async {
        // Whoever listened for it and is gone needs no telling.
        let _ = stopping.send(true);
        while listeners.join_next().await.is_some() {}
        stack.shutdown_within(PATIENCE).await;
    };
    tokio::select! {
        () = farewell => {}
        () = signals.wait() => tracing::warn!("stopped before every connection was closed"),
    }
    for (combination, count) in summary.fallbacks() {
        output::note(format_args!(
            "note: {count} connections ran with {combination}: their peers do not grant what {asked} needs"
        ));
    }
    if args.json {
        output::print_json(&summary.report(&stack))?;
    }
    if let Some(recording) = recording {
        recording.finish()?;
    }
    ended
}

/// A listener for each service at each address.
fn listen(stack: &Stack, args: &ServeArgs) -> anyhow::Result<Vec<(TcpListener, Service)>> {
    let mut listeners = Vec::new();
    for spec in &args.services {
        let service = match &spec.kind {
            ServiceKind::Echo => Service::Echo,
            ServiceKind::Sink => Service::Sink,
            ServiceKind::Source => Service::Source,
            ServiceKind::Http(directory) => Service::Http(
                Files::new(directory).with_context(|| directory.display().to_string())?,
            ),
        };
        for cidr in &args.address {
            let address = SocketAddr::new(cidr.address(), spec.port);
            let listener = stack
                .listen(address, BACKLOG)
                .with_context(|| format!("{} cannot listen at {address}", service.name()))?;
            tracing::info!(service = service.name(), %address, "listening");
            listeners.push((listener, service.clone()));
        }
    }
    Ok(listeners)
}

/// What asks this process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_stack::tcp::Offer;
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        sender: SenderArgs,
    }

    #[test]
    fn hack_is_offered_where_a_judge_asks_for_it_in_the_form_of_the_flag() {
        let form = |line: &str| {
            let line = Line::try_parse_from(line.split(' ')).unwrap();
            let tcp = host_config([], &line.sender).unwrap().tcp;
            assert_eq!(tcp.hack, Offer::IfNeeded);
            (tcp.sender.combination.needs().hack, tcp.hack_form)
        };
        assert_eq!(form("serve --judge hack"), (true, HackForm::Kinds));
        assert_eq!(form("serve --judge hack --hack-exid"), (true, HackForm::ExId));
        assert_eq!(form("serve --hack-exid"), (false, HackForm::ExId));
    }
}
