//! The kernel's side of a measurement.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airtcp_testbed::{Namespace, peer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The stack under test answers here; the kernel has `.1`.
pub const STACK: [u8; 4] = [10, 77, 0, 2];
pub const KERNEL_CIDR: &str = "10.77.0.1/24";
pub const SINK: u16 = 5001;
pub const SOURCE: u16 = 5002;

#[derive(Clone, Copy)]
pub enum Direction {
    IntoStack,
    OutOfStack,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Self::IntoStack => "into the stack",
            Self::OutOfStack => "out of it",
        }
    }
}

/// A stack under test, behind a TUN device in a namespace of its own.
pub trait Subject {
    fn namespace(&self) -> &Namespace;

    /// Gbit/s of payload of one connection over about `time`.
    fn measure(&self, direction: Direction, time: Duration) -> f64 {
        let outcome = match direction {
            Direction::IntoStack => self.namespace().block_on(upload(time)),
            Direction::OutOfStack => self.namespace().block_on(download(time)),
        };
        outcome.expect("the kernel's connection to the stack under test")
    }
}

async fn upload(time: Duration) -> std::io::Result<f64> {
    let mut stream = peer::connect(SocketAddr::from((STACK, SINK)), Some("cubic")).await?;
    let chunk = vec![0x5a; 1 << 18];
    let start = Instant::now();
    while start.elapsed() < time {
        stream.write_all(&chunk).await?;
    }
    stream.shutdown().await?;
    // The sink answers with its count when it has read everything.
    let received = stream.read_u64().await?;
    Ok(received as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9)
}

async fn download(time: Duration) -> std::io::Result<f64> {
    let mut stream = peer::connect(SocketAddr::from((STACK, SOURCE)), Some("cubic")).await?;
    let mut buffer = vec![0; 1 << 18];
    let (start, mut received) = (Instant::now(), 0usize);
    while start.elapsed() < time {
        received += stream.read(&mut buffer).await?;
    }
    Ok(received as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9)
}
