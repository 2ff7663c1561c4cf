//! Errors of reports.

use std::io;
use std::path::{Path, PathBuf};

use airtcp_trace::TraceError;

/// Why there is no report. Every message is one line and names the file.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or directory could not be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line of a file is not what it should be.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file is too long to be shown.
    #[error("{}: larger than {} MiB: remove it, or choose another directory", path.display(), most >> 20)]
    Long {
        /// The file.
        path: PathBuf,
        /// The longest file that is read, in bytes.
        most: u64,
    },
    /// A file has a format that reports do not show.
    #[error(
        "{}: not a result: expected a directory, or a .json, .jsonl, .toml, .svg, .pcap, .pcapng or .sqlog file",
        .0.display()
    )]
    Format(PathBuf),
    /// A directory has nothing to show.
    #[error(
        "{}: no results in it: expected a trace, results of `airtcp lab run --out`, or .json, .jsonl, .toml, .svg, .pcap or \
         .pcapng files",
        .0.display()
    )]
    Empty(PathBuf),
    /// The page would be written over results.
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
    /// Turns an error of a file into one that names it.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source }
    }

    /// An error of JSON that starts at a line of a file.
    pub(crate) fn json(path: &Path, line: usize, error: &serde_json::Error) -> Self {
        let text = error.to_string();
        // The place stands before the reason already.
        let reason = text.split(" at line ").next().unwrap_or_default().to_owned();
        Self::Line { path: path.to_owned(), line: line + error.line().saturating_sub(1), reason }
    }
}
