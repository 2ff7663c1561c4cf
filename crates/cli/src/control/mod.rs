//! A control socket: a Unix socket that queries and changes a running command.
//!
//! Whoever connects writes a line of JSON for each request, `{"command": "status"}`, and reads one
//! for its answer, `{"ok": ...}` or `{"error": "why"}`.

mod ask;
mod server;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use ask::{Asker, NobodyThere};
pub(crate) use server::{Control, asked};

/// An answer as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Ok(Value),
    Error(String),
}
