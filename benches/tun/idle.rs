//! Measures the cost of open, silent connections.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::client::connect;
use crate::connections::PARALLEL;
use crate::measurement::{Effort, Measurement};
use crate::services::Service;
use crate::subject::Subject;

/// The most time that opening the connections may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time for the last connections to be accepted and become idle. After a second without
/// segments this stack frees the memory that a connection keeps between segments.
const SETTLE: Duration = Duration::from_secs(2);
/// One connection in this many is checked to be still open.
const EVERY: usize = 50;

pub(crate) struct Idle;

impl Measurement for Idle {
    fn name(&self) -> String {
        "memory idle connections".to_owned()
    }

    fn quantities(&self) -> &'static [&'static str] {
        &["KiB each", "CPU ms/s"]
    }

    fn echoes(&self) -> usize {
        PARALLEL
    }

    fn is_fresh(&self) -> bool {
        true
    }

    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>> {
        let Effort { idle, silence, .. } = *effort;
        let before = subject.resident()?;
        let mut streams = subject.at_client(move || open(idle))?;
        std::thread::sleep(SETTLE);
        let taken = subject.resident()?.saturating_sub(before) as f64 / 1024.0;
        let (start, cpu) = (Instant::now(), subject.cpu_time()?);
        std::thread::sleep(silence);
        let busy = (subject.cpu_time()? - cpu).as_secs_f64() / start.elapsed().as_secs_f64();
        for stream in streams.iter_mut().step_by(EVERY) {
            let mut byte = [0x5a];
            stream.write_all(&byte)?;
            stream.read_exact(&mut byte)?;
        }
        Ok(vec![taken / idle as f64, busy * 1e3])
    }
}

fn open(count: usize) -> io::Result<Vec<TcpStream>> {
    let begun = AtomicUsize::new(0);
    let start = Instant::now();
    let work = || {
        let mut streams = Vec::new();
        loop {
            let turn = begun.fetch_add(1, Ordering::Relaxed);
            if turn >= count {
                return Ok(streams);
            }
            if start.elapsed() > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            streams.push(connect(Service::Echo, turn)?);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..PARALLEL).map(|_| scope.spawn(work)).collect();
        let opened = workers.into_iter().map(|worker| worker.join().expect("no panic in here"));
        Ok(opened.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}
