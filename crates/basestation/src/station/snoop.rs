//! Snoop (Balakrishnan, Seshan, Katz 1995), to compare with: segments are cached until the mobile
//! acknowledges them, sent again from here on its duplicate ACK or when none comes, and those
//! duplicate ACKs hidden.
//!
//! What the radio still has is not sent again: that would only be a second copy in the same queue.
//! Local copies go to its tail; the paper gives them precedence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use airtcp_types::{ExtSeq, Fate, Instant, Packet, SeqRange};

use super::flow::{Entered, FlowKey};
use super::segment::Segment;
use super::table::Slot;
use super::{Station, filter};

/// How long a local timer waits at least, and at first (ns-2's `SNOOP_MIN_TIMO`).
const MIN_WAIT: Duration = Duration::from_millis(100);
/// How often a segment is sent again from here before the fixed host has to.
const MAX_COPIES: u32 = 10;
/// How much a new round-trip time counts (RFC 6298 section 2).
const SMOOTHING: u32 = 8;

/// The segments of one flow that the mobile has not acknowledged, by their first numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    segments: BTreeMap<ExtSeq, Cached>,
    bytes: usize,
    /// The smoothed round trip over the radio.
    rtt: Option<Duration>,
    /// When the first segment is sent again, if the mobile says nothing; doubled with each time it
    /// was.
    deadline: Option<Instant>,
    backoff: u32,
    /// When its timer is looked at: at the deadline or before.
    look_at: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Cached {
    range: SeqRange,
    packet: Packet,
    passed: Instant,
    copies: u32,
    /// The fixed host sent it again, and waits for duplicate ACKs.
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

    /// The mobile has everything below `ack`.
    fn on_ack(&mut self, now: Instant, ack: ExtSeq) {
        let mut is_news = false;
        while let Some(first) =
            self.segments.first_entry().filter(|first| first.get().range.end <= ack)
        {
            let cached = first.remove();
            self.bytes -= cached.packet.len();
            is_news = true;
            // Karn: of one that was sent twice nobody knows which arrived.
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

    /// The segment that the mobile asks for at `seq`, if it was cached and the fixed host is not
    /// about it already.
    fn asked(&self, seq: ExtSeq) -> Option<&Cached> {
        let (_, cached) = self.segments.range(..=seq).next_back()?;
        (cached.range.contains(seq) && !cached.is_again).then_some(cached)
    }

    /// A copy of the segment that starts at `start`, to be sent again; `None` if it has been too
    /// often.
    fn copy(&mut self, now: Instant, start: ExtSeq) -> Option<(Packet, SeqRange)> {
        let cached = self.segments.get_mut(&start)?;
        if cached.copies >= MAX_COPIES {
            return None;
        }
        cached.copies += 1;
        cached.passed = now;
        Some((cached.packet.clone(), cached.range))
    }

    /// The deadline has passed: gives the segment to send again, or forgets it.
    fn on_timeout(&mut self, now: Instant) -> Option<ExtSeq> {
        self.deadline = None;
        let first = self.segments.first_entry()?;
        let start = *first.key();
        let is_left = first.get().copies < MAX_COPIES;
        if is_left {
            self.backoff += 1;
        } else {
            self.bytes -= first.remove().packet.len();
        }
        self.deadline = (!self.segments.is_empty()).then(|| now + self.wait());
        is_left.then_some(start)
    }
}

/// The local timers: one entry for each flow at most.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Instant, FlowKey)>);

impl Timers {
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }
}

impl Station {
    /// A segment with data of the fixed host's is about to be passed.
    pub(super) fn cache(
        &mut self,
        now: Instant,
        segment: &Segment,
        (slot, entered): (Slot, Entered),
        packet: &Packet,
    ) {
        let has_room = self.table.cached + packet.len() <= self.cache_limit;
        let flow = &mut self.table[slot];
        let is_old = flow.acked().is_some_and(|acked| entered.range.end <= acked);
        if segment.data == 0 || is_old || !has_room {
            return;
        }
        let cache = flow.cache.get_or_insert_default();
        let before = cache.bytes;
        cache.insert(now, entered.range, packet.clone(), !entered.is_new);
        let after = cache.bytes;
        self.table.cached = self.table.cached + after - before;
        self.set_timer(slot);
    }

    /// Whether an ACK of the mobile's is to be hidden; if it asks for something that the radio has
    /// lost, that is sent again.
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

    /// The mobile's acknowledgement may have moved on.
    pub(super) fn uncache(&mut self, now: Instant, slot: Slot) {
        let flow = &mut self.table[slot];
        let (Some(ack), Some(cache)) = (flow.acked(), flow.cache.as_mut()) else { return };
        let before = cache.bytes;
        cache.on_ack(now, ack);
        self.table.cached -= before - cache.bytes;
        self.set_timer(slot);
    }

    fn send_again(&mut self, now: Instant, slot: Slot, start: ExtSeq) {
        let cache = self.table.touch(now, slot).cache.as_mut();
        let Some((packet, range)) = cache.and_then(|cache| cache.copy(now, start)) else { return };
        self.counters.sent_again += 1;
        self.report(now, Fate::Duplicated, || packet.clone());
        self.pass(now, packet, Some((slot, Entered { range, is_new: false })));
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

    /// Works the local timers.
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
        let Some(cache) = flow.cache.as_mut().filter(|cache| cache.look_at == Some(at)) else {
            return;
        };
        cache.look_at = None;
        if cache.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        let before = cache.bytes;
        let again = cache.on_timeout(now);
        let freed = before - cache.bytes;
        let is_lost = |start: &ExtSeq| !flow.is_in_radio(*start, |frame| self.radio.holds(frame));
        let again = again.filter(is_lost);
        self.table.cached -= freed;
        if let Some(start) = again {
            self.send_again(now, slot, start);
        }
    }
}
