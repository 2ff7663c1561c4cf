//! Answers `airtcp ss` at a control socket: the connections of a stack.

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

/// The most connections of an answer: packets wait while it is made.
const MOST: usize = 1_000;

/// What a stack can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// How every connection stands.
    Connections,
}

/// The stacks of a command, as they are asked about.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) command: &'static str,
    pub(crate) device: String,
    /// One for each queue of the device.
    pub(crate) stacks: Vec<Stack>,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    command: &'static str,
    device: &'a str,
    pid: u32,
    /// Of the host's memory, by all sockets.
    held: ByteCount,
    /// Those that are not listed, too.
    connections_total: usize,
    connections: Vec<Connection>,
}

#[derive(Debug, Serialize)]
struct Connection {
    local: SocketAddr,
    peer: SocketAddr,
    /// The queue of the device that it is at, where that has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<usize>,
    /// By the name that `ss` prints.
    state: &'static str,
    held: ByteCount,
    info: Option<Info>,
    /// What `ss -ti` prints below a connection.
    tokens: String,
}

impl Served {
    /// Answers at `path`, for as long as the runtime lives.
    ///
    /// # Errors
    /// The socket cannot be made.
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

    /// As [`listen`](Self::listen), where `ss` looks by itself, if that can be had: nobody asked
    /// for it.
    pub(crate) fn listen_by_default(self) {
        by_default(&self.device, |path| self.clone().listen(path));
    }

    /// The connections, as `ss` prints them.
    ///
    /// # Errors
    /// There is none; it is that of JSON.
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

/// Has a command listen at the path of this name where `ss` looks, if that can be had: nobody asked
/// for it.
pub(crate) fn by_default(name: &str, listen: impl Fn(&Path) -> anyhow::Result<()>) {
    // Another namespace may have a device of the same name.
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
