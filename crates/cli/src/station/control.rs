//! The control socket of a running base station.
//!
//! Whoever connects writes a line of JSON for each request, `{"command": "status"}`, and reads one for its answer,
//! `{"ok": ...}` or `{"error": "why"}`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as Blocking;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airtcp_basestation::Policy;
use airtcp_device::{Driver, Tun};
use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::middle::Middle;
use super::report::Report;

/// The longest request.
const LONGEST: u64 = 4096;
/// How long somebody who is connected may say nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who waits for an answer at a time; others wait for their turn.
const WAITING: usize = 16;

/// The most flows of an answer: packets wait while it is written.
const MOST_FLOWS: usize = 1_000;

/// What a base station can be asked and told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub(super) enum Request {
    /// How it stands, and its counters
    Status,
    /// The thousand flows that were used last
    Flows,
    /// The mobile is about to leave: windows are closed, and what is under way still reaches it
    Freeze,
    /// The mobile is gone
    Disconnect,
    /// The mobile is back, or stays
    Reconnect,
}

/// An answer as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Ok(Value),
    Error(String),
}

/// A request that somebody waits for the answer to.
#[derive(Debug)]
pub(super) struct Ask {
    request: Request,
    reply: oneshot::Sender<Answer>,
}

impl Ask {
    /// Does what is asked.
    pub(super) fn answer(self, driver: &mut Driver<Middle, Tun>) {
        // Whoever asked may have gone.
        let _ = self.reply.send(
            answer(self.request, driver).unwrap_or_else(|error| Answer::Error(error.to_string())),
        );
    }
}

fn answer(request: Request, driver: &mut Driver<Middle, Tun>) -> anyhow::Result<Answer> {
    let now = driver.clock().now();
    let Middle::Station(station) = driver.node_mut() else { bail!("there is no radio here") };
    match request {
        Request::Status => {}
        Request::Flows => {
            return Ok(Answer::Ok(serde_json::to_value(station.flows(MOST_FLOWS))?));
        }
        Request::Freeze if station.policy() != Policy::TcpEcn => {
            let name = station.policy().name();
            bail!("windows are closed with the policy tcp-ecn, and here it is {name}")
        }
        Request::Freeze => station.freeze(now),
        Request::Disconnect => station.disconnect(now),
        Request::Reconnect => station.reconnect(now),
    }
    tracing::debug!(?request, "by the control socket");
    Ok(Answer::Ok(serde_json::to_value(Report::of(driver))?))
}

/// A socket that is listened on. Its file goes with it.
#[derive(Debug)]
pub(super) struct Control {
    path: PathBuf,
    inode: Option<u64>,
    asks: mpsc::Receiver<Ask>,
    accepts: JoinHandle<()>,
}

impl Control {
    /// Listens on `path`, which its owner and group may use. A socket that nobody listens on any more is taken over.
    ///
    /// # Errors
    /// Somebody else listens there; the file cannot be made.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        if let Ok(there) = fs::symlink_metadata(path) {
            if !there.file_type().is_socket() {
                bail!("--control {name} is there and is no socket: choose another name");
            }
            match Blocking::connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error).with_context(|| format!("--control {name}")),
                Ok(_) => bail!("--control {name} is another base station's: choose another name"),
            }
            fs::remove_file(path).with_context(|| format!("--control {name}"))?;
        }
        let listener = UnixListener::bind(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                anyhow!(
                    "--control {name}: its directory is not there: make it, or choose another path"
                )
            }
            _ => anyhow!("--control {name}: {error}"),
        })?;
        let mode = fs::Permissions::from_mode(0o660);
        fs::set_permissions(path, mode).with_context(|| format!("--control {name}"))?;
        let (sender, asks) = mpsc::channel(WAITING);
        let accepts = tokio::spawn(accept(listener, sender));
        Ok(Self { path: path.to_owned(), inode: inode(path), asks, accepts })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.accepts.abort();
        // If it is still this one's.
        if self.inode.is_some() && inode(&self.path) == self.inode {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|there| there.ino())
}

/// The next request; never, where there is no socket.
pub(super) async fn asked(control: Option<&mut Control>) -> Ask {
    if let Some(control) = control
        && let Some(ask) = control.asks.recv().await
    {
        return ask;
    }
    std::future::pending().await
}

async fn accept(listener: UnixListener, asks: mpsc::Sender<Ask>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(talk(stream, asks.clone()))),
            Err(error) => {
                // Out of descriptors, for the most part: others have to go first.
                tracing::warn!(%error, "the control socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Answers request after request, until the other end is gone, is silent, or says something too long.
async fn talk(stream: UnixStream, asks: mpsc::Sender<Ask>) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    loop {
        let mut line = String::new();
        let mut limited = (&mut lines).take(LONGEST);
        match timeout(PATIENCE, limited.read_line(&mut line)).await {
            Ok(Ok(1..)) => {}
            _ => return,
        }
        let answer = match serde_json::from_str(&line) {
            Ok(request) => ask(request, &asks).await,
            Err(error) => {
                Answer::Error(format!("{error}; a request is such as {{\"command\": \"status\"}}"))
            }
        };
        let Ok(mut text) = serde_json::to_string(&answer) else { return };
        text.push('\n');
        let is_told = timeout(PATIENCE, write.write_all(text.as_bytes())).await;
        if !matches!(is_told, Ok(Ok(()))) || !line.ends_with('\n') {
            return;
        }
    }
}

async fn ask(request: Request, asks: &mpsc::Sender<Ask>) -> Answer {
    let (reply, answer) = oneshot::channel();
    let is_asked = asks.send(Ask { request, reply }).await.is_ok();
    match answer.await {
        Ok(answer) if is_asked => answer,
        _ => Answer::Error("the base station ends".to_owned()),
    }
}
