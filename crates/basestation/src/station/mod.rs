//! A base station between the wired network and a radio: TCP-ECN (Krishnan 2006, chapters 6 and 7).
//!
//! ```text
//! wired port -> flow table -> marker -> radio -> wireless port
//! wired port <- filter <- flow table <- radio <- wireless port
//! ```
//!
//! A [`Station`] owns the [`Radio`], so its wireless port is the mobile. What it cannot read, and what is not TCP, goes
//! through the radio as it is. It keeps numbers of what passes, and no data.

mod config;
mod counters;
mod filter;
mod flow;
mod freezer;
mod frozen;
mod marker;
mod segment;
mod snoop;
mod table;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_link::{Radio, Way};
use airtcp_types::{Event, EventKind, Fate, Instant, Node, Packet, PortId};

use crate::Side;
use crate::bridge::is_ip;
use flow::{Entered, Flow};
use freezer::Freezer;
use segment::{MadeAck, Segment, flag};
use table::{FlowTable, Pool};

pub use config::{Policy, StationConfig, StationError};
pub use counters::{StationCounters, Status};
pub use flow::{FlowKey, FlowRecord};
pub use freezer::Reach;
pub use marker::Mark;

/// So long a flow may be silent: NATs are to wait as long (RFC 5382 section 5).
const IDLE: Duration = Duration::from_secs(2 * 3600 + 4 * 60);
/// ACKs of its own that wait to leave.
const MAX_MADE: usize = 65_536;
/// Events that wait for an observer.
const MAX_EVENTS: usize = 65_536;

/// The radio's ports.
const ANTENNA: PortId = PortId(0);
const MOBILE: PortId = PortId(1);

/// A base station with its radio: port 0 is the wired side, port 1 the mobile.
#[derive(Debug)]
pub struct Station {
    policy: Policy,
    /// The bits of the paper's mark, if it is given.
    mark: Option<u8>,
    radio: Radio,
    table: FlowTable,
    freezer: Freezer,
    cache_limit: usize,
    timers: snoop::Timers,
    /// ACKs of its own, for the fixed host.
    made: VecDeque<Packet>,
    counters: StationCounters,
    /// There while somebody watches.
    events: Option<VecDeque<Event>>,
    /// The radio's next event.
    heard: Option<Event>,
}

impl Station {
    /// The station that `config` describes.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(config: &StationConfig) -> Result<Self, StationError> {
        config.check()?;
        let gives = |is_given: bool| config.policy == Policy::TcpEcn && is_given;
        let mut radio = Radio::new(&config.radio, config.arq);
        if gives(config.mark.tells_congestion()) {
            radio.mark_congestion();
        }
        Ok(Self {
            policy: config.policy,
            mark: gives(config.mark.tells_holes()).then_some(config.mark_bits),
            radio,
            table: FlowTable::new(config.flows, config.unproven, IDLE),
            freezer: Freezer::new(config.hold.as_usize()),
            cache_limit: config.cache.as_usize(),
            timers: snoop::Timers::default(),
            made: VecDeque::new(),
            counters: StationCounters::default(),
            events: None,
            heard: None,
        })
    }

    /// Starts or stops making events.
    pub fn set_events(&mut self, on: bool) {
        self.radio.set_events(on);
        self.events = match self.events.take() {
            events @ Some(_) if on => events,
            _ => on.then(VecDeque::new),
        };
        self.heard = self.heard.take().filter(|_| on);
    }

    /// The radio.
    pub const fn radio(&self) -> &Radio {
        &self.radio
    }

    /// What it did.
    pub const fn counters(&self) -> &StationCounters {
        &self.counters
    }

    /// How it stands at `now`.
    pub fn status(&self, now: Instant) -> Status {
        let held = self.freezer.waiting();
        Status {
            policy: self.policy,
            reach: self.reach(now),
            connected: self.radio.is_connected(now),
            fading: self.radio.is_fading(now),
            received_power: self.radio.received_power(now),
            queued: Way::BOTH.map(|way| self.radio.queued(way)),
            flows: self.table.len(Pool::Proven),
            unproven: self.table.len(Pool::Unproven),
            frozen: self.table.len(Pool::Pinned),
            evicted: self.table.evicted,
            memory: self.table.memory(),
            held: held.0,
            held_bytes: held.1,
            cached: self.table.cached,
            counters: self.counters,
            radio: Way::BOTH.map(|way| *self.radio.counters(way)),
            air: Way::BOTH.map(|way| *self.radio.air_counters(way)),
        }
    }

    /// How the mobile is. Only `tcp-ecn` knows that it leaves.
    fn reach(&self, now: Instant) -> Reach {
        match self.policy {
            Policy::TcpEcn => self.freezer.reach,
            _ if self.radio.is_in_reach(now) => Reach::There,
            _ => Reach::Gone,
        }
    }

    /// What is made of flows.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// The flows that the mobile takes part in, up to `most` of them: those whose senders were told to stop, then those used
    /// last; of each kind the one used least recently first.
    pub fn flows(&self, most: usize) -> Vec<FlowRecord> {
        let mut left = most;
        let pools = [Pool::Pinned, Pool::Proven].map(|pool| {
            let len = self.table.len(pool);
            let taken = len.min(left);
            left -= taken;
            self.table.iter(pool).skip(len - taken)
        });
        pools.into_iter().flatten().map(|(key, flow)| flow.record(key)).collect()
    }

    fn on_fixed(&mut self, now: Instant, mut packet: Packet) {
        let segment = Segment::read(&packet).filter(|_| self.policy != Policy::Plain);
        let Some(segment) = segment else { return self.pass(now, packet, None) };
        let key = FlowKey { fixed: segment.src, mobile: segment.dst };
        // What finds no room is lost here as it would have been on the way here: it is no data seen.
        let is_holding = self.freezer.is_holding();
        let has_room = match is_holding {
            true => self.freezer.has_room(packet.len(), self.table.is_proven(&key)),
            false => self.radio.has_room(now, Way::Forth),
        };
        let entered = (has_room && segment.is_intact).then(|| self.enter(now, key, &segment));
        let entered = entered.flatten();
        if let (Some(bits), Some(flow)) = (self.mark, self.table.peek(&key))
            && marker::mark(flow, bits, &segment, &mut packet)
        {
            self.counters.marked += 1;
            self.tell(now, Fate::Marked { cause: "hole" }, || packet.clone());
        }
        if let Some(entered) = entered.filter(|_| self.policy == Policy::Snoop) {
            self.cache(now, &segment, &entered, &packet);
        }
        if !is_holding {
            return self.pass(now, packet, entered);
        }
        let is_gone = self.freezer.reach == Reach::Gone && segment.is_intact;
        if is_gone && self.answer(now, &key, &segment) {
            self.counters.probes += 1;
        } else {
            self.hold(now, packet, entered);
        }
    }

    /// Enters an intact segment of the fixed host's into its flow, and gives what it brings there.
    fn enter(&mut self, now: Instant, key: FlowKey, segment: &Segment) -> Option<Entered> {
        if segment.has(flag::RST) {
            let believed = |flow: &mut Flow| flow.believes_reset(segment, true);
            if self.table.get(now, &key).is_some_and(believed) {
                self.table.remove(&key);
            }
            return None;
        }
        let pool = self.table.pool(&key);
        if segment.has(flag::SYN) {
            match pool {
                // Whether the flow is a new one is for the mobile to say.
                Some(Pool::Proven | Pool::Pinned) => return None,
                _ if segment.has(flag::ACK) && pool.is_some() => {}
                _ => drop(self.table.insert(now, key, Flow::starting_at(segment.seq))),
            }
        } else if pool.is_none() {
            if segment.data == 0 {
                return None;
            }
            // A flow already under way.
            self.table.insert(now, key, Flow::starting_at(segment.seq));
        }
        let flow = self.table.get(now, &key)?;
        let highest = flow.highest();
        let range = flow.on_fixed(now, segment);
        let is_new = range.end > highest;
        if flow.is_finished() {
            self.table.remove(&key);
        }
        Some(Entered { key, range, is_new })
    }

    fn pass(&mut self, now: Instant, packet: Packet, entered: Option<Entered>) {
        let Some(frame) = self.radio.pass(now, packet) else { return };
        if let Some(entered) = entered
            && let Some(flow) = self.table.peek(&entered.key)
        {
            flow.on_passed(&entered, frame, |frame| self.radio.holds(frame));
        }
    }

    /// Takes what the radio brings from the mobile; gives what goes on to the fixed host.
    fn on_mobile(&mut self, now: Instant, mut packet: Packet) -> Option<Packet> {
        let segment = Segment::read(&packet).filter(|_| self.policy != Policy::Plain);
        let Some(segment) = segment.filter(|segment| segment.is_intact) else {
            return Some(packet);
        };
        let key = FlowKey { fixed: segment.dst, mobile: segment.src };
        if segment.has(flag::RST) {
            let believed = |flow: &mut Flow| flow.believes_reset(&segment, false);
            if self.table.get(now, &key).is_some_and(believed) {
                self.table.remove(&key);
            }
            return Some(packet);
        }
        if segment.has(flag::SYN) {
            self.on_mobile_syn(now, key, &segment);
            return Some(packet);
        }
        let Some(flow) = self.table.get(now, &key) else { return Some(packet) };
        let is_hidden = match self.policy {
            Policy::Snoop => self.snoops(now, &key, &segment),
            _ => filter::hides(flow, &segment, |frame| self.radio.holds(frame)),
        };
        let Some(flow) = self.table.peek(&key) else { return Some(packet) };
        flow.on_mobile(now, &segment);
        if self.policy == Policy::Snoop {
            self.uncache(now, &key);
        }
        if self.table.peek(&key).is_some_and(|flow| flow.is_finished()) {
            self.table.remove(&key);
        } else if segment.has(flag::ACK) && self.table.pool(&key) == Some(Pool::Unproven) {
            self.table.put(&key, Pool::Proven);
        }
        if !is_hidden {
            if self.freezer.reach != Reach::There {
                self.close_window(now, &key, &mut packet);
            }
            return Some(packet);
        }
        self.counters.hidden += 1;
        self.tell(now, Fate::Dropped { cause: "duplicate ACK" }, || packet);
        None
    }

    /// The mobile opens a flow, or takes part in opening it.
    fn on_mobile_syn(&mut self, now: Instant, key: FlowKey, segment: &Segment) {
        let is_answer = segment.has(flag::ACK);
        if !(is_answer && self.table.pool(&key) == Some(Pool::Unproven)) {
            let flow = if is_answer { Flow::starting_at(segment.ack) } else { Flow::unheard() };
            self.table.insert(now, key, flow);
        }
        if let Some(flow) = self.table.get(now, &key) {
            flow.on_mobile(now, segment);
        }
    }

    /// Has an ACK of its own leave for the fixed host.
    fn send_made(&mut self, now: Instant, ack: &MadeAck, cause: &'static str) {
        let packet = ack.build().filter(|_| self.made.len() < MAX_MADE);
        let Some(packet) = packet else { return };
        self.counters.made += 1;
        self.tell(now, Fate::Made { cause }, || packet.clone());
        self.made.push_back(packet);
    }

    fn tell(&mut self, at: Instant, fate: Fate, packet: impl FnOnce() -> Packet) {
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
    /// Takes a packet of either side. What is no IP packet is counted and dropped.
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        // A caller's mistake: there is no third side.
        let Some(side) = Side::of(port) else { return };
        if !is_ip(&packet.data) {
            self.counters.not_ip += 1;
            return;
        }
        self.table.expire(now);
        self.look(now);
        match side {
            Side::Wired => self.on_fixed(now, packet),
            Side::Wireless => self.radio.handle_packet(now, MOBILE, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.radio.handle_timeout(now);
        self.on_snoop_timeout(now);
        self.look(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.look(now);
        loop {
            if let Some(packet) = self.made.pop_front() {
                return Some((Side::Wired.port(), packet));
            }
            let (port, packet) = self.radio.poll_transmit(now)?;
            if port != ANTENNA {
                return Some((Side::Wireless.port(), packet));
            }
            if let Some(packet) = self.on_mobile(now, packet) {
                return Some((Side::Wired.port(), packet));
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let radio = self.radio.poll_timeout();
        let own = [self.freezer.poll_timeout(), self.timers.poll_timeout()];
        own.into_iter().flatten().chain(radio).min()
    }

    /// In the order of time.
    fn poll_event(&mut self) -> Option<Event> {
        if self.heard.is_none() {
            self.heard = self.radio.poll_event();
        }
        let own = self.events.as_mut()?;
        let is_own = match (own.front(), &self.heard) {
            (Some(own), Some(heard)) => own.at < heard.at,
            (own, _) => own.is_some(),
        };
        if is_own { own.pop_front() } else { self.heard.take() }
    }
}
