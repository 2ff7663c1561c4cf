//! A base station between the wired network and a radio: TCP-ECN (Krishnan 2006, chapters 6 and 7).
//!
//! ```text
//! wired port -> flow table -> marker -> radio -> wireless port
//! wired port <- filter <- flow table <- radio <- wireless port
//! ```
//!
//! A [`Station`] owns its radio, so its wireless port is that of the mobiles. Packets that are not
//! TCP or cannot be parsed pass through the radio unchanged. A station records the sequence numbers
//! of flows; only the policy `snoop` and a mobile out of reach make it keep data, and only
//! `delayed-dupack` makes it delay ACKs.
//!
//! Each known mobile has its own queue and turn at the radio, reach, held packets, limits and
//! counters: [`StationConfig::mobile`] names mobiles, and [`StationConfig::heard`] lets the station
//! learn them from their packets. All other addresses count as one mobile.

mod config;
mod counters;
mod delayed;
mod end;
mod filter;
mod flow;
mod freezer;
mod frozen;
mod marker;
mod members;
mod mobiles;
mod prefix;
mod record;
mod roaming;
mod segment;
mod snoop;
mod table;
#[cfg(test)]
pub(crate) mod testkit;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use airtcp_link::radio::{Backend, MobileNo, Unsent};
use airtcp_link::{Radio, Way};
use airtcp_types::{Event, EventKind, Fate, Instant, Node, Packet, PortId};
use airtcp_wire::ip;

use crate::Side;
use end::Refusal;
use flow::{Entered, Flow};
use mobiles::Mobiles;
use segment::{MadeAck, Segment, flag};
use table::{FlowTable, Pool, Slot};

pub use config::{MobileConfig, Policy, StationConfig, StationError, UNNAMED, addresses};
pub use counters::{StationCounters, Status};
pub use flow::FlowKey;
pub use freezer::Reach;
pub use marker::Mark;
pub use members::{MobileChange, MobileEvent, MobileStatus, UnknownMobile};
pub use mobiles::{Origin, Traffic};
pub use prefix::{Prefix, PrefixError};
pub use record::{EndRecord, FlowRecord, RecordError, Transfer};
pub(crate) use roaming::{Luggage, Waiting};

/// How long a flow may be idle, as long as NATs must keep it (RFC 5382 section 5).
const IDLE: Duration = Duration::from_secs(2 * 3600 + 4 * 60);
/// The maximum number of queued ACKs that the station generated.
const MAX_MADE: usize = 65_536;
/// The maximum number of queued events.
const MAX_EVENTS: usize = 65_536;

/// A base station with its radio: port 0 is the wired side, port 1 that of the mobiles.
#[derive(Debug)]
pub struct Station {
    policy: Policy,
    /// The bits of the paper's mark, if the station sets it.
    mark: Option<u8>,
    radio: Box<dyn Backend>,
    table: FlowTable,
    mobiles: Mobiles,
    /// The networks of the mobiles; empty if they are not known.
    networks: Box<[Prefix]>,
    /// The maximum size of the cache of one mobile.
    cache_limit: usize,
    timers: snoop::Timers,
    /// The duplicate ACKs of the policy `delayed-dupack`.
    delayed: delayed::Delays,
    /// Queued ACKs for fixed hosts, which the station generated or delayed.
    made: VecDeque<Packet>,
    counters: StationCounters,
    /// Present while events are enabled.
    events: Option<VecDeque<Event>>,
    /// The radio's next event.
    radio_event: Option<Event>,
    /// The addresses that change stations.
    roaming: BTreeMap<IpAddr, roaming::Roaming>,
    /// Present while events of mobiles are enabled.
    changes: Option<VecDeque<MobileEvent>>,
}

impl Station {
    /// Creates the station that `config` describes, with an emulated radio.
    ///
    /// # Errors
    ///
    /// [`StationError`] if settings are invalid or contradict each other.
    pub fn new(config: &StationConfig) -> Result<Self, StationError> {
        Self::with_radio(config, Box::new(Radio::new(&config.radio, config.arq)))
    }

    /// Creates a station with the given radio, instead of the one that `config` describes.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new); [`StationError::NothingRepairs`] for a radio without
    /// retransmission and a policy that relies on it.
    pub fn with_radio(
        config: &StationConfig,
        mut radio: Box<dyn Backend>,
    ) -> Result<Self, StationError> {
        config.check()?;
        if config.policy.needs_repair() && !radio.repairs() {
            return Err(StationError::NothingRepairs(config.policy));
        }
        let gives = |is_given: bool| config.policy == Policy::TcpEcn && is_given;
        if gives(config.mark.marks_congestion()) {
            radio.mark_congestion();
        }
        let mut networks = config.mobiles.clone();
        for (mobile, of) in config.mobile.iter().zip(1..) {
            let joined = radio.join(Instant::ZERO, MobileNo(of), &mobile.radio);
            joined.map_err(|error| StationError::Mobile {
                name: mobile.name.clone(),
                what: format!("radio: {error}"),
            })?;
            if !config.mobiles.is_empty() {
                networks.extend(&mobile.addresses);
            }
        }
        let shares = config.shares();
        let cache_limit = config.cache.as_usize() / shares;
        Ok(Self {
            policy: config.policy,
            mark: gives(config.mark.marks_holes()).then_some(config.mark_bits),
            radio,
            table: FlowTable::new(config.flows / shares, config.unproven / shares, IDLE),
            mobiles: Mobiles::new(config),
            networks: networks.into(),
            cache_limit,
            timers: snoop::Timers::default(),
            delayed: delayed::Delays::new(config.dupack_delay, cache_limit),
            made: VecDeque::new(),
            counters: StationCounters::default(),
            events: None,
            radio_event: None,
            roaming: BTreeMap::new(),
            changes: None,
        })
    }

    /// Enables or disables events.
    pub fn set_events(&mut self, on: bool) {
        self.radio.set_events(on);
        self.events = match self.events.take() {
            events @ Some(_) if on => events,
            _ => on.then(VecDeque::new),
        };
        self.radio_event = self.radio_event.take().filter(|_| on);
    }

    /// Returns the radio.
    pub fn radio(&self) -> &dyn Backend {
        &*self.radio
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &StationCounters {
        &self.counters
    }

    /// Returns the status at `now`.
    pub fn status(&self, now: Instant) -> Status {
        let held = self.mobiles.waiting();
        let reception = self.radio.reception(now, MobileNo::OTHERS);
        Status {
            policy: self.policy,
            reach: self.reach(now, MobileNo::OTHERS),
            connected: reception.is_connected,
            fading: reception.is_fading,
            received_power: reception.power,
            queued: Way::BOTH.map(|way| self.radio.queued(way, None).0),
            flows: self.table.len(Pool::Proven),
            unproven: self.table.len(Pool::Unproven),
            frozen: self.table.len(Pool::Pinned),
            evicted: self.table.evicted,
            memory: self.table.memory() + self.delayed.memory(),
            held: held.0,
            held_bytes: held.1,
            cached: self.table.cached() + self.delayed.memory(),
            mobile_full: self.mobiles.full,
            counters: self.counters,
            radio: Way::BOTH.map(|way| *self.radio.counters(way)),
            air: Way::BOTH.map(|way| self.radio.air_counters(way, None)),
        }
    }

    /// The state of a mobile. Only `tcp-ecn` knows that a mobile is about to leave.
    fn reach(&self, now: Instant, of: MobileNo) -> Reach {
        match self.policy {
            Policy::TcpEcn => self.mobiles[of].freezer.reach,
            _ if self.radio.reception(now, of).is_in_reach => Reach::There,
            _ => Reach::Gone,
        }
    }

    /// Returns the policy.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns the flows in which mobiles take part, at most `most`: first the frozen ones, then
    /// the others, both in the order of their last use, oldest first. If there are more than
    /// `most`, the least recently used ones are left out.
    pub fn flows(&self, most: usize) -> Vec<FlowRecord> {
        let mut left = most;
        let pools = [Pool::Pinned, Pool::Proven].map(|pool| {
            let mut slots = self.table.all(pool);
            let slots = slots.split_off(slots.len() - slots.len().min(left));
            left -= slots.len();
            slots
        });
        let record = |slot| FlowRecord::of(&self.table.key(slot), &self.table[slot]);
        pools.into_iter().flatten().map(record).collect()
    }

    /// Parses the segment in a packet, if the policy uses it and its mobile has not left.
    fn read(&self, packet: &Packet) -> Option<Segment> {
        let segment = if self.policy == Policy::Plain { None } else { Segment::read(packet) };
        segment.filter(|segment| !self.is_of_absent(segment))
    }

    /// Changes the counters of a mobile, and those of all.
    fn count(&mut self, of: MobileNo, change: impl Fn(&mut StationCounters)) {
        change(&mut self.counters);
        change(&mut self.mobiles[of].counters);
    }

    /// Processes a packet from the wired side for the mobile `to`.
    fn on_fixed(&mut self, now: Instant, to: MobileNo, mut packet: Packet) {
        let segment = self.read(&packet);
        let Some(segment) = segment else { return self.pass(now, to, packet, None, None) };
        let key = FlowKey { fixed: segment.src, mobile: segment.dst };
        let slot = self.table.find_of(to, &key);
        // A segment without room is dropped here as if it had been lost before: it does not count
        // as seen.
        let is_holding = self.mobiles[to].freezer.is_holding();
        let has_room = match is_holding {
            true => {
                let is_proven = slot.is_some_and(|slot| self.table.is_proven(slot));
                self.mobiles[to].freezer.has_room(packet.len(), is_proven)
            }
            false => self.radio.has_room(now, to),
        };
        let (slot, entered) = match has_room && segment.is_intact {
            true => self.enter(now, to, key, slot, &segment),
            false => (slot, None),
        };
        if let (Some(bits), Some(slot)) = (self.mark, slot)
            && marker::mark(&self.table[slot], bits, &segment, &mut packet)
        {
            self.count(to, |counters| counters.marked += 1);
            self.report(now, Fate::Marked { cause: "hole" }, || packet.clone());
        }
        let entered = slot.zip(entered);
        if let Some(entered) = entered.filter(|_| self.policy == Policy::Snoop) {
            self.cache(now, &segment, entered, &packet);
        }
        if !is_holding {
            return self.pass(now, to, packet, None, entered);
        }
        let is_gone = self.mobiles[to].freezer.reach == Reach::Gone && segment.is_intact;
        // A segment without room was neither recorded nor checked.
        let is_believed = |slot: &Slot| self.table[*slot].check(&segment, Side::Wired).is_ok();
        let asked = slot.filter(|_| is_gone).filter(is_believed);
        if asked.is_some_and(|slot| self.answer(now, to, slot, &segment)) {
            self.count(to, |counters| counters.probes += 1);
        } else {
            self.hold(now, to, packet, entered);
        }
    }

    /// Records an intact segment of the fixed host in its flow; returns the flow's slot, and the
    /// range of the segment.
    fn enter(
        &mut self,
        now: Instant,
        of: MobileNo,
        key: FlowKey,
        slot: Option<Slot>,
        segment: &Segment,
    ) -> (Option<Slot>, Option<Entered>) {
        let slot = match slot {
            Some(slot) if segment.has(flag::RST) => {
                self.reset(now, slot, segment, Side::Wired);
                return (None, None);
            }
            Some(slot) => self.admit(now, slot, segment, Side::Wired),
            None if segment.has(flag::RST) => None,
            None if segment.data == 0 && !segment.has(flag::SYN) => None,
            // A SYN, or a flow whose start was not seen.
            None => Some(self.table.insert(now, of, key, Flow::starting_at(segment.seq))),
        };
        let Some(slot) = slot else { return (None, None) };
        let flow = self.table.touch(now, slot);
        let highest = flow.highest();
        let range = flow.on_fixed(now, segment);
        let is_new = range.end > highest;
        if flow.is_finished() {
            self.end(now, slot);
            return (None, None);
        }
        (Some(slot), Some(Entered { range, is_new }))
    }

    /// Processes a reset from `side` for the flow at a slot.
    fn reset(&mut self, now: Instant, slot: Slot, segment: &Segment, side: Side) {
        if self.table[slot].believes_reset(segment, side) {
            self.end(now, slot);
        } else {
            self.count(self.table.of(slot), |counters| counters.out_of_window_rsts += 1);
        }
    }

    /// Removes a flow that has ended, with its delayed ACKs.
    fn end(&mut self, now: Instant, slot: Slot) {
        self.drop_delayed(now, self.table.of(slot), &self.table.key(slot));
        self.table.remove(slot);
    }

    /// Checks whether a segment from `side` belongs to the flow at `slot`; returns the slot if so.
    /// A rejected segment does not change the flow. If it and the last rejected segment of the
    /// other end acknowledge each other, a new flow replaces the old one.
    fn admit(&mut self, now: Instant, slot: Slot, segment: &Segment, side: Side) -> Option<Slot> {
        let flow = &mut self.table[slot];
        let Err(refusal) = flow.check(segment, side) else { return Some(slot) };
        let is_one_sided = flow.is_one_sided();
        if let Some(before) = flow.claim(segment) {
            let mut flow = Flow::unheard();
            match side {
                Side::Wired => flow.on_mobile(now, &before),
                Side::Wireless => drop(flow.on_fixed(now, &before)),
            }
            self.drop_delayed(now, self.table.of(slot), &self.table.key(slot));
            self.table.replace(now, slot, flow);
            return Some(slot);
        }
        self.count(self.table.of(slot), |counters| match refusal {
            Refusal::Data => counters.out_of_window_data += 1,
            Refusal::Ack => counters.out_of_window_acks += 1,
            Refusal::Syn => counters.out_of_window_syns += 1,
        });
        // Anyone can create a flow by sending data; the mobile's segment shows that this one is
        // false.
        if side == Side::Wireless && is_one_sided {
            self.table.remove(slot);
        }
        None
    }

    /// Passes a packet for a mobile to the radio, for the first time or again.
    fn pass(
        &mut self,
        now: Instant,
        to: MobileNo,
        packet: Packet,
        again: Option<Unsent>,
        entered: Option<(Slot, Entered)>,
    ) {
        let frame = match again {
            Some(unsent) => self.radio.pass_again(now, to, unsent, packet),
            None => self.radio.pass(now, to, packet),
        };
        let Some(frame) = frame else {
            self.mobiles[to].queue_dropped += 1;
            return;
        };
        if let Some((slot, entered)) = entered {
            self.table[slot].on_passed(&entered, frame, |frame| self.radio.holds(frame));
        }
    }

    /// Returns the source of a packet from the wireless side, if it matters. `segment` is the
    /// parsed segment, if any.
    fn source(&self, packet: &Packet, segment: Option<&Segment>) -> Option<IpAddr> {
        match segment {
            _ if self.networks.is_empty() && self.mobiles.is_one() => None,
            Some(segment) => Some(segment.src.ip()),
            None => Some(ip::addresses(&packet.data)?.0),
        }
    }

    /// Whether a source is not in the mobiles' networks (RFC 2827), or not that of `from`.
    fn is_strange(&self, from: MobileNo, source: IpAddr) -> bool {
        let mut networks = self.networks.iter();
        let is_outside =
            !self.networks.is_empty() && !networks.any(|network| network.contains(source));
        is_outside || from != MobileNo::OTHERS && self.mobiles.find(source) != from
    }

    /// Drops a packet whose source is not in the mobiles' networks.
    fn refuse_source(&mut self, now: Instant, packet: Packet, source: IpAddr) {
        // Hosts send such packets for neighbour and router discovery.
        let cause = if prefix::is_of_one_link(source) {
            self.counters.link_local_sources += 1;
            "source of one link only"
        } else {
            self.counters.spoofed_sources += 1;
            "source of no mobile"
        };
        self.report(now, Fate::Dropped { cause }, || packet);
    }

    /// Processes a packet that the radio received from the mobile `from`; returns it if it is
    /// forwarded to the fixed host.
    fn on_mobile(&mut self, now: Instant, from: MobileNo, mut packet: Packet) -> Option<Packet> {
        let segment = self.read(&packet);
        let source = self.source(&packet, segment.as_ref());
        if let Some(source) = source.filter(|source| self.is_strange(from, *source)) {
            self.refuse_source(now, packet, source);
            return None;
        }
        let of = source.map_or(MobileNo::OTHERS, |source| self.hear(now, source));
        self.mobiles[of].traffic[Way::Back as usize].count(&packet);
        let Some(segment) = segment.filter(|segment| segment.is_intact) else {
            return Some(packet);
        };
        let key = FlowKey { fixed: segment.dst, mobile: segment.src };
        let slot = match self.table.find_of(of, &key) {
            Some(slot) if segment.has(flag::RST) => {
                self.reset(now, slot, &segment, Side::Wireless);
                None
            }
            Some(slot) => self.admit(now, slot, &segment, Side::Wireless),
            None if segment.has(flag::SYN) && !segment.has(flag::RST) => {
                let is_answer = segment.has(flag::ACK);
                let flow = if is_answer { Flow::starting_at(segment.ack) } else { Flow::unheard() };
                Some(self.table.insert(now, of, key, flow))
            }
            // The mobile comes from another station, which has not passed this flow on yet.
            None if segment.has(flag::ACK)
                && !segment.has(flag::RST)
                && self.is_arriving(key.mobile.ip()) =>
            {
                Some(self.table.insert(now, of, key, Flow::starting_at(segment.ack)))
            }
            None => None,
        };
        let Some(slot) = slot else { return Some(packet) };
        let flow = self.table.touch(now, slot);
        if segment.has(flag::SYN) {
            flow.on_mobile(now, &segment);
            return Some(packet);
        }
        let is_hidden = match self.policy {
            Policy::Snoop => self.snoops(now, slot, &segment),
            Policy::DelayedDupack => self.delays(now, slot, &segment, packet.len()),
            _ => filter::hides(flow, &segment, |frame| self.radio.holds(frame)),
        };
        let flow = &mut self.table[slot];
        flow.on_mobile(now, &segment);
        let is_finished = flow.is_finished();
        if self.policy == Policy::Snoop {
            self.uncache(now, slot);
        }
        if is_finished {
            self.end(now, slot);
        } else if !self.table.is_proven(slot) {
            self.table.put(slot, Pool::Proven);
        }
        if !is_hidden {
            if self.mobiles[of].freezer.reach.stops_senders() && !is_finished {
                self.close_window(now, of, slot, &segment, &mut packet);
            }
            // Delayed ACKs that this packet has released precede it.
            if self.policy == Policy::DelayedDupack && !self.made.is_empty() {
                self.made.push_back(packet);
                return None;
            }
            return Some(packet);
        }
        match self.policy {
            Policy::DelayedDupack => self.delay(now, of, key, packet),
            _ => self.hide(now, of, packet),
        }
        None
    }

    /// Drops a duplicate ACK of the mobile `of`.
    fn hide(&mut self, now: Instant, of: MobileNo, packet: Packet) {
        self.count(of, |counters| counters.hidden += 1);
        self.report(now, Fate::Dropped { cause: "duplicate ACK" }, || packet);
    }

    /// Queues an ACK of the station for the fixed host, in the name of a mobile.
    fn send_made(&mut self, now: Instant, of: MobileNo, ack: &MadeAck, cause: &'static str) {
        let packet = ack.build().filter(|_| self.made.len() < MAX_MADE);
        let Some(packet) = packet else { return };
        self.count(of, |counters| counters.made += 1);
        self.report(now, Fate::Made { cause }, || packet.clone());
        self.made.push_back(packet);
    }

    /// Returns the next packet, the side where it leaves, and the mobile that it is for.
    fn poll_sent(&mut self, now: Instant) -> Option<(Side, MobileNo, Packet)> {
        self.look(now);
        loop {
            if let Some(packet) = self.made.pop_front() {
                return Some((Side::Wired, MobileNo::OTHERS, packet));
            }
            let (way, of, packet) = self.radio.poll_delivered(now)?;
            if way == Way::Forth {
                self.mobiles[of].traffic[Way::Forth as usize].count(&packet);
                return Some((Side::Wireless, of, packet));
            }
            if let Some(packet) = self.on_mobile(now, of, packet) {
                return Some((Side::Wired, MobileNo::OTHERS, packet));
            }
        }
    }

    fn report(&mut self, at: Instant, fate: Fate, packet: impl FnOnce() -> Packet) {
        match &mut self.events {
            Some(events) if events.len() < MAX_EVENTS => {
                let kind = EventKind::Packet { fate, packet: packet() };
                events.push_back(Event { at, flow: None, kind });
            }
            Some(_) => self.counters.missed_events += 1,
            None => {}
        }
    }
}

impl Node for Station {
    /// Processes a packet from either side. Packets that are not IP are counted and dropped.
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        // A port that does not exist is the caller's mistake: the packet is ignored.
        let Some(side) = Side::of(port) else { return };
        if ip::is_v6(&packet.data).is_none() {
            self.counters.not_ip += 1;
            return;
        }
        let of = self.mobile_of(side, &packet);
        self.table.expire(now, of);
        self.look(now);
        if of != MobileNo::OTHERS {
            self.look_at(now, of);
        }
        match side {
            Side::Wired => self.on_fixed(now, of, packet),
            Side::Wireless => self.radio.receive(now, of, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.radio.handle_timeout(now);
        self.on_snoop_timeout(now);
        self.on_delay_timeout(now);
        self.look(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let (side, _, packet) = self.poll_sent(now)?;
        Some((side.port(), packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let radio = self.radio.poll_timeout();
        let own =
            [self.mobiles.poll_timeout(), self.timers.poll_timeout(), self.delayed.poll_timeout()];
        own.into_iter().flatten().chain(radio).min()
    }

    /// Returns the next event, in the order of time.
    fn poll_event(&mut self) -> Option<Event> {
        if self.radio_event.is_none() {
            self.radio_event = self.radio.poll_event();
        }
        let own = self.events.as_mut()?;
        let is_own = match (own.front(), &self.radio_event) {
            (Some(own), Some(radio)) => own.at < radio.at,
            (own, _) => own.is_some(),
        };
        if is_own { own.pop_front() } else { self.radio_event.take() }
    }
}
