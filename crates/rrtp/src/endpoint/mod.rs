//! All connections of one UDP socket.

mod admission;
mod schedule;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airtcp_types::Instant;

use crate::config::{Config, Limits, NetworkKind, NetworkProfile};
use crate::connection::{Around, Connection};
use crate::cookie::Secret;
use crate::counters::Counters;
use crate::error::{CallError, ConnectionError};
use crate::info::{Info, Phase};
use crate::pool::Pool;
use crate::wire::{Body, Malformed, Packet};

use admission::Spent;
use schedule::Schedule;

/// The maximum number of queued responses to unknown peers; further ones are dropped.
const REPLIES: usize = 1_024;

/// The handle of a connection of an [`Endpoint`]. It is never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(u64);

/// An event for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// [`Endpoint::accept`] has a connection.
    Incoming,
    /// A connection opened by this endpoint is established.
    Connected(ConnectionId),
    /// Data or the end of the stream can be read, after [`Endpoint::recv`] returned nothing.
    Readable(ConnectionId),
    /// There is room to write, after [`Endpoint::send`] accepted less than all data.
    Writable(ConnectionId),
    /// The connection has ended: gracefully, or with an error that calls return from now on. Data
    /// received before can still be read.
    Closed(ConnectionId, Option<ConnectionError>),
}

/// A state machine for all connections of a UDP socket, in both directions.
///
/// The caller owns the socket and the clock. It passes in datagrams
/// ([`handle_datagram`](Self::handle_datagram)) and the time
/// ([`handle_timeout`](Self::handle_timeout)). After any call it takes the datagrams to send
/// ([`poll_transmit`](Self::poll_transmit)) and the next deadline
/// ([`poll_timeout`](Self::poll_timeout)). `now` never decreases, except for a datagram, which may
/// be passed in with the earlier time of its arrival: gaps between packets are measured.
#[derive(Clone, Debug)]
pub struct Endpoint {
    secret: Secret,
    limits: Limits,
    /// The settings of accepted connections; `None` without a listener.
    listening: Option<Config>,
    connections: BTreeMap<ConnectionId, Connection>,
    by_peer: BTreeMap<(SocketAddr, u64), ConnectionId>,
    /// The wire ids alone, to distinguish a packet from a wrong address from one of an unknown
    /// connection.
    ids: BTreeMap<u64, u32>,
    accepted: BTreeMap<IpAddr, usize>,
    incoming: VecDeque<ConnectionId>,
    spent: Spent,
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    schedule: Schedule,
    events: VecDeque<Event>,
    pool: Pool,
    counters: Counters,
    opened: u64,
    next: u64,
}

impl Endpoint {
    /// Creates an endpoint without connections. `key` must be secret: take it from the operating
    /// system, except for reproducible runs.
    pub fn new(limits: Limits, key: [u8; 16]) -> Self {
        Self {
            secret: Secret::new(key),
            limits,
            listening: None,
            connections: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            ids: BTreeMap::new(),
            accepted: BTreeMap::new(),
            incoming: VecDeque::new(),
            spent: Spent::default(),
            replies: VecDeque::new(),
            schedule: Schedule::default(),
            events: VecDeque::new(),
            pool: Pool::new(limits.memory),
            counters: Counters::default(),
            opened: 0,
            next: 0,
        }
    }

    /// Starts accepting connections with `config`, or stops with `None`; existing connections stay.
    pub fn listen(&mut self, config: Option<Config>) {
        self.listening = config;
    }

    /// Whether the endpoint accepts connections.
    pub const fn is_listening(&self) -> bool {
        self.listening.is_some()
    }

    /// Opens a connection. [`Event::Connected`] or [`Event::Closed`] reports the result; until then
    /// nothing can be read, and written data waits.
    ///
    /// # Errors
    ///
    /// [`CallError::TooMany`]: the limit of connections is reached.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        config: Config,
    ) -> Result<ConnectionId, CallError> {
        if self.connections.len() >= self.limits.connections {
            return Err(CallError::TooMany);
        }
        self.opened += 1;
        let ids = (self.secret.connection(self.opened), self.secret.nonces(self.next));
        Ok(self.add(Connection::open(now, ids, remote, config)))
    }

    /// Returns the next connection opened by a peer.
    pub fn accept(&mut self) -> Option<ConnectionId> {
        self.incoming.pop_front()
    }

    /// Accepts as much of `data` as there is room for; returns the number of bytes.
    ///
    /// # Errors
    ///
    /// The error that ended the connection; [`CallError::Finished`] after [`finish`](Self::finish).
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        data: &[u8],
    ) -> Result<usize, CallError> {
        let connection = self.connections.get_mut(&id).ok_or(CallError::NoConnection)?;
        let taken = connection.write(data, &self.pool);
        self.settle(now, id);
        taken
    }

    /// Reads into `out`; returns `None` if no data is available, and `Some(0)` at the end of the
    /// stream. Data received before an error can still be read.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn recv(
        &mut self,
        now: Instant,
        id: ConnectionId,
        out: &mut [u8],
    ) -> Result<Option<usize>, CallError> {
        let connection = self.connections.get_mut(&id).ok_or(CallError::NoConnection)?;
        let read = connection.read(out, &mut self.pool);
        self.settle(now, id);
        read
    }

    /// Finishes the sending direction: the peer reads the end of the stream after the data already
    /// written. The peer can continue to send.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn finish(&mut self, now: Instant, id: ConnectionId) -> Result<(), CallError> {
        let connection = self.connections.get_mut(&id).ok_or(CallError::NoConnection)?;
        let done = connection.finish();
        self.settle(now, id);
        done
    }

    /// Aborts a connection at once and notifies the peer. It still has to be
    /// [released](Self::release).
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.abort();
            self.settle(now, id);
        }
    }

    /// Like [`abort`](Self::abort), for all connections.
    pub fn abort_all(&mut self, now: Instant) {
        let all: Vec<_> = self.connections.keys().copied().collect();
        all.into_iter().for_each(|id| self.abort(now, id));
    }

    /// Whether every connection has ended, or lingers only to respond to its peer.
    pub fn is_quiet(&self) -> bool {
        let mut all = self.connections.values();
        all.all(|one| matches!(one.info().phase, Phase::Lingering | Phase::Closed))
    }

    /// Releases a connection: its id becomes invalid. Data already written is still delivered;
    /// unread or further received data aborts the connection.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.release(now, &mut self.pool);
            self.settle(now, id);
        }
    }

    /// Replaces the network parameters of a live connection: the values set in `profile` replace
    /// the measured ones.
    ///
    /// # Errors
    ///
    /// [`CallError::NoConnection`]: the connection no longer exists.
    pub fn reconfigure(
        &mut self,
        now: Instant,
        id: ConnectionId,
        kind: NetworkKind,
        profile: NetworkProfile,
    ) -> Result<(), CallError> {
        let connection = self.connections.get_mut(&id).ok_or(CallError::NoConnection)?;
        connection.reconfigure(kind, profile);
        self.settle(now, id);
        Ok(())
    }

    /// Like [`reconfigure`](Self::reconfigure), for a profile that the peer requested: its send
    /// rate is limited to [`Config::asked_rate_cap`].
    ///
    /// # Errors
    ///
    /// [`CallError::NoConnection`]: the connection no longer exists.
    pub fn reconfigure_as_asked(
        &mut self,
        now: Instant,
        id: ConnectionId,
        kind: NetworkKind,
        asked: NetworkProfile,
    ) -> Result<(), CallError> {
        let connection = self.connections.get(&id).ok_or(CallError::NoConnection)?;
        let capped = connection.cap(asked);
        self.counters.rate_capped += u64::from(capped != asked);
        self.reconfigure(now, id, kind, capped)
    }

    /// Returns a snapshot of a connection; `None` if it no longer exists.
    pub fn info(&self, id: ConnectionId) -> Option<Info> {
        self.connections.get(&id).map(Connection::info)
    }

    /// The counters of the endpoint.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of connections, including released ones that have not ended yet.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The number of bytes buffered in all connections.
    pub const fn memory(&self) -> u64 {
        self.pool.held()
    }

    /// Processes a datagram from `remote` that arrived at `now`, which is not before the previous
    /// one.
    pub fn handle_datagram(&mut self, now: Instant, remote: SocketAddr, datagram: &[u8]) {
        self.counters.received += 1;
        let packet = match Packet::decode(datagram) {
            Ok(packet) => packet,
            Err(malformed) => return self.on_malformed(now, remote, malformed),
        };
        match packet.body {
            Body::Syn { sent } => self.on_syn(now, remote, packet.connection, sent),
            Body::Start { cookie, attempt, params } => {
                self.on_start(now, remote, packet.connection, (cookie, attempt, params));
            }
            _ => self.on_packet(now, remote, &packet),
        }
    }

    fn on_malformed(&mut self, now: Instant, remote: SocketAddr, malformed: Malformed) {
        match malformed {
            Malformed::Checksum => self.counters.bad_checksum += 1,
            Malformed::Format => self.counters.malformed += 1,
            Malformed::Version { version, syn, connection } => {
                self.counters.bad_version += 1;
                if syn {
                    self.reply(remote, connection, Body::Versions);
                } else if let Some(&id) = self.by_peer.get(&(remote, connection)) {
                    if let Some(connection) = self.connections.get_mut(&id) {
                        connection.on_version(version);
                    }
                    self.settle(now, id);
                }
            }
        }
    }

    fn on_packet(&mut self, now: Instant, remote: SocketAddr, packet: &Packet<'_>) {
        let id = self.by_peer.get(&(remote, packet.connection)).copied();
        let Some((id, connection)) = id.and_then(|id| Some((id, self.connections.get_mut(&id)?)))
        else {
            return self.on_stranger(remote, packet);
        };
        let mut around = Around { counters: &mut self.counters, pool: &mut self.pool };
        connection.handle_packet(now, packet, &mut around);
        self.settle(now, id);
    }

    /// Responds to a packet of an unknown connection with a CLOSE, which is shorter than the
    /// packet.
    fn on_stranger(&mut self, remote: SocketAddr, packet: &Packet<'_>) {
        if self.ids.contains_key(&packet.connection) {
            self.counters.wrong_address += 1;
            return;
        }
        self.counters.unknown_connection += 1;
        if matches!(packet.body, Body::Data(_) | Body::Report(_) | Body::Ping { .. }) {
            self.reply(
                remote,
                packet.connection,
                Body::Close { code: crate::connection::CLOSE_UNKNOWN },
            );
        }
    }

    fn reply(&mut self, remote: SocketAddr, connection: u64, body: Body<'_>) {
        if self.replies.len() >= REPLIES {
            self.counters.replies_dropped += 1;
            return;
        }
        let mut bytes = Vec::new();
        Packet { connection, rtt: 0, body }.encode(&mut bytes);
        self.replies.push_back((remote, bytes));
    }

    fn add(&mut self, connection: Connection) -> ConnectionId {
        let id = ConnectionId(self.next);
        self.next += 1;
        let (remote, wire_id) = connection.key();
        self.by_peer.insert((remote, wire_id), id);
        *self.ids.entry(wire_id).or_default() += 1;
        if connection.accepted_by().is_some() {
            *self.accepted.entry(remote.ip()).or_default() += 1;
        }
        self.schedule.add(id);
        self.connections.insert(id, connection);
        id
    }

    fn remove(&mut self, id: ConnectionId) {
        let Some(mut connection) = self.connections.remove(&id) else { return };
        let (counted, _) = connection.recount();
        self.pool.recount(counted, 0);
        let (remote, wire_id) = connection.key();
        self.by_peer.remove(&(remote, wire_id));
        if let Some(count) = self.ids.get_mut(&wire_id) {
            *count -= 1;
            if *count == 0 {
                self.ids.remove(&wire_id);
            }
        }
        self.schedule.remove(id);
        if let Some(made) = connection.accepted_by() {
            self.spent.add(made, remote, wire_id);
            if let Some(count) = self.accepted.get_mut(&remote.ip()) {
                *count -= 1;
                if *count == 0 {
                    self.accepted.remove(&remote.ip());
                }
            }
        }
    }

    /// Updates memory count, events and schedule after any change of a connection.
    fn settle(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (before, after) = connection.recount();
        self.pool.recount(before, after);
        let news = connection.take_news(&self.pool);
        if !connection.is_orphaned() {
            let events = [
                news.connected.then_some(Event::Connected(id)),
                news.readable.then_some(Event::Readable(id)),
                news.writable.then_some(Event::Writable(id)),
                news.closed.map(|error| Event::Closed(id, error)),
            ];
            self.events.extend(events.into_iter().flatten());
        }
        self.counters.opened += u64::from(news.connected);
        if connection.is_over() {
            return self.remove(id);
        }
        let at = connection.poll_timeout();
        self.schedule.set(now, id, at);
    }
}

#[cfg(test)]
impl Endpoint {
    pub(crate) fn replies_waiting(&self) -> usize {
        self.replies.len()
    }

    pub(crate) fn wire_id(&self, id: ConnectionId) -> Option<u64> {
        self.connections.get(&id).map(|connection| connection.key().1)
    }
}
