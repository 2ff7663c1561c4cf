//! Errors of traces.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a trace. Every message is one line with the file and position.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line of an event log is invalid.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line number; the first line is 1.
        line: u64,
        /// The problem.
        reason: String,
    },
    /// A capture is invalid.
    #[error("{}: byte {at}: {reason}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The position in bytes of the block or packet with the error.
        at: u64,
        /// The problem.
        reason: String,
    },
    /// The directory contains an earlier trace, which would be overwritten.
    #[error("{} already has a trace: use another directory, or remove it", .0.display())]
    Taken(PathBuf),
    /// Two nodes of a trace have the same name.
    #[error("two nodes of the trace have the name {0:?}: use distinct names")]
    NodeName(String),
    /// The observer received a node that is not in the trace's list of nodes.
    #[error("node {0} is not in the trace's list of nodes")]
    UnknownNode(u32),
    /// The event log has no representation of this kind of event.
    #[error("the event log has no representation of {0}")]
    UnknownEvent(String),
    /// The capture that belongs to an event log is missing: the packets are drawn.
    #[error("{}: the packets of this event log are missing: {} does not exist", log.display(), packets.display())]
    NoPackets {
        /// The event log.
        log: PathBuf,
        /// The expected path of the capture.
        packets: PathBuf,
    },
    /// The trace has no TCP connection with data.
    #[error("{}: no TCP connection with data in it", .0.display())]
    NoFlow(PathBuf),
    /// The trace has no flow with this number.
    #[error("there is no flow {number}: the trace has flows 1 to {count}")]
    NoSuchFlow {
        /// The requested number.
        number: usize,
        /// The number of flows.
        count: usize,
    },
    /// The interval to draw contains no part of the flow.
    #[error(
        "the interval from {from:.3} s to {to:.3} s has nothing of the flow, which lasts from {first:.3} s to {last:.3} s: \
         choose a start before the end, within the flow"
    )]
    Window {
        /// The start of the interval, in seconds.
        from: f64,
        /// The end of the interval, in seconds.
        to: f64,
        /// The time of the flow's first packet, in seconds.
        first: f64,
        /// The time of the flow's last packet, in seconds.
        last: f64,
    },
}

impl TraceError {
    /// Returns a conversion of I/O errors that adds the path.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source }
    }
}
