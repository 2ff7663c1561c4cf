//! Errors of experiments, sweeps and results.

use std::io;
use std::path::PathBuf;

/// Why an experiment did not run to its end, or left nothing behind.
///
/// A claim that does not hold is none of these: it is a [`Verdict`](crate::Verdict).
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum LabError {
    /// No experiment has that name, or matches that pattern.
    #[error(
        "no experiment `{pattern}`: use names of `airtcp lab list`, or a pattern such as 'self/*'{}",
        meant(pattern)
    )]
    Unknown {
        /// What was asked for.
        pattern: String,
    },
    /// A description of a link in an experiment is wrong.
    #[error("link `{text}`: {source}")]
    Spec {
        /// The description.
        text: String,
        /// Where it is wrong.
        source: airtcp_link::SpecError,
    },
    /// A link could not be made.
    #[error(transparent)]
    Link(#[from] airtcp_link::LinkError),
    /// The settings of a base station contradict each other.
    #[error(transparent)]
    Station(#[from] airtcp_basestation::station::StationError),
    /// A scenario could not be run.
    #[error(transparent)]
    Sim(#[from] airtcp_sim::SimError),
    /// There can be no network of namespaces, or it broke.
    #[error(transparent)]
    Testbed(#[from] airtcp_testbed::TestbedError),
    /// A transfer with real packets broke.
    #[error("the transfer broke: {0}")]
    Transfer(#[source] io::Error),
    /// What was measured has no theory beside it: a mistake in the experiment.
    #[error("no distribution: {0}")]
    Distribution(String),
    /// There are no such strategies.
    #[error(transparent)]
    Combination(#[from] airtcp_recovery::CombinationError),
    /// A record has no form in JSON.
    #[error("a record: {0}")]
    Record(#[from] serde_json::Error),
    /// A file or folder with results could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line of a file is no summary of an experiment.
    #[error("{}:{line}: not a summary of an experiment: {source}; remove the file, or run the experiment again", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A folder has no results in it.
    #[error("{}: no results of `airtcp lab run --out` in it", path.display())]
    NoResults {
        /// The folder.
        path: PathBuf,
    },
    /// An axis of a sweep is wrong.
    #[error("axis `{axis}`: {what}")]
    Axis {
        /// Its name.
        axis: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A sweep cannot be made.
    #[error("{0}")]
    Sweep(String),
    /// A shard of a sweep is missing, or is not what it should be.
    #[error("{}: {what}", path.display())]
    Shard {
        /// Its file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// Output could not be written.
    #[error("writing: {0}")]
    Output(#[source] io::Error),
    /// A file could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The name that may have been meant.
fn meant(pattern: &str) -> String {
    let names = crate::EXPERIMENTS.iter().map(|experiment| experiment.name);
    let meant = airtcp_types::nearest(pattern, names);
    meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"))
}
