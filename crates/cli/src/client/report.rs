//! What is said of a transfer that is done.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airtcp_stack::TcpStream;
use airtcp_stack::tcp::Info;
use airtcp_types::{ByteCount, Rate};
use serde::Serialize;

use crate::output;

/// A file that was sent or has come.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// What the last redirection led to.
    pub(super) url: String,
    pub(super) file: String,
    pub(super) status: u16,
    /// Of the file.
    pub(super) length: u64,
    pub(super) sha256: String,
    #[serde(flatten)]
    pub(super) course: Course,
}

/// How a connection went.
#[derive(Debug, Serialize)]
pub(super) struct Course {
    /// That went over it, of the file.
    pub(super) bytes: u64,
    /// From the first SYN to the last byte.
    pub(super) seconds: f64,
    pub(super) bits_per_second: u64,
    /// Of this end, in segments.
    pub(super) retransmissions: u64,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// At the end, in the words of `ss -ti`.
    pub(super) info: Info,
}

impl Course {
    /// Of `bytes` since `start`.
    ///
    /// # Errors
    /// The stack has ended.
    pub(super) fn of(stream: &TcpStream, bytes: u64, start: Instant) -> anyhow::Result<Self> {
        let taken = start.elapsed();
        let info = stream.info()?;
        Ok(Self {
            bytes,
            seconds: taken.as_secs_f64(),
            bits_per_second: rate(bytes, taken).bits_per_sec(),
            retransmissions: info.retrans,
            local: stream.local_addr()?,
            peer: stream.peer_addr()?,
            info,
        })
    }
}

fn rate(bytes: u64, taken: Duration) -> Rate {
    Rate::from_bytes_over(ByteCount(bytes), taken.max(Duration::from_nanos(1)))
}

/// In a line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Course { bytes, seconds, bits_per_second, retransmissions, .. } = &self.course;
        write!(
            f,
            "{} in {seconds:.2} s, {:.1} Mbit/s, segments sent again: {retransmissions}",
            output::bytes(*bytes),
            *bits_per_second as f64 / 1e6
        )?;
        match self.length - bytes {
            0 => Ok(()),
            before => write!(f, "; {} had come before", output::bytes(before)),
        }
    }
}

impl Report {
    /// Prints it: the line on stderr and the checksum on stdout as `sha256sum` does, or all of it as JSON; on stderr,
    /// where stdout has the file.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn print(&self, as_json: bool, has_stdout: bool) -> anyhow::Result<()> {
        let result = if as_json {
            serde_json::to_string_pretty(self)?
        } else {
            output::note(self);
            format!("{}  {}", self.sha256, self.file)
        };
        match has_stdout {
            true => output::print(&result)?,
            false => output::note(result),
        }
        Ok(())
    }
}
