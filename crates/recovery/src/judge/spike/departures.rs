//! What became of transmissions, by the time they left.

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use crate::transmission::{Delivered, Transmission};
use crate::view::View;

/// Groups per round trip.
const PER_ROUND: u32 = 16;
/// A group has so many transmissions at least.
const FEWEST: u32 = 4;
/// Neighbours on each side.
const NEIGHBOURS: usize = 2;
const MOST: usize = 128;

/// Transmissions that left within a short time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    start: Instant,
    /// How many of them arrived or were judged lost.
    pub(super) sent: u32,
    pub(super) lost: u32,
    rtt: Option<Duration>,
    /// The most bytes in flight when one of them left.
    pub(super) load: ByteCount,
    /// The same of this group alone; `load` is that of the round trip before, too.
    own: ByteCount,
}

#[derive(Debug, Default)]
pub(super) struct Departures {
    groups: VecDeque<Group>,
    slow_start_until: Instant,
}

impl Departures {
    pub(super) fn slow_start(&mut self, now: Instant) {
        self.slow_start_until = now;
    }

    pub(super) fn clear(&mut self) {
        self.groups.clear();
    }

    pub(super) fn on_delivered(&mut self, told: &Delivered, rtt: Option<Duration>, view: &View<'_>) {
        let segments = told.range.len().0.div_ceil(told.size.0.max(1)).min(1 << 20) as u32;
        let len = view.rtt.srtt().unwrap_or_default() / PER_ROUND;
        let load = self.load(told.sent_at, told.snapshot.tx_in_flight);
        let is_new = self.groups.back().is_none_or(|last| {
            told.sent_at >= last.start + len && last.sent >= FEWEST && told.sent_at > last.start
        });
        if is_new {
            let srtt = view.rtt.srtt().unwrap_or_default();
            let lately = self.groups.iter().rev().take_while(|group| told.sent_at < group.start + srtt);
            let carried = lately.map(|group| group.own).max().unwrap_or_default();
            let load = load.max(carried);
            self.groups.push_back(Group { start: told.sent_at, sent: 0, lost: 0, rtt: None, load, own: ByteCount::ZERO });
        }
        let Some(index) = self.at(told.sent_at) else { return };
        let Some(group) = self.groups.get_mut(index) else { return };
        group.sent += segments;
        group.load = group.load.max(load);
        group.own = group.own.max(load);
        group.rtt = group.rtt.into_iter().chain(rtt).min();
    }

    /// The smallest RTT near the lost.
    pub(super) fn on_lost(&mut self, lost: &Transmission, count: bool) -> Option<Duration> {
        let index = self.at(lost.sent_at)?;
        let load = self.load(lost.sent_at, lost.snapshot.tx_in_flight);
        let group = self.groups.get_mut(index)?;
        if count {
            group.sent += 1;
            group.lost += 1;
            group.load = group.load.max(load);
            group.own = group.own.max(load);
        }
        self.rtt_near(index)
    }

    /// The next group of which everything is known
    pub(super) fn next_settled(&mut self, view: &View<'_>) -> Option<(Group, Option<Duration>)> {
        let patience = view.rtt.srtt().unwrap_or_default() * 2;
        let end = self.groups.get(NEIGHBOURS + 1)?.start;
        self.groups.get(2 * NEIGHBOURS)?;
        if view.now.since(end) < patience && self.groups.len() < MOST {
            return None;
        }
        let group = *self.groups.get(NEIGHBOURS)?;
        let rtt = self.rtt_near(NEIGHBOURS);
        self.groups.pop_front();
        Some((group, rtt))
    }

    fn load(&self, sent_at: Instant, in_flight: ByteCount) -> ByteCount {
        if sent_at <= self.slow_start_until { in_flight * 2 } else { in_flight }
    }

    fn at(&self, sent_at: Instant) -> Option<usize> {
        self.groups.partition_point(|group| group.start <= sent_at).checked_sub(1)
    }

    fn rtt_near(&self, index: usize) -> Option<Duration> {
        let near = self.groups.range(index.saturating_sub(NEIGHBOURS)..);
        near.take(2 * NEIGHBOURS + 1).filter_map(|group| group.rtt).min()
    }
}
