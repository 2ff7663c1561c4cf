//! Snoop (Balakrishnan, Seshan, Katz 1995), for comparison. Segments are cached until the mobile
//! acknowledges them. They are retransmitted on the mobile's first duplicate ACK or after a local
//! time-out, and the duplicate ACKs are dropped.
//!
//! Unlike in the paper, a segment that the radio still holds is not retransmitted, because this
//! would only queue a second copy, and local retransmissions go to the tail of the queue, without
//! precedence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use airtcp_types::{ExtSeq, Fate, Instant, Packet, SeqRange};

use super::flow::{Entered, FlowKey};
use super::segment::Segment;
use super::table::Slot;
use super::{Station, filter};

/// The minimum and initial value of the local time-out (ns-2's `SNOOP_MIN_TIMO`).
const MIN_WAIT: Duration = Duration::from_millis(100);
/// The maximum number of local retransmissions of a segment.
const MAX_COPIES: u32 = 10;
/// The reciprocal weight of a new RTT sample (RFC 6298 section 2).
const SMOOTHING: u32 = 8;

/// The unacknowledged segments of a flow, by their first sequence numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    segments: BTreeMap<ExtSeq, Cached>,
    bytes: usize,
    /// The smoothed round-trip time over the radio.
    rtt: Option<Duration>,
    /// The local time-out of the first segment; each time-out doubles the next one.
    deadline: Option<Instant>,
    backoff: u32,
    /// When the flow's timer entry fires: at the deadline or earlier.
    look_at: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Cached {
    range: SeqRange,
    packet: Packet,
    passed: Instant,
    copies: u32,
    /// Whether the fixed host has retransmitted it, so that it needs the duplicate ACKs.
    is_again: bool,
}

impl Cache {
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn wait(&self) -> Duration {
        self.rtt.map_or(MIN_WAIT, |rtt| (rtt * 2).max(MIN_WAIT)) * (1 << self.backoff.min(6))
    }

    fn insert(&mut self, now: Instant, range: SeqRange, packet: Packet, is_again: bool) {
        self.bytes += packet.len();
        let cached = Cached { range, packet, passed: now, copies: 0, is_again };
        if let Some(old) = self.segments.insert(range.start, cached) {
            self.bytes -= old.packet.len();
        }
        let wait = self.wait();
        self.deadline.get_or_insert(now + wait);
    }

    /// Removes the segments below `ack`, which the mobile has received.
    fn on_ack(&mut self, now: Instant, ack: ExtSeq) {
        let mut is_news = false;
        while let Some(first) =
            self.segments.first_entry().filter(|first| first.get().range.end <= ack)
        {
            let cached = first.remove();
            self.bytes -= cached.packet.len();
            is_news = true;
            // Karn's algorithm: a retransmitted segment gives no RTT sample.
            if cached.copies == 0 && !cached.is_again {
                let sample = now.since(cached.passed);
                let before = self.rtt.unwrap_or(sample);
                self.rtt = Some((before * (SMOOTHING - 1) + sample) / SMOOTHING);
            }
        }
        if is_news {
            self.backoff = 0;
            self.deadline = (!self.segments.is_empty()).then(|| now + self.wait());
        }
    }

    /// Returns the cached segment that contains `seq`, which the mobile is missing, unless the
    /// fixed host has retransmitted it.
    fn asked(&self, seq: ExtSeq) -> Option<&Cached> {
        let (_, cached) = self.segments.range(..=seq).next_back()?;
        (cached.range.contains(seq) && !cached.is_again).then_some(cached)
    }

    /// Returns a copy of the segment that starts at `start` for retransmission; `None` at the
    /// maximum number of copies.
    fn copy(&mut self, now: Instant, start: ExtSeq) -> Option<(Packet, SeqRange)> {
        let cached = self.segments.get_mut(&start)?;
        if cached.copies >= MAX_COPIES {
            return None;
        }
        cached.copies += 1;
        cached.passed = now;
        Some((cached.packet.clone(), cached.range))
    }

    /// Processes an expired deadline: returns the first segment for retransmission, or removes it
    /// after the last copy. `acked` is the mobile's acknowledgement. A first segment above it is
    /// not retransmitted, because the mobile waits for data that was lost before the station; it is
    /// removed after as many time-outs without progress.
    fn on_timeout(&mut self, now: Instant, acked: Option<ExtSeq>) -> Option<ExtSeq> {
        self.deadline = None;
        let first = self.segments.first_entry()?;
        let start = *first.key();
        let is_missing = acked.is_none_or(|acked| start <= acked);
        let spent = if is_missing { first.get().copies } else { self.backoff };
        let is_kept = spent < MAX_COPIES;
        if is_kept {
            self.backoff += 1;
        } else {
            self.bytes -= first.remove().packet.len();
        }
        self.deadline = (!self.segments.is_empty()).then(|| now + self.wait());
        (is_kept && is_missing).then_some(start)
    }
}

/// The local timers, at most one entry for each flow.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Instant, FlowKey)>);

impl Timers {
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }
}

impl Station {
    /// Caches a segment with data from the fixed host, which is about to be passed to the radio.
    pub(super) fn cache(
        &mut self,
        now: Instant,
        segment: &Segment,
        (slot, entered): (Slot, Entered),
        packet: &Packet,
    ) {
        let used = self.table.cached_of(self.table.of(slot));
        let has_room = used + packet.len() <= self.cache_limit;
        let flow = &mut self.table[slot];
        let is_old = flow.acked().is_some_and(|acked| entered.range.end <= acked);
        if segment.data == 0 || is_old || !has_room {
            return;
        }
        let cache = flow.cache.get_or_insert_default();
        let before = cache.bytes;
        cache.insert(now, entered.range, packet.clone(), !entered.is_new);
        let after = cache.bytes;
        self.table.count_cached(slot, before, after);
        self.set_timer(slot);
    }

    /// Whether to drop an ACK of the mobile. Retransmits the missing segment if the radio has lost
    /// it.
    pub(super) fn snoops(&mut self, now: Instant, slot: Slot, segment: &Segment) -> bool {
        let flow = &self.table[slot];
        let asked = match flow.acked() {
            Some(acked) if filter::is_plain_duplicate(flow, segment) => acked,
            _ => return false,
        };
        let Some(cached) = flow.cache.as_ref().and_then(|cache| cache.asked(asked)) else {
            return false;
        };
        let (start, is_first) = (cached.range.start, cached.copies == 0);
        let is_in_radio = flow.is_in_radio(asked, |frame| self.radio.holds(frame));
        if is_first && !is_in_radio {
            self.send_again(now, slot, start);
        }
        true
    }

    /// Removes the segments that the mobile has acknowledged.
    pub(super) fn uncache(&mut self, now: Instant, slot: Slot) {
        let flow = &mut self.table[slot];
        let (Some(ack), Some(cache)) = (flow.acked(), flow.cache.as_mut()) else { return };
        let before = cache.bytes;
        cache.on_ack(now, ack);
        let after = cache.bytes;
        self.table.count_cached(slot, before, after);
        self.set_timer(slot);
    }

    fn send_again(&mut self, now: Instant, slot: Slot, start: ExtSeq) {
        let cache = self.table.touch(now, slot).cache.as_mut();
        let Some((packet, range)) = cache.and_then(|cache| cache.copy(now, start)) else { return };
        let to = self.table.of(slot);
        self.count(to, |counters| counters.sent_again += 1);
        self.report(now, Fate::Duplicated, || packet.clone());
        self.pass(now, to, packet, None, Some((slot, Entered { range, is_new: false })));
    }

    fn set_timer(&mut self, slot: Slot) {
        let key = self.table.key(slot);
        if let Some(cache) = self.table[slot].cache.as_mut()
            && cache.look_at.is_none()
            && let Some(at) = cache.deadline
        {
            cache.look_at = Some(at);
            self.timers.0.insert((at, key));
        }
    }

    /// Processes the expired local timers.
    pub(super) fn on_snoop_timeout(&mut self, now: Instant) {
        while let Some((at, key)) = self.timers.0.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.0.remove(&(at, key));
            if let Some(slot) = self.table.find(&key) {
                self.on_flow_timeout(now, slot, at);
                self.set_timer(slot);
            }
        }
    }

    fn on_flow_timeout(&mut self, now: Instant, slot: Slot, at: Instant) {
        let flow = &mut self.table[slot];
        let acked = flow.acked();
        let Some(cache) = flow.cache.as_mut().filter(|cache| cache.look_at == Some(at)) else {
            return;
        };
        cache.look_at = None;
        if cache.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        let before = cache.bytes;
        let again = cache.on_timeout(now, acked);
        let after = cache.bytes;
        let is_lost = |start: &ExtSeq| !flow.is_in_radio(*start, |frame| self.radio.holds(frame));
        let again = again.filter(is_lost);
        self.table.count_cached(slot, before, after);
        if let Some(start) = again {
            self.send_again(now, slot, start);
        }
    }
}
