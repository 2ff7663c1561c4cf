//! What waits for the serialiser, and how it is kept short.

mod codel;
mod red;

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, Packet};

use crate::spec::{Discipline, QueueSpec};
use crate::{Counters, ip};
use codel::CoDel;
use red::Red;

/// A packet that waits, and since when.
#[derive(Clone, Debug)]
struct Waiting {
    packet: Packet,
    since: Instant,
}

#[derive(Clone, Debug)]
enum Manager {
    DropTail,
    CoDel(CoDel),
    Red(Box<Red>),
    Mark(usize),
}

/// The queue of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: ByteCount,
    packets_limit: usize,
    bytes_limit: ByteCount,
    manager: Manager,
}

impl Queue {
    /// A queue before a serialiser that takes `slot` for a packet of 1500 bytes.
    pub(crate) fn new(spec: &QueueSpec, slot: Duration, random: Stream) -> Self {
        let manager = match spec.discipline {
            Discipline::DropTail => Manager::DropTail,
            Discipline::CoDel { target, interval, ecn } => {
                Manager::CoDel(CoDel::new(target, interval, ecn))
            }
            Discipline::Red { min, max, probability } => {
                Manager::Red(Box::new(Red::new(min, max, probability, slot, random)))
            }
            Discipline::Mark(packets) => Manager::Mark(packets as usize),
        };
        Self {
            waiting: VecDeque::new(),
            bytes: ByteCount::ZERO,
            packets_limit: spec.packets,
            bytes_limit: spec.bytes.unwrap_or(ByteCount::MAX),
            manager,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn bytes(&self) -> ByteCount {
        self.bytes
    }

    /// Takes a packet in, or drops and counts it.
    pub(crate) fn push(&mut self, now: Instant, mut packet: Packet, counters: &mut Counters) {
        let hit = match &mut self.manager {
            Manager::DropTail | Manager::CoDel(_) => false,
            Manager::Red(red) => red.hits(now, self.waiting.len()),
            Manager::Mark(threshold) => self.waiting.len() >= *threshold,
        };
        let size = ByteCount::from(packet.len());
        let full = self.waiting.len() >= self.packets_limit || self.bytes + size > self.bytes_limit;
        if full || (hit && !ip::set_ce(&mut packet.data)) {
            counters.queue_dropped += 1;
            return;
        }
        counters.marked += u64::from(hit);
        self.bytes += size;
        self.waiting.push_back(Waiting { packet, since: now });
    }

    /// The next packet for the serialiser.
    pub(crate) fn pop(&mut self, now: Instant, counters: &mut Counters) -> Option<Packet> {
        let mut manager = std::mem::replace(&mut self.manager, Manager::DropTail);
        let next = match &mut manager {
            Manager::CoDel(codel) => codel.dequeue(now, self, counters),
            _ => self.take().map(|waiting| waiting.packet),
        };
        if let (Manager::Red(red), true) = (&mut manager, self.waiting.is_empty()) {
            red.on_empty(now);
        }
        self.manager = manager;
        next
    }

    fn take(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= ByteCount::from(waiting.packet.len());
        Some(waiting)
    }
}
