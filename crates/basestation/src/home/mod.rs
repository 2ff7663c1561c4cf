//! Agents of Mobile IP. The home agent sends the packets of mobiles that are away to where they are.
//!
//! A mobile keeps the address of its home network. While it is away, it registers a care-of address
//! with the [`HomeAgent`] (RFC 5944), which puts packets to the mobile into a tunnel to that address
//! (RFC 2003; RFC 2473 for IPv6). The care-of address belongs to a station, which relays the request,
//! or to the mobile itself.
//!
//! - **Authentication.** A request has an authenticator of the mobile, and of the station that
//!   relays it. Requests from unknown mobiles get no answer.
//! - **Replays.** A request's identification is a time. It has to be later than that of the last
//!   accepted request, and within 7 s of the agent's clock (RFC 5944 section 5.7.1). Within
//!   that time, the last request again gets its reply again. If the clock was set back, the last
//!   accepted request counts instead of it.
//! - **Limits.** Answers to strangers are limited for each source and for all, answers to a mobile
//!   for each mobile, so that a flood does not use up the answers to others.
//! - **Durable storage.** A registration takes effect, and the reply leaves, only when the caller
//!   has stored it: [`HomeAgent::poll_store`], [`HomeAgent::stored`].
//! - **Handoff.** The station that the mobile left gets a revocation (RFC 3543) with the new care-of
//!   address, at most four times. What it answers is passed on to the new station. Stations of this
//!   crate send their flow lists to each other instead: see [`handoff`](crate::handoff).
//! - **Length.** A packet that does not fit into the tunnel is split before it if that is allowed;
//!   otherwise its source gets "fragmentation needed" or "packet too big". So it does when a router
//!   within the tunnel reports a smaller MTU.
//!
//! A [`ForeignAgent`] relays requests on the wired side of a station or a bridge, and takes packets
//! out of the tunnels (RFC 5944 section 3.7).
//!
//! Not supported: NAT between mobile and agent (RFC 3519), reverse tunnels (RFC 3024), several
//! care-of addresses at a time, broadcasts, agent discovery, other errors from within the tunnel.
//!
//! For IPv6 the messages are those of RFC 5944 with longer addresses, on a port of their own; they
//! are not Mobile IPv6 (RFC 6275).

mod auth;
mod binding;
mod config;
mod foreign;
mod forward;
mod limit;
mod registration;
mod relay;
mod revocation;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use airtcp_types::{Event, Instant, Node, Packet, PortId};

pub use auth::{Algorithm, Key, KeyError};
pub use binding::{Snapshot, Stored, StoredRegistration};
pub use config::{HomeConfig, HomeConfigError, HomeMobile, HomeStation};
pub use foreign::{ForeignAgent, ForeignCounters, Visited};
pub use relay::{Change, Outgoing, Relay, RelayConfig, RelayCounters, Visitor};
pub use revocation::{FLOWS, FORWARD, MAX_PART, PREVIOUS};
pub use status::{BindingStatus, HomeCounters, HomeStatus};

pub(crate) use registration::is_after;

use binding::{Binding, Mobile};
use limit::SourceLimit;

/// The maximum number of packets that wait for the caller.
const ROOM: usize = 1_024;

/// The hop limit of the agent's packets.
const HOP_LIMIT: u8 = 64;

/// A home agent. It has one port, to which packets to the home network and to its own addresses are
/// routed, and from which its packets leave.
#[derive(Debug)]
pub struct HomeAgent {
    config: HomeConfig,
    /// The state of the home addresses, in the order of the settings.
    mobiles: Vec<Mobile>,
    by_address: HashMap<IpAddr, usize, KeyedByAddress>,
    stations: HashMap<IpAddr, usize, KeyedByAddress>,
    /// The next deadline of each home address that has one.
    agenda: BTreeSet<(Instant, usize)>,
    /// The agent's time at [`Instant::ZERO`], as a timestamp.
    origin: u64,
    /// The number of the latest change, and of the latest change given out to be stored.
    changed: u64,
    asked: u64,
    outbox: VecDeque<Packet>,
    /// Refusals of requests that may be of anyone, and ICMP errors.
    strangers: SourceLimit,
    errors: SourceLimit,
    counters: HomeCounters,
}

/// The addresses come from the settings, so that no hash has to be kept from strangers.
type KeyedByAddress = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

impl HomeAgent {
    /// Creates a home agent without registrations. `time` is the time at `now`, as a
    /// [`timestamp`](airtcp_wire::mobility::timestamp).
    ///
    /// # Errors
    /// [`HomeConfigError`].
    pub fn new(config: HomeConfig, now: Instant, time: u64) -> Result<Self, HomeConfigError> {
        config.check()?;
        let mobiles = config.mobiles.iter().enumerate();
        let stations = config.stations.iter().enumerate();
        let mut agent = Self {
            mobiles: config.mobiles.iter().map(|_| Mobile::default()).collect(),
            by_address: mobiles.map(|(place, mobile)| (mobile.address, place)).collect(),
            stations: stations.map(|(place, station)| (station.address, place)).collect(),
            config,
            agenda: BTreeSet::new(),
            origin: 0,
            changed: 0,
            asked: 0,
            outbox: VecDeque::new(),
            strangers: SourceLimit::default(),
            errors: SourceLimit::default(),
            counters: HomeCounters::default(),
        };
        agent.set_time(now, time);
        Ok(agent)
    }

    /// Sets the time at `now`, as a [`timestamp`](airtcp_wire::mobility::timestamp). The caller does
    /// so from time to time, because clocks are adjusted.
    pub fn set_time(&mut self, now: Instant, time: u64) {
        self.origin = time.wrapping_sub(timestamp_of(now));
    }

    /// Takes over what an earlier agent stored. Addresses that are not configured any more are
    /// ignored, and registrations that ended meanwhile.
    pub fn restore(&mut self, now: Instant, snapshot: &Snapshot) {
        let time = self.time(now);
        for stored in &snapshot.mobiles {
            let Some(&place) = self.by_address.get(&stored.address) else { continue };
            let before = self.mobiles[place].deadline();
            let registration = stored.registration.as_ref();
            let longest = self.config.lifetime.as_secs() as u16;
            let binding = registration.and_then(|of| {
                let left = of.until.wrapping_sub(time) as i64;
                let is_valid = left > 0
                    && of.care_of.is_ipv6() == stored.address.is_ipv6()
                    && self.is_away(of.care_of);
                // The clock may have been set back, or the settings changed.
                let lifetime = of.lifetime.min(longest);
                let left = duration_of(left as u64).min(Duration::from_secs(lifetime.into()));
                is_valid.then(|| Binding {
                    care_of: of.care_of,
                    station: self.stations.get(&of.care_of).copied(),
                    port: of.port,
                    lifetime,
                    until: now + left,
                    mtu: self.config.mtu,
                })
            });
            self.mobiles[place] =
                Mobile { last: Some(stored.identification), binding, ..Mobile::default() };
            self.schedule(place, before);
        }
    }

    /// Returns what has to be in durable storage, with a number, if that has changed since the last
    /// call. The caller stores it and calls [`stored`](Self::stored).
    pub fn poll_store(&mut self) -> Option<(u64, Snapshot)> {
        (self.asked < self.changed).then(|| {
            self.asked = self.changed;
            (self.changed, self.snapshot())
        })
    }

    fn snapshot(&self) -> Snapshot {
        let stored = |(mobile, config): (&Mobile, &HomeMobile)| {
            Some(Stored {
                address: config.address,
                identification: mobile.last?,
                registration: mobile.latest().map(|binding| StoredRegistration {
                    care_of: binding.care_of,
                    port: binding.port,
                    lifetime: binding.lifetime,
                    until: self.time(binding.until),
                }),
            })
        };
        let mobiles = self.mobiles.iter().zip(&self.config.mobiles);
        Snapshot { mobiles: mobiles.filter_map(stored).collect() }
    }

    /// Reports that the snapshot with this number, or a later one, is in durable storage: its
    /// registrations take effect.
    pub fn stored(&mut self, now: Instant, number: u64) {
        for place in 0..self.mobiles.len() {
            let pending = self.mobiles[place].pending.as_ref();
            if pending.is_some_and(|pending| pending.number <= number) {
                self.commit(now, place);
            }
        }
    }

    /// Returns the state and the counters.
    pub fn status(&self, now: Instant) -> HomeStatus {
        let mobiles = self.mobiles.iter().zip(&self.config.mobiles);
        let registered = mobiles.filter_map(|(mobile, of)| {
            let binding = mobile.binding.as_ref().filter(|binding| binding.until > now)?;
            let station = binding.station.and_then(|place| self.config.stations.get(place));
            Some(BindingStatus {
                mobile: of.name.clone(),
                address: of.address,
                care_of: binding.care_of,
                station: station.map(|station| station.name.clone()),
                seconds: binding.until.since(now).as_secs(),
            })
        });
        HomeStatus { bindings: registered.collect(), counters: self.counters }
    }

    /// The agent's time as a timestamp.
    fn time(&self, now: Instant) -> u64 {
        self.origin.wrapping_add(timestamp_of(now))
    }

    /// Updates the agenda after a change of a home address, whose deadline was `before`.
    fn schedule(&mut self, place: usize, before: Option<Instant>) {
        if let Some(before) = before {
            self.agenda.remove(&(before, place));
        }
        if let Some(next) = self.mobiles[place].deadline() {
            self.agenda.insert((next, place));
        }
    }

    fn send(&mut self, packet: Packet) {
        if self.outbox.len() >= ROOM {
            self.counters.dropped_full += 1;
        } else {
            self.outbox.push_back(packet);
        }
    }
}

impl Node for HomeAgent {
    fn handle_packet(&mut self, now: Instant, _: PortId, packet: Packet) {
        // A registration that has ended is not used, even if its timer runs late.
        self.handle_timeout(now);
        self.on_packet(now, &packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, place)) = self.agenda.first()
            && at <= now
        {
            self.agenda.pop_first();
            self.on_deadline(now, place);
        }
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<(PortId, Packet)> {
        Some((PortId(0), self.outbox.pop_front()?))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| *at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// Converts a time since the origin to the unit of timestamps.
fn timestamp_of(now: Instant) -> u64 {
    ((u128::from(now.as_nanos()) << 32) / 1_000_000_000) as u64
}

fn duration_of(timestamp: u64) -> Duration {
    let nanos = (u128::from(timestamp) * 1_000_000_000) >> 32;
    Duration::from_nanos(nanos as u64)
}
