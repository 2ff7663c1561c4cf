//! Engines: a stack on each queue of the device, with listeners and connections of its own.
//!
//! A device with one queue has its stack on the runtime of the command, whose threads share the connections. Of several
//! queues each has a thread, on which a stack and its connections live: nothing that a packet needs is another's.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use airtcp_device::{Clock, Tun, TunFile, Watch};
use airtcp_stack::{HostConfig, Sibling, Stack, TcpListener};
use airtcp_types::NodeId;
use anyhow::Context;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::summary::Summary;
use super::{BACKLOG, PATIENCE, accept};
use crate::record::{self, Recording};
use crate::services::{Service, Stop};

/// What every engine does.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) services: Vec<(SocketAddr, Service)>,
    pub(super) stop: Stop,
    pub(super) summary: Summary,
}

/// Starts an engine on each queue; gives their stacks, and tasks that end when the engines do.
///
/// # Errors
/// A stack cannot be started, or a service cannot listen.
pub(super) async fn start(
    files: Vec<TunFile>,
    config: HostConfig,
    recording: Option<&Recording>,
    work: &Work,
) -> anyhow::Result<(Vec<Stack>, JoinSet<()>)> {
    let (mut stacks, mut engines) = (Vec::new(), JoinSet::new());
    if files.len() == 1 {
        for file in files {
            let stack = record::stack(recording, NodeId(0), Tun::new(file)?, config.clone())
                .context("starting the stack")?;
            let listeners = work.listen(&stack)?;
            engines.spawn(work.clone().run(stack.clone(), listeners));
            stacks.push(stack);
        }
        return Ok((stacks, engines));
    }
    let clock = recording.map_or_else(Clock::start, Recording::clock);
    let family = Sibling::family(files.len() as u16, clock).context("starting the stacks")?;
    for (file, sibling) in files.into_iter().zip(family) {
        let watch = recording.map(|recording| recording.watch(NodeId(0)));
        let engine = Engine { file, config: config.clone(), sibling, watch, work: work.clone() };
        let (started, starting) = oneshot::channel();
        let (ending, ended) = oneshot::channel::<Infallible>();
        let name = format!("queue{}", stacks.len());
        thread::Builder::new()
            .name(name)
            .spawn(move || {
                engine.run(started);
                drop(ending);
            })
            .context("starting a thread for a queue")?;
        stacks.push(starting.await.context("a queue's thread has ended")??);
        engines.spawn(async move {
            let _ = ended.await;
        });
    }
    Ok((stacks, engines))
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

/// What an engine with a thread of its own begins with.
struct Engine {
    file: TunFile,
    config: HostConfig,
    sibling: Sibling,
    watch: Option<Watch>,
    work: Work,
}

impl Engine {
    /// All of the thread.
    fn run(self, started: oneshot::Sender<anyhow::Result<Stack>>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = started.send(Err(error).context("starting a runtime for a queue"));
                return;
            }
        };
        runtime.block_on(async {
            let work = self.work.clone();
            match self.begin() {
                Ok((stack, listeners)) => {
                    // Whoever waits for it and is gone is at the end of the process.
                    let _ = started.send(Ok(stack.clone()));
                    work.run(stack, listeners).await;
                }
                Err(error) => drop(started.send(Err(error))),
            }
        });
        // A file system that hangs shall not hold up the end.
        runtime.shutdown_timeout(Duration::from_secs(1));
    }

    fn begin(self) -> anyhow::Result<(Stack, Vec<(TcpListener, Service)>)> {
        let Self { file, config, sibling, watch, work } = self;
        let stack = Stack::sibling(Tun::new(file)?, config, sibling, watch)
            .context("starting the stack of a queue")?;
        let listeners = work.listen(&stack)?;
        Ok((stack, listeners))
    }
}
