//! The delay line: propagation delay, jitter and reordering.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::f64::consts::TAU;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, Packet};

use crate::aggregate::Aggregator;
use crate::spec::{AggregateSpec, DelaySpec, DelayedSpec, Distribution, LinkSpec};

/// A packet as it enters the delay line.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) packet: Packet,
    /// The packet's number at entry into the channel.
    pub(crate) number: u64,
    /// Whether this is the second copy of a duplicated packet.
    pub(crate) copy: bool,
}

/// The delay of a packet, drawn at entry into the channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    delay: Duration,
    /// Which of two paths the packet takes.
    path: usize,
    /// Whether the packet has an additional delay, which reorders it.
    astray: bool,
}

#[derive(Clone, Debug)]
struct Jitter {
    nanos: f64,
    distribution: Distribution,
    stream: Stream,
}

/// Draws delays, with the same number of draws for every packet.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    base: Duration,
    /// Boxed because the generators are large and rarely used.
    jitter: Option<Box<Jitter>>,
    delayed: Option<Box<(DelayedSpec, Stream)>>,
    paths: Option<(Duration, Duration)>,
    number: u64,
}

impl Delays {
    pub(crate) fn new(spec: &LinkSpec, jitter: Stream, astray: Stream) -> Self {
        // Jitter that starts with a later change also draws from the start on, so that a seed gives
        // the same results.
        let has_jitter = spec.delays().any(|delay| !delay.jitter.is_zero());
        let jitter = has_jitter.then(|| {
            let nanos = spec.delay.jitter.as_nanos() as f64;
            Box::new(Jitter { nanos, distribution: spec.delay.distribution, stream: jitter })
        });
        let delayed = spec.delayed.map(|delayed| Box::new((delayed, astray)));
        Self { base: spec.delay.base, jitter, delayed, paths: spec.paths, number: 0 }
    }

    /// Changes the delays of the packets that follow; the random stream continues.
    pub(crate) fn change(&mut self, delay: &DelaySpec) {
        self.base = delay.base;
        if let Some(jitter) = &mut self.jitter {
            jitter.nanos = delay.jitter.as_nanos() as f64;
            jitter.distribution = delay.distribution;
        }
    }

    /// A lower bound of the delay of all packets.
    pub(crate) fn least(&self) -> Duration {
        if self.jitter.is_none() { self.base } else { Duration::ZERO }
    }

    pub(crate) fn draw(&mut self) -> Drawn {
        let mut drawn = Drawn { delay: self.base, path: 0, astray: false };
        if let Some(jitter) = &mut self.jitter {
            let Jitter { nanos, distribution, stream } = &mut **jitter;
            let nanos = self.base.as_nanos() as f64 + *nanos * deviate(*distribution, stream);
            drawn.delay = Duration::from_nanos(nanos.max(0.0) as u64);
        }
        if let Some(delayed) = &mut self.delayed {
            let (spec, stream) = &mut **delayed;
            drawn.astray = stream.chance(spec.share.probability());
            let extra = deviate(Distribution::Normal, stream) * spec.deviation.as_nanos() as f64
                + spec.mean.as_nanos() as f64;
            if drawn.astray {
                drawn.delay += Duration::from_nanos(extra.max(0.0) as u64);
            }
        }
        if let Some((one, other)) = self.paths {
            drawn.path = (self.number % 2) as usize;
            drawn.delay += [one, other][drawn.path];
        }
        self.number += 1;
        drawn
    }
}

/// Draws a deviate with mean 0 and standard deviation 1, or from -1 to 1 if uniform. It always
/// takes two draws.
///
/// The functions are those of libm, so that a seed gives the same result on every machine.
fn deviate(distribution: Distribution, stream: &mut Stream) -> f64 {
    // `one` is in 0.0..1.0, so `1.0 - one` is in (0, 1] and has a logarithm.
    let (one, other) = (stream.next_f64(), stream.next_f64());
    match distribution {
        Distribution::Uniform => 2.0 * one - 1.0,
        // Box-Muller.
        Distribution::Normal => libm::sqrt(-2.0 * libm::log(1.0 - one)) * libm::cos(TAU * other),
        // Pareto with shape 3 and minimum 1: mean 3/2, variance 3/4.
        Distribution::Pareto => (libm::pow(1.0 - one, -1.0 / 3.0) - 1.5) / libm::sqrt(0.75),
    }
}

/// A packet in flight.
#[derive(Clone, Debug)]
struct UnderWay {
    due: Instant,
    entry: Entry,
}

impl UnderWay {
    /// At the same time, packets leave in the order in which they entered.
    fn rank(&self) -> (Instant, u64, bool) {
        (self.due, self.entry.number, self.entry.copy)
    }
}

impl Ord for UnderWay {
    /// An earlier packet is greater, because a heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl PartialOrd for UnderWay {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for UnderWay {}

/// Packets in flight in the order of arrival, followed by the aggregation into bursts.
#[derive(Clone, Debug)]
pub(crate) struct DelayLine {
    /// Packets due no earlier than the packet that entered before them: all packets if the delay is
    /// constant or in order.
    line: VecDeque<UnderWay>,
    /// Packets that overtake.
    early: BinaryHeap<UnderWay>,
    in_order: bool,
    /// The latest due time of each path.
    latest: [Instant; 2],
    aggregator: Option<Box<Aggregator>>,
    /// Bytes of all packets in the delay line and in bursts.
    bytes: ByteCount,
}

impl DelayLine {
    /// The maximum of bytes in flight, ten gigabits per second for a fifth of a second. Each packet
    /// counts with its capacity and `KEEPING` bytes of overhead.
    const MAX_BYTES: ByteCount = ByteCount::from_mib(256);
    const KEEPING: u64 = 128;

    pub(crate) fn new(in_order: bool, aggregate: Option<AggregateSpec>) -> Self {
        Self {
            line: VecDeque::new(),
            early: BinaryHeap::new(),
            in_order,
            latest: [Instant::ZERO; 2],
            aggregator: aggregate.map(|spec| Box::new(Aggregator::new(spec))),
            bytes: ByteCount::ZERO,
        }
    }

    /// Adds a packet, or returns it if the line is full.
    pub(crate) fn push(&mut self, now: Instant, entry: Entry, drawn: Drawn) -> Result<(), Packet> {
        let cost = cost(&entry);
        if self.bytes + cost > Self::MAX_BYTES {
            return Err(entry.packet);
        }
        self.bytes += cost;
        let mut due = now + drawn.delay;
        if !drawn.astray {
            let latest = &mut self.latest[drawn.path];
            // Also tracked while packets may be reordered, because a change may set `in_order`
            // later.
            *latest = due.max(*latest);
            if self.in_order {
                due = *latest;
            }
        }
        let under_way = UnderWay { due, entry };
        if self.line.back().is_none_or(|last| last.due <= due) {
            self.line.push_back(under_way);
        } else {
            self.early.push(under_way);
        }
        Ok(())
    }

    /// Sets whether packets that enter from now on stay in order.
    pub(crate) fn set_in_order(&mut self, in_order: bool) {
        self.in_order = in_order;
    }

    /// Passes the packets that arrive up to `now` to the aggregation.
    pub(crate) fn advance(&mut self, now: Instant) {
        // Taken out because the loop also borrows `self`.
        let Some(mut aggregator) = self.aggregator.take() else { return };
        while let Some(at) = self.arrival().filter(|at| *at <= now) {
            if let Some(entry) = self.arrive() {
                aggregator.push(at, entry);
            }
        }
        aggregator.advance(now);
        self.aggregator = Some(aggregator);
    }

    /// When the next packet leaves, as far as that is known; a packet of a burst leaves when its
    /// burst is released.
    pub(crate) fn due(&self) -> Option<Instant> {
        match &self.aggregator {
            Some(aggregator) => aggregator.due(),
            None => self.arrival(),
        }
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        let released = self.aggregator.as_ref().and_then(|aggregator| aggregator.next());
        earlier(self.arrival(), released)
    }

    /// Returns the next packet that leaves.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = match &mut self.aggregator {
            Some(aggregator) => aggregator.pop(),
            None => self.arrive(),
        }?;
        self.bytes -= cost(&entry);
        Some(entry)
    }

    /// When the next packet reaches the end of the line.
    fn arrival(&self) -> Option<Instant> {
        let due = |under_way: &UnderWay| under_way.due;
        earlier(self.line.front().map(due), self.early.peek().map(due))
    }

    fn arrive(&mut self) -> Option<Entry> {
        let overtakes = match (self.line.front(), self.early.peek()) {
            (Some(first), Some(early)) => early.rank() < first.rank(),
            (first, _) => first.is_none(),
        };
        let next = if overtakes { self.early.pop() } else { self.line.pop_front() };
        next.map(|under_way| under_way.entry)
    }

    pub(crate) fn len(&self) -> usize {
        let gathered = self.aggregator.as_ref().map_or(0, |aggregator| aggregator.len());
        self.line.len() + self.early.len() + gathered
    }
}

/// The earlier of two optional instants.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
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
        let entry = |number| {
            // The capacity counts, and costs the test no memory.
            let packet = Packet::new(Vec::with_capacity(16 << 20));
            Entry { packet, number, copy: false }
        };
        let long = Duration::from_secs(1_000);
        let aggregate = AggregateSpec { timeout: long, packets: None, bytes: None };
        // In the line, or in a burst behind it.
        for (delay, aggregate) in [(long, None), (Duration::ZERO, Some(aggregate))] {
            let mut line = DelayLine::new(false, aggregate);
            let drawn = Drawn { delay, path: 0, astray: false };
            let push = |line: &mut DelayLine, number| {
                let is_taken = line.push(Instant::ZERO, entry(number), drawn).is_ok();
                line.advance(Instant::ZERO);
                is_taken
            };
            let taken = (0..20).filter(|number| push(&mut line, *number)).count();
            assert_eq!((taken, line.len()), (15, 15), "16 would be 256 MiB and their keeping");
            line.advance(Instant::MAX);
            line.pop();
            assert!(push(&mut line, 20) && !push(&mut line, 21));
        }
    }
}
