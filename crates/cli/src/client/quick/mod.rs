//! `quickserve` and `quickget`: files over RRTP, the kernel's TCP or this stack's, by the same
//! commands.
//!
//! All transports carry HTTP, as `get` does, and interrupted transfers are resumed with ranges and
//! entity tags.

pub(crate) mod args;
pub(crate) mod get;
mod line;
mod network;
mod patient;
pub(crate) mod serve;

pub(crate) use network::Network;
