//! The compact state of closed connections in TIME-WAIT.

use airtcp_types::{ByteCount, Event, EventKind, Instant};
use airtcp_wire::tcp::Segment;
use tracing::debug;

use crate::tcp::State;
use crate::tcp::time_wait::{Outcome, TimeWait};

use super::{Host, Kind, MAX_EVENTS, Owner, Socket, SocketId};

/// The memory of one such connection.
pub(super) const COST: ByteCount =
    ByteCount(size_of::<TimeWaitSocket>() as u64 + size_of::<Socket>() as u64);

/// A connection in TIME-WAIT that the application has closed.
#[derive(Debug)]
pub(super) struct TimeWaitSocket {
    pub(super) wait: TimeWait,
    /// The deadline set in `Host::timers`.
    pub(super) armed: Option<Instant>,
}

impl Host {
    /// Replaces a connection in TIME-WAIT by its compact state, if the application has closed it
    /// and its last packet was sent.
    pub(super) fn settle_time_wait(&mut self, now: Instant, id: SocketId) {
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) else { return };
        if tcp.owner != Owner::Nobody || tcp.dirty {
            return;
        }
        let Some(wait) = tcp.connection.time_wait() else { return };
        let remote = wait.flow().remote;
        if self.time_waits >= self.config.time_waits {
            debug!(%remote, "TIME-WAIT skipped: limit reached");
            self.counters.tcp_ext_time_wait_overflow += 1;
            self.report_end_of_time_wait(now, &wait);
            self.remove(id);
            return;
        }
        let mut armed = tcp.armed;
        self.timers.set(id, &mut armed, Some(wait.until()));
        let kind = Kind::TimeWait(Box::new(TimeWaitSocket { wait, armed }));
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.replace(id, Socket::new(kind))
        else {
            return;
        };
        self.held = self.held - tcp.held + COST;
        self.leave_peer(&tcp);
        self.time_waits += 1;
    }

    /// Handles a segment for a connection in TIME-WAIT.
    pub(super) fn on_time_wait_segment(
        &mut self,
        now: Instant,
        id: SocketId,
        segment: &Segment<'_>,
    ) {
        let may_challenge = self.may_challenge(now);
        let before = self.counters.tcp_ext_challenge_ack;
        let Some(Socket { kind: Kind::TimeWait(socket), .. }) = self.sockets.get_mut(id) else {
            return;
        };
        match socket.wait.on_segment(now, segment, may_challenge, &mut self.counters) {
            Outcome::Silence => {}
            Outcome::Answer(packet) => {
                self.counters.tcp_out_segs += u64::from(self.queue(packet));
            }
            Outcome::Closed => self.end_time_wait(now, id),
        }
        self.challenges.spend(self.counters.tcp_ext_challenge_ack - before);
    }

    /// Handles the deadline of a connection in TIME-WAIT, which may have moved.
    pub(super) fn on_time_wait_deadline(&mut self, now: Instant, id: SocketId) {
        let Some(Socket { kind: Kind::TimeWait(socket), .. }) = self.sockets.get_mut(id) else {
            return;
        };
        socket.armed = None;
        let until = socket.wait.until();
        if until <= now {
            self.counters.tcp_ext_tw += 1;
            self.end_time_wait(now, id);
        } else {
            self.timers.set(id, &mut socket.armed, Some(until));
        }
    }

    /// Removes a connection in TIME-WAIT from all tables.
    pub(super) fn end_time_wait(&mut self, now: Instant, id: SocketId) {
        let Some(Socket { kind: Kind::TimeWait(socket), .. }) = self.sockets.get_mut(id) else {
            return;
        };
        self.timers.set(id, &mut socket.armed, None);
        let Some(Socket { kind: Kind::TimeWait(socket), .. }) = self.sockets.remove(id) else {
            return;
        };
        self.held -= COST;
        self.time_waits -= 1;
        self.forget_flow(id, socket.wait.flow());
        self.report_end_of_time_wait(now, &socket.wait);
    }

    fn report_end_of_time_wait(&mut self, at: Instant, wait: &TimeWait) {
        if self.config.events && self.events.len() < MAX_EVENTS {
            let kind = EventKind::State { from: State::TimeWait.name(), to: State::Closed.name() };
            self.events.push_back(Event { at, flow: Some(wait.flow()), kind });
        }
    }
}
