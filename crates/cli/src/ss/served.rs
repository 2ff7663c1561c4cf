//! Answers `airtcp ss` at a control socket with the connections of a stack.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use airtcp_net::Stack;
use airtcp_stack::host::Listed;
use airtcp_stack::tcp::Info;
use airtcp_types::ByteCount;
use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::default_path;
use crate::control::{Control, asked};

/// The maximum number of connections in a response. Packets wait while it is created.
const MOST: usize = 1_000;

/// A request to a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// The state of all connections.
    Connections,
}

/// The stacks of a command, for requests about them.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) command: &'static str,
    pub(crate) device: String,
    /// One per queue of the device.
    pub(crate) stacks: Vec<Stack>,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    command: &'static str,
    device: &'a str,
    pid: u32,
    /// The memory of all sockets.
    held: ByteCount,
    /// Including those that are not listed.
    connections_total: usize,
    connections: Vec<Connection>,
}

#[derive(Debug, Serialize)]
struct Connection {
    local: SocketAddr,
    peer: SocketAddr,
    /// The queue of the device that the connection uses, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<usize>,
    /// With the name that `ss` prints.
    state: &'static str,
    held: ByteCount,
    info: Option<Info>,
    /// The line that `ss -ti` prints below a connection.
    tokens: String,
}

impl Served {
    /// Answers requests at `path` until the runtime ends.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub(crate) fn listen(self, path: &Path) -> anyhow::Result<()> {
        let mut control = Control::open(path, Request::Connections)?;
        tokio::spawn(async move {
            loop {
                let ask = asked(Some(&mut control)).await;
                let Request::Connections = ask.request;
                ask.answer(self.answer());
            }
        });
        Ok(())
    }

    /// As [`listen`](Self::listen), at the default path of `ss`. Failures are only logged, since
    /// the user did not request the socket.
    pub(crate) fn listen_by_default(self) {
        by_default(&self.device, |path| self.clone().listen(path));
    }

    /// Returns the connections for `ss`.
    ///
    /// # Errors
    /// None in practice: only those of JSON encoding.
    pub(crate) fn answer(&self) -> anyhow::Result<serde_json::Value> {
        let (mut connections, mut total) = (Vec::new(), 0);
        for (queue, stack) in self.stacks.iter().enumerate() {
            let room = MOST - connections.len();
            let listed = stack.listing(room);
            total += if listed.len() == room { stack.connections().len() } else { listed.len() };
            let queue = (self.stacks.len() > 1).then_some(queue);
            connections.extend(listed.into_iter().map(|listed| Connection::of(listed, queue)));
        }
        Ok(serde_json::to_value(Answer {
            command: self.command,
            device: &self.device,
            pid: std::process::id(),
            held: self.stacks.iter().map(Stack::held).sum(),
            connections_total: total,
            connections,
        })?)
    }
}

/// Has a command listen at the default path for `name`. Failures are only logged, since the user
/// did not request the socket.
pub(crate) fn by_default(name: &str, listen: impl Fn(&Path) -> anyhow::Result<()>) {
    // Another network namespace may have a device of the same name.
    let with_pid = format!("{name}-{}", std::process::id());
    let Some(path) = default_path(name) else { return };
    let made = match path.parent().map(fs::create_dir_all) {
        Some(Err(error)) => Err(error).context("making its directory"),
        _ => listen(&path).or_else(|error| match default_path(&with_pid) {
            Some(path) => listen(&path),
            None => Err(error),
        }),
    };
    if let Err(error) = made {
        tracing::info!("`airtcp ss` will not find this: {error:#}");
    }
}

impl Connection {
    fn of(listed: Listed, queue: Option<usize>) -> Self {
        let Listed { local, peer, state, held, info, .. } = listed;
        // The first token is the state.
        let line = info.as_ref().map_or(String::new(), ToString::to_string);
        let tokens = line.split_once(' ').map_or(String::new(), |(_, tokens)| tokens.to_owned());
        Self { local, peer, queue, state: state.ss_name(), held, info, tokens }
    }
}
