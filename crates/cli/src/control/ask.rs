//! Sends requests to a control socket.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
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
pub(crate) struct NobodyThere {
    name: String,
    /// Whether the socket exists: its process was killed.
    is_left: bool,
}

impl NobodyThere {
    /// Returns this error as that of a kind of `program`, such as `gateway`, with the remedy.
    pub(crate) fn explain(&self, program: &str) -> String {
        let Self { name, is_left } = self;
        match is_left {
            true => format!(
                "the {program} of {name} does not run any more: it ended without removing this socket; start it again, which \
                 replaces the socket"
            ),
            false => format!("no {program} listens on {name}: start one with --control {name}"),
        }
    }

    /// Whether the socket exists: its process was killed.
    pub(crate) const fn is_left(&self) -> bool {
        self.is_left
    }
}

impl fmt::Display for NobodyThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no process listens on {}", self.name)
    }
}

impl Error for NobodyThere {}

impl Asker {
    /// Connects to a control socket.
    ///
    /// # Errors
    /// [`NobodyThere`]; the file is not a socket; the kernel refuses.
    pub(crate) fn connect(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused if !is_socket(path) => {
                anyhow!("{name} is not a socket: name the control socket of a running command")
            }
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                let is_left = error.kind() == ErrorKind::ConnectionRefused;
                anyhow::Error::new(NobodyThere { name: name.clone(), is_left })
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

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| there.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::super::Control;
    use super::*;

    #[tokio::test]
    async fn a_socket_that_was_left_is_named_and_the_next_start_replaces_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let explained = || {
            let error = Asker::connect(&path).map(drop).unwrap_err();
            error.downcast_ref::<NobodyThere>().unwrap().explain("gateway")
        };
        let name = path.display();
        let missing = format!("no gateway listens on {name}: start one with --control {name}");
        assert_eq!(explained(), missing);
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let left = format!("the gateway of {name} does not run any more: ");
        assert!(explained().starts_with(&left), "{}", explained());
        let control = Control::open(&path, "status".to_owned()).unwrap();
        Asker::connect(&path).unwrap();
        drop(control);
        assert_eq!(explained(), missing);
    }

    #[test]
    fn a_file_that_is_no_socket_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Asker::connect(file.path()).map(drop).unwrap_err();
        assert!(error.to_string().contains("is not a socket: name the control"), "{error}");
    }
}
