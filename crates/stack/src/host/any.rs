//! Listeners and UDP sockets for every destination: the host answers for addresses that are not its
//! own.
//!
//! A SYN at such a listener is held without an answer until the program accepts or refuses it. It
//! uses one place in the backlog and one half-open connection in the quota of its source, and
//! nothing is sent. A SYN beyond these limits is dropped. SYN cookies are not used, because a
//! cookie would accept a connection before the program has seen its SYN.
//!
//! The opposite is a connection from the address of another host, which a gateway opens on behalf
//! of its client.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_types::{FlowId, Instant, SeqNumber};
use airtcp_wire::icmp::Complaint;
use airtcp_wire::ip;
use airtcp_wire::payload::Payload;
use airtcp_wire::tcp::{self, Header, Segment};
use tracing::debug;

use crate::tcp::refused::refuse_no_syn;
use crate::tcp::{State, TcpConfig, Unreachable};

use super::bindings::ANY;
use super::peers::PeerId;
use super::{Host, HostError, Kind, Owner, Socket, SocketId};

/// How long a SYN is held: as long as Linux retransmits it (`tcp_syn_retries` 6: 1 + 2 + ... + 64
/// s).
pub(super) const PATIENCE: Duration = Duration::from_secs(127);

/// A SYN that is not answered yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) flow: FlowId,
    /// The listener at which it waits.
    listener: SocketId,
    /// The peer's last SYN, without data.
    syn: Segment<'static>,
    /// SND.NXT of the previous connection with this 4-tuple.
    after: Option<SeqNumber>,
    peer: PeerId,
    /// The deadline set in `Host::timers`.
    armed: Option<Instant>,
    /// Whether an application has its id.
    pub(super) is_taken: bool,
}

impl Host {
    /// Listens at every address and port, IPv4 and IPv6, of this host and of all others: the device
    /// decides which packets reach the host. Sockets bound to an address of this host take
    /// precedence.
    ///
    /// A SYN is held until [`tcp_accept_pending`](Self::tcp_accept_pending),
    /// [`tcp_abort`](Self::tcp_abort) or [`tcp_refuse_pending`](Self::tcp_refuse_pending) answers
    /// it, for at most 127 s. At most `backlog` SYNs are held (and at most
    /// [`HostConfig::backlog`](super::HostConfig::backlog)). SYNs beyond that, and those beyond
    /// [`HostConfig::peer_quota`](super::HostConfig::peer_quota), are dropped and counted; the peer
    /// retransmits them.
    ///
    /// After the socket is closed, the host still answers packets to other addresses: a segment
    /// without a connection with a RST, a datagram without a socket with an ICMP error. It does not
    /// answer pings to other addresses.
    ///
    /// # Errors
    ///
    /// [`HostError::AddressInUse`] if such a listener exists.
    pub fn tcp_listen_any(&mut self, backlog: usize) -> Result<SocketId, HostError> {
        if self.bindings.listener(ANY, false).is_some() {
            return Err(HostError::AddressInUse(ANY));
        }
        self.intercepts = true;
        Ok(self.add_listener(ANY, backlog, None))
    }

    /// Opens a connection from `flow.local`, an address and port of another host, to `flow.remote`,
    /// as [`tcp_connect`](Self::tcp_connect) does from an address of this one. Packets to
    /// `flow.local` have to be routed here.
    ///
    /// A connection in TIME-WAIT of the same flow is replaced: the other host has chosen the port,
    /// and is responsible for it.
    ///
    /// # Errors
    ///
    /// [`HostError::Unroutable`]: an address cannot be that of another host, they differ in
    /// version, or a port is 0. [`HostError::FlowInUse`]: the flow has a connection. Otherwise as
    /// [`tcp_connect`](Self::tcp_connect).
    pub fn tcp_connect_as(
        &mut self,
        now: Instant,
        flow: FlowId,
        config: Option<TcpConfig>,
    ) -> Result<SocketId, HostError> {
        let FlowId { local, remote } = flow;
        let can_be = |end: SocketAddr| end.port() > 0 && self.config.may_be_peer(end.ip());
        if !can_be(local) || !can_be(remote) || local.is_ipv4() != remote.is_ipv4() {
            return Err(HostError::Unroutable(remote));
        }
        self.admits(remote)?;
        let after = match self.flows.get(&flow) {
            Some(&id) => Some(self.make_room(now, id).ok_or(HostError::FlowInUse(flow))?),
            None => None,
        };
        self.intercepts = true;
        Ok(self.open(now, flow, config, after))
    }

    /// Has a connection that is over make room for one with the same ends; gives the number that it
    /// would have sent next.
    fn make_room(&mut self, now: Instant, id: SocketId) -> Option<SeqNumber> {
        match &self.sockets.get(id)?.kind {
            Kind::TimeWait(socket) => {
                let next = socket.wait.snd_nxt();
                self.end_time_wait(now, id);
                Some(next)
            }
            Kind::Tcp(tcp) if tcp.connection.state() == State::Closed => {
                let (flow, next) = (tcp.connection.flow(), tcp.connection.snd_nxt());
                self.forget_flow(id, flow);
                Some(next)
            }
            _ => None,
        }
    }

    /// Takes the oldest SYN that waits at a listener for every destination, with its flow: `remote`
    /// is the SYN's source, `local` its destination. `None` if none waits.
    ///
    /// # Errors
    ///
    /// [`HostError::WrongKind`] if the socket is another one.
    pub fn tcp_next_pending(
        &mut self,
        listener: SocketId,
    ) -> Result<Option<(SocketId, FlowId)>, HostError> {
        self.socket(listener)?;
        let queue = self.listener_mut(listener).filter(|queue| queue.is_any());
        let Some(id) = queue.ok_or(HostError::WrongKind)?.next_syn() else { return Ok(None) };
        self.report_readiness(listener);
        Ok(self.pending(id).map(|pending| {
            pending.is_taken = true;
            (id, pending.flow)
        }))
    }

    /// Accepts a held SYN: its SYN-ACK is sent now. The connection is open once
    /// [`Readiness::connected`](crate::tcp::Readiness::connected) is set. The id of the SYN becomes
    /// invalid.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the SYN is no longer held, because its time is over or its listener
    /// is closed. [`HostError::WrongKind`] if `pending` is another socket.
    /// [`HostError::NoMemory`] if the memory limit of the host or of the peer is reached; the SYN
    /// is then still held.
    pub fn tcp_accept_pending(
        &mut self,
        now: Instant,
        pending: SocketId,
    ) -> Result<SocketId, HostError> {
        self.socket(pending)?;
        let remote = self.pending(pending).ok_or(HostError::WrongKind)?.flow.remote;
        if self.is_short_of_memory(remote) {
            return Err(HostError::NoMemory);
        }
        let Pending { flow, listener, syn, after, .. } =
            self.remove_pending(pending).ok_or(HostError::Stale)?;
        let connection = self.answer(now, listener, flow, &syn, after).ok_or(HostError::Stale)?;
        let id = self.begin_passive(now, connection, Owner::Accepting);
        self.touch(now, id);
        Ok(id)
    }

    /// Refuses a held SYN with an ICMP error, as a router on the path would, and forgets it.
    /// [`tcp_abort`](Self::tcp_abort) refuses it with a RST.
    ///
    /// The source address of the error is the SYN's destination. The rate limit of ICMP errors
    /// applies: if the error is not sent, the peer retransmits the SYN.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the SYN is no longer held; [`HostError::WrongKind`] if `pending` is
    /// another socket.
    pub fn tcp_refuse_pending(
        &mut self,
        now: Instant,
        pending: SocketId,
        why: Unreachable,
    ) -> Result<(), HostError> {
        self.socket(pending)?;
        let Pending { flow, syn, .. } = self.remove_pending(pending).ok_or(HostError::WrongKind)?;
        let complaint = match why {
            Unreachable::Network => Complaint::Network,
            Unreachable::Host => Complaint::Host,
            Unreachable::Prohibited => Complaint::Prohibited,
            Unreachable::Port => Complaint::Port,
            // The offset of the Next Header field in an IPv6 header.
            Unreachable::Protocol => Complaint::Protocol { pointer: 6 },
        };
        let theirs = FlowId { local: flow.remote, remote: flow.local };
        let Segment { seq, flags, window, options, .. } = syn;
        let header = Header { seq, ack: None, flags, window, options };
        let quoted = tcp::emit(&theirs, self.config.hop_limit, &header, &[]);
        self.complain(now, flow.remote.ip(), flow.local.ip(), complaint, &quoted.data);
        Ok(())
    }

    /// Holds a SYN at the listener `id`, which has room for it.
    pub(super) fn hold(
        &mut self,
        now: Instant,
        id: SocketId,
        flow: FlowId,
        syn: &Segment<'_>,
        after: Option<SeqNumber>,
    ) {
        let peer = self.peers.enter(flow.remote.ip());
        self.peers.begin_half_open(peer);
        let pending = Pending {
            flow,
            listener: id,
            syn: without_data(syn),
            after,
            peer,
            armed: None,
            is_taken: false,
        };
        let held = self.sockets.insert(Socket::new(Kind::Pending(Box::new(pending))));
        self.flows.insert(flow, held);
        if let Some(Socket { kind: Kind::Pending(pending), .. }) = self.sockets.get_mut(held) {
            self.timers.set(held, &mut pending.armed, Some(now + PATIENCE));
        }
        if let Some(listener) = self.listener_mut(id) {
            listener.add_syn(held);
        }
        self.report_readiness(id);
    }

    /// Handles a segment from a peer whose SYN is held. A new SYN replaces the held one: the peer
    /// may have abandoned the first one, and may no longer ask for ECN (RFC 3168 section 6.1.1.1).
    pub(super) fn on_pending_segment(&mut self, id: SocketId, segment: &Segment<'_>) {
        let flags = segment.flags;
        let Some(Socket { kind: Kind::Pending(pending), .. }) = self.sockets.get_mut(id) else {
            return;
        };
        if flags.syn && !flags.ack && !flags.rst && !flags.fin {
            pending.syn = without_data(segment);
        } else if !flags.rst {
            refuse_no_syn(&pending.flow, &mut self.counters);
        }
    }

    /// Drops a held SYN after [`PATIENCE`]: its peer has given up.
    pub(super) fn on_pending_deadline(&mut self, id: SocketId) {
        if let Some(pending) = self.remove_pending(id) {
            debug!(remote = %pending.flow.remote, "SYN dropped: not accepted or refused in time");
            self.counters.tcp_ext_listen_drops += 1;
        }
    }

    /// Answers a held SYN with a RST.
    pub(super) fn refuse_pending(&mut self, id: SocketId) {
        if let Some(pending) = self.remove_pending(id) {
            self.refuse(&pending.flow, &pending.syn);
        }
    }

    fn pending(&mut self, id: SocketId) -> Option<&mut Pending> {
        match &mut self.sockets.get_mut(id)?.kind {
            Kind::Pending(pending) => Some(pending),
            _ => None,
        }
    }

    /// Removes a held SYN from all tables.
    fn remove_pending(&mut self, id: SocketId) -> Option<Pending> {
        self.pending(id)?;
        let Some(Socket { kind: Kind::Pending(mut pending), .. }) = self.sockets.remove(id) else {
            return None;
        };
        self.timers.set(id, &mut pending.armed, None);
        self.forget_flow(id, pending.flow);
        self.peers.end_half_open(pending.peer);
        self.peers.leave(pending.peer);
        if let Some(listener) = self.listener_mut(pending.listener) {
            listener.remove(id);
            self.report_readiness(pending.listener);
        }
        Some(*pending)
    }

    /// Whether the host answers for `address`, which is not its own.
    pub(super) fn answers_for(&self, address: IpAddr, protocol: u8) -> bool {
        let spoken = matches!(protocol, ip::TCP | ip::UDP | ip::ICMP | ip::ICMPV6);
        self.intercepts && spoken && self.config.may_be_peer(address)
    }
}

/// A copy of a SYN without its data.
fn without_data(syn: &Segment<'_>) -> Segment<'static> {
    let Segment { seq, ack, flags, reserved, ecn, window, options, .. } = *syn;
    let payload = Payload::default();
    Segment { seq, ack, flags, reserved, ecn, window, options, payload, size: None }
}
