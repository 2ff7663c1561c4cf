//! Reports a finished transfer.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airtcp_net::TcpStream;
use airtcp_types::{ByteCount, Rate};
use serde::Serialize;
use serde_json::Value;

use crate::output;

/// A file that was uploaded or downloaded.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The URL after all redirections.
    pub(super) url: String,
    pub(super) file: String,
    pub(super) status: u16,
    /// Size of the file, in bytes.
    pub(super) length: u64,
    pub(super) sha256: String,
    #[serde(flatten)]
    pub(super) course: Course,
}

/// Statistics of a connection.
#[derive(Debug, Serialize)]
pub(super) struct Course {
    /// Bytes of the file that this connection carried.
    pub(super) bytes: u64,
    /// From the first SYN to the last byte.
    pub(super) seconds: f64,
    pub(super) bits_per_second: u64,
    /// Retransmissions of this end, in segments or packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retransmissions: Option<u64>,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// State at the end; for TCP over this stack with the field names of `ss -ti`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) info: Value,
}

/// The state of a connection at its end.
pub(super) struct End {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) retransmissions: Option<u64>,
    pub(super) info: Value,
}

/// A connection that reports its state at the end.
pub(super) trait Ends {
    /// Returns the state at the end.
    ///
    /// # Errors
    /// The stack or socket that carries the connection is gone.
    fn end(&self) -> anyhow::Result<End>;
}

impl Ends for TcpStream {
    fn end(&self) -> anyhow::Result<End> {
        let info = self.info()?;
        Ok(End {
            local: self.local_addr()?,
            peer: self.peer_addr()?,
            retransmissions: Some(info.retrans),
            info: serde_json::to_value(info)?,
        })
    }
}

impl Course {
    /// Returns the statistics of a transfer of `bytes` since `start`.
    ///
    /// # Errors
    /// The stack or socket that carries the connection is gone.
    pub(super) fn of(stream: &impl Ends, bytes: u64, start: Instant) -> anyhow::Result<Self> {
        let taken = start.elapsed();
        let End { local, peer, retransmissions, info } = stream.end()?;
        Ok(Self {
            bytes,
            seconds: taken.as_secs_f64(),
            bits_per_second: rate(bytes, taken).bits_per_sec(),
            retransmissions,
            local,
            peer,
            info,
        })
    }
}

fn rate(bytes: u64, taken: Duration) -> Rate {
    Rate::from_bytes_over(ByteCount(bytes), taken.max(Duration::from_nanos(1)))
}

/// The report in one line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Course { bytes, seconds, bits_per_second, retransmissions, .. } = &self.course;
        write!(
            f,
            "{} in {seconds:.2} s, {:.1} Mbit/s",
            output::bytes(*bytes),
            *bits_per_second as f64 / 1e6
        )?;
        if let Some(retransmissions) = retransmissions {
            write!(f, ", retransmissions: {retransmissions}")?;
        }
        match self.length - bytes {
            0 => Ok(()),
            before => write!(f, "; {} were received before", output::bytes(before)),
        }
    }
}

impl Report {
    /// Prints the report: a line on stderr and the checksum on stdout in the format of `sha256sum`,
    /// or all of it as JSON. Without `has_stdout`, stdout is the file, and the result goes to
    /// stderr.
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
            false => output::print_stderr(result),
        }
        Ok(())
    }
}
