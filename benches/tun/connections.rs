//! Measures connections that open and close without data.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::client::{connect, pin};
use crate::measurement::{Effort, Measurement};
use crate::services::Service;
use crate::subject::Subject;

/// The number of connections made at a time.
pub(crate) const PARALLEL: usize = 64;
/// The most time that the memory measurement may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Connections one after another, with both ends on one CPU.
pub(crate) struct OneByOne {
    pub(crate) cpu: usize,
}

impl Measurement for OneByOne {
    fn name(&self) -> String {
        "connections one by one".to_owned()
    }

    fn quantities(&self) -> &'static [&'static str] {
        &["1000/s"]
    }

    fn is_pinned(&self) -> bool {
        true
    }

    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>> {
        let (cpu, time) = (self.cpu, effort.time);
        let rate = subject.at_client(move || {
            pin(cpu)?;
            open_and_close(1, usize::MAX, time)
        })?;
        Ok(vec![rate / 1e3])
    }
}

pub(crate) struct InParallel;

impl Measurement for InParallel {
    fn name(&self) -> String {
        format!("connections {PARALLEL} in parallel")
    }

    fn quantities(&self) -> &'static [&'static str] {
        &["1000/s"]
    }

    fn echoes(&self) -> usize {
        PARALLEL
    }

    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>> {
        let time = effort.time;
        let rate = subject.at_client(move || open_and_close(PARALLEL, usize::MAX, time))?;
        Ok(vec![rate / 1e3])
    }
}

/// The memory of the stack before and after many short connections.
pub(crate) struct Churn;

impl Measurement for Churn {
    fn name(&self) -> String {
        "memory short connections".to_owned()
    }

    fn quantities(&self) -> &'static [&'static str] {
        &["MiB before", "MiB after"]
    }

    fn echoes(&self) -> usize {
        PARALLEL
    }

    fn is_fresh(&self) -> bool {
        true
    }

    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>> {
        let before = subject.resident()?;
        let short = effort.short;
        let start = Instant::now();
        subject.at_client(move || open_and_close(PARALLEL, short, PATIENCE))?;
        if start.elapsed() >= PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok([before, subject.resident()?].map(|bytes| bytes as f64 / f64::from(1 << 20)).to_vec())
    }
}

/// Opens and closes connections, `parallel` at a time, until there were `most` or `time` is over.
/// Returns their number per second.
fn open_and_close(parallel: usize, most: usize, time: Duration) -> io::Result<f64> {
    let begun = AtomicUsize::new(0);
    let start = Instant::now();
    let work = || {
        let mut done = 0;
        while start.elapsed() < time {
            let turn = begun.fetch_add(1, Ordering::Relaxed);
            if turn >= most {
                break;
            }
            close(connect(Service::Echo, turn)?)?;
            done += 1;
        }
        Ok(done)
    };
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..parallel).map(|_| scope.spawn(work)).collect();
        let counts = workers.into_iter().map(|worker| worker.join().expect("no panic in here"));
        counts.sum::<io::Result<usize>>()
    })?;
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

/// Closes a connection in order, this end first.
pub(crate) fn close(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::other("a byte that nobody has sent")),
    }
}
