//! `quickserve` and `quickget`: files over RRTP, the kernel's TCP or this stack's, by the same
//! commands.
//!
//! What is said is HTTP, as of `get`: whatever carries it, a transfer that broke off is gone on
//! with by ranges and tags.

pub(crate) mod args;
pub(crate) mod get;
mod line;
mod network;
mod patient;
pub(crate) mod serve;

pub(crate) use network::Network;
