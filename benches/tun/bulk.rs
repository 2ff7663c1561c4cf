//! Measures bulk throughput over one connection or many.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::client::connect_async;
use crate::measurement::{Effort, Measurement};
use crate::services::Service;
use crate::subject::{Subject, own_cpu_time};

/// Bytes per read and write, more than the stacks use, so that the stacks limit the rate.
const CHUNK: usize = 1 << 18;
/// How much longer than planned all flows together may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The direction of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    IntoStack,
    /// Into the stack, whose application copies the data into its own buffer.
    IntoBuffer,
    OutOfStack,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::IntoStack, Self::OutOfStack];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::IntoStack => "in",
            Self::IntoBuffer => "in and copied",
            Self::OutOfStack => "out",
        }
    }
}

pub(crate) struct Bulk {
    pub(crate) flows: usize,
    pub(crate) direction: Direction,
}

/// The data that all flows moved.
struct Moved {
    bytes: u64,
    /// From the first byte until the last byte arrives.
    time: Duration,
}

impl Measurement for Bulk {
    fn name(&self) -> String {
        let plural = if self.flows == 1 { "" } else { "s" };
        format!("bulk {} flow{plural} {}", self.flows, self.direction.name())
    }

    fn quantities(&self) -> &'static [&'static str] {
        &["Gbit/s", "CPU s/GB"]
    }

    fn is_copied(&self) -> bool {
        self.direction == Direction::IntoBuffer
    }

    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>> {
        let (flows, direction, time) = (self.flows, self.direction, effort.time);
        let cpu = || Ok::<_, io::Error>(own_cpu_time()? + subject.cpu_time()?);
        let before = cpu()?;
        let moved = subject.client().block_on(run(flows, direction, time))?;
        let (bytes, spent) = (moved.bytes as f64, cpu()? - before);
        let rate = bytes * 8.0 / moved.time.as_secs_f64() / 1e9;
        Ok(vec![rate, spent.as_secs_f64() * 1e9 / bytes])
    }
}

/// Runs this many flows for a time.
async fn run(flows: usize, direction: Direction, time: Duration) -> io::Result<Moved> {
    let mut streams = connect_all(flows, direction)?;
    let start = Instant::now();
    let mut running = JoinSet::new();
    for stream in streams.drain(..) {
        running.spawn(flow(stream, direction, start + time));
    }
    let all = async {
        let mut bytes = 0;
        while let Some(flow) = running.join_next().await {
            bytes += flow.map_err(io::Error::other)??;
        }
        Ok::<_, io::Error>(bytes)
    };
    let bytes = tokio::time::timeout(time + PATIENCE, all).await??;
    Ok(Moved { bytes, time: start.elapsed() })
}

/// Opens the connections for [`flow`].
pub(crate) fn connect_all(flows: usize, direction: Direction) -> io::Result<Vec<TcpStream>> {
    let service = match direction {
        Direction::IntoStack => Service::Sink,
        Direction::IntoBuffer => Service::Reader,
        Direction::OutOfStack => Service::Source,
    };
    (0..flows).map(|turn| connect_async(service, turn)).collect()
}

/// Moves data until `end` and returns the number of bytes that arrived.
pub(crate) async fn flow(
    mut stream: TcpStream,
    direction: Direction,
    end: Instant,
) -> io::Result<u64> {
    let mut chunk = vec![0x5a; CHUNK];
    match direction {
        Direction::IntoStack | Direction::IntoBuffer => {
            while Instant::now() < end {
                stream.write_all(&chunk).await?;
            }
            stream.shutdown().await?;
            // The sink answers with its count when it has read everything.
            stream.read_u64().await
        }
        Direction::OutOfStack => {
            let mut received = 0;
            while Instant::now() < end {
                match stream.read(&mut chunk).await? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    length => received += length as u64,
                }
            }
            Ok(received)
        }
    }
}
