//! `airtcp serve`: services on a TUN device, until Ctrl-C or SIGTERM.

mod accept;
mod counted;
mod engine;
mod summary;

use std::future::ready;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_net::StackThread;
use airtcp_stack::tcp::MarkAware;
use airtcp_trace::NodeKind;
use anyhow::{Context, anyhow};
use tokio::task::JoinSet;

use crate::args::{ServeArgs, ServiceKind};
use crate::record::Recording;
use crate::services::{Files, Service, Stop};
use crate::signals::Signals;
use crate::ss::Served;
use crate::{live, metrics, output};
use counted::Counted;
#[cfg(test)]
pub(crate) use counted::exported;
pub(crate) use counted::put_stacks;
use engine::{Engines, Work};
use summary::Summary;

/// How long the connections may take to end, and then the stack to shut down.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long blocking calls may continue at the end, such as those to a file system that hangs.
const FILE_PATIENCE: Duration = Duration::from_secs(1);

/// The accept backlog of each listener.
const BACKLOG: usize = 4096;

/// Serves until a signal arrives. A second signal stops at once.
///
/// # Errors
/// The device cannot be opened, or is removed; a service cannot listen.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(args));
    // Services finish their cleanup before the process exits.
    runtime.shutdown_timeout(FILE_PATIENCE);
    ended
}

async fn serve(args: ServeArgs) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let name = &args.attach.tun;
    let (files, mut config, is_new) = args.attach.open_queues(args.queues)?;
    config.tcp.mark_aware = args.mark_aware_receiver.then(MarkAware::default);
    config.backlog = BACKLOG;
    let recording = match &args.trace {
        Some(directory) => {
            Some(Recording::start(directory, "airtcp serve", &[("airtcp", NodeKind::Host)])?)
        }
        None => None,
    };
    let asked = args.attach.sender.combination()?;

    let (stopping, stop) = Stop::new();
    let summary = Summary::new(asked.clone(), args.json);
    let work = Work { services: services(&args)?, stop, summary: summary.clone() };
    let Engines { stacks, threads, mut running } =
        engine::start(files, &config, recording.as_ref(), &work)?;
    if is_new {
        let kernel = args.attach.kernel_side();
        if args.attach.gateway.is_empty() {
            output::note(format_args!("note: {}", kernel.advice(name)));
        } else {
            kernel.apply(name).await?;
        }
    } else if let Some(lack) = args.attach.lack()? {
        output::note(format_args!("note: {}", lack.text));
    }
    let served = Served { command: "serve", device: name.clone(), stacks: stacks.clone() };
    match &args.attach.control {
        Some(path) => served.listen(path)?,
        None => served.listen_by_default(),
    }
    if let Some(address) = args.metrics {
        let stacks = stacks.clone();
        metrics::listen(address, move || ready(Some(Counted(stacks.clone())))).await?;
    }
    if let Some(address) = args.live {
        let stacks = stacks.clone();
        let read = move || ready(Some(live::of_stacks(&stacks)));
        live::listen(address, format!("airtcp serve, {name}"), read).await?;
    }
    output::note("ready");

    let mut ends = JoinSet::new();
    for stack in stacks.clone() {
        ends.spawn(async move { stack.closed().await });
    }
    let ended = tokio::select! {
        _ = signals.wait() => Ok(()),
        Some(error) = ends.join_next() => Err(anyhow!("{}; restart to create it again", error?)),
    };
    let farewell = async {
        // Fails only if no receiver is left.
        let _ = stopping.send(true);
        while running.join_next().await.is_some() {}
    };
    tokio::select! {
        () = farewell => {}
        _ = signals.wait() => {
            tracing::warn!("stopped before every connection was closed");
            // Inform the peers with resets.
            for stack in &stacks {
                stack.shutdown_within(Duration::ZERO).await;
            }
        }
    }
    // The tasks of their services end with the threads.
    threads.into_iter().for_each(StackThread::join);
    for (combination, count) in summary.fallbacks() {
        output::note(format_args!(
            "note: {count} connections ran with {combination}: their peers do not support the TCP options that {asked} needs"
        ));
    }
    if args.json {
        output::print_json(&summary.report(&stacks))?;
    }
    if let Some(recording) = recording {
        recording.finish()?;
    }
    ended
}

/// Returns each service with each address of the stack.
fn services(args: &ServeArgs) -> anyhow::Result<Vec<(SocketAddr, Service)>> {
    let mut services = Vec::new();
    for spec in &args.services {
        let service = match &spec.kind {
            ServiceKind::Echo => Service::Echo,
            ServiceKind::Sink => Service::Sink,
            ServiceKind::Source => Service::Source,
            ServiceKind::Http(directory) => Service::Http(
                Files::new(directory).with_context(|| directory.display().to_string())?,
            ),
        };
        for cidr in &args.attach.address {
            services.push((SocketAddr::new(cidr.address(), spec.port), service.clone()));
        }
    }
    Ok(services)
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Command, ServiceKind, parse};

    #[test]
    fn the_settings_of_the_unit_are_flags_of_serve() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/serve.env");
        let settings = std::fs::read_to_string(path).unwrap();
        let flags = settings.lines().find_map(|line| line.strip_prefix("SERVE=")).unwrap();
        // The directory of the service need not exist on this machine.
        let flags = flags.trim_matches('"').replace("/var/lib/airtcp-serve", "/tmp");
        let line = ["airtcp", "serve", "--control", "service.sock"].into_iter();
        let Ok(Cli { command: Command::Serve(serve), .. }) = parse(line.chain(flags.split(' ')))
        else {
            panic!("that is serve");
        };
        assert_eq!(serve.services[0].kind, ServiceKind::Http("/tmp".into()));
    }
}
