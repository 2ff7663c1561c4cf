//! Engines: one stack per queue of the device, on one thread with its listeners and connections.
//!
//! A packet never crosses threads. With several queues each engine has its own thread. With one
//! queue the engine shares the command's thread with signals, `--metrics` and `airtcp ss`: in a
//! process of one thread the kernel does not count the users of a descriptor, which makes every
//! read and write of the device cheaper. Files are read, written and hashed on the blocking
//! threads.

use std::net::SocketAddr;

use airtcp_device::{Clock, Tun, TunFile};
use airtcp_net::{Sibling, Stack, StackThread, TcpListener};
use airtcp_stack::HostConfig;
use airtcp_types::NodeId;
use anyhow::Context;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::summary::Summary;
use super::{BACKLOG, PATIENCE, accept};
use crate::record::Recording;
use crate::services::{Service, Stop};

/// The services that every engine runs.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) services: Vec<(SocketAddr, Service)>,
    pub(super) stop: Stop,
    pub(super) summary: Summary,
}

/// The engines of all queues.
pub(super) struct Engines {
    pub(super) stacks: Vec<Stack>,
    /// One per queue; empty with a single queue.
    pub(super) threads: Vec<StackThread>,
    /// One task per engine, which ends with the engine.
    pub(super) running: JoinSet<()>,
}

/// Starts an engine on each queue.
///
/// # Errors
/// A stack cannot be started, or a service cannot listen.
pub(super) fn start(
    files: Vec<TunFile>,
    config: &HostConfig,
    recording: Option<&Recording>,
    work: &Work,
) -> anyhow::Result<Engines> {
    let clock = recording.map_or_else(Clock::start, Recording::clock);
    let siblings = match files.len() {
        1 => vec![None],
        count => Sibling::family(count as u16, clock)
            .context("starting the stacks")?
            .into_iter()
            .map(Some)
            .collect(),
    };
    let (stacks, threads) = Default::default();
    let mut engines = Engines { stacks, threads, running: JoinSet::new() };
    for (index, (file, sibling)) in files.into_iter().zip(siblings).enumerate() {
        let watch = recording.map(|recording| recording.watch(NodeId(0)));
        let (config, is_alone) = (config.clone(), sibling.is_none());
        let start = || {
            let tun = Tun::new(file)?;
            let stack = match (sibling, watch) {
                (Some(sibling), watch) => Stack::sibling(tun, config, sibling, watch),
                (None, Some(watch)) => Stack::watched(tun, config, clock, watch),
                (None, None) => Stack::new(tun, config),
            };
            stack.context("starting the stack")
        };
        let (stack, runtime) = if is_alone {
            (start()?, Handle::current())
        } else {
            let thread = StackThread::start(format!("queue{index}"), start)?;
            let started = (thread.stack().clone(), thread.runtime().clone());
            engines.threads.push(thread);
            started
        };
        let listeners = work.listen(&stack)?;
        engines.running.spawn_on(work.clone().run(stack.clone(), listeners), &runtime);
        engines.stacks.push(stack);
    }
    Ok(engines)
}

impl Work {
    /// Opens a listener for each service.
    fn listen(&self, stack: &Stack) -> anyhow::Result<Vec<(TcpListener, Service)>> {
        let listen = |(address, service): &(SocketAddr, Service)| {
            let listener = stack
                .listen(*address, BACKLOG)
                .with_context(|| format!("{} cannot listen on {address}", service.name()))?;
            tracing::info!(service = service.name(), %address, "listening");
            Ok((listener, service.clone()))
        };
        self.services.iter().map(listen).collect()
    }

    /// Serves until `stop`, then closes the connections and the stack.
    async fn run(self, stack: Stack, listeners: Vec<(TcpListener, Service)>) {
        let mut running = JoinSet::new();
        for (listener, service) in listeners {
            running.spawn(accept::run(listener, service, self.stop.clone(), self.summary.clone()));
        }
        while running.join_next().await.is_some() {}
        stack.shutdown_within(PATIENCE).await;
    }
}
