//! Errors of experiments, sweeps and results.

use std::io;
use std::path::PathBuf;

/// The reasons why an experiment cannot be completed or its output cannot be written.
///
/// A claim that does not hold is not an error: it has a [`Verdict`](crate::Verdict).
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum LabError {
    /// No experiment matches that name or pattern.
    #[error(
        "no experiment `{pattern}`: use names of `airtcp lab list`, or a pattern such as 'self/*'{}",
        meant(pattern)
    )]
    Unknown {
        /// The requested name or pattern.
        pattern: String,
    },
    /// A link description in an experiment is invalid.
    #[error("link `{text}`: {source}")]
    Spec {
        /// The description.
        text: String,
        /// The position of the mistake.
        source: airtcp_link::SpecError,
    },
    /// A link cannot be created.
    #[error(transparent)]
    Link(#[from] airtcp_link::LinkError),
    /// The settings of a base station contradict each other.
    #[error(transparent)]
    Station(#[from] airtcp_basestation::station::StationError),
    /// A scenario cannot be run.
    #[error(transparent)]
    Sim(#[from] airtcp_sim::SimError),
    /// The network of namespaces cannot be created, or it failed.
    #[error(transparent)]
    Testbed(#[from] airtcp_testbed::TestbedError),
    /// A transfer with real packets failed.
    #[error("the transfer broke: {0}")]
    Transfer(#[source] io::Error),
    /// The measured distribution cannot be compared with a theory: a mistake in the experiment.
    #[error("no distribution: {0}")]
    Distribution(String),
    /// A combination of strategies does not exist.
    #[error(transparent)]
    Combination(#[from] airtcp_recovery::CombinationError),
    /// A record cannot be encoded as JSON.
    #[error("a record: {0}")]
    Record(#[from] serde_json::Error),
    /// A file or folder with results cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line of a file is not a summary of an experiment.
    #[error("{}:{line}: not a summary of an experiment: {source}; remove the file, or run the experiment again", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
    /// The records of an earlier run are not those of this experiment.
    #[error("{}:{line}: {what}: run the experiment again, without --records", path.display())]
    Records {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The mistake.
        what: String,
    },
    /// A folder contains no results.
    #[error("{}: no results of `airtcp lab run --out` in it", path.display())]
    NoResults {
        /// The folder.
        path: PathBuf,
    },
    /// An axis of a sweep is invalid.
    #[error("axis `{axis}`: {what}")]
    Axis {
        /// The axis's name.
        axis: String,
        /// The mistake, and the remedy.
        what: String,
    },
    /// A sweep cannot be created.
    #[error("{0}")]
    Sweep(String),
    /// A shard of a sweep is missing or invalid.
    #[error("{}: {what}", path.display())]
    Shard {
        /// The shard's file.
        path: PathBuf,
        /// The mistake, and the remedy.
        what: String,
    },
    /// Output cannot be written.
    #[error("writing: {0}")]
    Output(#[source] io::Error),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Suggests the experiments of a group, those with this name in any group, or the one with the most
/// similar name.
fn meant(pattern: &str) -> String {
    let names = || crate::EXPERIMENTS.iter().map(|experiment| experiment.name);
    let parts = || names().filter_map(|name| name.split_once('/'));
    if let Some((group, _)) = parts().find(|(group, _)| group.eq_ignore_ascii_case(pattern)) {
        return format!("; for all of this group: '{group}/*'");
    }
    let is_same = |name: &&str| {
        name.split_once('/').is_some_and(|(_, own)| own.eq_ignore_ascii_case(pattern))
    };
    let mut meant: Vec<_> = names().filter(is_same).map(|name| format!("`{name}`")).collect();
    if meant.is_empty() {
        meant.extend(airtcp_types::nearest(pattern, names()).map(|name| format!("`{name}`")));
    }
    match meant.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}
