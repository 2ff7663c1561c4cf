//! Admission of clients: a connection needs a valid cookie, and each cookie is valid once.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use airtcp_types::Instant;

use super::{ConnectionId, Endpoint, Event};
use crate::connection::{CLOSE_REFUSED, Connection};
use crate::cookie::{Bad, LIFETIME};
use crate::wire::{Body, Cookie, Params};

/// The number of cookies of ended connections that are remembered individually.
const REMEMBERED: usize = 16_384;

/// The cookies of ended connections, until they expire.
#[derive(Clone, Debug, Default)]
pub(super) struct Spent {
    cookies: BTreeSet<(u64, SocketAddr, u64)>,
    /// Cookies made before this time count as used: those that were evicted.
    all_before: u64,
}

impl Spent {
    pub(super) fn add(&mut self, made: u64, remote: SocketAddr, connection: u64) {
        self.cookies.insert((made, remote, connection));
        if self.cookies.len() > REMEMBERED
            && let Some((made, ..)) = self.cookies.pop_first()
        {
            self.all_before = made + 1;
        }
    }

    fn contains(&mut self, now: Instant, made: u64, remote: SocketAddr, connection: u64) -> bool {
        let expired = (now - LIFETIME).as_nanos();
        while self.cookies.first().is_some_and(|(made, ..)| *made < expired) {
            self.cookies.pop_first();
        }
        made < self.all_before || self.cookies.contains(&(made, remote, connection))
    }
}

impl Endpoint {
    pub(super) fn on_syn(&mut self, now: Instant, remote: SocketAddr, connection: u64, sent: u32) {
        self.counters.syns += 1;
        if self.listening.is_none() {
            self.counters.not_listening += 1;
            return;
        }
        let cookie = self.secret.make(now, remote, connection);
        self.reply(remote, connection, Body::SynEcho { cookie, echo: sent });
    }

    pub(super) fn on_start(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        connection: u64,
        start: (Cookie, u8, Params),
    ) {
        let (cookie, ..) = start;
        let Some(config) = &self.listening else {
            self.counters.not_listening += 1;
            return;
        };
        match self.secret.check(now, remote, connection, cookie) {
            Err(Bad::Forged) => return self.counters.bad_cookie += 1,
            Err(Bad::Expired) => return self.counters.expired_cookie += 1,
            Ok(()) => {}
        }
        if let Some(&id) = self.by_peer.get(&(remote, connection)) {
            self.counters.repeated_start += 1;
            return self.on_repeated_start(now, id);
        }
        if self.spent.contains(now, cookie.made, remote, connection) {
            self.counters.replayed_start += 1;
            return;
        }
        let from_peer = self.accepted.get(&remote.ip()).copied().unwrap_or(0);
        let crowded = self.connections.len() >= self.limits.connections
            || from_peer >= self.limits.connections_per_peer;
        let waiting = self.incoming.len() >= self.limits.backlog;
        if crowded || waiting {
            let count =
                if crowded { &mut self.counters.too_many } else { &mut self.counters.backlog_full };
            *count += 1;
            return self.reply(remote, connection, Body::Close { code: CLOSE_REFUSED });
        }
        let ids = (connection, self.secret.nonces(self.next));
        let made = Connection::accept(now, ids, remote, config.clone(), start);
        let id = self.add(made);
        self.counters.accepted += 1;
        self.incoming.push_back(id);
        self.events.push_back(Event::Incoming);
        self.settle(now, id);
    }

    fn on_repeated_start(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) =
            self.connections.get_mut(&id).filter(|known| known.is_established())
        {
            connection.on_repeated_start();
            self.settle(now, id);
        }
    }
}
