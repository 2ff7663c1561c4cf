//! Aggregation of packets into bursts, behind the delay line.

use std::collections::VecDeque;

use airtcp_types::{ByteCount, Instant};

use crate::delay::Entry;
use crate::spec::AggregateSpec;

/// Holds packets until a burst is complete.
#[derive(Clone, Debug)]
pub(crate) struct Aggregator {
    spec: AggregateSpec,
    /// The burst that is being collected.
    held: Vec<Entry>,
    held_bytes: ByteCount,
    /// When this burst leaves at the latest; `None` if it is empty.
    timeout_at: Option<Instant>,
    /// Released packets, each with the time of its burst.
    out: VecDeque<(Instant, Entry)>,
}

impl Aggregator {
    pub(crate) fn new(spec: AggregateSpec) -> Self {
        let (held, out) = (Vec::new(), VecDeque::new());
        Self { spec, held, held_bytes: ByteCount::ZERO, timeout_at: None, out }
    }

    /// Adds a packet that arrives at `now`. A packet that arrives at the very instant of the
    /// time-out starts the next burst.
    pub(crate) fn push(&mut self, now: Instant, entry: Entry) {
        self.advance(now);
        self.timeout_at.get_or_insert(now + self.spec.timeout);
        self.held_bytes += ByteCount::from(entry.packet.len());
        self.held.push(entry);
        let has_enough = self.spec.packets.is_some_and(|packets| self.held.len() >= packets)
            || self.spec.bytes.is_some_and(|bytes| self.held_bytes >= bytes);
        if has_enough {
            self.release(now);
        }
    }

    /// Releases the burst if its time-out is due.
    pub(crate) fn advance(&mut self, now: Instant) {
        if let Some(at) = self.timeout_at.filter(|at| *at <= now) {
            self.release(at);
        }
    }

    fn release(&mut self, now: Instant) {
        self.out.extend(self.held.drain(..).map(|entry| (now, entry)));
        (self.held_bytes, self.timeout_at) = (ByteCount::ZERO, None);
    }

    /// When the first released packet was released.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.out.front().map(|(at, _)| *at)
    }

    /// When the next burst leaves, if no more packets arrive.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due().or(self.timeout_at)
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.out.pop_front().map(|(_, entry)| entry)
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len() + self.out.len()
    }
}
