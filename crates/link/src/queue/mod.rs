//! The queue before the serialiser, and its discipline.

mod codel;
mod fq_codel;
mod red;

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, Packet};

use crate::ip;
use crate::ledger::{DropCause, Ledger};
use crate::occupancy::Gauge;
use crate::spec::{Discipline, QueueSpec};
use codel::CoDel;
pub(crate) use codel::ControlLaw;
use fq_codel::FqCoDel;
use red::Red;

/// A queued packet and the time of its arrival.
#[derive(Clone, Debug)]
struct Waiting {
    packet: Packet,
    since: Instant,
}

/// The queued packets, in FIFO order.
#[derive(Clone, Debug, Default)]
struct Store {
    waiting: VecDeque<Waiting>,
    bytes: ByteCount,
    gauge: Gauge,
}

impl Store {
    fn put(&mut self, now: Instant, packet: Packet) {
        self.gauge.lasted(now, self.waiting.len());
        self.bytes += ByteCount::from(packet.len());
        self.waiting.push_back(Waiting { packet, since: now });
    }

    fn take(&mut self, now: Instant) -> Option<Waiting> {
        self.gauge.lasted(now, self.waiting.len());
        let waiting = self.waiting.pop_front()?;
        self.bytes -= ByteCount::from(waiting.packet.len());
        Some(waiting)
    }
}

#[derive(Clone, Debug)]
enum Manager {
    DropTail,
    CoDel(CoDel),
    /// FQ-CoDel stores the packets itself.
    FqCoDel(Box<FqCoDel>),
    Red(Box<Red>),
    Mark(usize),
}

/// The queue of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    store: Store,
    packets_limit: usize,
    bytes_limit: ByteCount,
    manager: Manager,
}

impl Queue {
    /// Creates a queue before a serialiser that takes `slot` for a packet of 1500 bytes.
    pub(crate) fn new(spec: &QueueSpec, slot: Duration, random: Stream) -> Self {
        let manager = match spec.discipline {
            Discipline::DropTail => Manager::DropTail,
            Discipline::CoDel { target, interval, ecn } => {
                Manager::CoDel(CoDel::new(target, interval, ecn))
            }
            Discipline::FqCoDel { target, interval, ecn } => {
                Manager::FqCoDel(Box::new(FqCoDel::new(target, interval, ecn)))
            }
            Discipline::Red { min, max, probability } => {
                Manager::Red(Box::new(Red::new(min, max, probability, slot, random)))
            }
            Discipline::Mark(packets) => Manager::Mark(packets as usize),
        };
        Self {
            store: Store::default(),
            packets_limit: spec.packets,
            bytes_limit: spec.bytes.unwrap_or(ByteCount::MAX),
            manager,
        }
    }

    /// Sets the transmission time of a packet of 1500 bytes.
    pub(crate) fn set_slot(&mut self, slot: Duration) {
        if let Manager::Red(red) = &mut self.manager {
            red.set_slot(slot);
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.manager {
            Manager::FqCoDel(flows) => flows.len(),
            _ => self.store.waiting.len(),
        }
    }

    pub(crate) fn bytes(&self) -> ByteCount {
        match &self.manager {
            Manager::FqCoDel(flows) => flows.bytes(),
            _ => self.store.bytes,
        }
    }

    /// Mean and maximum of the queue length from the origin to `now`.
    pub(crate) fn mean_and_max(&mut self, now: Instant) -> (f64, usize) {
        self.store.gauge.lasted(now, self.len());
        self.store.gauge.mean_and_max()
    }

    /// Queues a packet, or drops it.
    pub(crate) fn push(&mut self, now: Instant, mut packet: Packet, ledger: &mut Ledger) {
        let length = self.len();
        if let Manager::FqCoDel(flows) = &mut self.manager {
            self.store.gauge.lasted(now, length);
            flows.enqueue(now, packet);
            while flows.len() > self.packets_limit || flows.bytes() > self.bytes_limit {
                flows.drop_of_longest(now, ledger);
            }
            return;
        }
        let hit = match &mut self.manager {
            Manager::DropTail | Manager::CoDel(_) | Manager::FqCoDel(_) => None,
            Manager::Red(red) => red.hits(now, length).then_some(DropCause::Red),
            Manager::Mark(threshold) => (length >= *threshold).then_some(DropCause::Threshold),
        };
        let size = ByteCount::from(packet.len());
        if length >= self.packets_limit || self.store.bytes + size > self.bytes_limit {
            return ledger.dropped(now, DropCause::QueueFull, packet);
        }
        if let Some(cause) = hit {
            if !ip::set_ce(&mut packet.data) {
                return ledger.dropped(now, cause, packet);
            }
            ledger.marked(now, cause, &packet);
        }
        if let Manager::Red(red) = &mut self.manager {
            red.on_entry();
        }
        self.store.put(now, packet);
    }

    /// Returns the next packet for the serialiser.
    pub(crate) fn pop(&mut self, now: Instant, ledger: &mut Ledger) -> Option<Packet> {
        let length = self.len();
        match &mut self.manager {
            Manager::CoDel(codel) => return codel.dequeue(now, &mut self.store, ledger),
            Manager::FqCoDel(flows) => {
                self.store.gauge.lasted(now, length);
                return flows.dequeue(now, ledger);
            }
            _ => {}
        }
        let next = self.store.take(now);
        if let (Manager::Red(red), true) = (&mut self.manager, self.store.waiting.is_empty()) {
            red.on_empty(now);
        }
        next.map(|waiting| waiting.packet)
    }
}
