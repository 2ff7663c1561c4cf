//! CoDel (RFC 8289), with the names of its pseudocode (section 5).

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Packet};

use super::Store;
use crate::ip;
use crate::ledger::{DropCause, Ledger};

/// MAXPACKET of section 5.3, at the usual MTU.
const MAXPACKET: ByteCount = ByteCount(1_500);

/// CoDel's state and control law.
#[derive(Clone, Debug)]
pub(crate) struct ControlLaw {
    target: Duration,
    interval: Duration,
    /// When the sojourn time will have been above the target for an interval; `None` while it is
    /// below.
    first_above_time: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
}

impl ControlLaw {
    const fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above_time: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            lastcount: 0,
        }
    }

    /// Creates a control law with the RFC's parameters (sections 4.2 and 4.3).
    pub(crate) const fn standard() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_millis(100))
    }

    /// RFC 8289 section 5.6: whether the sojourn time of a packet that leaves, with `backlog` bytes
    /// behind it, permits a drop.
    fn is_above(&mut self, now: Instant, since: Instant, backlog: ByteCount) -> bool {
        if now.since(since) < self.target || backlog <= MAXPACKET {
            self.first_above_time = None;
            return false;
        }
        now >= *self.first_above_time.get_or_insert(now + self.interval)
    }

    /// Enters the dropping state, at the drop rate of the previous one if that was recent.
    fn begin(&mut self, now: Instant) {
        let delta = self.count.saturating_sub(self.lastcount);
        let recent = now.since(self.drop_next) < self.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.dropping = true;
        self.drop_next = self.next_after(now);
        self.lastcount = self.count;
    }

    /// The control law of RFC 8289 section 5.4.
    fn next_after(&self, t: Instant) -> Instant {
        t + self.interval.div_f64(libm::sqrt(f64::from(self.count.max(1))))
    }

    /// Returns whether a queue that marks and never drops marks a packet that leaves now and
    /// arrived at `since`. A packet that cannot be marked also updates the state; the next packet
    /// that can be marked is marked instead.
    pub(crate) fn marks(
        &mut self,
        now: Instant,
        since: Instant,
        backlog: ByteCount,
        can_mark: bool,
    ) -> bool {
        let is_above = self.is_above(now, since, backlog);
        if self.dropping {
            self.dropping = is_above;
            if !is_above || !can_mark || now < self.drop_next {
                return false;
            }
            self.count = self.count.saturating_add(1);
            self.drop_next = self.next_after(self.drop_next);
            return true;
        }
        if is_above && can_mark {
            self.begin(now);
        }
        is_above && can_mark
    }
}

#[derive(Clone, Debug)]
pub(super) struct CoDel {
    law: ControlLaw,
    ecn: bool,
}

impl CoDel {
    pub(super) const fn new(target: Duration, interval: Duration, ecn: bool) -> Self {
        Self { law: ControlLaw::new(target, interval), ecn }
    }

    /// RFC 8289 section 5.5. With ECN, a packet that can be marked is marked and transmitted
    /// instead of dropped.
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        store: &mut Store,
        ledger: &mut Ledger,
    ) -> Option<Packet> {
        let (mut packet, ok_to_drop) = self.dodequeue(now, store)?;
        if self.law.dropping {
            // The loop ends with the dropping state: the sojourn time is below the target.
            self.law.dropping = ok_to_drop;
            while self.law.dropping && now >= self.law.drop_next {
                self.law.count = self.law.count.saturating_add(1);
                packet = match self.mark(now, packet, ledger) {
                    Some(marked) => {
                        self.law.drop_next = self.law.next_after(self.law.drop_next);
                        return Some(marked);
                    }
                    None => {
                        let next = self.dodequeue(now, store);
                        self.law.dropping =
                            next.as_ref().is_some_and(|(_, ok_to_drop)| *ok_to_drop);
                        next?.0
                    }
                };
                if self.law.dropping {
                    self.law.drop_next = self.law.next_after(self.law.drop_next);
                }
            }
        } else if ok_to_drop {
            self.law.begin(now);
            packet = match self.mark(now, packet, ledger) {
                Some(marked) => marked,
                None => self.dodequeue(now, store)?.0,
            };
        }
        Some(packet)
    }

    /// RFC 8289 section 5.6: takes a packet and returns whether its sojourn time permits a drop.
    fn dodequeue(&mut self, now: Instant, store: &mut Store) -> Option<(Packet, bool)> {
        let Some(waiting) = store.take(now) else {
            self.law.first_above_time = None;
            return None;
        };
        let ok_to_drop = self.law.is_above(now, waiting.since, store.bytes);
        Some((waiting.packet, ok_to_drop))
    }

    /// Marks the packet; drops it if it cannot be marked.
    fn mark(&self, now: Instant, mut packet: Packet, ledger: &mut Ledger) -> Option<Packet> {
        if self.ecn && ip::set_ce(&mut packet.data) {
            ledger.marked(now, DropCause::CoDel, &packet);
            return Some(packet);
        }
        ledger.dropped(now, DropCause::CoDel, packet);
        None
    }
}
