//! Random early detection (Floyd and Jacobson 1993), on the queue length in packets.

use std::time::Duration;

use airtcp_types::Instant;
use airtcp_types::rng::Stream;

use crate::spec::Share;

/// The weight of one arrival in the average, as in the paper.
const WEIGHT: f64 = 0.002;

#[derive(Clone, Debug)]
pub(super) struct Red {
    min: f64,
    max: f64,
    probability: f64,
    slot: Duration,
    random: Stream,
    average: f64,
    /// Packets since the last one that was marked or dropped.
    count: u32,
    empty_since: Option<Instant>,
}

impl Red {
    pub(super) fn new(min: u32, max: u32, share: Share, slot: Duration, random: Stream) -> Self {
        Self {
            min: f64::from(min),
            max: f64::from(max),
            probability: share.probability(),
            slot: at_least_some(slot),
            random,
            average: 0.0,
            count: 0,
            empty_since: None,
        }
    }

    pub(super) fn set_slot(&mut self, slot: Duration) {
        self.slot = at_least_some(slot);
    }

    pub(super) fn on_empty(&mut self, now: Instant) {
        self.empty_since = Some(now);
    }

    /// Records that a packet entered the queue.
    pub(super) fn on_entry(&mut self) {
        self.empty_since = None;
    }

    /// Whether to mark or drop the packet that arrives at a queue of this length.
    pub(super) fn hits(&mut self, now: Instant, length: usize) -> bool {
        match self.empty_since {
            // The average decays as if a packet had arrived at the empty queue in each slot. If
            // this packet is dropped, the queue stays empty and the average continues to decay.
            Some(since) => {
                let missed = now.since(since).div_duration_f64(self.slot);
                self.average *= libm::pow(1.0 - WEIGHT, missed);
                self.empty_since = Some(now);
            }
            None => self.average += WEIGHT * (length as f64 - self.average),
        }
        let draw = self.random.next_f64();
        if self.average < self.min {
            self.count = 0;
            return false;
        }
        let early = self.probability * (self.average - self.min) / (self.max - self.min);
        // Intervals between marks are uniform, not geometric.
        let room = 1.0 - f64::from(self.count) * early;
        let spread = if room > early { early / room } else { 1.0 };
        if self.average >= self.max || draw < spread {
            self.count = 0;
            return true;
        }
        self.count = self.count.saturating_add(1);
        false
    }
}

/// The slot, at least 1 ns: it is a divisor.
fn at_least_some(slot: Duration) -> Duration {
    slot.max(Duration::from_nanos(1))
}
