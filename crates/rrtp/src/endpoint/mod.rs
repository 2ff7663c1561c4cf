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

/// So many answers to strangers wait to leave; beyond that they are dropped.
const REPLIES: usize = 1_024;

/// A connection of an [`Endpoint`]. Never used again for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(u64);

/// What the application may want to act on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// [`Endpoint::accept`] has a connection.
    Incoming,
    /// A connection opened from here is there.
    Connected(ConnectionId),
    /// There is something to read, or the end, after [`Endpoint::recv`] found nothing.
    Readable(ConnectionId),
    /// There is room to write, after [`Endpoint::send`] took less than it was given.
    Writable(ConnectionId),
    /// It has ended: gracefully, or with an error that calls tell too from now on. What came before
    /// can still be read.
    Closed(ConnectionId, Option<ConnectionError>),
}

/// A state machine for all connections of a UDP socket, in both directions.
///
/// The caller owns the socket and the clock. It hands in datagrams
/// ([`handle_datagram`](Self::handle_datagram)) and the passing of time
/// ([`handle_timeout`](Self::handle_timeout)), and after any call takes what is to be sent
/// ([`poll_transmit`](Self::poll_transmit)) and asks for the next deadline
/// ([`poll_timeout`](Self::poll_timeout)). `now` never runs backwards, but for a datagram, which
/// may be handed in with the earlier time at which it came: gaps between packets are measured.
#[derive(Clone, Debug)]
pub struct Endpoint {
    secret: Secret,
    limits: Limits,
    /// What accepted connections are made with; `None` if nobody listens.
    listening: Option<Config>,
    connections: BTreeMap<ConnectionId, Connection>,
    by_peer: BTreeMap<(SocketAddr, u64), ConnectionId>,
    /// The ids alone, by which a packet from a wrong address is told from one of no connection.
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
    /// An endpoint that nothing has happened to. `key` is what nobody must guess: from the
    /// operating system, but for runs that are to be repeated.
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

    /// From now on connections are accepted, and made with `config`; `None` ends that, and leaves
    /// those there are.
    pub fn listen(&mut self, config: Option<Config>) {
        self.listening = config;
    }

    /// Connections are accepted.
    pub const fn is_listening(&self) -> bool {
        self.listening.is_some()
    }

    /// Opens a connection. [`Event::Connected`] or [`Event::Closed`] tells what became of it; until
    /// then nothing is read, and what is written waits.
    ///
    /// # Errors
    ///
    /// [`CallError::TooMany`].
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

    /// The next connection that a peer has opened.
    pub fn accept(&mut self) -> Option<ConnectionId> {
        self.incoming.pop_front()
    }

    /// Takes what of `data` there is room for; how many bytes.
    ///
    /// # Errors
    ///
    /// Why the connection ended, or that its stream was finished.
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

    /// Reads into `out`: `None` where there is nothing yet, and `Some(0)` at the end of the stream.
    /// What came before an error can still be read.
    ///
    /// # Errors
    ///
    /// Why the connection ended.
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

    /// Nothing more will be sent: the peer reads the end after what was written. It may go on
    /// sending.
    ///
    /// # Errors
    ///
    /// Why the connection ended.
    pub fn finish(&mut self, now: Instant, id: ConnectionId) -> Result<(), CallError> {
        let connection = self.connections.get_mut(&id).ok_or(CallError::NoConnection)?;
        let done = connection.finish();
        self.settle(now, id);
        done
    }

    /// Ends a connection at once and tells the peer. It is still to be [released](Self::release).
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.abort();
            self.settle(now, id);
        }
    }

    /// As [`abort`](Self::abort), for all connections there are.
    pub fn abort_all(&mut self, now: Instant) {
        let all: Vec<_> = self.connections.keys().copied().collect();
        all.into_iter().for_each(|id| self.abort(now, id));
    }

    /// Every connection has ended, or all has come both ways and it only answers for its peer's
    /// sake.
    pub fn is_quiet(&self) -> bool {
        let mut all = self.connections.values();
        all.all(|one| matches!(one.info().phase, Phase::Lingering | Phase::Closed))
    }

    /// Lets go of a connection: its id is no longer good. What was written is still delivered; data
    /// that nobody has read or will read aborts it.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.release(now, &mut self.pool);
            self.settle(now, id);
        }
    }

    /// Says anew what the network of a connection is like, while it runs: what of `profile` is
    /// there takes the place of what was measured.
    ///
    /// # Errors
    ///
    /// [`CallError::NoConnection`].
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

    /// As [`reconfigure`](Self::reconfigure), with a profile that the peer asked for: its send rate
    /// is at most [`Config::asked_rate_cap`].
    ///
    /// # Errors
    ///
    /// [`CallError::NoConnection`].
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

    /// A connection as it is now.
    pub fn info(&self, id: ConnectionId) -> Option<Info> {
        self.connections.get(&id).map(Connection::info)
    }

    /// What was counted so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections that there are, those that nobody holds any more included.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Bytes that wait in all connections.
    pub const fn memory(&self) -> u64 {
        self.pool.held()
    }

    /// Takes a datagram that came from `remote`, at the time at which it came, and not before that
    /// of the one before.
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

    /// A packet of no connection: whoever talks is told so, with less than it sent.
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

    /// After anything that may have changed a connection: its memory, its news, its turn to send.
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
