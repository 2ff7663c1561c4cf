//! Listens on a control socket, and answers requests.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as Blocking;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Answer;

/// The maximum length of a request, in bytes.
const LONGEST: u64 = 4096;
/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of requests that wait for the command; further ones wait at the socket.
const WAITING: usize = 16;
/// The accept backlog.
const BACKLOG: u32 = 128;

/// A request whose client waits for the response.
#[derive(Debug)]
pub(crate) struct Ask<R> {
    pub(crate) request: R,
    reply: oneshot::Sender<Answer>,
}

impl<R> Ask<R> {
    /// Sends the response.
    pub(crate) fn answer(self, answer: anyhow::Result<Value>) {
        // The client may have closed the connection.
        let _ = self.reply.send(match answer {
            Ok(value) => Answer::Ok(value),
            Err(error) => Answer::Error(error.to_string()),
        });
    }
}

/// A listening socket. Its file is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Control<R> {
    path: PathBuf,
    inode: Option<u64>,
    asks: mpsc::Receiver<Ask<R>>,
    accepts: JoinHandle<()>,
}

impl<R: Serialize + DeserializeOwned + Send + 'static> Control<R> {
    /// Listens on `path`, which its owner and group may use. Invalid requests are answered with the
    /// `example`. A socket that no process listens on is replaced.
    ///
    /// # Errors
    /// Another process listens there; the file cannot be created.
    pub(crate) fn open(path: &Path, example: R) -> anyhow::Result<Self> {
        let example = serde_json::to_string(&example)?;
        let name = path.display();
        if let Ok(there) = fs::symlink_metadata(path) {
            if !there.file_type().is_socket() {
                bail!("--control {name} exists and is not a socket: choose another name");
            }
            match Blocking::connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error).with_context(|| format!("--control {name}")),
                Ok(_) => {
                    bail!("--control {name} is in use by another process: choose another name")
                }
            }
            fs::remove_file(path).with_context(|| format!("--control {name}"))?;
        }
        let socket = UnixSocket::new_stream().with_context(|| format!("--control {name}"))?;
        socket.bind(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                anyhow!(
                    "--control {name}: the directory does not exist: create it, or choose another path"
                )
            }
            _ => anyhow!("--control {name}: {error}"),
        })?;
        let mode = fs::Permissions::from_mode(0o660);
        fs::set_permissions(path, mode).with_context(|| format!("--control {name}"))?;
        // Listen only now: with any umask, no client could connect before the mode was set.
        let listener = socket.listen(BACKLOG).with_context(|| format!("--control {name}"))?;
        let (sender, asks) = mpsc::channel(WAITING);
        let accepts = tokio::spawn(accept(listener, sender, example.into()));
        Ok(Self { path: path.to_owned(), inode: inode(path), asks, accepts })
    }
}

impl<R> Drop for Control<R> {
    fn drop(&mut self) {
        self.accepts.abort();
        // Another process may have replaced the file.
        if self.inode.is_some() && inode(&self.path) == self.inode {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|there| there.ino())
}

/// Waits for the next request; forever without a socket.
pub(crate) async fn asked<R>(control: Option<&mut Control<R>>) -> Ask<R> {
    if let Some(control) = control
        && let Some(ask) = control.asks.recv().await
    {
        return ask;
    }
    std::future::pending().await
}

async fn accept<R: DeserializeOwned + Send + 'static>(
    listener: UnixListener,
    asks: mpsc::Sender<Ask<R>>,
    example: Arc<str>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(talk(stream, asks.clone(), example.clone()))),
            Err(error) => {
                // Usually the process has no free descriptors: wait until others are closed.
                tracing::warn!(%error, "the control socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Answers the requests of a client until it closes the connection, is silent, or sends a line that
/// is too long.
async fn talk<R: DeserializeOwned>(
    stream: UnixStream,
    asks: mpsc::Sender<Ask<R>>,
    example: Arc<str>,
) {
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
            Err(error) => Answer::Error(format!("{error}; a request is such as {example}")),
        };
        let Ok(mut text) = serde_json::to_string(&answer) else { return };
        text.push('\n');
        let written = timeout(PATIENCE, write.write_all(text.as_bytes())).await;
        if !matches!(written, Ok(Ok(()))) || !line.ends_with('\n') {
            return;
        }
    }
}

async fn ask<R>(request: R, asks: &mpsc::Sender<Ask<R>>) -> Answer {
    let (reply, answer) = oneshot::channel();
    let is_asked = asks.send(Ask { request, reply }).await.is_ok();
    match answer.await {
        Ok(answer) if is_asked => answer,
        _ => Answer::Error("the process is stopping".to_owned()),
    }
}
