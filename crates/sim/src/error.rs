//! Errors of scenarios.

use airtcp_link::LinkError;
use airtcp_stack::HostError;

use crate::Stuck;

/// The reason why a scenario cannot be run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SimError {
    /// A value is invalid.
    #[error("{place}: {what}")]
    Senseless {
        /// The invalid part: `scenario`, `topology`, ``link `NAME` `` or ``flow `NAME` ``.
        place: String,
        /// The problem, and what to do.
        what: String,
    },
    /// A link cannot be created.
    #[error("link `{name}`: {source}")]
    Link {
        /// The link's name.
        name: String,
        /// The reason.
        source: LinkError,
    },
    /// A socket call of an application failed.
    #[error("flow `{flow}`: {source}")]
    Host {
        /// The name of the flow.
        flow: String,
        /// The reason.
        source: HostError,
    },
    /// The simulated time does not advance.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// The received data differs from the sent data.
    #[error(
        "flow `{flow}`: the byte at {offset} of its stream arrived corrupted: a bug of the stack"
    )]
    Content {
        /// The name of the flow.
        flow: String,
        /// The position in its stream.
        offset: u64,
    },
    /// A scenario file is invalid.
    #[error("{place}: {what}")]
    File {
        /// The position: `name:line:column`.
        place: String,
        /// The problem, and what is valid.
        what: String,
    },
    /// A setting that overrides a value of the file is invalid.
    #[error("`{setting}`: {what}")]
    Setting {
        /// The setting.
        setting: String,
        /// The problem, and what is valid.
        what: String,
    },
    /// The run was cancelled with [`Cancel`](crate::Cancel).
    #[error("cancelled")]
    Cancelled,
    /// Threads cannot be started.
    #[error("starting threads: {0}")]
    Threads(String),
}
