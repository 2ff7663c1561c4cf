//! `get`, `put` and `connect`: calls over a stack of the command's own; `quickget` and `quickserve`
//! also over what the kernel has.
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
