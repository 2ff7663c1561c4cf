//! Errors of reports.

use std::io;
use std::path::{Path, PathBuf};

use airtcp_trace::TraceError;

/// The reason why a report cannot be created. Every message is one line and names the file.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or directory could not be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line of a file is invalid.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line number; the first line is 1.
        line: usize,
        /// The problem.
        reason: String,
    },
    /// A file is too long.
    #[error("{}: larger than {} MiB: remove it, or choose another directory", path.display(), most >> 20)]
    Long {
        /// The file.
        path: PathBuf,
        /// The maximum size in bytes.
        most: u64,
    },
    /// A file has a format that reports do not support.
    #[error(
        "{}: not a result: expected a directory, or a .json, .jsonl, .toml, .svg, .pcap, .pcapng or .sqlog file",
        .0.display()
    )]
    Format(PathBuf),
    /// A directory contains no results.
    #[error(
        "{}: no results in it: expected a trace, results of `airtcp lab run --out`, or .json, .jsonl, .toml, .svg, .pcap or \
         .pcapng files",
        .0.display()
    )]
    Empty(PathBuf),
    /// The page would overwrite results.
    #[error(
        "{}: has results, which the page would overwrite: choose another file, as with `-o report.html`",
        .0.display()
    )]
    Output(PathBuf),
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl ReportError {
    /// Returns a conversion of I/O errors that adds the path.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source }
    }

    /// Converts an error of JSON that starts at a line of a file.
    pub(crate) fn json(path: &Path, line: usize, error: &serde_json::Error) -> Self {
        let text = error.to_string();
        // The position is in front of the reason already.
        let reason = text.split(" at line ").next().unwrap_or_default().to_owned();
        Self::Line { path: path.to_owned(), line: line + error.line().saturating_sub(1), reason }
    }
}
