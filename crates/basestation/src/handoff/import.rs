//! What a station receives of a mobile that has come to it.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use airtcp_types::{Instant, Node, Packet};
use airtcp_wire::ip;

use super::message::Item;
use super::{HandoffCounters, LIFETIME, WAIT, WINDOW};
use crate::Side;
use crate::station::{FlowRecord, Station, Waiting};

/// The items of an arrival, and the traffic that waits for them.
#[derive(Debug)]
pub(super) struct Import {
    home: IpAddr,
    /// The station where the mobile was, if any.
    pub(super) from: Option<IpAddr>,
    /// The number of the first missing item, and the items from there that were received.
    next: u32,
    later: u64,
    /// Items that came before an earlier one.
    early: BTreeMap<u32, Item>,
    /// Packets that waited at the old station.
    packets: VecDeque<Waiting>,
    /// Packets that came here in the meantime.
    fresh: VecDeque<Packet>,
    bytes: usize,
    room: usize,
    /// Until when fresh packets wait; `None` if they no longer do.
    waits_until: Option<Instant>,
    /// When further items are ignored.
    until: Instant,
    owes_acknowledgement: bool,
    /// Whether items no longer wait for earlier ones. This station may have acknowledged those
    /// before a crash.
    has_given_up: bool,
}

impl Import {
    pub(super) fn new(now: Instant, home: IpAddr, from: Option<IpAddr>, room: usize) -> Self {
        Self {
            home,
            from,
            next: 0,
            later: 0,
            early: BTreeMap::new(),
            packets: VecDeque::new(),
            fresh: VecDeque::new(),
            bytes: 0,
            room,
            waits_until: Some(now + WAIT),
            until: now + LIFETIME,
            owes_acknowledgement: false,
            has_given_up: false,
        }
    }

    /// Whether fresh packets wait.
    pub(super) const fn is_waiting(&self) -> bool {
        self.waits_until.is_some()
    }

    /// Keeps a fresh packet until the old station has sent its own. Returns `false` if there is no
    /// room.
    pub(super) fn keep(&mut self, packet: Packet) -> bool {
        let has_room = self.bytes + packet.len() <= self.room;
        if has_room {
            self.bytes += packet.len();
            self.fresh.push_back(packet);
        }
        has_room
    }

    /// Puts back what this station had sent after the mobile on an earlier visit.
    pub(super) fn put_back(&mut self, packets: Vec<Waiting>, later: Vec<Packet>) {
        let len = packets.iter().map(|waiting| &waiting.packet).chain(&later).map(Packet::len);
        let len = len.sum::<usize>();
        // They do not take the room of what is still to come.
        (self.bytes, self.room) = (self.bytes + len, self.room + len);
        self.packets.extend(packets);
        self.fresh.extend(later);
    }

    /// Processes an item.
    pub(super) fn on_item(
        &mut self,
        now: Instant,
        station: &mut Station,
        counters: &mut HandoffCounters,
        no: u32,
        item: Item,
    ) {
        self.advance(now, station, no.saturating_sub(WINDOW as u32 - 1));
        self.owes_acknowledgement = true;
        let at = no.checked_sub(self.next);
        let Some(at) = at.filter(|at| self.later >> at & 1 == 0) else {
            counters.duplicates += 1;
            return;
        };
        self.later |= 1 << at;
        if self.is_waiting() {
            self.waits_until = Some((now + WAIT).min(self.until));
        }
        match item {
            // Records are complete, and can be used in any order.
            Item::Part { records, .. } => self.on_records(now, station, counters, &records),
            Item::Packet { ref data, .. } if self.bytes + data.len() > self.room => {
                counters.dropped_full += 1;
            }
            Item::Packet { ref data, .. } if !is_for(data, self.home) => counters.refused += 1,
            item => {
                self.bytes += item.len();
                if self.has_given_up {
                    self.on_next(now, station, item);
                } else {
                    self.early.insert(no, item);
                }
            }
        }
        while self.later & 1 != 0 {
            self.step(now, station);
        }
    }

    /// Waits for no item below `first`. The old station sends [`WINDOW`] items from the first one
    /// that is not acknowledged, so this station acknowledged those below before a crash.
    fn advance(&mut self, now: Instant, station: &mut Station, first: u32) {
        while self.next < first {
            if self.later == 0 {
                self.next = first;
                return;
            }
            self.step(now, station);
        }
    }

    /// Processes the item `next`, if it was received and has not been processed, and counts on.
    fn step(&mut self, now: Instant, station: &mut Station) {
        if let Some(item) = self.early.remove(&self.next) {
            self.on_next(now, station, item);
        }
        (self.next, self.later) = (self.next.saturating_add(1), self.later >> 1);
    }

    fn on_records(
        &mut self,
        now: Instant,
        station: &mut Station,
        counters: &mut HandoffCounters,
        mut records: &[u8],
    ) {
        while !records.is_empty() {
            let Ok(record) = FlowRecord::decode(&mut records) else {
                counters.refused += 1;
                return;
            };
            let is_its = record.key.mobile.ip() == self.home;
            match is_its && station.add_flow(now, &record).is_ok() {
                true => counters.flows_received += 1,
                false => counters.refused += 1,
            }
        }
    }

    /// Processes an item whose predecessors have been processed.
    fn on_next(&mut self, now: Instant, station: &mut Station, item: Item) {
        self.bytes -= item.len();
        match item {
            Item::Packet { is_recorded: true, is_new, data } => {
                let waiting = Waiting { packet: Packet::new(data), is_new };
                if self.is_waiting() {
                    self.bytes += waiting.packet.len();
                    self.packets.push_back(waiting);
                } else {
                    station.take_in(now, waiting);
                }
            }
            Item::Packet { data, .. } => {
                station.handle_packet(now, Side::Wired.port(), Packet::new(data));
            }
            Item::End => self.settle(now, station),
            Item::Part { .. } => {}
        }
    }

    /// Ends the waiting: windows are opened, then the packets of the old station pass, then those
    /// that came here.
    pub(super) fn settle(&mut self, now: Instant, station: &mut Station) {
        if self.waits_until.take().is_none() {
            return;
        }
        station.settle(now, self.home);
        for waiting in std::mem::take(&mut self.packets) {
            self.bytes -= waiting.packet.len();
            station.take_in(now, waiting);
        }
        for packet in std::mem::take(&mut self.fresh) {
            self.bytes -= packet.len();
            station.handle_packet(now, Side::Wired.port(), packet);
        }
    }

    /// Ends the waiting, also for earlier items.
    pub(super) fn give_up(&mut self, now: Instant, station: &mut Station) {
        self.has_given_up = true;
        self.settle(now, station);
        for item in std::mem::take(&mut self.early).into_values() {
            self.on_next(now, station, item);
        }
    }

    /// Ends the arrival of a mobile that goes on: returns the packets of the old station, and those
    /// that came here.
    pub(super) fn take_apart(self) -> (Vec<Waiting>, Vec<Packet>) {
        let (mut packets, mut later) = (Vec::from(self.packets), Vec::new());
        for item in self.early.into_values() {
            match item {
                Item::Packet { is_recorded: true, is_new, data } => {
                    packets.push(Waiting { packet: Packet::new(data), is_new });
                }
                Item::Packet { data, .. } => later.push(Packet::new(data)),
                Item::Part { .. } | Item::End => {}
            }
        }
        later.extend(self.fresh);
        (packets, later)
    }

    /// Returns the acknowledgement that is due: the number of the first missing item, and the items
    /// from there that were received.
    pub(super) fn poll(&mut self) -> Option<(u32, u64)> {
        let is_due = std::mem::take(&mut self.owes_acknowledgement);
        is_due.then_some((self.next, self.later))
    }

    /// Whether fresh packets have waited long enough.
    pub(super) fn has_waited(&self, now: Instant) -> bool {
        self.waits_until.is_some_and(|until| until <= now)
    }

    /// Whether further items are ignored.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until <= now
    }

    pub(super) fn deadline(&self) -> Instant {
        self.waits_until.map_or(self.until, |at| at.min(self.until))
    }
}

/// Whether bytes are a packet for this address.
fn is_for(data: &[u8], home: IpAddr) -> bool {
    ip::addresses(data).is_some_and(|(_, destination)| destination == home)
}
