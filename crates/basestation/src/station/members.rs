//! Mobiles that become known, leave and return, and their status.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use airtcp_link::Way;
use airtcp_link::radio::{AirCounters, MobileNo};
use airtcp_types::{Instant, Packet};
use airtcp_wire::ip;

use super::counters::by_way;
use super::table::Pool;
use super::{MAX_EVENTS, Origin, Prefix, Reach, Station, StationCounters, Traffic, prefix};
use crate::Side;

/// A change of a mobile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MobileEvent {
    /// The time of the change.
    pub at: Instant,
    /// The mobile's name, or the address from which it was heard.
    pub mobile: Arc<str>,
    /// The change.
    pub change: MobileChange,
}

/// The change of a [`MobileEvent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MobileChange {
    /// The station received the first packet from its address.
    Heard,
    /// Another one took its place.
    Forgotten,
    /// It left, returned, or was given up.
    Reach(Reach),
}

/// A name that no mobile has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no mobile has the name `{0}`: `basestation ctl status` lists them")]
pub struct UnknownMobile(String);

/// The status of a mobile. In pairs, the first value is for the direction to the mobile.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct MobileStatus {
    /// The name in the configuration, or the address from which it was heard.
    pub name: String,
    /// Why the station knows it.
    pub origin: Origin,
    /// Its networks.
    pub addresses: Vec<Prefix>,
    /// Its state as far as senders are concerned.
    pub reach: Reach,
    /// How long it has been in this state, in seconds.
    pub reach_seconds: f64,
    /// How often it came out of reach.
    pub departures: u64,
    /// Whether it can be reached now.
    pub connected: bool,
    /// Whether the connection is about to break.
    pub fading: bool,
    /// The power received from it, in watts.
    pub received_power: f64,
    /// Packets queued for the radio or in transmission.
    #[serde(serialize_with = "by_way")]
    pub queued: [usize; 2],
    /// Packets held until it returns.
    pub held: usize,
    /// Memory of the held packets, in bytes.
    pub held_bytes: usize,
    /// Flows in which it takes part.
    pub flows: usize,
    /// Flows in which it has not acknowledged anything.
    pub unproven: usize,
    /// Frozen flows.
    pub frozen: usize,
    /// Packets that crossed the radio.
    #[serde(serialize_with = "by_way")]
    pub traffic: [Traffic; 2],
    /// Packets dropped because its queue at the radio was full.
    pub queue_dropped: u64,
    /// Its share of the air time that all mobiles have used, from 0 to 1.
    #[serde(serialize_with = "by_way")]
    pub air_share: [f64; 2],
    /// The frame counters of the radio's two ends.
    #[serde(serialize_with = "by_way")]
    pub air: [AirCounters; 2],
    /// The station's counters that concern it.
    pub counters: StationCounters,
}

impl Station {
    /// Returns the status of each known mobile at `now`, and then that of all others together, with
    /// the counters of those that were forgotten; nothing if no mobile can be known.
    pub fn mobiles(&self, now: Instant) -> Vec<MobileStatus> {
        self.first_mobiles(now, usize::MAX)
    }

    /// As [`mobiles`](Self::mobiles), with at most `most` known mobiles. Those with a name in the
    /// configuration are the first ones.
    pub fn first_mobiles(&self, now: Instant, most: usize) -> Vec<MobileStatus> {
        if self.mobiles.is_one() {
            return Vec::new();
        }
        let known = self.mobiles.numbers().skip(1).take(most);
        known.chain([MobileNo::OTHERS]).map(|of| self.mobile_status(now, of)).collect()
    }

    /// Returns the status of the mobile with a name.
    ///
    /// # Errors
    ///
    /// No mobile has the name.
    pub fn mobile(&self, now: Instant, name: &str) -> Result<MobileStatus, UnknownMobile> {
        Ok(self.mobile_status(now, self.named(name)?))
    }

    /// Returns the number of known mobiles.
    pub fn known_mobiles(&self) -> usize {
        self.mobiles.numbers().skip(1).count()
    }

    fn mobile_status(&self, now: Instant, of: MobileNo) -> MobileStatus {
        let mobile = &self.mobiles[of];
        let reception = self.radio.reception(now, of);
        let reach = self.reach(now, of);
        // A change that was not noticed yet is new.
        let since = if reach == mobile.reach { mobile.since } else { now };
        let (held, held_bytes) = mobile.freezer.waiting();
        let air = Way::BOTH.map(|way| self.radio.air_counters(way, Some(of)));
        let air_share = Way::BOTH.map(|way| {
            let all = self.radio.air_counters(way, None).air_time.as_secs_f64();
            if all > 0.0 { air[way as usize].air_time.as_secs_f64() / all } else { 0.0 }
        });
        MobileStatus {
            name: mobile.name.to_string(),
            origin: mobile.origin,
            addresses: mobile.addresses.clone(),
            reach,
            reach_seconds: now.since(since).as_secs_f64(),
            departures: mobile.departures,
            connected: reception.is_connected,
            fading: reception.is_fading,
            received_power: reception.power,
            queued: Way::BOTH.map(|way| self.radio.queued(way, Some(of)).0),
            held,
            held_bytes,
            flows: self.table.len_of(of, Pool::Proven),
            unproven: self.table.len_of(of, Pool::Unproven),
            frozen: self.table.len_of(of, Pool::Pinned),
            traffic: mobile.traffic,
            queue_dropped: mobile.queue_dropped,
            air_share,
            air,
            counters: mobile.counters,
        }
    }

    /// Puts the mobile with a name out of reach, whatever the radio's description says. An address
    /// from which a mobile was heard is its name.
    ///
    /// # Errors
    ///
    /// No mobile has the name.
    pub fn leave(&mut self, now: Instant, name: &str) -> Result<(), UnknownMobile> {
        let of = self.named(name)?;
        self.connect_one(now, of, false);
        Ok(())
    }

    /// Ends [`leave`](Self::leave): the mobile is back, or stays.
    ///
    /// # Errors
    ///
    /// No mobile has the name.
    pub fn join(&mut self, now: Instant, name: &str) -> Result<(), UnknownMobile> {
        let of = self.named(name)?;
        self.connect_one(now, of, true);
        Ok(())
    }

    fn named(&self, name: &str) -> Result<MobileNo, UnknownMobile> {
        let shown = || name.chars().take(64).flat_map(char::escape_debug).collect();
        self.mobiles.named(name).ok_or_else(|| UnknownMobile(shown()))
    }

    /// Enables or disables events of mobiles.
    pub fn set_mobile_events(&mut self, on: bool) {
        self.changes = on.then(VecDeque::new);
    }

    /// Returns the next event of a mobile, in the order of time.
    pub fn poll_mobile_event(&mut self) -> Option<MobileEvent> {
        self.changes.as_mut()?.pop_front()
    }

    pub(super) fn report_change(&mut self, at: Instant, of: MobileNo, change: MobileChange) {
        let mobile = self.mobiles[of].name.clone();
        self.add_event(MobileEvent { at, mobile, change });
    }

    fn add_event(&mut self, event: MobileEvent) {
        match &mut self.changes {
            Some(changes) if changes.len() < MAX_EVENTS => changes.push_back(event),
            Some(_) => self.counters.missed_events += 1,
            None => {}
        }
    }

    /// Returns the mobile to which a packet from the wired side goes, or from which one of the
    /// wireless side comes.
    pub(super) fn mobile_of(&self, side: Side, packet: &Packet) -> MobileNo {
        if self.mobiles.is_one() {
            return MobileNo::OTHERS;
        }
        let addresses = ip::addresses(&packet.data);
        let address = addresses.map(|(src, dst)| if side == Side::Wired { dst } else { src });
        address.map_or(MobileNo::OTHERS, |address| self.mobiles.find(address))
    }

    /// Returns the mobile from whose address the radio received a packet. An unknown one becomes
    /// known if there is a place for it.
    pub(super) fn hear(&mut self, now: Instant, source: IpAddr) -> MobileNo {
        let known = self.mobiles.find(source);
        if known != MobileNo::OTHERS {
            self.mobiles.on_heard(now, known);
            self.look_at(now, known);
            return known;
        }
        if prefix::is_of_one_link(source) {
            return known;
        }
        let (radio, table) = (&self.radio, &self.table);
        let is_busy = |of: MobileNo| {
            table.len_of(of, Pool::Pinned) > 0
                || Way::BOTH.iter().any(|way| radio.queued(*way, Some(of)).0 > 0)
        };
        let Some(of) = self.mobiles.vacancy(now, is_busy) else { return known };
        if self.mobiles.has(of) {
            // The radio has nothing of it: it would be busy.
            self.radio.leave(now, of);
            self.table.forget(of);
            self.forget_delayed(now, of);
        }
        if self.radio.join(now, of, "").is_err() {
            return known;
        }
        let before = self.mobiles.enter(now, of, source);
        if let Some(mobile) = before {
            let change = MobileChange::Forgotten;
            self.add_event(MobileEvent { at: now, mobile, change });
        }
        self.report_change(now, of, MobileChange::Heard);
        of
    }
}
