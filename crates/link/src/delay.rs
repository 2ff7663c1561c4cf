//! The delay line: how long each packet is under way, and in which order packets come out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::f64::consts::TAU;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, Packet};

use crate::spec::{DelaySpec, DelayedSpec, Distribution, LinkSpec};

/// A packet as it enters the delay line.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) packet: Packet,
    /// The packet's number at the channel's entry.
    pub(crate) number: u64,
    /// Whether it is the second copy.
    pub(crate) copy: bool,
}

/// How long a packet is delayed, drawn at the channel's entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    delay: Duration,
    /// Which of two paths it takes.
    path: usize,
    /// Whether it leaves the order behind.
    astray: bool,
}

/// Draws delays, the same number of draws for every packet.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    spec: DelaySpec,
    delayed: Option<DelayedSpec>,
    paths: Option<(Duration, Duration)>,
    jitter: Stream,
    astray: Stream,
    number: u64,
}

impl Delays {
    pub(crate) fn new(spec: &LinkSpec, jitter: Stream, astray: Stream) -> Self {
        let (delayed, paths) = (spec.delayed, spec.paths);
        Self { spec: spec.delay, delayed, paths, jitter, astray, number: 0 }
    }

    pub(crate) fn draw(&mut self) -> Drawn {
        let mut nanos = self.spec.base.as_nanos() as f64;
        if !self.spec.jitter.is_zero() {
            let jitter = self.spec.jitter.as_nanos() as f64;
            nanos += jitter * deviate(self.spec.distribution, &mut self.jitter);
        }
        let mut delay = Duration::from_nanos(nanos.max(0.0) as u64);
        let mut astray = false;
        if let Some(spec) = self.delayed {
            astray = self.astray.chance(spec.share.probability());
            let extra = deviate(Distribution::Normal, &mut self.astray)
                * spec.deviation.as_nanos() as f64
                + spec.mean.as_nanos() as f64;
            if astray {
                delay += Duration::from_nanos(extra.max(0.0) as u64);
            }
        }
        let mut path = 0;
        if let Some((one, other)) = self.paths {
            path = (self.number % 2) as usize;
            delay += [one, other][path];
        }
        self.number += 1;
        Drawn { delay, path, astray }
    }
}

/// A deviate of mean 0; of standard deviation 1, or within -1 and 1 if uniform. Two draws, always.
///
/// The functions are libm's own, so that a seed gives one result on every machine.
fn deviate(distribution: Distribution, stream: &mut Stream) -> f64 {
    // In 0.0..1.0; one minus it is in (0, 1], which has a logarithm.
    let (one, other) = (stream.next_f64(), stream.next_f64());
    match distribution {
        Distribution::Uniform => 2.0 * one - 1.0,
        // Box and Muller.
        Distribution::Normal => libm::sqrt(-2.0 * libm::log(1.0 - one)) * libm::cos(TAU * other),
        // Shape 3 from 1 on: mean 3/2, variance 3/4.
        Distribution::Pareto => (libm::pow(1.0 - one, -1.0 / 3.0) - 1.5) / libm::sqrt(0.75),
    }
}

/// Packets under way, the next to arrive first; of two at the same time, the first to enter.
#[derive(Clone, Debug)]
pub(crate) struct DelayLine {
    /// Due time, entry, and where the packet is kept.
    order: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    slots: Vec<Option<Entry>>,
    free: Vec<usize>,
    in_order: bool,
    /// The latest due time of each path.
    latest: [Instant; 2],
    entries: u64,
    bytes: ByteCount,
}

impl DelayLine {
    /// Bytes under way at most: ten gigabits per second over a fifth of a second. Each packet counts
    /// what its keeping costs.
    const MAX_BYTES: ByteCount = ByteCount::from_mib(256);
    const KEEPING: u64 = 128;

    pub(crate) fn new(in_order: bool) -> Self {
        Self {
            order: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            in_order,
            latest: [Instant::ZERO; 2],
            entries: 0,
            bytes: ByteCount::ZERO,
        }
    }

    /// Takes a packet; `false` if there is no room for it.
    pub(crate) fn push(&mut self, now: Instant, entry: Entry, drawn: Drawn) -> bool {
        let cost = cost(&entry);
        if self.bytes + cost > Self::MAX_BYTES {
            return false;
        }
        self.bytes += cost;
        let mut due = now + drawn.delay;
        if self.in_order && !drawn.astray {
            due = due.max(self.latest[drawn.path]);
            self.latest[drawn.path] = due;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(entry);
        self.order.push(Reverse((due, self.entries, slot)));
        self.entries += 1;
        true
    }

    /// When the next packet arrives.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse((due, ..))| *due)
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let Reverse((_, _, slot)) = self.order.pop()?;
        let entry = self.slots[slot].take()?;
        self.free.push(slot);
        self.bytes -= cost(&entry);
        Some(entry)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

fn cost(entry: &Entry) -> ByteCount {
    ByteCount(entry.packet.data.capacity() as u64 + DelayLine::KEEPING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_bounded() {
        let mut line = DelayLine::new(false);
        let drawn = Drawn { delay: Duration::from_secs(1_000), path: 0, astray: false };
        let entry = |number| {
            // What is reserved counts, and costs the test nothing.
            let packet = Packet::new(Vec::with_capacity(16 << 20));
            Entry { packet, number, copy: false }
        };
        let taken = (0..20).filter(|n| line.push(Instant::ZERO, entry(*n), drawn)).count();
        assert_eq!((taken, line.len()), (15, 15), "16 would be 256 MiB and their keeping");
        line.pop();
        assert!(line.push(Instant::ZERO, entry(20), drawn));
    }
}
