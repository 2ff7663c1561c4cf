//! Delayed duplicate acknowledgements (Vaidya, Mehta, Perkins, Montenegro 2002), for comparison.
//! Of the duplicate ACKs for one loss, two pass at once. The third, which would make the sender
//! retransmit, and all later ones wait for the link-layer retransmission. If the mobile
//! acknowledges the missing segment in time, they are dropped; otherwise all are forwarded.
//!
//! Unlike in the paper, the station delays the ACKs and not the receiver, so that mobiles need no
//! change. Nothing is parsed in the direction of the data except sequence numbers, and losses on
//! the wired side are not distinguished: their repair is delayed, too.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::Duration;

use airtcp_link::radio::MobileNo;
use airtcp_types::{ExtSeq, Fate, Instant, Packet};

use super::flow::FlowKey;
use super::segment::Segment;
use super::table::Slot;
use super::{Station, filter};

/// The number of duplicate ACKs that pass at once: the third starts fast retransmit (RFC 5681
/// section 3.2).
const AT_ONCE: u8 = 2;
/// How long duplicate ACKs are counted after the last one. A sender has timed out by then (RFC 6298
/// section 2, rule 2.5).
const COUNTED: Duration = Duration::from_secs(60);

/// The duplicate ACKs of a flow with the same acknowledgement.
#[derive(Debug)]
struct Duplicates {
    ack: ExtSeq,
    /// The number that passed, at most [`AT_ONCE`].
    passed: u8,
    /// Whether delayed ACKs were forwarded: the sender repairs the loss, and needs the others.
    is_over: bool,
    waiting: Vec<Packet>,
    /// The memory of `waiting`.
    bytes: usize,
    /// When the waiting ACKs are forwarded; if there are none, when the count ends.
    at: Instant,
    /// The mobile whose share they use.
    of: MobileNo,
}

impl Duplicates {
    /// The memory, with the entries in both maps.
    const fn cost(&self) -> usize {
        size_of::<(FlowKey, Self)>() + size_of::<(Instant, FlowKey)>() + self.bytes
    }
}

/// The memory of a waiting ACK of this length.
const fn cost(len: usize) -> usize {
    size_of::<Packet>() + len
}

/// The duplicate ACKs of all flows, with a limit for each mobile.
#[derive(Debug)]
pub(super) struct Delays {
    delay: Duration,
    /// The maximum memory for each mobile.
    limit: usize,
    flows: BTreeMap<FlowKey, Duplicates>,
    /// One entry for each flow in `flows`.
    deadlines: BTreeSet<(Instant, FlowKey)>,
    /// The memory that mobiles use.
    used: BTreeMap<MobileNo, usize>,
}

impl Delays {
    /// Creates the state for a delay of `delay`, with `limit` bytes for each mobile.
    pub(super) const fn new(delay: Duration, limit: usize) -> Self {
        Self {
            delay,
            limit,
            flows: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            used: BTreeMap::new(),
        }
    }

    /// Returns the memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.used.values().sum()
    }

    /// Returns the next time at which ACKs are forwarded or a count ends.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Returns a flow whose time has come.
    fn due(&self, now: Instant) -> Option<FlowKey> {
        self.deadlines.first().filter(|(at, _)| *at <= now).map(|(_, key)| *key)
    }

    fn take(&mut self, key: &FlowKey) -> Option<Duplicates> {
        let own = self.flows.remove(key)?;
        self.deadlines.remove(&(own.at, *key));
        if let Some(used) = self.used.get_mut(&own.of) {
            *used -= own.cost();
            if *used == 0 {
                self.used.remove(&own.of);
            }
        }
        Some(own)
    }

    fn put(&mut self, key: FlowKey, own: Duplicates) {
        *self.used.entry(own.of).or_default() += own.cost();
        self.deadlines.insert((own.at, key));
        self.flows.insert(key, own);
    }

    /// Counts a duplicate ACK with `len` bytes of a flow of the mobile `of`; returns whether it has
    /// to wait.
    fn count(&mut self, now: Instant, key: FlowKey, of: MobileNo, ack: ExtSeq, len: usize) -> bool {
        let at = now + COUNTED;
        let fresh =
            || Duplicates { ack, passed: 0, is_over: false, waiting: Vec::new(), bytes: 0, at, of };
        let mut own = self.take(&key).unwrap_or_else(fresh);
        if own.ack != ack {
            // Another connection of the same ends.
            (own.ack, own.passed, own.is_over) = (ack, 0, false);
        }
        let used = self.used.get(&own.of).copied().unwrap_or(0);
        let has_room = used + own.cost() + cost(len) <= self.limit;
        let waits = has_room && !own.is_over && own.passed >= AT_ONCE;
        let is_first = own.waiting.is_empty();
        if !waits {
            own.passed = AT_ONCE.min(own.passed + 1);
        }
        if is_first {
            own.at = if waits { now + self.delay } else { at };
        }
        if !is_first || used + own.cost() <= self.limit {
            self.put(key, own);
        }
        waits
    }

    /// Adds an ACK that has to wait.
    fn wait(&mut self, key: FlowKey, packet: Packet) {
        if let Some(mut own) = self.take(&key) {
            own.bytes += cost(packet.len());
            own.waiting.push(packet);
            self.put(key, own);
        }
    }

    /// Returns the waiting ACKs of a flow, in order. Its later duplicate ACKs do not wait.
    fn release(&mut self, now: Instant, key: &FlowKey) -> Vec<Packet> {
        if self.flows.get(key).is_none_or(|own| own.waiting.is_empty()) {
            return Vec::new();
        }
        let Some(mut own) = self.take(key) else { return Vec::new() };
        let waiting = mem::take(&mut own.waiting);
        (own.bytes, own.is_over, own.at) = (0, true, now + COUNTED);
        self.put(*key, own);
        waiting
    }

    /// Ends the count of a flow; returns the waiting ACKs.
    pub(super) fn end(&mut self, key: &FlowKey) -> Vec<Packet> {
        self.take(key).map_or(Vec::new(), |own| own.waiting)
    }

    /// Returns the flows that use the share of a mobile.
    fn of(&self, of: MobileNo) -> Vec<FlowKey> {
        let is_of = |(_, own): &(&FlowKey, &Duplicates)| own.of == of;
        self.flows.iter().filter(is_of).map(|(key, _)| *key).collect()
    }
}

impl Station {
    /// Whether an ACK of `len` bytes from the mobile has to wait. Drops the waiting ACKs of its
    /// flow if it shows that the loss is repaired. Forwards them if it passes and repeats their
    /// acknowledgement, so that the order stays.
    pub(super) fn delays(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &Segment,
        len: usize,
    ) -> bool {
        let (flow, key, of) = (&self.table[slot], self.table.key(slot), self.table.of(slot));
        let Some(acked) = flow.acked() else { return false };
        match flow.acknowledged_by(segment).cmp(&acked) {
            // It was overtaken on the radio.
            Ordering::Less => false,
            Ordering::Greater => {
                self.drop_delayed(now, of, &key);
                false
            }
            Ordering::Equal => {
                // RFC 5681 section 2: duplicate ACKs need outstanding data.
                let is_duplicate =
                    acked < flow.highest() && filter::is_plain_duplicate(flow, segment);
                let waits = is_duplicate && self.delayed.count(now, key, of, acked, len);
                if !waits {
                    self.made.extend(self.delayed.release(now, &key));
                }
                waits
            }
        }
    }

    /// Delays a duplicate ACK of the mobile `of`.
    pub(super) fn delay(&mut self, now: Instant, of: MobileNo, key: FlowKey, packet: Packet) {
        self.count(of, |counters| counters.delayed += 1);
        self.report(now, Fate::Held, || packet.clone());
        self.delayed.wait(key, packet);
    }

    /// Drops the waiting ACKs of a flow.
    pub(super) fn drop_delayed(&mut self, now: Instant, of: MobileNo, key: &FlowKey) {
        for packet in self.delayed.end(key) {
            self.hide(now, of, packet);
        }
    }

    /// Drops the waiting ACKs of a mobile whose place another one takes.
    pub(super) fn forget_delayed(&mut self, now: Instant, of: MobileNo) {
        for key in self.delayed.of(of) {
            self.drop_delayed(now, of, &key);
        }
    }

    /// Forwards the ACKs that have waited for too long.
    pub(super) fn on_delay_timeout(&mut self, now: Instant) {
        while let Some(key) = self.delayed.due(now) {
            let late = self.delayed.release(now, &key);
            if late.is_empty() {
                self.delayed.end(&key);
            }
            self.made.extend(late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::key;
    use super::*;

    #[test]
    fn a_count_goes_on_after_an_ack_without_room() {
        let limit = size_of::<(FlowKey, Duplicates)>() + size_of::<(Instant, FlowKey)>() + cost(60);
        let mut delays = Delays::new(Duration::from_millis(90), limit);
        let mut count =
            |len: usize| delays.count(Instant::ZERO, key(), MobileNo::OTHERS, ExtSeq(9), len);
        assert_eq!([40, 40, 80, 40].map(&mut count), [false, false, false, true]);
    }
}
