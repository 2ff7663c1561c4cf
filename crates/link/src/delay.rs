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

#[derive(Clone, Debug)]
struct Jitter {
    nanos: f64,
    distribution: Distribution,
    stream: Stream,
}

/// Draws delays, the same number of draws for every packet.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    base: Duration,
    /// Boxed, as what draws is large, and is rarely there.
    jitter: Option<Box<Jitter>>,
    delayed: Option<Box<(DelayedSpec, Stream)>>,
    paths: Option<(Duration, Duration)>,
    number: u64,
}

impl Delays {
    pub(crate) fn new(spec: &LinkSpec, jitter: Stream, astray: Stream) -> Self {
        // Jitter that begins later draws from the start on, so that a seed means the same however
        // it begins.
        let has_jitter = spec.delays().any(|delay| !delay.jitter.is_zero());
        let jitter = has_jitter.then(|| {
            let nanos = spec.delay.jitter.as_nanos() as f64;
            Box::new(Jitter { nanos, distribution: spec.delay.distribution, stream: jitter })
        });
        let delayed = spec.delayed.map(|delayed| Box::new((delayed, astray)));
        Self { base: spec.delay.base, jitter, delayed, paths: spec.paths, number: 0 }
    }

    /// Other delays from the next packet on, drawn from the same stream.
    pub(crate) fn change(&mut self, delay: &DelaySpec) {
        self.base = delay.base;
        if let Some(jitter) = &mut self.jitter {
            jitter.nanos = delay.jitter.as_nanos() as f64;
            jitter.distribution = delay.distribution;
        }
    }

    /// A time that no packet's delay is below.
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

/// A packet under way.
#[derive(Clone, Debug)]
struct UnderWay {
    due: Instant,
    entry: Entry,
}

impl UnderWay {
    /// Of two at the same time, the first to enter comes out first.
    fn rank(&self) -> (Instant, u64, bool) {
        (self.due, self.entry.number, self.entry.copy)
    }
}

impl Ord for UnderWay {
    /// The earlier is the greater: a heap gives the greatest first.
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

/// Packets under way, the next to arrive first, and behind them those that are gathered into a
/// burst.
#[derive(Clone, Debug)]
pub(crate) struct DelayLine {
    /// Those that arrive no earlier than the one that entered before them: all of them where delays
    /// are constant or in order.
    line: VecDeque<UnderWay>,
    /// Those that overtake.
    early: BinaryHeap<UnderWay>,
    in_order: bool,
    /// The latest due time of each path.
    latest: [Instant; 2],
    aggregator: Option<Box<Aggregator>>,
    /// Of all packets here.
    bytes: ByteCount,
}

impl DelayLine {
    /// Bytes under way at most: ten gigabits per second over a fifth of a second. Each packet
    /// counts what its keeping costs.
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

    /// Takes a packet, or gives it back if there is no room for it.
    pub(crate) fn push(&mut self, now: Instant, entry: Entry, drawn: Drawn) -> Result<(), Packet> {
        let cost = cost(&entry);
        if self.bytes + cost > Self::MAX_BYTES {
            return Err(entry.packet);
        }
        self.bytes += cost;
        let mut due = now + drawn.delay;
        if !drawn.astray {
            let latest = &mut self.latest[drawn.path];
            // Kept without order, too: it may begin with a change.
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

    /// Whether packets that enter from here on stay in order.
    pub(crate) fn set_in_order(&mut self, in_order: bool) {
        self.in_order = in_order;
    }

    /// Gathers the packets that arrive up to `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        // Taken out for a while, as what arrives comes from here, too.
        let Some(mut aggregator) = self.aggregator.take() else { return };
        while let Some(at) = self.arrival().filter(|at| *at <= now) {
            if let Some(entry) = self.arrive() {
                aggregator.push(at, entry);
            }
        }
        aggregator.advance(now);
        self.aggregator = Some(aggregator);
    }

    /// When the next packet comes out, as far as that is known: of packets that are gathered, when
    /// they were released.
    pub(crate) fn due(&self) -> Option<Instant> {
        match &self.aggregator {
            Some(aggregator) => aggregator.due(),
            None => self.arrival(),
        }
    }

    /// When there is something to do next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let released = self.aggregator.as_ref().and_then(|aggregator| aggregator.next());
        earlier(self.arrival(), released)
    }

    /// The next packet that comes out.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = match &mut self.aggregator {
            Some(aggregator) => aggregator.pop(),
            None => self.arrive(),
        }?;
        self.bytes -= cost(&entry);
        Some(entry)
    }

    /// When the next packet is at the end of the line.
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

/// The earlier of two instants, where there are any.
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
            // What is reserved counts, and costs the test nothing.
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
