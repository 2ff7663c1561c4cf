//! `get`, `put` and `connect` run over a stack of the command's own; `quickget` and `quickserve`
//! also run over the kernel's UDP and TCP.
//!
//! Not here, because there is no TLS over this stack: https.

pub(crate) mod args;
pub(crate) mod connect;
mod exchange;
pub(crate) mod get;
mod heard;
mod held;
mod place;
pub(crate) mod put;
pub(crate) mod quick;
mod report;
mod session;
mod sink;
mod url;
