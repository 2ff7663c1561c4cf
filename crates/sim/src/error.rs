//! What can be wrong with a scenario.

use airtcp_link::LinkError;
use airtcp_stack::HostError;

/// Why a scenario cannot be run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SimError {
    /// It asks for something senseless.
    #[error("{place}: {what}")]
    Senseless {
        /// Which part of it: `scenario`, `topology`, or ``flow `NAME` ``.
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
    #[error("host `{name}`: {source}")]
    Host {
        /// The host's name.
        name: String,
        /// Why.
        source: HostError,
    },
    /// What arrived is not what was sent.
    #[error(
        "flow `{flow}`: the byte at {offset} of its stream is wrong on arrival: a fault of the stack"
    )]
    Content {
        /// The flow.
        flow: String,
        /// Where in its stream.
        offset: u64,
    },
}
