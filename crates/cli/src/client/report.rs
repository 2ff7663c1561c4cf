//! Reports a finished transfer.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airtcp_net::TcpStream;
use airtcp_types::{ByteCount, Rate};
use serde::Serialize;
use serde_json::Value;

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
    /// Of this end, in segments or packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retransmissions: Option<u64>,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// At the end; of TCP over this stack in the words of `ss -ti`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) info: Value,
}

/// What a connection says of itself at its end.
pub(super) struct End {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) retransmissions: Option<u64>,
    pub(super) info: Value,
}

/// A connection that does.
pub(super) trait Ends {
    /// # Errors
    /// What carries it is gone.
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
    /// Of `bytes` since `start`.
    ///
    /// # Errors
    /// What carries it is gone.
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

/// In a line.
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
    /// Prints it: the line on stderr and the checksum on stdout as `sha256sum` does, or all of it
    /// as JSON; on stderr, where stdout has the file.
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
            false => output::tell(result),
        }
        Ok(())
    }
}
