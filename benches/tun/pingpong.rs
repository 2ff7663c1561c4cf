//! Measures the round trip of one byte: alone with both ends on one CPU, and under bulk load.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::bulk::{self, Direction};
use crate::client::{PATIENCE, connect, pin};
use crate::measurement::{Effort, Measurement};
use crate::services::Service;
use crate::subject::Subject;

/// The number of concurrent bulk flows.
const FLOWS: usize = 64;
const QUANTITIES: &[&str] = &["p50 us", "p99 us"];

/// A ping-pong on one CPU: across two, the wake-up of the other CPU would be measured.
pub(crate) struct PingPong {
    pub(crate) cpu: usize,
}

impl Measurement for PingPong {
    fn name(&self) -> String {
        "ping-pong".to_owned()
    }

    fn quantities(&self) -> &'static [&'static str] {
        QUANTITIES
    }

    fn is_pinned(&self) -> bool {
        true
    }

    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>> {
        let (cpu, time) = (self.cpu, effort.time);
        subject.at_client(move || {
            pin(cpu)?;
            percentiles(round_trips(connect(Service::Echo, 0)?, time)?)
        })
    }
}

/// A ping-pong under bulk load, on any CPU.
pub(crate) struct Loaded(pub(crate) Direction);

impl Measurement for Loaded {
    fn name(&self) -> String {
        format!("ping-pong beside {FLOWS} flows {}", self.0.name())
    }

    fn quantities(&self) -> &'static [&'static str] {
        QUANTITIES
    }

    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>> {
        let (direction, time) = (self.0, effort.time);
        let started = async move {
            // The flows outlast the measurement.
            let end = Instant::now() + Duration::from_secs(3600);
            let flows = bulk::connect_all(FLOWS, direction)?;
            let flows =
                flows.into_iter().map(|stream| tokio::spawn(bulk::flow(stream, direction, end)));
            Ok::<_, io::Error>(flows.collect::<Vec<_>>())
        };
        let stream = subject.at_client(|| connect(Service::Echo, 0))?;
        let flows = subject.client().block_on(started)?;
        let measured = subject.at_client(move || {
            // Wait for the flows' windows to open.
            std::thread::sleep(time / 2);
            percentiles(round_trips(stream, time)?)
        });
        let failed = flows.iter().filter(|flow| flow.is_finished()).count();
        flows.iter().for_each(|flow| flow.abort());
        if failed > 0 {
            return Err(io::Error::other(format!("{failed} of {FLOWS} flows have ended")));
        }
        measured
    }
}

/// Round-trip times in nanoseconds.
fn round_trips(mut stream: TcpStream, time: Duration) -> io::Result<Vec<u64>> {
    stream.set_nodelay(true)?;
    let (mut byte, mut times) = ([0x5a], Vec::new());
    let start = Instant::now();
    while start.elapsed() < time {
        let sent = Instant::now();
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte).map_err(|error| match error.kind() {
            // The socket's time-out is reported as `WouldBlock`.
            io::ErrorKind::WouldBlock => io::Error::other(format!("no echo for {PATIENCE:?}")),
            _ => error,
        })?;
        times.push(sent.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// The percentiles in microseconds.
fn percentiles(mut times: Vec<u64>) -> io::Result<Vec<f64>> {
    times.sort_unstable();
    let last = times.len().checked_sub(1).ok_or(io::ErrorKind::TimedOut)?;
    Ok([50, 99].map(|percent| times[last * percent / 100] as f64 / 1e3).to_vec())
}
