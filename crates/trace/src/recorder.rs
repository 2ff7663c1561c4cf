//! The observer that writes packets and events to a directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airtcp_types::{Crossing, Event, EventKind, Instant, NodeId, Observer, Packet};

use crate::node_info::check_names;
use crate::{NodeInfo, NodeKind, TraceError, capture, plot, sqlog};

/// The file name of the capture.
pub(crate) const PACKETS: &str = "packets.pcapng";
/// The file name of the event log.
pub(crate) const EVENTS: &str = "events.sqlog";

/// The number of flows with pictures, those with the most bytes. `airtcp plot` draws the others.
const MAX_PICTURES: usize = 32;

/// Returns whether a directory contains a trace, complete or not.
pub fn is_trace(dir: &Path) -> bool {
    [PACKETS, EVENTS].iter().any(|name| dir.join(name).exists())
}

/// An observer that writes all packets and events to a directory: `packets.pcapng` and
/// `events.sqlog` during the run, and at the end a time-sequence graph of each flow, `FLOW_tsg.xpl`
/// and `FLOW.svg`.
///
/// The memory used does not grow with the number of packets. After an error nothing more is
/// written, and [`finish`](Recorder::finish) returns the error.
#[derive(Debug)]
pub struct Recorder {
    dir: PathBuf,
    nodes: Vec<NodeInfo>,
    packets: capture::Writer,
    events: sqlog::Writer,
    error: Option<TraceError>,
}

/// The files that a [`Recorder`] wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// All files, in the order of writing.
    pub files: Vec<PathBuf>,
    /// The number of flows with data that have no picture, because other flows have more data.
    pub without_picture: usize,
}

impl Recorder {
    /// Starts a trace of `nodes` in the directory `dir`, which is created if it does not exist.
    ///
    /// `origin` is the time of [`Instant::ZERO`], since the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`TraceError::File`] if the files cannot be created, [`TraceError::Taken`] if the directory
    /// contains an earlier trace, [`TraceError::NodeName`] if two nodes have the same name.
    pub fn create(
        dir: &Path,
        title: &str,
        nodes: &[NodeInfo],
        origin: Duration,
    ) -> Result<Self, TraceError> {
        check_names(nodes)?;
        fs::create_dir_all(dir).map_err(TraceError::file(dir))?;
        if is_trace(dir) {
            return Err(TraceError::Taken(dir.to_owned()));
        }
        let path = dir.join(PACKETS);
        let packets = capture::Writer::create(&path, title, nodes, origin)
            .map_err(TraceError::file(&path))?;
        let events = sqlog::Writer::create(&dir.join(EVENTS), title, nodes, origin)?;
        let (dir, nodes) = (dir.to_owned(), nodes.to_vec());
        Ok(Self { dir, nodes, packets, events, error: None })
    }

    /// Ends the trace and draws its flows.
    ///
    /// # Errors
    ///
    /// The first error since the trace was started.
    pub fn finish(self) -> Result<Written, TraceError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (packets, events) = (self.dir.join(PACKETS), self.dir.join(EVENTS));
        self.packets.finish().map_err(TraceError::file(&packets))?;
        self.events.finish()?;
        let mut written = Written { files: vec![packets, events], without_picture: 0 };
        let trace = plot::read(&self.dir)?;
        written.without_picture = trace.flows().len().saturating_sub(MAX_PICTURES);
        written.files.extend(trace.draw_all(&self.dir, MAX_PICTURES)?);
        Ok(written)
    }

    fn keep(&mut self, result: Result<(), TraceError>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    fn packet(
        &mut self,
        node: NodeId,
        write: impl FnOnce(&mut capture::Writer) -> std::io::Result<()>,
    ) -> Result<(), TraceError> {
        if node.0 as usize >= self.nodes.len() {
            return Err(TraceError::UnknownNode(node.0));
        }
        write(&mut self.packets).map_err(TraceError::file(&self.dir.join(PACKETS)))
    }
}

impl Observer for Recorder {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        // Links and stations forward packets that the captures of the hosts already contain.
        let passes_on =
            self.nodes.get(node.0 as usize).is_some_and(|node| node.kind != NodeKind::Host);
        if self.error.is_none() && !passes_on {
            let result = self.packet(node, |file| file.crossing(now, node, crossing, &packet.data));
            self.keep(result);
        }
    }

    fn on_event(&mut self, node: NodeId, event: &Event) {
        if self.error.is_some() {
            return;
        }
        if let EventKind::Packet { fate, packet } = &event.kind {
            let result = self.packet(node, |file| file.fate(event.at, node, fate, &packet.data));
            self.keep(result);
        }
        let result = self.events.event(node, event);
        self.keep(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_trace_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let nodes = [NodeInfo { name: "a".to_owned(), kind: NodeKind::Host }];
        let create = || Recorder::create(dir.path(), "a test", &nodes, Duration::ZERO);
        create().unwrap().finish().unwrap();
        let before = fs::read(dir.path().join(PACKETS)).unwrap();
        let error = create().unwrap_err().to_string();
        assert!(error.ends_with("already has a trace: use another directory, or remove it"));
        assert_eq!(fs::read(dir.path().join(PACKETS)).unwrap(), before);
    }
}
