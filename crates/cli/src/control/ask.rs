//! Sends requests to a control socket.

use std::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use serde_json::Value;

use super::Answer;

/// The maximum time until a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a control socket.
pub(crate) struct Asker {
    stream: BufReader<UnixStream>,
    name: String,
}

/// The error of a socket that does not exist, or that no process listens on.
#[derive(Debug)]
pub(crate) struct NobodyThere(String);

impl fmt::Display for NobodyThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no process listens on {}", self.0)
    }
}

impl Error for NobodyThere {}

impl Asker {
    /// Connects to a control socket.
    ///
    /// # Errors
    /// [`NobodyThere`]; the kernel refuses.
    pub(crate) fn connect(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                anyhow::Error::new(NobodyThere(name.clone()))
            }
            ErrorKind::PermissionDenied => {
                anyhow!("{name} belongs to another user: run this as that user, or with sudo")
            }
            _ => anyhow!("{name}: {error}"),
        })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), name })
    }

    /// Sends a request, and waits for the response.
    ///
    /// # Errors
    /// No response arrives, or the process rejects the request.
    pub(crate) fn ask(&mut self, request: &impl Serialize) -> anyhow::Result<Value> {
        let name = &self.name;
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes()).with_context(|| name.clone())?;
        let mut answer = String::new();
        let read = self.stream.read_line(&mut answer);
        if read.with_context(|| format!("{name} does not answer"))? == 0 {
            bail!("{name} closed the connection");
        }
        let answer = serde_json::from_str(&answer);
        match answer.with_context(|| format!("{name} is not a control socket of airtcp"))? {
            Answer::Ok(value) => Ok(value),
            Answer::Error(error) => bail!("{error}"),
        }
    }
}
