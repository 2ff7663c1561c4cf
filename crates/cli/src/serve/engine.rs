//! Engines: a stack on each queue of the device, on a thread of its own with its listeners and connections.
//!
//! Nothing that a packet needs is on another thread. The command's own thread has signals, `--metrics` and `airtcp ss`;
//! files are read, written and hashed on threads that may block.

use std::net::SocketAddr;

use airtcp_device::{Clock, Tun, TunFile};
use airtcp_net::{Sibling, Stack, StackThread, TcpListener};
use airtcp_stack::HostConfig;
use airtcp_types::NodeId;
use anyhow::Context;
use tokio::task::JoinSet;

use super::summary::Summary;
use super::{BACKLOG, PATIENCE, accept};
use crate::record::Recording;
use crate::services::{Service, Stop};

/// What every engine does.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) services: Vec<(SocketAddr, Service)>,
    pub(super) stop: Stop,
    pub(super) summary: Summary,
}

/// Starts an engine on each queue; gives their threads, and tasks that end when the engines do.
///
/// # Errors
/// A stack cannot be started, or a service cannot listen.
pub(super) fn start(
    files: Vec<TunFile>,
    config: &HostConfig,
    recording: Option<&Recording>,
    work: &Work,
) -> anyhow::Result<(Vec<StackThread>, JoinSet<()>)> {
    let clock = recording.map_or_else(Clock::start, Recording::clock);
    let siblings = match files.len() {
        1 => vec![None],
        count => Sibling::family(count as u16, clock)
            .context("starting the stacks")?
            .into_iter()
            .map(Some)
            .collect(),
    };
    let (mut threads, mut engines) = (Vec::new(), JoinSet::new());
    for (index, (file, sibling)) in files.into_iter().zip(siblings).enumerate() {
        let watch = recording.map(|recording| recording.watch(NodeId(0)));
        let config = config.clone();
        let start = || {
            let tun = Tun::new(file)?;
            let stack = match (sibling, watch) {
                (Some(sibling), watch) => Stack::sibling(tun, config, sibling, watch),
                (None, Some(watch)) => Stack::watched(tun, config, clock, watch),
                (None, None) => Stack::new(tun, config),
            };
            stack.context("starting the stack")
        };
        let thread = StackThread::start(format!("queue{index}"), start)?;
        let listeners = work.listen(thread.stack())?;
        let running = work.clone().run(thread.stack().clone(), listeners);
        engines.spawn_on(running, thread.runtime());
        threads.push(thread);
    }
    Ok((threads, engines))
}

impl Work {
    /// A listener for each service.
    fn listen(&self, stack: &Stack) -> anyhow::Result<Vec<(TcpListener, Service)>> {
        let listen = |(address, service): &(SocketAddr, Service)| {
            let listener = stack
                .listen(*address, BACKLOG)
                .with_context(|| format!("{} cannot listen at {address}", service.name()))?;
            tracing::info!(service = service.name(), %address, "listening");
            Ok((listener, service.clone()))
        };
        self.services.iter().map(listen).collect()
    }

    /// Serves until it is time to stop, and says goodbye.
    async fn run(self, stack: Stack, listeners: Vec<(TcpListener, Service)>) {
        let mut running = JoinSet::new();
        for (listener, service) in listeners {
            running.spawn(accept::run(listener, service, self.stop.clone(), self.summary.clone()));
        }
        while running.join_next().await.is_some() {}
        stack.shutdown_within(PATIENCE).await;
    }
}
