//! A control socket: a Unix socket that queries and changes a running command.
//!
//! A client writes each request as a line of JSON, `{"command": "status"}`, and reads a line with
//! its response, `{"ok": ...}` or `{"error": "why"}`.

mod ask;
mod server;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use ask::{Asker, NobodyThere};
pub(crate) use server::{Control, asked};

/// A response, as written to the socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Ok(Value),
    Error(String),
}
