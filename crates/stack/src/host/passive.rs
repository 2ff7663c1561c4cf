//! Segments in LISTEN (RFC 9293 section 3.10.7.2): SYNs, and ACKs of SYN cookies.

use std::net::{IpAddr, SocketAddr};

use airtcp_types::{FlowId, Instant, SeqNumber};
use airtcp_wire::tcp::Segment;
use tracing::debug;

use crate::tcp::refused::{note_data_in_syn, refuse_no_syn};
use crate::tcp::{Connection, cookie as handshake};

use super::peers::Scope;
use super::{Host, Kind, Owner, Socket, SocketId, cookie};

impl Host {
    /// Handles a segment without a connection at the listener `id`. `after` is SND.NXT of the
    /// previous connection with this 4-tuple.
    pub(super) fn on_listen(
        &mut self,
        now: Instant,
        id: SocketId,
        flow: FlowId,
        segment: &Segment<'_>,
        after: Option<SeqNumber>,
    ) {
        let flags = segment.flags;
        if flags.rst {
            return;
        }
        if flags.ack {
            if !self.on_cookie(now, id, flow, segment) {
                self.refuse(&flow, segment);
            }
            return;
        }
        // As in Linux: an honest peer does not send a SYN with FIN.
        if !flags.syn || flags.fin {
            refuse_no_syn(&flow, &mut self.counters);
            return;
        }
        if self.turns_away(id, &flow) {
            return;
        }
        note_data_in_syn(&flow, segment, &mut self.counters);
        let is_any = self.listener(id).is_some_and(|listener| listener.is_any());
        match (self.is_crowded(id, flow.remote.ip()), is_any) {
            (true, true) => self.drop_syn(&flow),
            (true, false) => self.send_cookie(now, id, &flow, segment),
            (false, true) => self.hold(now, id, flow, segment, after),
            (false, false) => {
                let Some(connection) = self.answer(now, id, flow, segment, after) else { return };
                let child = self.take_in(now, id, connection);
                self.touch(now, child);
            }
        }
    }

    /// Creates the connection that answers a SYN at the listener `id`.
    pub(super) fn answer(
        &self,
        now: Instant,
        id: SocketId,
        flow: FlowId,
        syn: &Segment<'_>,
        after: Option<SeqNumber>,
    ) -> Option<Connection> {
        let isn = self.initial_number(now, &flow, after);
        let ts_offset = self.secret.timestamp_offset(&flow);
        let config = self.listener(id)?.config(&self.config.tcp);
        Some(Connection::accept(now, flow, isn, ts_offset, config, syn))
    }

    /// Drops a SYN because the backlog is full, and counts it.
    pub(super) fn drop_syn(&mut self, flow: &FlowId) {
        debug!(remote = %flow.remote, "SYN dropped: backlog full");
        self.counters.tcp_ext_listen_overflows += 1;
        self.counters.tcp_ext_listen_drops += 1;
    }

    /// Whether no connection can be opened now, by a SYN or a cookie. Counts the refusal.
    pub(super) fn turns_away(&mut self, id: SocketId, flow: &FlowId) -> bool {
        let refused = self.is_short_of_memory(flow.remote)
            || self.is_unattended(id, flow.remote)
            || self.is_overdrawn(flow.remote.ip());
        self.counters.tcp_ext_listen_drops += u64::from(refused);
        refused
    }

    /// Returns the same as [`turns_away`](Self::turns_away), without counting.
    pub(super) fn would_turn_away(&mut self, id: SocketId, peer: IpAddr) -> bool {
        self.is_out_of_memory()
            || self.peers.is_out_of_memory(&self.config, peer)
            || self.listener(id).is_none_or(|listener| listener.is_unattended())
            || self.peers.overdrawn(&self.config, peer).is_some()
    }

    /// Whether too many connections wait to be accepted at the listener `id`. Counts the refusal.
    fn is_unattended(&mut self, id: SocketId, remote: SocketAddr) -> bool {
        let unattended = self.listener(id).is_none_or(|listener| listener.is_unattended());
        if unattended {
            debug!(%remote, "connection refused: accept queue full");
            self.counters.tcp_ext_listen_overflows += 1;
        }
        unattended
    }

    /// Whether the memory limit of the host, or of this peer's connections, is reached. Counts the
    /// refusal.
    pub(super) fn is_short_of_memory(&mut self, remote: SocketAddr) -> bool {
        if self.is_out_of_memory() {
            debug!(%remote, "connection refused: host out of memory");
            self.counters.tcp_ext_memory_pressures += 1;
        } else if self.peers.is_out_of_memory(&self.config, remote.ip()) {
            debug!(%remote, "connection refused: memory quota of the peer reached");
            self.counters.tcp_ext_memory_quota_peer += 1;
        } else {
            return false;
        }
        true
    }

    /// Whether the limit of connections of `peer`, or of all peers, is reached. Counts the refusal.
    pub(super) fn is_overdrawn(&mut self, peer: IpAddr) -> bool {
        let Some(scope) = self.peers.overdrawn(&self.config, peer) else { return false };
        debug!(%peer, ?scope, "connection refused: connection quota reached");
        match scope {
            Scope::All => self.counters.tcp_ext_conn_quota += 1,
            Scope::Peer => self.counters.tcp_ext_conn_quota_peer += 1,
        }
        true
    }

    /// Whether there is no room for another half-open connection at the listener `id`. Counts it if
    /// a quota is the reason.
    pub(super) fn is_crowded(&mut self, id: SocketId, peer: IpAddr) -> bool {
        if self.listener(id).is_none_or(|listener| listener.is_full()) {
            return true;
        }
        let Some(scope) = self.peers.crowded(&self.config, peer) else { return false };
        debug!(%peer, ?scope, "half-open connection not created: quota reached");
        match scope {
            Scope::All => self.counters.tcp_ext_half_open_quota += 1,
            Scope::Peer => self.counters.tcp_ext_half_open_quota_peer += 1,
        }
        true
    }

    /// Adds a half-open connection at the listener `id`.
    fn take_in(&mut self, now: Instant, id: SocketId, connection: Connection) -> SocketId {
        let child = self.begin_passive(now, connection, Owner::HalfOpen(id));
        if let Some(listener) = self.listener_mut(id) {
            listener.add_half_open(child);
        }
        child
    }

    /// Adds a connection whose handshake the peer has started.
    pub(super) fn begin_passive(
        &mut self,
        now: Instant,
        connection: Connection,
        owner: Owner,
    ) -> SocketId {
        self.counters.tcp_passive_opens += 1;
        let child = self.adopt(now, connection, owner);
        if let Some(tcp) = self.tcp_socket(child) {
            let peer = tcp.peer;
            self.peers.begin_half_open(peer);
        }
        child
    }

    /// Answers a SYN with a cookie, without state.
    fn send_cookie(&mut self, now: Instant, id: SocketId, flow: &FlowId, syn: &Segment<'_>) {
        let mss = handshake::mss_of(flow, syn);
        let number = cookie::make(&self.secret, now, flow, syn.seq, mss);
        let ts_offset = self.secret.timestamp_offset(flow);
        let Some(Socket { kind: Kind::Listener(listener), .. }) = self.sockets.get_mut(id) else {
            return;
        };
        if listener.on_cookie_sent(now) {
            debug!(local = %listener.local(), "backlog full: sending SYN cookies");
        }
        let config = listener.config(&self.config.tcp);
        let packet = handshake::syn_ack(now, flow, number, ts_offset, config, syn);
        if self.queue(packet) {
            self.counters.tcp_out_segs += 1;
            self.counters.tcp_ext_syncookies_sent += 1;
        } else {
            self.counters.tcp_ext_listen_drops += 1;
        }
    }

    /// Handles an ACK that may return a cookie; returns false if it does not.
    fn on_cookie(
        &mut self,
        now: Instant,
        id: SocketId,
        flow: FlowId,
        segment: &Segment<'_>,
    ) -> bool {
        if !self.sends_cookies(now, id) {
            return false;
        }
        let Some(mss) = self.read_cookie(now, &flow, segment) else {
            debug!(remote = %flow.remote, "invalid SYN cookie");
            self.counters.tcp_ext_syncookies_failed += 1;
            // It may follow a cookie whose connection was refused; its peer must not be reset.
            return self.turns_away(id, &flow);
        };
        debug!(remote = %flow.remote, "valid SYN cookie received");
        self.counters.tcp_ext_syncookies_recv += 1;
        if self.turns_away(id, &flow) {
            // The peer's next segment returns the cookie again.
            return true;
        }
        let ts_offset = self.secret.timestamp_offset(&flow);
        let Some(listener) = self.listener(id) else { return true };
        let config = listener.config(&self.config.tcp);
        let connection = Connection::accept_cookie(now, flow, ts_offset, config, mss, segment);
        let child = self.take_in(now, id, connection);
        if let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(child) {
            tcp.connection.on_segment(now, segment, &mut self.counters);
        }
        self.touch(now, child);
        true
    }

    /// Whether a cookie that the listener `id` sent may still be returned.
    pub(super) fn sends_cookies(&self, now: Instant, id: SocketId) -> bool {
        self.listener(id).is_some_and(|listener| listener.expects_cookies(now))
    }

    pub(super) fn read_cookie(
        &self,
        now: Instant,
        flow: &FlowId,
        segment: &Segment<'_>,
    ) -> Option<u16> {
        let plain = !segment.flags.syn && !segment.flags.rst;
        let irs = segment.seq - 1;
        plain.then(|| cookie::read(&self.secret, now, flow, irs, segment.ack - 1)).flatten()
    }

    /// Handles the ACK of a cookie that was sent before a duplicate of the SYN created the
    /// half-open connection `id`. The peer knows only the cookie's number, so the connection of the
    /// cookie replaces the half-open one. Returns whether the segment is such an ACK.
    pub(super) fn on_late_cookie(
        &mut self,
        now: Instant,
        id: SocketId,
        segment: &Segment<'_>,
    ) -> bool {
        let Some(tcp) = self.tcp_socket(id) else { return false };
        let (flow, next) = (tcp.connection.flow(), tcp.connection.snd_nxt());
        let Owner::HalfOpen(listener) = tcp.owner else { return false };
        let other = segment.flags.ack && segment.ack != next;
        if !other || self.read_cookie(now, &flow, segment).is_none() {
            return false;
        }
        debug!(remote = %flow.remote, "late SYN cookie received: half-open connection replaced");
        self.counters.tcp_ext_syncookies_late += 1;
        self.remove(id);
        if let Some(listener) = self.listener_mut(listener) {
            listener.remove(id);
        }
        self.on_cookie(now, listener, flow, segment)
    }
}
