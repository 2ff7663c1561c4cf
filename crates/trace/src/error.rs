//! Errors of traces.

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with a trace. Every message is one line and names the place.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line of an event log is not what it should be.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A capture is not what it should be.
    #[error("{}: byte {at}: {reason}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Where the block or packet starts that is wrong.
        at: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// What was recorded there would be lost.
    #[error("{} already has a trace: use another directory, or remove it", .0.display())]
    Taken(PathBuf),
    /// Two nodes of a trace have one name.
    #[error("two nodes of the trace have the name {0:?}: use distinct names")]
    NodeName(String),
    /// An observer was shown a node that the trace was not begun with.
    #[error("node {0} is not in the trace's list of nodes")]
    UnknownNode(u32),
    /// An event of a kind that the log has no words for.
    #[error("the event log has no representation of {0}")]
    UnknownEvent(String),
    /// An event log is alone: what is drawn are the packets.
    #[error("{}: the packets of this event log are missing: {} does not exist", log.display(), packets.display())]
    NoPackets {
        /// The event log.
        log: PathBuf,
        /// Where the capture should be.
        packets: PathBuf,
    },
    /// There is nothing to draw.
    #[error("{}: no TCP connection with data in it", .0.display())]
    NoFlow(PathBuf),
    /// There is no flow of that number.
    #[error("there is no flow {number}: the trace has flows 1 to {count}")]
    NoSuchFlow {
        /// The number asked for.
        number: usize,
        /// How many there are.
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
    /// Turns an error of a file into one that names it.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source }
    }
}
