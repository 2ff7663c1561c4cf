//! Handoff: the flows of a mobile move from the station that it leaves to the one where it arrives.
//!
//! A [`Handoff`] is a [`Station`] that exchanges messages with other stations. A
//! [`ForeignAgent`](crate::home::ForeignAgent) around it carries the messages, and reports where a
//! mobile is registered. Another caller does so with [`leave`](Handoff::leave) at the old station, and
//! [`arrive`](Handoff::arrive) at the new one.
//!
//! ```text
//!            old station                          new station
//! leave ->   flow records, numbered parts  ---->  flows
//!            segments that waited          ---->
//!            end                           ---->  windows open, segments, fresh packets
//!                                          <----  received
//! ```
//!
//! - **Old station.** It removes the mobile's [flow records](crate::station::FlowRecord) from its
//!   tables, and sends them with the segments that wait for the mobile. From then on it makes no
//!   ACK, mark or filter for it. Items that are not acknowledged are sent again, for at most 7 s.
//! - **New station.** Fresh packets wait for the end of the items, or until 500 ms pass without
//!   one. Then senders that the old station has frozen get the mobile's last ACK with its true
//!   window, and the segments of the old station pass, followed by the fresh ones. Acknowledgements
//!   only rise. Flows without a record are adopted from their traffic, so that an old station that
//!   does not answer costs only the waiting time. A sender that it had frozen waits for its own
//!   persist timer, too.
//! - **Question.** With a foreign agent, the new station [asks](Handoff::ask) the old one, which the
//!   home agent has named. An old station that the home agent has notified of the move waits up to 500 ms
//!   for that, so that its items do not come before the new station knows of the mobile. One that does
//!   not know of the move learns of it by the question.
//! - **Epochs.** Each move has a later epoch than the one before: the identification of the
//!   mobile's registration (RFC 5944 section 3.3). A message of another epoch is dropped.
//! - **Authentication.** A message has an authenticator made with the key that both stations share,
//!   as those between an agent and its stations: see [`Key`].
//! - **Ping-pong.** A mobile that comes back gets what the other station has not acknowledged.
//!
//! A mobile is an address here: one with an IPv4 and an IPv6 address moves twice. Messages to
//! stations have the IP version of the mobile's address. A message with a packet is up to 85 bytes
//! longer than the packet.
//!
//! ```
//! use airtcp_basestation::handoff::{Handoff, HandoffConfig, HandoffState};
//! use airtcp_basestation::home::{Algorithm, Key};
//! use airtcp_basestation::{Station, StationConfig};
//! use airtcp_types::Instant;
//!
//! let [north, south, van] = ["198.51.100.1".parse()?, "198.51.100.2".parse()?, "192.0.2.7".parse()?];
//! let station = |peer| {
//!     let key = Key::new(400, Algorithm::HmacSha256, vec![7; 16]).unwrap();
//!     let config = HandoffConfig { peers: vec![(peer, key)], ..HandoffConfig::default() };
//!     Handoff::new(Station::new(&StationConfig::default()).unwrap(), config)
//! };
//! let (mut old, mut new) = (station(south), station(north));
//! let now = Instant::ZERO;
//! new.arrive(now, van, 1, Some(north))?;
//! old.leave(now, van, 1, south)?;
//! while let Some((_, message)) = old.poll_message(now) {
//!     new.handle_message(now, north, &message);
//! }
//! assert_eq!(new.state(van), Some((1, HandoffState::Here)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod driver;
mod export;
mod import;
mod message;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use airtcp_types::{ByteCount, Event, Instant, Node, Packet, PortId};
use airtcp_wire::ip;

use crate::home::{Key, is_after};
use crate::{Side, Station};
use export::Export;
use import::Import;
use message::{Content, Invalid, Letter};

pub use message::{ASK, END, PACKET, RECEIVED};

/// The maximum number of items that are sent without an acknowledgement.
const WINDOW: usize = 64;
/// How long fresh packets wait for the next item.
const WAIT: Duration = Duration::from_millis(500);
/// How long items are sent and accepted.
const LIFETIME: Duration = Duration::from_secs(7);

/// The settings of a [`Handoff`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandoffConfig {
    /// The addresses of the other stations, each with the key that it shares with this one.
    pub peers: Vec<(IpAddr, Key)>,
    /// The maximum size of the packets that wait for a mobile while it arrives, and of those that
    /// follow a mobile that has left.
    pub room: ByteCount,
    /// The maximum number of mobiles whose epoch is remembered. If there are more, the one with the
    /// earliest epoch is forgotten that is not on the move.
    pub mobiles: usize,
}

impl Default for HandoffConfig {
    fn default() -> Self {
        Self { peers: Vec::new(), room: ByteCount::from_mib(4), mobiles: 1_024 }
    }
}

/// The reason why a move is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HandoffError {
    /// The other station is not configured.
    #[error("no key for the station {0}: add it to the peers")]
    Peer(IpAddr),
    /// Station and mobile have addresses of different IP versions.
    #[error("the mobile {home} needs an address of its own IP version for the station {station}")]
    Version {
        /// The address of the mobile.
        home: IpAddr,
        /// The address of the station.
        station: IpAddr,
    },
    /// The epoch is not later than the last one.
    #[error("epoch {epoch} of the mobile {home} is not later than its last one, {last}")]
    Stale {
        /// The address of the mobile.
        home: IpAddr,
        /// The epoch.
        epoch: u64,
        /// The epoch of its last move.
        last: u64,
    },
    /// Too many mobiles are on the move.
    #[error("no room for the mobile {0}: all {1} others are on the move")]
    Full(IpAddr, usize),
}

/// Where a mobile is, for a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandoffState {
    /// It has arrived, and fresh packets for it wait.
    Arriving,
    /// It is here.
    Here,
    /// It has left, and the new station has not acknowledged everything.
    Leaving,
    /// It has left.
    Left,
}

/// The counters of a [`Handoff`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct HandoffCounters {
    /// Mobiles that arrived.
    pub arrivals: u64,
    /// Mobiles that left.
    pub departures: u64,
    /// Departures whose items were all acknowledged.
    pub completed: u64,
    /// Departures whose items were not acknowledged in time, and dropped.
    pub failed: u64,
    /// Departures to an address that is not that of a configured station. The flows are dropped.
    pub discarded: u64,
    /// Reports of the foreign agent that were refused: see [`HandoffError`].
    pub ignored: u64,
    /// Arrivals that got everything that the old station had kept.
    pub taken_over: u64,
    /// Arrivals whose fresh packets did not wait for the end of the items.
    pub timed_out: u64,
    /// Arrivals whose old station did not answer the question. Flows are adopted from their traffic.
    pub adopted: u64,
    /// Flow records sent to other stations.
    pub flows_sent: u64,
    /// Flow records of other stations.
    pub flows_received: u64,
    /// Flow records and packets of other stations that are invalid, or not of the mobile.
    pub refused: u64,
    /// Items sent again.
    pub repeated: u64,
    /// Items received again.
    pub duplicates: u64,
    /// Packets sent after a mobile that had left.
    pub followed: u64,
    /// Packets dropped because there was no room.
    pub dropped_full: u64,
    /// Messages without a valid authenticator.
    pub unauthenticated: u64,
    /// Messages of the wrong form.
    pub malformed: u64,
    /// Messages of another epoch, or of a station that the mobile has not left or gone to.
    pub stale: u64,
}

/// A station that hands mobiles over to other stations. As a [`Node`] it has the ports of the
/// [`Station`].
#[derive(Debug)]
pub struct Handoff {
    station: Station,
    peers: BTreeMap<IpAddr, Key>,
    room: usize,
    most: usize,
    mobiles: BTreeMap<IpAddr, Mobile>,
    /// The next deadline of each mobile that has one.
    agenda: BTreeSet<(Instant, IpAddr)>,
    /// The mobiles that may have a message to be sent.
    ready: BTreeSet<IpAddr>,
    counters: HandoffCounters,
}

#[derive(Debug)]
struct Mobile {
    epoch: u64,
    role: Role,
    /// Here: when the old station is asked next. Left: until when the items wait for the question.
    question: Option<Instant>,
    /// Whether the old station is to be asked now.
    asks: bool,
    /// Its entry in the agenda.
    deadline: Option<Instant>,
}

/// The role of the station for a mobile, with its items while they are sent or accepted.
#[derive(Debug)]
enum Role {
    Here(Option<Box<Import>>),
    Left(Option<Box<Export>>),
}

impl Handoff {
    /// Creates a station that hands mobiles over. If a peer is given twice, its last key is used.
    pub fn new(station: Station, config: HandoffConfig) -> Self {
        Self {
            station,
            peers: config.peers.into_iter().collect(),
            room: config.room.as_usize(),
            most: config.mobiles.max(1),
            mobiles: BTreeMap::new(),
            agenda: BTreeSet::new(),
            ready: BTreeSet::new(),
            counters: HandoffCounters::default(),
        }
    }

    /// Returns the station.
    pub const fn station(&self) -> &Station {
        &self.station
    }

    /// Returns the station, to change the reach of its mobiles or its events. Packets go through
    /// the [`Node`] instead.
    pub const fn station_mut(&mut self) -> &mut Station {
        &mut self.station
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &HandoffCounters {
        &self.counters
    }

    /// Returns the last epoch of a mobile and where it is, if known.
    pub fn state(&self, home: IpAddr) -> Option<(u64, HandoffState)> {
        let mobile = self.mobiles.get(&home)?;
        let state = match &mobile.role {
            Role::Here(Some(import)) if import.is_waiting() => HandoffState::Arriving,
            Role::Here(_) => HandoffState::Here,
            Role::Left(Some(export)) if !export.is_complete() => HandoffState::Leaving,
            Role::Left(_) => HandoffState::Left,
        };
        Some((mobile.epoch, state))
    }

    /// Reports that a mobile is here: its registration through this station was accepted. `from` is
    /// the station that it has left, if any. The same report again has no effect.
    ///
    /// # Errors
    ///
    /// [`HandoffError`].
    pub fn arrive(
        &mut self,
        now: Instant,
        home: IpAddr,
        epoch: u64,
        from: Option<IpAddr>,
    ) -> Result<(), HandoffError> {
        if !self.is_new(home, epoch, from, true)? {
            return Ok(());
        }
        self.counters.arrivals += 1;
        let mut import = Import::new(now, home, from, self.room);
        let luggage = match self.forget(home) {
            Some(Role::Left(Some(export))) => Some(export.take_back()),
            Some(Role::Here(Some(mut earlier))) => {
                earlier.give_up(now, &mut self.station);
                None
            }
            _ => None,
        };
        self.station.expect(home);
        if let Some((luggage, later)) = luggage {
            for record in &luggage.records {
                let is_added = self.station.add_flow(now, record).is_ok();
                self.counters.refused += u64::from(!is_added);
            }
            import.put_back(luggage.packets, later);
        }
        let import = match from {
            Some(_) => Some(Box::new(import)),
            None => {
                import.give_up(now, &mut self.station);
                None
            }
        };
        self.insert(home, epoch, Role::Here(import));
        Ok(())
    }

    /// Reports that a mobile has left this station for the station `to`. The same report again has
    /// no effect.
    ///
    /// # Errors
    ///
    /// [`HandoffError`].
    pub fn leave(
        &mut self,
        now: Instant,
        home: IpAddr,
        epoch: u64,
        to: IpAddr,
    ) -> Result<(), HandoffError> {
        self.depart(now, home, epoch, to, None)
    }

    /// As [`leave`](Self::leave). Items wait for the question of the new station until the time
    /// `question`.
    fn depart(
        &mut self,
        now: Instant,
        home: IpAddr,
        epoch: u64,
        to: IpAddr,
        question: Option<Instant>,
    ) -> Result<(), HandoffError> {
        if !self.is_new(home, epoch, Some(to), false)? {
            return Ok(());
        }
        self.counters.departures += 1;
        let (luggage, later) = match self.forget(home) {
            Some(Role::Left(Some(export))) => export.take_back(),
            before => {
                let mut luggage = self.station.part_with(now, home);
                let mut later = Vec::new();
                if let Some(Role::Here(Some(import))) = before {
                    let packets;
                    (packets, later) = import.take_apart();
                    let mut bytes = 0;
                    for waiting in packets {
                        bytes += waiting.packet.len();
                        if bytes <= self.room {
                            luggage.packets.push(waiting);
                        } else {
                            self.counters.dropped_full += 1;
                        }
                    }
                }
                (luggage, later)
            }
        };
        self.counters.flows_sent += luggage.records.len() as u64;
        let mut export = Export::new(now, to, luggage);
        for packet in later {
            self.counters.dropped_full += u64::from(!export.follow(packet, self.room));
        }
        self.insert(home, epoch, Role::Left(Some(Box::new(export))));
        self.set_question(home, question, false);
        Ok(())
    }

    /// Checks the report of a move. Returns `false` if it is the last one again.
    fn is_new(
        &mut self,
        home: IpAddr,
        epoch: u64,
        peer: Option<IpAddr>,
        is_here: bool,
    ) -> Result<bool, HandoffError> {
        if let Some(station) = peer {
            if !self.peers.contains_key(&station) {
                return Err(HandoffError::Peer(station));
            }
            if station.is_ipv6() != home.is_ipv6() {
                return Err(HandoffError::Version { home, station });
            }
        }
        if let Some(mobile) = self.mobiles.get(&home) {
            let last = mobile.epoch;
            if last == epoch && matches!(mobile.role, Role::Here(_)) == is_here {
                return Ok(false);
            }
            return match is_after(epoch, last) {
                true => Ok(true),
                false => Err(HandoffError::Stale { home, epoch, last }),
            };
        }
        if self.mobiles.len() >= self.most {
            let is_still =
                |mobile: &Mobile| matches!(mobile.role, Role::Here(None) | Role::Left(None));
            let still = self.mobiles.iter().filter(|(_, mobile)| is_still(mobile));
            // Epochs wrap.
            let order = |one: u64, other: u64| is_after(one, other).cmp(&is_after(other, one));
            let oldest = still.min_by(|(_, one), (_, other)| order(one.epoch, other.epoch));
            let oldest = oldest.map(|(home, _)| *home);
            let oldest = oldest.ok_or(HandoffError::Full(home, self.most))?;
            self.forget(oldest);
            self.station.forget_roaming(oldest);
        }
        Ok(true)
    }

    fn forget(&mut self, home: IpAddr) -> Option<Role> {
        let mobile = self.mobiles.remove(&home)?;
        if let Some(deadline) = mobile.deadline {
            self.agenda.remove(&(deadline, home));
        }
        Some(mobile.role)
    }

    fn insert(&mut self, home: IpAddr, epoch: u64, role: Role) {
        self.mobiles
            .insert(home, Mobile { epoch, role, question: None, asks: false, deadline: None });
        self.ready.insert(home);
        self.schedule(home);
    }

    /// Updates the agenda after a change of a mobile.
    fn schedule(&mut self, home: IpAddr) {
        let Some(mobile) = self.mobiles.get_mut(&home) else { return };
        let deadline = match &mobile.role {
            Role::Here(import) => import.as_ref().map(|import| import.deadline()),
            Role::Left(export) => export.as_ref().map(|export| export.deadline()),
        };
        let deadline = deadline.into_iter().chain(mobile.question).min();
        let before = std::mem::replace(&mut mobile.deadline, deadline);
        if before != deadline {
            if let Some(before) = before {
                self.agenda.remove(&(before, home));
            }
            self.agenda.extend(deadline.map(|at| (at, home)));
        }
    }

    /// Processes a message of the station `from`.
    pub fn handle_message(&mut self, now: Instant, from: IpAddr, message: &[u8]) {
        let key = self.peers.get(&from).ok_or(Invalid::Unauthenticated);
        let letter = key.and_then(|key| Letter::open(message, from.is_ipv6(), key));
        let Letter { home, epoch, content } = match letter {
            Ok(letter) => letter,
            Err(Invalid::Unauthenticated) => return self.counters.unauthenticated += 1,
            Err(Invalid::Malformed) => return self.counters.malformed += 1,
        };
        if content == Content::Ask {
            return self.on_question(now, from, home, epoch);
        }
        let mobile = self.mobiles.get_mut(&home).filter(|mobile| mobile.epoch == epoch);
        match (mobile.map(|mobile| &mut mobile.role), content) {
            (Some(Role::Here(Some(import))), Content::Item(no, item))
                if import.from == Some(from) =>
            {
                let was_waiting = import.is_waiting();
                import.on_item(now, &mut self.station, &mut self.counters, no, item);
                self.counters.taken_over += u64::from(was_waiting && !import.is_waiting());
            }
            (Some(Role::Left(Some(export))), Content::Received { next, later })
                if export.to == from =>
            {
                let was_complete = export.is_complete();
                export.on_received(now, next, later);
                self.counters.completed += u64::from(export.is_complete() && !was_complete);
            }
            _ => return self.counters.stale += 1,
        }
        self.set_question(home, None, false);
    }

    /// Returns the next message to be sent, with the address of the station.
    pub fn poll_message(&mut self, now: Instant) -> Option<(IpAddr, Vec<u8>)> {
        while let Some(home) = self.ready.first().copied() {
            let message = self.message_of(now, home);
            if message.is_some() {
                return message;
            }
            self.ready.remove(&home);
        }
        None
    }

    fn message_of(&mut self, now: Instant, home: IpAddr) -> Option<(IpAddr, Vec<u8>)> {
        let Mobile { epoch, role, question, asks, .. } = self.mobiles.get_mut(&home)?;
        let epoch = *epoch;
        let (to, content) = match role {
            Role::Here(Some(import)) if std::mem::take(asks) => (import.from?, Content::Ask),
            Role::Left(_) if question.is_some() => return None,
            Role::Here(Some(import)) => {
                let (next, later) = import.poll()?;
                (import.from?, Content::Received { next, later })
            }
            Role::Left(Some(export)) => {
                let (no, item, is_again) = export.poll(now)?;
                self.counters.repeated += u64::from(is_again);
                (export.to, Content::Item(no, item))
            }
            _ => return None,
        };
        self.schedule(home);
        let letter = Letter { home, epoch, content };
        Some((to, letter.seal(self.peers.get(&to)?)))
    }

    /// Takes a packet that waits for a mobile on the move; returns all others.
    fn intercept(&mut self, packet: Packet) -> Option<Packet> {
        if self.mobiles.is_empty() {
            return Some(packet);
        }
        let Some((_, home)) = ip::addresses(&packet.data) else { return Some(packet) };
        let is_kept = match self.mobiles.get_mut(&home).map(|mobile| &mut mobile.role) {
            Some(Role::Here(Some(import))) if import.is_waiting() => import.keep(packet),
            Some(Role::Left(Some(export))) => {
                let is_kept = export.follow(packet, self.room);
                self.counters.followed += u64::from(is_kept);
                self.ready.insert(home);
                is_kept
            }
            _ => return Some(packet),
        };
        self.counters.dropped_full += u64::from(!is_kept);
        None
    }

    fn on_deadline(&mut self, now: Instant, home: IpAddr) {
        let Some(mobile) = self.mobiles.get_mut(&home) else { return };
        match &mut mobile.role {
            Role::Here(of) => {
                if let Some(import) = of
                    && import.has_waited(now)
                {
                    self.counters.timed_out += 1;
                    // The first item ends the questions.
                    self.counters.adopted += u64::from(mobile.question.take().is_some());
                    mobile.asks = false;
                    import.give_up(now, &mut self.station);
                }
                if mobile.question.is_some_and(|at| at <= now) {
                    mobile.question = Some(now + driver::ASK_AGAIN);
                    mobile.asks = true;
                }
                if let Some(mut import) = of.take_if(|import| import.is_over(now)) {
                    import.give_up(now, &mut self.station);
                }
            }
            Role::Left(of) => {
                mobile.question.take_if(|until| *until <= now);
                let over = of.take_if(|export| !export.on_timeout(now));
                self.counters.failed += u64::from(over.is_some_and(|of| !of.is_complete()));
            }
        }
        self.ready.insert(home);
        self.schedule(home);
    }
}

impl Node for Handoff {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        let packet = match Side::of(port) {
            Some(Side::Wired) => self.intercept(packet),
            _ => Some(packet),
        };
        if let Some(packet) = packet {
            self.station.handle_packet(now, port, packet);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, home)) = self.agenda.first().copied().filter(|(at, _)| *at <= now) {
            self.on_deadline(now, home);
        }
        self.station.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.station.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = self.agenda.first().map(|(at, _)| *at);
        own.into_iter().chain(self.station.poll_timeout()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.station.poll_event()
    }
}
