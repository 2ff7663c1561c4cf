//! What can be wrong with a scenario.

use airtcp_link::LinkError;
use airtcp_stack::HostError;

use crate::Stuck;

/// Why a scenario cannot be run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SimError {
    /// It asks for something senseless.
    #[error("{place}: {what}")]
    Senseless {
        /// Which part of it: `scenario`, `topology`, ``link `NAME` `` or ``flow `NAME` ``.
        place: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A link of it cannot be made.
    #[error("link `{name}`: {source}")]
    Link {
        /// The link's name.
        name: String,
        /// Why.
        source: LinkError,
    },
    /// A host refused what an application asked of it.
    #[error("flow `{flow}`: {source}")]
    Host {
        /// The flow.
        flow: String,
        /// Why.
        source: HostError,
    },
    /// Nothing takes time.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// What arrived is not what was sent.
    #[error(
        "flow `{flow}`: the byte at {offset} of its stream arrived corrupted: a bug of the stack"
    )]
    Content {
        /// The flow.
        flow: String,
        /// Where in its stream.
        offset: u64,
    },
    /// A scenario file is not understood.
    #[error("{place}: {what}")]
    File {
        /// `name:line:column`.
        place: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A value set beside the file is not understood.
    #[error("`{setting}`: {what}")]
    Setting {
        /// The setting.
        setting: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// There can be no threads to run on.
    #[error("starting threads: {0}")]
    Threads(String),
}
