//! The schedule of connections: by deadline, and by data to send.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use airtcp_types::Instant;

use super::{ConnectionId, Endpoint, Event};

/// The schedule entry of one connection.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    deadline: Option<Instant>,
    is_ready: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    places: BTreeMap<ConnectionId, Place>,
    deadlines: BTreeSet<(Instant, ConnectionId)>,
    /// The connections that take turns to send, one datagram each.
    ready: VecDeque<ConnectionId>,
    /// The connections whose deadline has passed, while they are processed.
    due: Vec<ConnectionId>,
}

impl Schedule {
    pub(super) fn add(&mut self, id: ConnectionId) {
        self.places.insert(id, Place { deadline: None, is_ready: true });
        self.ready.push_back(id);
    }

    pub(super) fn remove(&mut self, id: ConnectionId) {
        if let Some(Place { deadline: Some(at), .. }) = self.places.remove(&id) {
            self.deadlines.remove(&(at, id));
        }
    }

    /// Sets the next deadline. If it has passed, the connection also gets a turn to send.
    pub(super) fn set(&mut self, now: Instant, id: ConnectionId, at: Option<Instant>) {
        let Some(place) = self.places.get_mut(&id) else { return };
        if place.deadline != at {
            place.deadline.inspect(|before| {
                self.deadlines.remove(&(*before, id));
            });
            place.deadline = at;
            at.inspect(|at| {
                self.deadlines.insert((*at, id));
            });
        }
        if at.is_some_and(|at| at <= now) && !place.is_ready {
            place.is_ready = true;
            self.ready.push_back(id);
        }
    }

    /// Takes the connection whose turn it is; [`end_turn`](Self::end_turn) has to follow.
    fn turn(&mut self) -> Option<ConnectionId> {
        self.ready.pop_front()
    }

    fn end_turn(&mut self, id: ConnectionId, sent: bool) {
        if sent {
            self.ready.push_back(id);
        } else if let Some(place) = self.places.get_mut(&id) {
            place.is_ready = false;
        }
    }
}

impl Endpoint {
    /// Runs all timers that are due at `now` or before.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut due = std::mem::take(&mut self.schedule.due);
        while let Some((_, id)) =
            self.schedule.deadlines.first().filter(|(at, _)| *at <= now).copied()
        {
            self.schedule.deadlines.pop_first();
            due.push(id);
        }
        for id in due.drain(..) {
            if let Some(place) = self.schedule.places.get_mut(&id) {
                place.deadline = None;
            }
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.handle_timeout(now);
            }
            self.settle(now, id);
        }
        self.schedule.due = due;
    }

    /// Appends the next datagram to `out` and returns its destination; `None` if there is none.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((remote, bytes)) = self.replies.pop_front() {
            out.extend_from_slice(&bytes);
            self.counters.sent += 1;
            return Some(remote);
        }
        while let Some(id) = self.schedule.turn() {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let (remote, _) = connection.key();
            let sent = connection.poll_transmit(now, out, &self.pool);
            if !sent {
                // Settles before the turn ends: work that has become due meanwhile waits for
                // `handle_timeout` and does not start another turn to send.
                self.settle(now, id);
            }
            self.schedule.end_turn(id, sent);
            if sent {
                self.counters.sent += 1;
                return Some(remote);
            }
        }
        None
    }

    /// Returns the next deadline, if there is one. It may be in the past.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.replies.is_empty() || !self.schedule.ready.is_empty() {
            return Some(Instant::ZERO);
        }
        self.schedule.deadlines.first().map(|(at, _)| *at)
    }

    /// Returns the next event for the application; `None` if there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
