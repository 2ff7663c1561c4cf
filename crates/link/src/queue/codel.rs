//! CoDel, RFC 8289, with the names of its pseudocode (section 5).

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Packet};

use super::Store;
use crate::ip;
use crate::ledger::{DropCause, Ledger};

/// Section 5.3's MAXPACKET, at the usual MTU.
const MAXPACKET: ByteCount = ByteCount(1_500);

#[derive(Clone, Debug)]
pub(super) struct CoDel {
    target: Duration,
    interval: Duration,
    ecn: bool,
    /// When the sojourn time will have been above target for an interval; `None` while it is below.
    first_above_time: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
}

impl CoDel {
    pub(super) fn new(target: Duration, interval: Duration, ecn: bool) -> Self {
        Self {
            target,
            interval,
            ecn,
            first_above_time: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            lastcount: 0,
        }
    }

    /// RFC 8289 section 5.5. A packet that can be marked is, in place of being dropped, and leaves.
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        store: &mut Store,
        ledger: &mut Ledger,
    ) -> Option<Packet> {
        let (mut packet, ok_to_drop) = self.dodequeue(now, store)?;
        if self.dropping {
            // Leaving the state ends the loop: the sojourn time is below target.
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                packet = match self.mark(now, packet, ledger) {
                    Some(marked) => {
                        self.drop_next = self.control_law(self.drop_next);
                        return Some(marked);
                    }
                    None => {
                        let next = self.dodequeue(now, store);
                        self.dropping = next.as_ref().is_some_and(|(_, ok_to_drop)| *ok_to_drop);
                        next?.0
                    }
                };
                if self.dropping {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            // Start from the rate that controlled the queue the last time, if that was recent.
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now.since(self.drop_next) < self.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.dropping = true;
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
            packet = match self.mark(now, packet, ledger) {
                Some(marked) => marked,
                None => self.dodequeue(now, store)?.0,
            };
        }
        Some(packet)
    }

    /// RFC 8289 section 5.6: the packet, and whether its sojourn time allows a drop.
    fn dodequeue(&mut self, now: Instant, store: &mut Store) -> Option<(Packet, bool)> {
        let Some(waiting) = store.take(now) else {
            self.first_above_time = None;
            return None;
        };
        let mut ok_to_drop = false;
        if now.since(waiting.since) < self.target || store.bytes <= MAXPACKET {
            self.first_above_time = None;
        } else {
            let above = *self.first_above_time.get_or_insert(now + self.interval);
            ok_to_drop = now >= above;
        }
        Some((waiting.packet, ok_to_drop))
    }

    /// The packet, marked; if it cannot be, it is dropped.
    fn mark(&self, now: Instant, mut packet: Packet, ledger: &mut Ledger) -> Option<Packet> {
        if self.ecn && ip::set_ce(&mut packet.data) {
            ledger.marked(now, DropCause::CoDel, &packet);
            return Some(packet);
        }
        ledger.dropped(now, DropCause::CoDel, packet);
        None
    }

    /// RFC 8289 section 5.4.
    fn control_law(&self, t: Instant) -> Instant {
        t + self.interval.div_f64(libm::sqrt(f64::from(self.count.max(1))))
    }
}
