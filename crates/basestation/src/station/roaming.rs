//! Mobiles that change stations: what leaves the station with them, and what comes with them.

use std::net::IpAddr;

use airtcp_link::radio::MobileNo;
use airtcp_types::{Fate, Instant, Packet};
use airtcp_wire::ip;

use super::flow::{Entered, Flow};
use super::record::RecordError;
use super::segment::Segment;
use super::table::{Pool, Slot};
use super::{FlowKey, FlowRecord, Policy, Station};

/// What the station does for the flows of an address that changes stations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Roaming {
    /// It adopts flows from segments of the mobile, and does not open windows yet.
    Arriving,
    /// Nothing: segments pass unchanged.
    Left,
}

/// A packet that waited at a station for its mobile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: Packet,
    /// Whether the fixed host has sent its data only once.
    pub(crate) is_new: bool,
}

/// What leaves a station with a mobile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Luggage {
    /// The flows in which the mobile takes part, the least recently used first.
    pub(crate) records: Vec<FlowRecord>,
    /// The segments that waited for the mobile, in their order.
    pub(crate) packets: Vec<Waiting>,
}

impl Station {
    /// Removes the flows of an address, and the segments that wait for it. From now on its segments
    /// pass unchanged, until it [comes back](Self::expect).
    pub(crate) fn part_with(&mut self, now: Instant, home: IpAddr) -> Luggage {
        let of = self.mobiles.find(home);
        let is_for = |packet: &Packet| {
            ip::addresses(&packet.data).is_some_and(|(_, destination)| destination == home)
        };
        let mut packets = Vec::new();
        // What others have in the same queue returns to it in the same order.
        if self.mobiles[of].freezer.is_holding() {
            self.take_back(now, of);
            for held in self.mobiles[of].freezer.extract(|held| is_for(&held.packet)) {
                if !held.unsent.is_some_and(|unsent| unsent.arrived) {
                    let is_new = held.entered.is_some_and(|(_, entered)| entered.is_new);
                    packets.push(Waiting { packet: held.packet, is_new });
                }
            }
        } else {
            for (unsent, packet) in self.radio.drain(now, of, &Segment::is_one) {
                let entered = self.taken_back(now, unsent, &packet);
                if !is_for(&packet) {
                    self.pass(now, of, packet, Some(unsent), entered);
                } else if !unsent.arrived {
                    let is_new = entered.is_some_and(|(_, entered)| entered.is_new);
                    packets.push(Waiting { packet, is_new });
                }
            }
        }
        let mut records = Vec::new();
        for pool in [Pool::Unproven, Pool::Proven, Pool::Pinned] {
            for slot in self.slots_of(home, pool) {
                let key = self.table.key(slot);
                if pool != Pool::Unproven {
                    records.push(FlowRecord::of(&key, &self.table[slot]));
                }
                self.made.extend(self.delayed.end(&key));
                self.table.remove(slot);
            }
        }
        self.roaming.insert(home, Roaming::Left);
        self.release(now, of);
        self.look_at(now, of);
        Luggage { records, packets }
    }

    /// Expects a mobile from another station: until it has [settled](Self::settle), flows are
    /// adopted from its segments, and the station opens no window in its name.
    pub(crate) fn expect(&mut self, home: IpAddr) {
        self.roaming.insert(home, Roaming::Arriving);
    }

    /// Adds a flow of a mobile that comes from another station.
    pub(crate) fn add_flow(
        &mut self,
        now: Instant,
        record: &FlowRecord,
    ) -> Result<(), RecordError> {
        let flow = Flow::from_record(now, record)?;
        if self.policy == Policy::Plain {
            return Ok(());
        }
        let home = record.key.mobile.ip();
        let of = self.mobiles.find(home);
        let slot = match self.table.find_of(of, &record.key) {
            Some(slot) => {
                self.table[slot].absorb(now, record)?;
                slot
            }
            None => self.table.insert(now, of, record.key, flow),
        };
        if !self.table.is_proven(slot) {
            self.table.put(slot, Pool::Proven);
        }
        if !self.is_arriving(home) {
            self.open_again(now, slot);
        }
        Ok(())
    }

    /// Ends the arrival of a mobile: the senders that another station has frozen get its window.
    pub(crate) fn settle(&mut self, now: Instant, home: IpAddr) {
        if self.is_arriving(home) {
            self.roaming.remove(&home);
            for slot in self.slots_of(home, Pool::Proven) {
                self.open_again(now, slot);
            }
            let of = self.mobiles.find(home);
            self.look_at(now, of);
        }
    }

    /// Ends the special treatment of an address.
    pub(crate) fn forget_roaming(&mut self, home: IpAddr) {
        self.roaming.remove(&home);
    }

    /// Passes a segment to its mobile that another station held or had in its queue, after those
    /// that wait here already. The other station recorded it.
    pub(crate) fn take_in(&mut self, now: Instant, waiting: Waiting) {
        let Waiting { packet, is_new } = waiting;
        let Some((_, home)) = ip::addresses(&packet.data) else { return };
        let of = self.mobiles.find(home);
        let segment = self.read(&packet).filter(|segment| segment.is_intact);
        let entered = segment.and_then(|segment| {
            let key = FlowKey { fixed: segment.src, mobile: segment.dst };
            let slot = self.table.find(&key)?;
            let range = self.table[slot].range_of(&segment);
            Some((slot, Entered { range, is_new }))
        });
        let has_it = entered.is_some_and(|(slot, Entered { range, .. })| {
            !range.is_empty() && self.table[slot].acked() >= Some(range.end)
        });
        if has_it {
            self.report(now, Fate::Dropped { cause: "the mobile has it" }, || packet);
            return;
        }
        if self.policy == Policy::TcpEcn {
            self.hold(now, of, packet, entered);
            self.look_at(now, of);
        } else {
            self.pass(now, of, packet, None, entered);
        }
    }

    /// Opens the window of a sender that another station has frozen, or does so when the mobile
    /// returns.
    fn open_again(&mut self, now: Instant, slot: Slot) {
        let of = self.table.of(slot);
        if self.table[slot].frozen.is_none() || self.table.pool(slot) == Pool::Pinned {
            return;
        }
        if self.mobiles[of].freezer.reach.stops_senders() {
            self.table.put(slot, Pool::Pinned);
        } else {
            self.thaw(now, of, slot);
        }
    }

    /// Returns the flows of an address in a pool, the least recently used first.
    fn slots_of(&self, home: IpAddr, pool: Pool) -> Vec<Slot> {
        let of = self.mobiles.find(home);
        let others = Some(MobileNo::OTHERS).filter(|others| *others != of);
        let shares = others.into_iter().chain([of]);
        let slots = shares.flat_map(|of| self.table.iter(of, pool));
        slots.filter(|slot| self.table.key(*slot).mobile.ip() == home).collect()
    }

    pub(super) fn is_arriving(&self, home: IpAddr) -> bool {
        self.roaming.get(&home) == Some(&Roaming::Arriving)
    }

    /// Whether a segment is from or for a mobile that has left.
    pub(super) fn is_of_absent(&self, segment: &Segment) -> bool {
        let has_left = |home: IpAddr| self.roaming.get(&home) == Some(&Roaming::Left);
        !self.roaming.is_empty() && (has_left(segment.src.ip()) || has_left(segment.dst.ip()))
    }
}
