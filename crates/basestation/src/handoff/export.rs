//! What a station sends after a mobile that has left it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use airtcp_types::{Checksum, Instant, Packet};

use super::message::{Item, MAX_PARTS, PART_LEN};
use super::{LIFETIME, WINDOW};
use crate::station::{FlowRecord, Luggage, Waiting};

/// The time until items that were not acknowledged are sent again. It doubles each time up to
/// [`LAST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The items that the new station has not acknowledged.
#[derive(Debug)]
pub(super) struct Export {
    /// The station where the mobile is.
    pub(super) to: IpAddr,
    /// The items from the number `base`, with those acknowledged out of order.
    items: VecDeque<Pending>,
    base: u32,
    /// The number of the end.
    end: u32,
    /// The flows, until the new station has all that was kept.
    records: Vec<FlowRecord>,
    /// The bytes of the items.
    bytes: usize,
    wait: Duration,
    repeat_at: Option<Instant>,
    /// When what was not acknowledged is dropped.
    until: Instant,
}

#[derive(Debug)]
struct Pending {
    item: Item,
    is_acknowledged: bool,
    is_due: bool,
    was_sent: bool,
}

impl Export {
    pub(super) fn new(now: Instant, to: IpAddr, luggage: Luggage) -> Self {
        let Luggage { records, packets } = luggage;
        let parts = parts(&records);
        let count = parts.len() as u8;
        let parts = parts.into_iter().map(|records| Item::Part { parts: count, records });
        let packets = packets.into_iter().map(|Waiting { packet, is_new }| Item::Packet {
            is_recorded: true,
            is_new,
            data: packet.data,
        });
        let mut export = Self {
            to,
            items: VecDeque::new(),
            base: 0,
            end: 0,
            records,
            bytes: 0,
            wait: FIRST_WAIT,
            repeat_at: None,
            until: now + LIFETIME,
        };
        parts.chain(packets).for_each(|item| export.push(item));
        export.end = export.items.len() as u32;
        export.push(Item::End);
        export
    }

    fn push(&mut self, item: Item) {
        self.bytes += item.len();
        let pending = Pending { item, is_acknowledged: false, is_due: true, was_sent: false };
        self.items.push_back(pending);
    }

    /// Adds a packet that came after the mobile had left. Returns `false` if more than `room` bytes
    /// would wait, or only a device could complete the packet.
    pub(super) fn follow(&mut self, packet: Packet, room: usize) -> bool {
        let is_whole = packet.tail.is_empty()
            && packet.segment_size.is_none()
            && packet.checksum != Checksum::Partial;
        let is_kept = is_whole && self.bytes + packet.len() <= room;
        if is_kept {
            self.push(Item::Packet { is_recorded: false, is_new: true, data: packet.data });
        }
        is_kept
    }

    /// Returns the next item to be sent, with its number, and whether it was sent before.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(u32, Item, bool)> {
        let mut window = self.items.iter_mut().take(WINDOW).zip(self.base..);
        let (pending, no) = window.find(|(pending, _)| pending.is_due)?;
        pending.is_due = false;
        let was_sent = std::mem::replace(&mut pending.was_sent, true);
        self.repeat_at.get_or_insert(now + self.wait);
        Some((no, pending.item.clone(), was_sent))
    }

    /// Processes an acknowledgement. One of items that do not exist is ignored.
    pub(super) fn on_received(&mut self, now: Instant, next: u32, later: u64) {
        // The new station may have crashed: it does not know that it acknowledged the items below.
        let behind = self.base.saturating_sub(next);
        let later = later.checked_shr(behind).unwrap_or(0);
        let passed = next.saturating_sub(self.base) as usize;
        if passed > self.items.len() {
            return;
        }
        let mut is_progress = passed > 0;
        self.pass(passed);
        for (bit, pending) in self.items.iter_mut().take(WINDOW).enumerate() {
            if later >> bit & 1 != 0 && !pending.is_acknowledged {
                (pending.is_acknowledged, pending.is_due, is_progress) = (true, false, true);
            }
        }
        self.pass(self.items.iter().take_while(|pending| pending.is_acknowledged).count());
        if self.is_complete() {
            self.records = Vec::new();
        }
        if is_progress {
            self.wait = FIRST_WAIT;
            let waits = |pending: &Pending| pending.was_sent && !pending.is_acknowledged;
            let is_waiting = self.items.iter().take(WINDOW).any(waits);
            self.repeat_at = is_waiting.then(|| now + self.wait);
        }
    }

    /// Removes the first `count` items.
    fn pass(&mut self, count: usize) {
        self.base += count as u32;
        self.bytes -= self.items.drain(..count).map(|pending| pending.item.len()).sum::<usize>();
    }

    /// Whether the new station has all that was kept.
    pub(super) const fn is_complete(&self) -> bool {
        self.base > self.end
    }

    /// Makes what was not acknowledged in time due again. Returns `false` if the export is over.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = None;
            self.wait = (self.wait * 2).min(LAST_WAIT);
            for pending in self.items.iter_mut().take(WINDOW) {
                pending.is_due = !pending.is_acknowledged;
            }
        }
        now < self.until
    }

    pub(super) fn deadline(&self) -> Instant {
        self.repeat_at.map_or(self.until, |at| at.min(self.until))
    }

    /// Returns what the new station may not have, for a mobile that comes back.
    pub(super) fn take_back(self) -> (Luggage, Vec<Packet>) {
        let mut luggage = Luggage { records: self.records, packets: Vec::new() };
        let mut later = Vec::new();
        let missing = self.items.into_iter().filter(|pending| !pending.is_acknowledged);
        for pending in missing {
            match pending.item {
                Item::Packet { is_recorded: true, is_new, data } => {
                    luggage.packets.push(Waiting { packet: Packet::new(data), is_new });
                }
                Item::Packet { data, .. } => later.push(Packet::new(data)),
                Item::Part { .. } | Item::End => {}
            }
        }
        (luggage, later)
    }
}

/// Packs records into parts. If there are too many, the flows used least recently are left out: the
/// new station adopts them from their traffic.
fn parts(records: &[FlowRecord]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let mut bytes = Vec::new();
    for record in records {
        bytes.clear();
        record.encode(&mut bytes);
        match parts.last_mut() {
            Some(part) if part.len() + bytes.len() <= PART_LEN => part.extend_from_slice(&bytes),
            _ => parts.push(bytes.clone()),
        }
    }
    parts.split_off(parts.len().saturating_sub(MAX_PARTS))
}
