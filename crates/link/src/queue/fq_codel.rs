//! FQ-CoDel (RFC 8290): a CoDel queue per flow, served round robin.
//!
//! Hash collisions, by which flows share one of 1024 queues (section 4.1.1), are not modelled: each
//! flow has a queue of its own.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Packet};

use super::Store;
use super::codel::CoDel;
use crate::ip;
use crate::ledger::{DropCause, Ledger};

/// The quantum in bytes: a packet of the usual MTU (section 5.2.1).
const QUANTUM: i64 = 1_500;

#[derive(Clone, Debug)]
struct Flow {
    store: Store,
    codel: CoDel,
    credits: i64,
}

#[derive(Clone, Debug)]
pub(super) struct FqCoDel {
    codel: CoDel,
    flows: BTreeMap<ip::Flow, Flow>,
    /// Flows that had no packet when one arrived. They are served before the old ones.
    new: VecDeque<ip::Flow>,
    old: VecDeque<ip::Flow>,
}

impl FqCoDel {
    pub(super) const fn new(target: Duration, interval: Duration, ecn: bool) -> Self {
        let codel = CoDel::new(target, interval, ecn);
        Self { codel, flows: BTreeMap::new(), new: VecDeque::new(), old: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.flows.values().map(|flow| flow.store.waiting.len()).sum()
    }

    pub(super) fn bytes(&self) -> ByteCount {
        ByteCount(self.flows.values().map(|flow| flow.store.bytes.0).sum())
    }

    /// Enqueues a packet (section 4.1).
    pub(super) fn enqueue(&mut self, now: Instant, packet: Packet) {
        let key = ip::flow(&packet.data);
        let flow = self.flows.entry(key).or_insert_with(|| {
            self.new.push_back(key);
            Flow { store: Store::default(), codel: self.codel.clone(), credits: QUANTUM }
        });
        flow.store.put(now, packet);
    }

    /// Drops the oldest packet of the flow with the most bytes (section 4.1.3).
    pub(super) fn drop_of_longest(&mut self, now: Instant, ledger: &mut Ledger) {
        let longest = self.flows.values_mut().max_by_key(|flow| flow.store.bytes);
        if let Some(waiting) = longest.and_then(|flow| flow.store.take(now)) {
            ledger.dropped(now, DropCause::QueueFull, waiting.packet);
        }
    }

    /// Dequeues a packet (section 4.2).
    pub(super) fn dequeue(&mut self, now: Instant, ledger: &mut Ledger) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let key = list.pop_front()?;
            let flow = self.flows.get_mut(&key)?;
            if flow.credits <= 0 {
                flow.credits += QUANTUM;
                self.old.push_back(key);
                continue;
            }
            match flow.codel.dequeue(now, &mut flow.store, ledger) {
                Some(packet) => {
                    flow.credits -= packet.len() as i64;
                    // The flow stays at the head of its list while it has credits.
                    let list = if is_new { &mut self.new } else { &mut self.old };
                    list.push_front(key);
                    return Some(packet);
                }
                // If an empty new flow were removed at once, each of its packets would start a new
                // flow with priority.
                None if is_new => self.old.push_back(key),
                None => drop(self.flows.remove(&key)),
            }
        }
    }
}
