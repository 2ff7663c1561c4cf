//! Deliveries and losses of transmissions, grouped by the time of transmission.

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use crate::transmission::{Delivered, Transmission};

/// The number of groups per round trip.
const PER_ROUND: u32 = 8;
/// The fewest transmissions in a group.
const FEWEST: u32 = 4;
/// The number of groups before and after a loss whose RTTs apply to it.
const NEIGHBOURS: usize = 1;
/// The most groups that are kept.
const MOST: usize = 32;

/// Transmissions sent within a short time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    start: Instant,
    /// The transmissions known to be delivered or lost.
    pub(super) sent: u32,
    pub(super) lost: u32,
    /// The smallest and the largest RTT of the group.
    rtt: Option<(Duration, Duration)>,
    /// The most bytes in flight when a transmission of the group was sent.
    in_flight: ByteCount,
    /// The same, including the round trip before, because a queue that was filled then may not be
    /// empty yet.
    pub(super) load: ByteCount,
}

/// The groups of the last round trips, oldest first.
#[derive(Debug, Default)]
pub(super) struct Departures {
    groups: VecDeque<Group>,
    slow_start_until: Instant,
}

impl Departures {
    /// Records that everything sent until now was sent in slow start.
    pub(super) fn on_slow_start(&mut self, now: Instant) {
        self.slow_start_until = now;
    }

    pub(super) fn clear(&mut self) {
        self.groups.clear();
    }

    /// Counts delivered segments; `rtt` is `None` if the ACK does not show which transmission
    /// arrived.
    pub(super) fn on_delivered(
        &mut self,
        delivered: &Delivered,
        rtt: Option<Duration>,
        srtt: Duration,
    ) {
        let segments = delivered.transmissions().count().try_into().unwrap_or(u32::MAX);
        let is_new = self.groups.back().is_none_or(|last| {
            let end = last.start + srtt / PER_ROUND;
            last.sent >= FEWEST && delivered.sent_at >= end && delivered.sent_at > last.start
        });
        if is_new {
            let before = self.groups.iter().rev();
            let lately = before.take_while(|group| delivered.sent_at < group.start + srtt);
            let load = lately.map(|group| group.in_flight).max().unwrap_or_default();
            let in_flight = ByteCount::ZERO;
            let start = delivered.sent_at;
            self.groups.push_back(Group { start, sent: 0, lost: 0, rtt: None, in_flight, load });
        }
        let in_flight = self.in_flight(delivered.sent_at, delivered.snapshot.tx_in_flight);
        let group = self.at(delivered.sent_at).and_then(|index| self.groups.get_mut(index));
        if let Some(group) = group {
            group.sent = group.sent.saturating_add(segments);
            group.see(in_flight);
            group.rtt = widened(group.rtt, rtt.map(|rtt| (rtt, rtt)));
        }
    }

    /// Counts a loss.
    pub(super) fn on_lost(&mut self, lost: &Transmission) {
        let in_flight = self.in_flight(lost.sent_at, lost.snapshot.tx_in_flight);
        let group = self.at(lost.sent_at).and_then(|index| self.groups.get_mut(index));
        if let Some(group) = group {
            group.sent = group.sent.saturating_add(1);
            group.lost = group.lost.saturating_add(1);
            group.see(in_flight);
        }
    }

    /// Returns the smallest RTT of transmissions sent around this time.
    pub(super) fn smallest_rtt(&self, sent_at: Instant) -> Option<Duration> {
        self.rtt_near(self.at(sent_at)?).map(|(smallest, _)| smallest)
    }

    /// Removes and returns the next group whose transmissions are all known to be delivered or
    /// lost, with the smallest and the largest RTT near it.
    pub(super) fn next_settled(
        &mut self,
        now: Instant,
        srtt: Duration,
    ) -> Option<(Group, Option<(Duration, Duration)>)> {
        let end = self.groups.get(NEIGHBOURS + 1)?.start;
        self.groups.get(2 * NEIGHBOURS)?;
        if now.since(end) < srtt * 2 && self.groups.len() < MOST {
            return None;
        }
        let group = *self.groups.get(NEIGHBOURS)?;
        let rtt = self.rtt_near(NEIGHBOURS);
        self.groups.pop_front();
        Some((group, rtt))
    }

    /// Returns the bytes in flight, doubled in slow start: it sends two segments for each one
    /// delivered, so its bursts fill a queue with half as much in flight.
    fn in_flight(&self, sent_at: Instant, in_flight: ByteCount) -> ByteCount {
        if sent_at <= self.slow_start_until { in_flight * 2 } else { in_flight }
    }

    fn at(&self, sent_at: Instant) -> Option<usize> {
        self.groups.partition_point(|group| group.start <= sent_at).checked_sub(1)
    }

    fn rtt_near(&self, index: usize) -> Option<(Duration, Duration)> {
        let near = self.groups.range(index.saturating_sub(NEIGHBOURS)..);
        near.take(2 * NEIGHBOURS + 1).map(|group| group.rtt).fold(None, widened)
    }
}

/// Returns the range that contains both.
fn widened(
    one: Option<(Duration, Duration)>,
    other: Option<(Duration, Duration)>,
) -> Option<(Duration, Duration)> {
    let Some((smallest, largest)) = one else { return other };
    let (least, most) = other.unwrap_or((smallest, largest));
    Some((smallest.min(least), largest.max(most)))
}

impl Group {
    /// A group with only these counts and this load.
    #[cfg(test)]
    pub(super) const fn of(sent: u32, lost: u32, load: ByteCount) -> Self {
        Self { start: Instant::ZERO, sent, lost, rtt: None, in_flight: load, load }
    }

    fn see(&mut self, in_flight: ByteCount) {
        self.in_flight = self.in_flight.max(in_flight);
        self.load = self.load.max(in_flight);
    }
}
