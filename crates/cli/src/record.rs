//! `--trace DIR`: a recorder shared by several threads.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use airtcp_device::{Clock, Device, Watch};
use airtcp_net::{Driver, Stack};
use airtcp_sim::Simulation;
use airtcp_stack::HostConfig;
use airtcp_trace::{NodeInfo, NodeKind, Recorder, Written};
use airtcp_types::{Node, NodeId, Observer};
use anyhow::Context;

use crate::output;

/// Starts a stack, which `recording` observes if there is one.
///
/// # Errors
/// The stack does not start.
pub(crate) fn stack<D: Device>(
    recording: Option<&Recording>,
    node: NodeId,
    device: D,
    config: HostConfig,
) -> io::Result<Stack> {
    match recording {
        Some(recording) => Stack::watched(device, config, recording.clock, recording.watch(node)),
        None => Stack::new(device, config),
    }
}

/// Returns the nodes of a simulation for a trace.
pub(crate) fn nodes(simulation: &Simulation<'_>) -> Vec<NodeInfo> {
    let info = |(name, kind): &(String, airtcp_sim::NodeKind)| {
        let kind = match kind {
            airtcp_sim::NodeKind::Host => NodeKind::Host,
            airtcp_sim::NodeKind::Link => NodeKind::Link,
            airtcp_sim::NodeKind::Router | airtcp_sim::NodeKind::BaseStation => NodeKind::Other,
        };
        NodeInfo { name: name.clone(), kind }
    };
    simulation.nodes().iter().map(info).collect()
}

/// A trace that is recorded in real time.
pub(crate) struct Recording {
    /// `None` once the trace has ended; observers may outlive it.
    recorder: Arc<Mutex<Option<Recorder>>>,
    clock: Clock,
}

impl Recording {
    /// Starts a trace of the named nodes in the directory, and the clock that they share.
    ///
    /// # Errors
    /// The files cannot be created.
    pub(crate) fn start(
        directory: &Path,
        title: &str,
        nodes: &[(&str, NodeKind)],
    ) -> anyhow::Result<Self> {
        let clock = Clock::start();
        let nodes: Vec<_> = nodes
            .iter()
            .map(|(name, kind)| NodeInfo { name: (*name).to_owned(), kind: *kind })
            .collect();
        let recorder = Recorder::create(directory, title, &nodes, clock.origin())
            .with_context(|| format!("--trace {}", directory.display()))?;
        Ok(Self { recorder: Arc::new(Mutex::new(Some(recorder))), clock })
    }

    /// Returns the clock that drives the nodes.
    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the observer of all nodes.
    pub(crate) fn observer(&self) -> Arc<Mutex<dyn Observer + Send>> {
        self.recorder.clone()
    }

    /// Returns the observer of one node.
    pub(crate) fn watch(&self, node: NodeId) -> Watch {
        Watch::new(self.observer(), node)
    }

    /// Records a driver between two devices. The nodes of the trace are the host behind the first
    /// device, the driver's node, and the host behind the second device.
    pub(crate) fn watch_between<N: Node, D: Device>(&self, driver: &mut Driver<N, D>) {
        driver.watch_host(0, self.watch(NodeId(0)));
        driver.watch(self.watch(NodeId(1)));
        driver.watch_host(1, self.watch(NodeId(2)));
    }

    /// Ends the trace and draws its flows. Later events are not recorded.
    ///
    /// # Errors
    /// The first error since the start.
    pub(crate) fn finish(self) -> anyhow::Result<Written> {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let recorder = recorder.context("the trace has ended before")?;
        let written = recorder.finish().context("writing the trace")?;
        for file in &written.files {
            output::note(format_args!("wrote {}", file.display()));
        }
        Ok(written)
    }
}
