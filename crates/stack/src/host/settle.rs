//! Updates after a change of a connection: timers, readiness, queues.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use airtcp_types::{ByteCount, Event, FlowId, Instant, Packet};

use crate::counters::Counters;
use crate::tcp::State;

use super::{Host, Kind, MAX_EVENTS, Owner, Socket, SocketId, TcpSocket};

/// The memory of a connection without buffered data.
const BASE: ByteCount = ByteCount(size_of::<TcpSocket>() as u64 + size_of::<Socket>() as u64);

impl Host {
    /// Whether the sockets have reached the memory limit.
    pub(super) fn is_out_of_memory(&self) -> bool {
        self.held >= self.config.quota.memory
    }

    /// Handles a deadline that has expired, or sets it again if it has moved.
    pub(super) fn on_deadline(&mut self, now: Instant, id: SocketId) {
        let tcp = match self.sockets.get_mut(id).map(|socket| &mut socket.kind) {
            Some(Kind::Tcp(tcp)) => tcp,
            Some(Kind::Pending(_)) => return self.on_pending_deadline(id),
            Some(Kind::TimeWait(_)) => return self.on_time_wait_deadline(now, id),
            _ => return,
        };
        tcp.armed = None;
        if tcp.connection.poll_timeout().is_some_and(|at| at <= now) {
            tcp.connection.on_timeout(now, &mut self.counters);
            self.touch(now, id);
        } else {
            self.look_at(now, id);
        }
    }

    /// Queues a connection for transmission after a change, because it may have something to send.
    pub(super) fn touch(&mut self, now: Instant, id: SocketId) {
        let Some(tcp) = self.tcp_socket(id) else { return };
        if !tcp.dirty {
            tcp.dirty = true;
            let has_little = tcp.connection.has_little_to_send();
            self.sending.push(id, has_little);
        }
        self.look_at(now, id);
    }

    /// Updates a connection after a change that gives it nothing to send. Quotas, states and tables
    /// are updated at once; its timers and readiness are updated when it has sent everything.
    pub(super) fn look_at(&mut self, now: Instant, id: SocketId) {
        self.account(now, id);
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) else { return };
        mark(tcp, id, &mut self.touched);
        let state = tcp.connection.state();
        let (before, flow) = (std::mem::replace(&mut tcp.state, state), tcp.connection.flow());
        if before != state {
            count_transition(before, state, &mut self.counters);
            match tcp.owner {
                Owner::HalfOpen(listener) => self.settle_half_open(id, listener, state),
                Owner::Accepting if state == State::Closed || state.is_synchronized() => {
                    self.hand_over(id, Owner::Application);
                }
                _ => {}
            }
            if state == State::Closed {
                self.forget_flow(id, flow);
            }
        }
    }

    /// Returns the next packet of a connection. Connections take turns; one that has nothing left
    /// leaves the queue.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<Packet> {
        while let Some(id) = self.sending.first() {
            if let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) {
                if tcp.connection.wants_path() {
                    let peer = tcp.connection.flow().remote.ip();
                    tcp.connection.begin_with(now, &self.paths.get(now, peer));
                    self.paths.begin(now, peer, &mut tcp.reported);
                }
                if let Some(packet) =
                    tcp.connection.poll_transmit(now, &mut self.counters, &mut self.outlet)
                {
                    // Other connections may record events before this one is used again.
                    collect_events(now, tcp, &mut self.events);
                    mark(tcp, id, &mut self.touched);
                    self.sending.on_sent(packet.len());
                    return Some(packet);
                }
                tcp.dirty = false;
            }
            self.sending.pop_first();
            self.look_at(now, id);
        }
        self.settle(now);
        None
    }

    /// Updates timers and readiness after changes.
    /// [`poll_transmit`](airtcp_types::Node::poll_transmit) does this when it returns `None`; a
    /// caller that stops earlier must call this.
    pub fn settle(&mut self, now: Instant) {
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            self.settle_one(now, id);
        }
        self.touched = touched;
    }

    /// Updates everything that the host keeps about a connection.
    fn settle_one(&mut self, now: Instant, id: SocketId) {
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) else { return };
        tcp.touched = false;
        self.timers.set(id, &mut tcp.armed, tcp.connection.poll_timeout());
        if let Some(news) = tcp.connection.path_news() {
            let peer = tcp.connection.flow().remote.ip();
            self.paths.learn(now, peer, &mut tcp.reported, &news);
        }
        let state = tcp.connection.state();
        self.report_readiness(id);
        match state {
            State::Closed => self.settle_end(id),
            State::TimeWait => self.settle_time_wait(now, id),
            _ => {}
        }
    }

    /// Collects the events of a connection, and updates the memory that it and its peer use.
    fn account(&mut self, now: Instant, id: SocketId) {
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) else { return };
        collect_events(now, tcp, &mut self.events);
        let held = tcp.connection.held() + BASE;
        if held != tcp.held {
            self.held = self.held - tcp.held + held;
            self.peers.set_memory(tcp.peer, tcp.held, held);
            tcp.held = held;
        }
        let out_of_order = tcp.connection.out_of_order();
        if out_of_order != tcp.out_of_order {
            self.peers.set_out_of_order(tcp.peer, tcp.out_of_order, out_of_order);
            tcp.out_of_order = out_of_order;
        }
    }

    /// Moves a connection that has left the half-open state to those that wait to be accepted, or
    /// removes it.
    fn settle_half_open(&mut self, id: SocketId, listener: SocketId, state: State) {
        let owner = match state {
            State::Closed => Owner::Nobody,
            state if state.is_synchronized() => Owner::Waiting(listener),
            _ => return,
        };
        self.hand_over(id, owner);
        if let Some(queue) = self.listener_mut(listener) {
            match owner {
                Owner::Nobody => queue.remove(id),
                _ => queue.complete(id),
            }
        }
        self.report_readiness(listener);
    }

    /// Changes the owner of a connection.
    pub(super) fn hand_over(&mut self, id: SocketId, to: Owner) {
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) else { return };
        let before = std::mem::replace(&mut tcp.owner, to);
        if matches!(before, Owner::HalfOpen(_) | Owner::Accepting) {
            self.peers.end_half_open(tcp.peer);
        }
    }

    /// Removes a connection that has ended, once no application can ask for it and its last packet
    /// was sent.
    fn settle_end(&mut self, id: SocketId) {
        let Some(tcp) = self.tcp_socket(id) else { return };
        if tcp.is_gone() && !tcp.dirty {
            self.remove(id);
        }
    }

    /// Removes a connection from all tables.
    pub(super) fn remove(&mut self, id: SocketId) {
        self.hand_over(id, Owner::Nobody);
        let Some(Socket { kind: Kind::Tcp(mut tcp), .. }) = self.sockets.remove(id) else { return };
        self.timers.set(id, &mut tcp.armed, None);
        self.held -= tcp.held;
        self.leave_peer(&tcp);
        self.paths.end(tcp.connection.flow().remote.ip(), &tcp.reported);
        // The 4-tuple of a closed connection is free already.
        if tcp.state != State::Closed {
            self.forget_flow(id, tcp.connection.flow());
        }
    }

    /// Frees a 4-tuple, unless another socket already uses it.
    pub(super) fn forget_flow(&mut self, id: SocketId, flow: FlowId) {
        if let Entry::Occupied(entry) = self.flows.entry(flow)
            && *entry.get() == id
        {
            entry.remove();
        }
    }

    /// Removes a connection from its peer's quota.
    pub(super) fn leave_peer(&mut self, tcp: &TcpSocket) {
        self.peers.set_out_of_order(tcp.peer, tcp.out_of_order, ByteCount::ZERO);
        self.peers.set_memory(tcp.peer, tcp.held, ByteCount::ZERO);
        self.peers.leave(tcp.peer);
    }

    /// Queues a socket for its holder if its readiness changed.
    pub(super) fn report_readiness(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let readiness = socket.readiness();
        if socket.has_holder() {
            self.ready.update(id, &mut socket.known, readiness);
        }
    }

    /// Removes a socket that its holder closes from the queue of readiness changes.
    pub(super) fn withdraw_readiness(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(id) {
            self.ready.remove(&mut socket.known);
        }
    }
}

/// Adds a connection to the touched connections.
fn mark(tcp: &mut TcpSocket, id: SocketId, touched: &mut Vec<SocketId>) {
    if !std::mem::replace(&mut tcp.touched, true) {
        touched.push(id);
    }
}

fn collect_events(now: Instant, tcp: &mut TcpSocket, events: &mut VecDeque<Event>) {
    while let Some(kind) = tcp.connection.poll_event() {
        if events.len() < MAX_EVENTS {
            events.push_back(Event { at: now, flow: Some(tcp.connection.flow()), kind });
        }
    }
}

/// Counts a change of state (RFC 4022: `tcpCurrEstab`, `tcpAttemptFails`, `tcpEstabResets`).
fn count_transition(from: State, to: State, counters: &mut Counters) {
    match (from.counts_as_established(), to.counts_as_established()) {
        (false, true) => counters.tcp_curr_estab += 1,
        (true, false) => counters.tcp_curr_estab = counters.tcp_curr_estab.saturating_sub(1),
        _ => {}
    }
    if to == State::Closed {
        match from {
            State::SynSent | State::SynReceived => counters.tcp_attempt_fails += 1,
            State::Established | State::CloseWait => counters.tcp_estab_resets += 1,
            _ => {}
        }
    }
}
