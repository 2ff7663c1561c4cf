//! The kernel's side of a measurement.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airtcp_testbed::{Namespace, peer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The stack under test answers here; the kernel has `.1`.
pub(crate) const STACK: [u8; 4] = [10, 77, 0, 2];
pub(crate) const KERNEL_CIDR: &str = "10.77.0.1/24";
pub(crate) const SINK: u16 = 5001;
pub(crate) const SOURCE: u16 = 5002;

#[derive(Clone, Copy)]
pub(crate) enum Direction {
    IntoStack,
    OutOfStack,
}

impl Direction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::IntoStack => "into the stack",
            Self::OutOfStack => "out of it",
        }
    }
}

/// What one measurement gave.
pub(crate) struct Sample {
    /// Gbit/s of payload.
    pub(crate) rate: f64,
    /// CPU seconds of this process, which is both ends and the kernel's work for them, per gigabyte
    /// of payload. A busy machine moves it less than the rate.
    pub(crate) cpu: f64,
}

/// A stack under test, behind a TUN device in a namespace of its own.
pub(crate) trait Subject {
    fn namespace(&self) -> &Namespace;

    /// One connection over about `time`.
    fn measure(&self, direction: Direction, time: Duration) -> Sample {
        let (start, cpu) = (Instant::now(), cpu_time());
        let outcome = match direction {
            Direction::IntoStack => self.namespace().block_on(upload(time)),
            Direction::OutOfStack => self.namespace().block_on(download(time)),
        };
        let bytes = outcome.expect("the kernel's connection to the stack under test") as f64;
        let cpu = (cpu_time() - cpu).as_secs_f64() * 1e9 / bytes;
        Sample { rate: bytes * 8.0 / start.elapsed().as_secs_f64() / 1e9, cpu }
    }
}

/// CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc to be mounted");
    let nanoseconds = |task: std::io::Result<std::fs::DirEntry>| {
        let schedstat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        schedstat.split(' ').next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(tasks.filter_map(nanoseconds).sum())
}

async fn upload(time: Duration) -> std::io::Result<u64> {
    let mut stream = peer::connect(SocketAddr::from((STACK, SINK)), Some("cubic")).await?;
    let chunk = vec![0x5a; 1 << 18];
    let start = Instant::now();
    while start.elapsed() < time {
        stream.write_all(&chunk).await?;
    }
    stream.shutdown().await?;
    // The sink answers with its count when it has read everything.
    stream.read_u64().await
}

async fn download(time: Duration) -> std::io::Result<u64> {
    let mut stream = peer::connect(SocketAddr::from((STACK, SOURCE)), Some("cubic")).await?;
    let mut buffer = vec![0; 1 << 18];
    let (start, mut received) = (Instant::now(), 0);
    while start.elapsed() < time {
        received += stream.read(&mut buffer).await? as u64;
    }
    Ok(received)
}
