//! Registrations through a station, which is the foreign agent (RFC 5944 section 3.7).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_types::Instant;
use airtcp_wire::mobility::{
    self, Acknowledgment, Ends, Extension, Extensions, Message, Reply, Request, Revocation, code,
    flag,
};
use serde::Serialize;

use super::config::{check_addresses, check_lifetime, is_host, of_version};
use super::forward::port;
use super::limit::{Limit, SourceLimit};
use super::registration::is_after;
use super::revocation::address_of;
use super::{FORWARD, HomeConfigError, Key, PREVIOUS, ROOM};

/// How long a request waits for its reply.
const PATIENCE: Duration = Duration::from_secs(7);

/// The settings of a [`Relay`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayConfig {
    /// The care-of addresses of the station: one IPv4 address, one IPv6 address, or both.
    pub addresses: Vec<IpAddr>,
    /// The addresses of the home agents to which requests are relayed, with the keys that they share
    /// with the station.
    pub home_agents: Vec<(IpAddr, Key)>,
    /// The home addresses of the mobiles that share a key with the station. Their requests need an
    /// authenticator for the station; those of other mobiles do not.
    pub mobiles: Vec<(IpAddr, Key)>,
    /// The longest lifetime that is relayed: whole seconds, from 1 to 65,534.
    pub lifetime: Duration,
    /// The maximum number of visitors, with the mobiles whose requests wait for replies.
    pub visitors: usize,
}

/// Relays registrations between mobiles and their home agents, and keeps the list of visitors: the
/// mobiles whose registration through this station a home agent has accepted.
///
/// A reply is only believed with the authenticator of the home agent, and only if it answers a
/// request that waits for it.
#[derive(Debug)]
pub struct Relay {
    addresses: Vec<IpAddr>,
    home_agents: BTreeMap<IpAddr, Key>,
    mobiles: BTreeMap<IpAddr, KeyedMobile>,
    /// The longest lifetime in seconds, and the maximum number of visitors.
    lifetime: u16,
    room: usize,
    /// The requests that wait for replies, by home address and lower half of the identification: the
    /// half that a refusal repeats.
    pub(super) pending: BTreeMap<(IpAddr, u32), Pending>,
    visitors: BTreeMap<IpAddr, Visitor>,
    agenda: BTreeSet<(Instant, Timer)>,
    outbox: VecDeque<Outgoing>,
    /// The latest change that was not taken, by home address.
    changes: BTreeMap<IpAddr, Change>,
    /// Requests that are not new ones of a mobile with a key.
    strangers: SourceLimit,
    counters: RelayCounters,
}

/// A mobile that shares a key with the station.
#[derive(Debug)]
struct KeyedMobile {
    key: Key,
    /// The latest identification of its authentic requests.
    latest: Option<u64>,
    requests: Limit,
}

impl KeyedMobile {
    /// Whether an authentic request is new: others may be replays. A mobile that sets its clock back
    /// has no new requests until its clock has caught up; they are served like those of strangers.
    fn is_new(&mut self, identification: u64) -> bool {
        let is_new = self.latest.is_none_or(|latest| is_after(identification, latest));
        if is_new {
            self.latest = Some(identification);
        }
        is_new
    }
}

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    request: Request,
    from: SocketAddr,
    at: Instant,
    /// Whether it is a new request of a mobile with a key.
    is_trusted: bool,
}

impl Pending {
    fn key(&self) -> (IpAddr, u32) {
        (self.request.home, self.request.identification as u32)
    }

    fn timer(&self) -> (Instant, Timer) {
        (self.at + PATIENCE, Timer::Pending(self.key()))
    }
}

/// A mobile that is registered through the station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visitor {
    /// Its home agent.
    pub home_agent: IpAddr,
    /// The identification of its last accepted request.
    pub identification: u64,
    /// When the registration ends.
    pub until: Instant,
}

/// A mobile registered through the station, or left it. The epoch is the identification of the
/// request by which it did so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It registered. `previous` is the station from which it came, if the home agent named one.
    Arrived {
        /// The identification.
        epoch: u64,
        /// The station that it left.
        previous: Option<IpAddr>,
    },
    /// It left for the care-of address `to`, if the home agent named one.
    Left {
        /// The identification.
        epoch: u64,
        /// The care-of address where it is.
        to: Option<IpAddr>,
    },
}

/// What is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    Pending((IpAddr, u32)),
    Visitor(IpAddr),
}

/// A message to be sent from the station's address and the port of Mobile IP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// The destination.
    pub to: SocketAddr,
    /// Whether that is a mobile, and not a home agent.
    pub is_to_mobile: bool,
    /// The message.
    pub message: Vec<u8>,
}

/// The counters of a [`Relay`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RelayCounters {
    /// Requests, with those below.
    pub requests: u64,
    /// Requests passed to home agents.
    pub relayed: u64,
    /// Requests that the station refused.
    pub denied: u64,
    /// Requests that no home agent answered in time.
    pub timed_out: u64,
    /// Replies passed to mobiles.
    pub replies: u64,
    /// Replies that accept a registration.
    pub accepted: u64,
    /// Revocations by home agents.
    pub revoked: u64,
    /// Visitors whose lifetime ended.
    pub expired: u64,
    /// Messages that are invalid, or of another kind than the station uses.
    pub malformed: u64,
    /// Messages of home agents without a valid authenticator.
    pub unauthenticated: u64,
    /// Replies that no request waits for.
    pub unexpected: u64,
    /// Requests dropped because of the limit of their mobile or source, or of all.
    pub rate_limited: u64,
    /// Requests dropped because a different one with the same identification waits for its reply.
    pub conflicting: u64,
    /// Messages dropped because the output queue was full.
    pub dropped_full: u64,
}

impl Relay {
    /// Creates a relay without visitors.
    ///
    /// # Errors
    /// [`HomeConfigError`].
    pub fn new(config: RelayConfig) -> Result<Self, HomeConfigError> {
        let RelayConfig { addresses, home_agents, mobiles, lifetime, visitors } = config;
        let others = home_agents.iter().chain(&mobiles).map(|(address, _)| *address);
        check_addresses(&addresses, others)?;
        check_lifetime(lifetime)?;
        let keyed = |key| KeyedMobile { key, latest: None, requests: Limit::default() };
        Ok(Self {
            addresses,
            home_agents: home_agents.into_iter().collect(),
            mobiles: mobiles.into_iter().map(|(home, key)| (home, keyed(key))).collect(),
            lifetime: lifetime.as_secs() as u16,
            room: visitors,
            pending: BTreeMap::new(),
            visitors: BTreeMap::new(),
            agenda: BTreeSet::new(),
            outbox: VecDeque::new(),
            changes: BTreeMap::new(),
            strangers: SourceLimit::default(),
            counters: RelayCounters::default(),
        })
    }

    /// Returns the visitor with a home address.
    pub fn visitor(&self, home: IpAddr) -> Option<&Visitor> {
        self.visitors.get(&home)
    }

    /// Returns the visitors, by home address.
    pub fn visitors(&self) -> impl Iterator<Item = (IpAddr, &Visitor)> {
        self.visitors.iter().map(|(home, visitor)| (*home, visitor))
    }

    /// Returns the counters.
    pub const fn counters(&self) -> RelayCounters {
        self.counters
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outbox.pop_front()
    }

    /// Returns the latest change of a mobile since the last call, with its home address. Lifetimes
    /// that end are no changes.
    pub fn poll_change(&mut self) -> Option<(IpAddr, Change)> {
        self.changes.pop_first()
    }

    /// Whether a home agent may soon accept a request of a mobile, and already send its packets.
    pub(super) fn expects(&self, home: IpAddr, home_agent: IpAddr) -> bool {
        self.pending_of(home)
            .any(|of| of.request.home_agent == home_agent && of.request.lifetime > 0)
    }

    /// Whether a request of a mobile waits for its reply.
    pub(super) fn is_waiting(&self, home: IpAddr) -> bool {
        self.pending_of(home).next().is_some()
    }

    /// Whether requests are relayed to a home agent.
    pub(super) fn is_home_agent(&self, address: IpAddr) -> bool {
        self.home_agents.contains_key(&address)
    }

    /// Returns the next deadline.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// Ends registrations, and requests that were not answered.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, timer)) = self.agenda.first()
            && at <= now
        {
            match timer {
                Timer::Visitor(home) => {
                    self.counters.expired += 1;
                    self.leave(home);
                }
                Timer::Pending(key) => {
                    if let Some(pending) = self.forget(key) {
                        self.counters.timed_out += 1;
                        self.deny(pending.from, &pending.request, code::FOREIGN_TIMEOUT);
                    }
                }
            }
            self.agenda.remove(&(at, timer));
        }
    }

    /// Processes a message from the wireless side: the request of a mobile.
    pub fn handle_mobile(&mut self, now: Instant, from: SocketAddr, message: &[u8]) {
        self.handle_timeout(now);
        self.counters.requests += 1;
        let Ok((Message::Request(request), extensions)) = mobility::parse(message, from.is_ipv6())
        else {
            self.counters.malformed += 1;
            return;
        };
        // RFC 5944 section 3.6.1.1: the source is the home address, to which the reply goes.
        let is_own = request.home == from.ip() && is_host(from.ip());
        // RFC 3115 section 2.1: discarded without an answer.
        if !is_own || has_vendor(extensions) {
            self.counters.malformed += 1;
            return;
        }
        let authenticators = Authenticators::of(extensions);
        let mobile = self.mobiles.get_mut(&request.home);
        let needs_key = mobile.as_ref().is_some_and(|of| !authenticators.is_for_station(&of.key));
        // Strangers cannot use up the limit or the room of a mobile that shares a key.
        let trusted = mobile
            .filter(|_| !needs_key)
            .and_then(|of| of.is_new(request.identification).then_some(of));
        let is_trusted = trusted.is_some();
        let may = match trusted {
            Some(mobile) => mobile.requests.take(now),
            None => self.strangers.take(now, from.ip()),
        };
        if !may {
            self.counters.rate_limited += 1;
            return;
        }
        match self.check(&request, &authenticators, needs_key, is_trusted) {
            Ok(end) => {
                let pending = Pending { request, from, at: now, is_trusted };
                self.relay(pending, &message[..end]);
            }
            Err(code) => {
                self.counters.denied += 1;
                self.deny(from, &request, code);
            }
        }
    }

    /// Checks a request (RFC 5944 section 3.7.2.1). Returns the end of what the home agent gets, or
    /// the code of the refusal.
    fn check(
        &self,
        request: &Request,
        authenticators: &Authenticators<'_>,
        needs_key: bool,
        is_trusted: bool,
    ) -> Result<usize, u8> {
        let end = authenticators.mobile.filter(|_| !authenticators.is_poorly_formed);
        let Some(end) = end else { return Err(code::FOREIGN_POORLY_FORMED) };
        if needs_key {
            return Err(code::FOREIGN_MOBILE_AUTHENTICATION);
        }
        if Some(request.care_of) != self.own(request.home.is_ipv6()) {
            return Err(code::FOREIGN_CARE_OF);
        }
        if request.flags & flag::REVERSE != 0 {
            return Err(code::FOREIGN_REVERSE_TUNNEL);
        }
        if request.flags & (flag::MINIMAL | flag::GRE) != 0 {
            return Err(code::FOREIGN_ENCAPSULATION);
        }
        let home_agents = &self.home_agents;
        let is_agent = request.home == request.care_of || home_agents.contains_key(&request.home);
        if is_agent || !home_agents.contains_key(&request.home_agent) {
            return Err(code::FOREIGN_PROHIBITED);
        }
        if request.lifetime > self.lifetime {
            return Err(code::FOREIGN_LIFETIME);
        }
        if request.lifetime > 0 && self.is_full(request.home, is_trusted) {
            return Err(code::FOREIGN_RESOURCES);
        }
        Ok(end)
    }

    /// Whether there is no room for a mobile. Other mobiles whose requests wait may become visitors;
    /// for a trusted request only those with trusted ones count.
    fn is_full(&self, home: IpAddr, is_trusted: bool) -> bool {
        if self.visitors.contains_key(&home) {
            return false;
        }
        let may_visit = |of: &&Pending| {
            of.request.lifetime > 0
                && (of.is_trusted || !is_trusted)
                && of.request.home != home
                && !self.visitors.contains_key(&of.request.home)
        };
        let waiting = self.pending.values().filter(may_visit).map(|of| of.request.home);
        self.visitors.len() + waiting.collect::<BTreeSet<_>>().len() >= self.room
    }

    /// Passes a request to the home agent (RFC 5944 section 3.7.2.2).
    fn relay(&mut self, mut pending: Pending, message: &[u8]) {
        let home_agent = pending.request.home_agent;
        let Some(key) = self.home_agents.get(&home_agent) else { return };
        if let Some(waiting) = self.pending.get(&pending.key()) {
            let is_same = (waiting.request, waiting.from) == (pending.request, pending.from);
            // A stranger may have changed the lifetime or the port of a request that it has seen.
            if !is_same && !pending.is_trusted {
                self.counters.conflicting += 1;
                return;
            }
            pending.is_trusted |= waiting.is_trusted;
        }
        let mut message = message.to_vec();
        key.sign(&mut message, Ends::ForeignHome);
        self.counters.relayed += 1;
        self.forget(pending.key());
        self.pending.insert(pending.key(), pending);
        self.agenda.insert(pending.timer());
        self.send_home(home_agent, message);
    }

    /// Processes a message from the wired side: of a home agent.
    pub fn handle_home(&mut self, now: Instant, from: SocketAddr, message: &[u8]) {
        self.handle_timeout(now);
        let Ok((read, extensions)) = mobility::parse(message, from.is_ipv6()) else {
            self.counters.malformed += 1;
            return;
        };
        let key = self.home_agents.get(&from.ip());
        let is_signed = match (key, extensions.last()) {
            (Some(key), Some(Extension::Authentication(of))) => {
                of.ends == Ends::ForeignHome && key.verifies(&of)
            }
            _ => false,
        };
        if !is_signed {
            // RFC 5944 section 3.7.3.1 has code 68 for the mobile, with which a stranger could end
            // its attempt.
            self.counters.unauthenticated += 1;
            return;
        }
        match read {
            // Flow lists, which the station does not use.
            Message::Reply(_) if has_vendor(extensions) => self.counters.malformed += 1,
            Message::Reply(reply) => self.on_reply(now, from, &reply, message, extensions),
            Message::Revocation(revocation) => self.on_revocation(from, &revocation, extensions),
            _ => self.counters.malformed += 1,
        }
    }

    /// Passes a reply to the mobile, and notes what it decides (RFC 5944 section 3.7.3).
    fn on_reply(
        &mut self,
        now: Instant,
        from: SocketAddr,
        reply: &Reply,
        message: &[u8],
        extensions: Extensions<'_>,
    ) {
        let key = (reply.home, reply.identification as u32);
        // The upper half of a refusal may be the time of the home agent.
        let is_about = |of: &&Pending| {
            of.request.home_agent == from.ip()
                && (of.request.identification == reply.identification
                    || reply.code == code::IDENTIFICATION)
        };
        let Some(&pending) = self.pending.get(&key).filter(is_about) else {
            self.counters.unexpected += 1;
            return;
        };
        self.forget(key);
        let Some(end) = Authenticators::of(extensions).mobile else {
            self.counters.malformed += 1;
            self.deny(pending.from, &pending.request, code::FOREIGN_POORLY_FORMED_REPLY);
            return;
        };
        if matches!(reply.code, code::ACCEPTED | code::NO_SIMULTANEOUS) {
            self.counters.accepted += 1;
            let previous = { extensions }.find_map(|extension| match extension {
                Extension::Hint { kind: PREVIOUS, value } => address_of(value),
                _ => None,
            });
            if !self.on_accepted(now, &pending, reply, previous) {
                self.counters.denied += 1;
                self.deny(pending.from, &pending.request, code::FOREIGN_RESOURCES);
                return;
            }
        }
        self.counters.replies += 1;
        let mut message = message[..end].to_vec();
        if let Some(mobile) = self.mobiles.get(&reply.home) {
            mobile.key.sign(&mut message, Ends::MobileForeign);
        }
        self.send_mobile(pending.from, message);
    }

    /// Makes the mobile a visitor, or ends that. Returns whether there was room: trusted requests may
    /// have taken it since the request was relayed.
    fn on_accepted(
        &mut self,
        now: Instant,
        pending: &Pending,
        reply: &Reply,
        previous: Option<IpAddr>,
    ) -> bool {
        let (home, identification) = (reply.home, reply.identification);
        // Replies may overtake one another. Those to earlier requests decide nothing any more.
        self.forget_until(home, identification);
        let is_newer = |of: &Visitor| is_after(of.identification, identification);
        if self.visitors.get(&home).is_some_and(is_newer) {
            return true;
        }
        let is_full = self.is_full(home, true);
        self.leave(home);
        let lifetime = reply.lifetime.min(pending.request.lifetime);
        let until = pending.at + Duration::from_secs(lifetime.into());
        if until <= now {
            let ends = pending.request.lifetime == 0;
            let change = Change::Left { epoch: identification, to: None };
            self.changes.extend(ends.then_some((home, change)));
            return true;
        }
        if !is_full {
            self.changes.insert(home, Change::Arrived { epoch: identification, previous });
            let home_agent = pending.request.home_agent;
            self.visitors.insert(home, Visitor { home_agent, identification, until });
            self.agenda.insert((until, Timer::Visitor(home)));
        }
        !is_full
    }

    /// Ends the registration of a mobile that has left (RFC 3543), and acknowledges that.
    fn on_revocation(
        &mut self,
        from: SocketAddr,
        revocation: &Revocation,
        mut extensions: Extensions<'_>,
    ) {
        let Revocation { home, home_agent, foreign_agent, identifier, .. } = *revocation;
        let is_valid = revocation.is_from_home
            && home_agent == from.ip()
            && Some(foreign_agent) == self.own(home.is_ipv6());
        let Some(key) = self.home_agents.get(&home_agent).filter(|_| is_valid) else {
            self.counters.malformed += 1;
            return;
        };
        let mut message =
            Message::Acknowledgment(Acknowledgment { informs: false, home, identifier }).emit();
        key.sign(&mut message, Ends::ForeignHome);
        // The request by which the mobile left; without it, any of that second.
        let left = extensions.find_map(|extension| match extension {
            Extension::Vendor { kind: FORWARD, value } => value.split_first_chunk(),
            _ => None,
        });
        let second = u64::from(identifier) << 32;
        let (first, last, to) = match left {
            Some((left, to)) => {
                let left = u64::from_be_bytes(*left);
                (left, left, address_of(to))
            }
            None => (second, second | 0xffff_ffff, None),
        };
        // The replies to these requests were sent before.
        self.forget_until(home, first.wrapping_sub(1));
        let has_left =
            |of: &&Visitor| of.home_agent == home_agent && !is_after(of.identification, last);
        if self.visitors.get(&home).filter(has_left).is_some() {
            self.counters.revoked += 1;
            self.leave(home);
            self.changes.insert(home, Change::Left { epoch: last, to });
        }
        self.send_home(home_agent, message);
    }

    /// Refuses a request.
    fn deny(&mut self, to: SocketAddr, request: &Request, code: u8) {
        let Request { home, home_agent, identification, .. } = *request;
        let lifetime = if code == code::FOREIGN_LIFETIME { self.lifetime } else { 0 };
        let reply = Reply { code, lifetime, home, home_agent, identification };
        let mut message = Message::Reply(reply).emit();
        if let Some(mobile) = self.mobiles.get(&home) {
            mobile.key.sign(&mut message, Ends::MobileForeign);
        }
        self.send_mobile(to, message);
    }

    /// Removes a visitor.
    fn leave(&mut self, home: IpAddr) {
        if let Some(visitor) = self.visitors.remove(&home) {
            self.agenda.remove(&(visitor.until, Timer::Visitor(home)));
        }
    }

    /// Removes a request that waits.
    fn forget(&mut self, key: (IpAddr, u32)) -> Option<Pending> {
        let pending = self.pending.remove(&key)?;
        self.agenda.remove(&pending.timer());
        Some(pending)
    }

    /// Removes the requests of a mobile that wait, up to an identification.
    fn forget_until(&mut self, home: IpAddr, identification: u64) {
        let is_earlier = |of: &&Pending| !is_after(of.request.identification, identification);
        let earlier: Vec<_> = self.pending_of(home).filter(is_earlier).map(Pending::key).collect();
        for key in earlier {
            self.forget(key);
        }
    }

    /// Returns the requests of a mobile that wait.
    fn pending_of(&self, home: IpAddr) -> impl Iterator<Item = &Pending> {
        self.pending.range((home, 0)..=(home, u32::MAX)).map(|(_, pending)| pending)
    }

    /// Returns the station's care-of address of an IP version.
    pub(super) fn own(&self, v6: bool) -> Option<IpAddr> {
        of_version(&self.addresses, v6)
    }

    fn send_home(&mut self, home_agent: IpAddr, message: Vec<u8>) {
        let to = SocketAddr::new(home_agent, port(home_agent.is_ipv6()));
        self.send(Outgoing { to, is_to_mobile: false, message });
    }

    fn send_mobile(&mut self, to: SocketAddr, message: Vec<u8>) {
        self.send(Outgoing { to, is_to_mobile: true, message });
    }

    fn send(&mut self, outgoing: Outgoing) {
        if self.outbox.len() >= ROOM {
            self.counters.dropped_full += 1;
        } else {
            self.outbox.push_back(outgoing);
        }
    }
}

/// The authenticators of a message.
struct Authenticators<'a> {
    /// The end of the one between mobile and home agent.
    mobile: Option<usize>,
    /// The one between mobile and station, if nothing follows it.
    station: Option<mobility::Authentication<'a>>,
    /// Whether their number or order is not that of a mobile's request.
    is_poorly_formed: bool,
}

impl<'a> Authenticators<'a> {
    fn of(extensions: Extensions<'a>) -> Self {
        let mut found = Self { mobile: None, station: None, is_poorly_formed: false };
        for extension in extensions {
            let is_late = found.station.take().is_some();
            match extension {
                Extension::Authentication(of) if of.ends == Ends::MobileHome => {
                    found.is_poorly_formed |= found.mobile.is_some() || is_late;
                    found.mobile = Some(of.covered.len() + of.authenticator.len());
                }
                Extension::Authentication(of) if of.ends == Ends::MobileForeign => {
                    found.is_poorly_formed |= found.mobile.is_none() || is_late;
                    found.station = Some(of);
                }
                Extension::Authentication(_) => found.is_poorly_formed = true,
                _ => found.is_poorly_formed |= is_late,
            }
        }
        found
    }

    fn is_for_station(&self, key: &Key) -> bool {
        !self.is_poorly_formed && self.station.is_some_and(|of| key.verifies(&of))
    }
}

/// Whether a message has a critical vendor extension.
fn has_vendor(mut extensions: Extensions<'_>) -> bool {
    extensions.any(|of| matches!(of, Extension::Vendor { .. }))
}
