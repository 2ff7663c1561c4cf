//! A host: IP packets on one side, sockets on the other side.
//!
//! ```text
//! handle_packet  input.rs      checks lengths, checksums and addresses; dispatches by protocol
//!                fragments.rs  reassembly
//!                icmp.rs       echo replies; errors for connections and UDP sockets
//!                path_mtu.rs   path MTUs from ICMP errors
//!                udp.rs        datagrams: to a socket's queue, or Port Unreachable
//!                demux.rs      segments: to connections (4-tuple) or listeners (port), or RST;
//!                              consecutive segments of a connection are processed as one
//!                astray.rs     packets without a flow: to the next host with these addresses
//!                passive.rs    segments in LISTEN; cookie.rs: SYN cookies when the backlog is full
//!                any.rs        listeners and UDP sockets for every destination
//! tcp_*, udp_*   streams.rs, bound.rs, listen.rs, udp.rs: socket calls; listener.rs: accept queues
//! addresses      bindings.rs: local addresses in use; ports.rs: port allocation
//! limits         peers.rs: quotas per peer and in total; challenges.rs: rate of challenge ACKs;
//!                secret.rs: values that must not be guessable
//! touch          settle.rs     after each change of a connection: queues it for transmission, and
//!                              updates its memory and state
//! poll_transmit  outbox.rs     packets without a connection, in turns with those of connections
//!                sending.rs    the order in which connections send
//!                settle.rs     `transmit` takes the next packet of a connection
//! settle         settle.rs     when nothing is left to send: timers, readiness, closed connections
//!                paths/        path measurements of connections, for later ones
//!                time_wait.rs  compact state of closed connections in TIME-WAIT
//! ```
//!
//! The host never iterates over all sockets. A connection that was touched is in a queue until it
//! has nothing more to send, a connection with a deadline is in a tree, and a connection whose
//! readiness changed is in another queue. Hash tables are used only for lookups, never iterated, so
//! that every run is exactly reproducible.
//!
//! Not implemented, because nothing needs it yet: sending fragments, a loopback route, multicast.

mod any;
mod astray;
mod bindings;
mod bound;
mod challenges;
mod config;
mod cookie;
mod demux;
mod error;
mod fragments;
mod icmp;
mod input;
mod listen;
mod listener;
mod listing;
mod outbox;
mod passive;
mod path_mtu;
mod paths;
mod peers;
mod ports;
mod readiness;
mod secret;
mod sending;
mod settle;
mod slab;
mod streams;
mod time_wait;
mod timers;
mod udp;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use airtcp_types::{ByteCount, Event, FlowId, Instant, Node, Packet, PortId};

use crate::counters::Counters;
use crate::tcp::{Connection, Outlet, Readiness, State};

pub use astray::{Astray, Share};
pub use config::{Cidr, CidrError, HostConfig};
pub use error::HostError;
pub use listing::Listed;
pub use peers::Quota;
pub use slab::SocketId;

use any::Pending;
use astray::Siblings;
use bindings::Bindings;
use bound::Bound;
use challenges::Challenges;
use fragments::Fragments;
use listener::Listener;
use outbox::Outbox;
use path_mtu::PathMtus;
use paths::{Paths, Reported};
use peers::{PeerId, Peers};
use readiness::{Known, ReadyQueue};
use secret::{Keyed, Secret};
use sending::Sending;
use slab::Slab;
use time_wait::TimeWaitSocket;
use timers::Timers;
use udp::UdpSocket;

/// The maximum number of queued events, for an observer that does not poll them.
const MAX_EVENTS: usize = 1 << 16;

/// A host with one attachment to the network, [`PortId`] 0.
///
/// After any call that takes `now`, call [`poll_transmit`](Node::poll_transmit) until it returns
/// `None`: it then also sets timers and removes connections that have ended. A caller that stops
/// earlier calls [`settle`](Self::settle) instead. Then ask [`poll_ready`](Self::poll_ready) for
/// the sockets whose readiness changed, and [`poll_timeout`](Node::poll_timeout) for the next
/// deadline.
///
/// ```
/// use airtcp_stack::host::{Host, HostConfig};
/// use airtcp_types::{Instant, Node, PortId};
///
/// let now = Instant::ZERO;
/// let mut server = Host::new(HostConfig::new(["10.0.0.1/24".parse()?]));
/// let mut client = Host::new(HostConfig::new(["10.0.0.2/24".parse()?]));
/// let listener = server.tcp_listen("10.0.0.1:80".parse()?, 8)?;
/// let stream = client.tcp_connect(now, "10.0.0.1:80".parse()?, None)?;
/// for _ in 0..3 {
///     while let Some((_, packet)) = client.poll_transmit(now) {
///         server.handle_packet(now, PortId(0), packet);
///     }
///     while let Some((_, packet)) = server.poll_transmit(now) {
///         client.handle_packet(now, PortId(0), packet);
///     }
/// }
/// assert!(client.readiness(stream)?.connected);
/// assert!(server.tcp_accept(now, listener)?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Host {
    config: HostConfig,
    secret: Secret,
    counters: Counters,
    sockets: Slab<Socket>,
    flows: HashMap<FlowId, SocketId, Keyed>,
    bindings: Bindings,
    timers: Timers,
    /// A reusable buffer for the sockets whose deadline has passed.
    due: Vec<SocketId>,
    /// Connections that may have something to send.
    sending: Sending,
    /// Connections that were changed and not settled yet: their timers and readiness are not up to
    /// date.
    touched: Vec<SocketId>,
    ready: ReadyQueue,
    outlet: Outlet,
    outbox: Outbox,
    events: VecDeque<Event>,
    held: ByteCount,
    peers: Peers,
    /// The number of connections in TIME-WAIT without an owner.
    time_waits: usize,
    challenges: Challenges,
    icmp_errors: icmp::Allowance,
    echoes: icmp::Allowance,
    fragments: Fragments,
    path_mtus: PathMtus,
    /// Path properties that connections have measured.
    paths: Paths,
    siblings: Siblings,
    /// Whether a socket for every destination exists or existed.
    intercepts: bool,
}

/// A socket, and the readiness that its holder knows of.
#[derive(Debug)]
struct Socket {
    kind: Kind,
    known: Known,
}

#[derive(Debug)]
enum Kind {
    Bound(Bound),
    Listener(Listener),
    Pending(Box<Pending>),
    Tcp(Box<TcpSocket>),
    TimeWait(Box<TimeWaitSocket>),
    Udp(UdpSocket),
}

/// A connection, with the host's bookkeeping.
#[derive(Debug)]
struct TcpSocket {
    connection: Connection,
    owner: Owner,
    peer: PeerId,
    /// Whether it is in `Host::sending`.
    dirty: bool,
    /// Whether it is in `Host::touched`.
    touched: bool,
    /// The deadline set in `Host::timers`.
    armed: Option<Instant>,
    /// The memory it uses, counted in `Host::held`.
    held: ByteCount,
    /// The memory of its out-of-order data, counted in its peer's quota.
    out_of_order: ByteCount,
    /// The state when the host last examined it.
    state: State,
    /// What it has reported of the path so far.
    reported: Reported,
}

impl TcpSocket {
    /// Whether it has ended and no application can ask for it. Its last packet may still be queued.
    fn is_gone(&self) -> bool {
        self.owner == Owner::Nobody && self.connection.state() == State::Closed
    }
}

/// The owner of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// An application has the socket's id.
    Application,
    /// An application has the socket's id: it accepted the peer's SYN, and the handshake is not
    /// complete.
    Accepting,
    /// None yet: it is half-open at this listener.
    HalfOpen(SocketId),
    /// None yet: it waits at this listener to be accepted.
    Waiting(SocketId),
    /// None any more: the application closed it, and it ends by itself.
    Nobody,
}

impl Host {
    /// Creates a host.
    pub fn new(mut config: HostConfig) -> Self {
        config.tcp.mtu = config.tcp.mtu.min(config.packet_limit());
        config.tcp.hop_limit = config.hop_limit;
        config.tcp.events |= config.events;
        // A device that completes checksums cannot compute HACK's header checksum.
        config.checksum_offload |= config.segmentation_offload;
        let secret = Secret::new(config.secret);
        let at_once = if config.segmentation_offload { config.segments_at_once.max(1) } else { 0 };
        let outlet = Outlet::new(at_once);
        Self {
            flows: HashMap::with_hasher(secret.keyed()),
            bindings: Bindings::new(config.share, &secret),
            peers: Peers::new(secret.keyed()),
            fragments: Fragments::new(secret.keyed()),
            path_mtus: PathMtus::new(secret.keyed()),
            paths: Paths::new(secret.keyed()),
            siblings: Siblings::new(config.share),
            intercepts: false,
            secret,
            counters: Counters::default(),
            sockets: Slab::new(),
            timers: Timers::default(),
            due: Vec::new(),
            sending: Sending::default(),
            touched: Vec::new(),
            ready: ReadyQueue::default(),
            outlet,
            outbox: Outbox::default(),
            time_waits: 0,
            events: VecDeque::new(),
            held: ByteCount::ZERO,
            challenges: Challenges::default(),
            icmp_errors: icmp::Allowance::ERRORS,
            echoes: icmp::Allowance::ECHOES,
            config,
        }
    }

    /// The host's settings.
    pub const fn config(&self) -> &HostConfig {
        &self.config
    }

    /// The host's counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Reuses the memory of packets that were sent. Calling it is optional.
    pub fn recycle(&mut self, packets: &mut Vec<Packet>) {
        self.outlet.take_packets(packets);
    }

    /// Memory used by all sockets; [`Quota::memory`](crate::host::Quota::memory) limits it.
    pub const fn held(&self) -> ByteCount {
        self.held
    }

    /// Whether [`poll_transmit`](Node::poll_transmit) may have a packet.
    pub fn has_to_send(&self) -> bool {
        !self.outbox.is_empty() || self.sending.first().is_some()
    }

    /// Whether only connections with little to send have something to transmit. A caller may then
    /// wait for more data from the applications, which may leave in the same packets.
    pub fn has_little_to_send(&self) -> bool {
        self.outbox.is_empty() && !self.sending.has_much()
    }

    /// Returns the next socket whose readiness changed, and its current readiness. Each changed
    /// socket is returned once, in the order of the first change.
    pub fn poll_ready(&mut self) -> Option<(SocketId, Readiness)> {
        let id = self.ready.pop()?;
        let socket = self.sockets.get_mut(id)?;
        socket.known.on_taken();
        Some((id, socket.readiness()))
    }

    /// The readiness of a socket.
    ///
    /// A listener is readable while a connection waits to be accepted, a UDP socket while a
    /// datagram is queued.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed.
    pub fn readiness(&self, socket: SocketId) -> Result<Readiness, HostError> {
        self.socket(socket).map(Socket::readiness)
    }

    /// The local address of a socket.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed.
    pub fn local_addr(&self, socket: SocketId) -> Result<SocketAddr, HostError> {
        Ok(match &self.socket(socket)?.kind {
            Kind::Bound(bound) => bound.local,
            Kind::Listener(listener) => listener.local(),
            Kind::Pending(pending) => pending.flow.local,
            Kind::Tcp(tcp) => tcp.connection.flow().local,
            Kind::TimeWait(socket) => socket.wait.flow().local,
            Kind::Udp(udp) => udp.local,
        })
    }

    fn socket(&self, id: SocketId) -> Result<&Socket, HostError> {
        self.sockets.get(id).filter(|socket| socket.has_holder()).ok_or(HostError::Stale)
    }

    /// The connection of a socket, if it has one.
    fn tcp_socket(&mut self, id: SocketId) -> Option<&mut TcpSocket> {
        match &mut self.sockets.get_mut(id)?.kind {
            Kind::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// The listener at `local`.
    fn listener_at(&self, local: SocketAddr) -> Option<SocketId> {
        self.bindings.listener(local, self.config.is_own(local.ip()))
    }

    /// The UDP socket at `local`.
    fn udp_at(&self, local: SocketAddr) -> Option<SocketId> {
        self.bindings.udp(local, self.config.is_own(local.ip()))
    }

    /// Queues a packet of the host itself. Returns false and drops the packet if the queue is full.
    fn queue(&mut self, packet: Packet) -> bool {
        self.outbox.push(packet, &mut self.counters)
    }
}

impl Node for Host {
    fn handle_packet(&mut self, now: Instant, _port: PortId, packet: Packet) {
        self.on_packet(now, &packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.give_up_fragments(now);
        // Collects all due sockets first: a connection whose deadline is still in the past after
        // `on_deadline` has something to send, and must not be called twice.
        let mut due = std::mem::take(&mut self.due);
        due.extend(std::iter::from_fn(|| self.timers.pop_due(now)));
        for id in due.drain(..) {
            self.on_deadline(now, id);
        }
        self.due = due;
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let own = self.outbox.pop_in_turn();
        let packet = match own.or_else(|| self.transmit(now)) {
            Some(packet) => packet,
            None => self.outbox.pop()?,
        };
        if is_v6(&packet) {
            self.counters.ip6_out_requests += 1;
        } else {
            self.counters.ip_out_requests += 1;
        }
        Some((PortId(0), packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().into_iter().chain(self.fragments.poll_timeout()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

impl Socket {
    fn new(kind: Kind) -> Self {
        Self { kind, known: Known::default() }
    }

    fn readiness(&self) -> Readiness {
        match &self.kind {
            Kind::Listener(listener) => {
                Readiness { readable: listener.is_readable(), ..Readiness::default() }
            }
            Kind::Tcp(tcp) => tcp.connection.readiness(),
            Kind::Bound(_) | Kind::Pending(_) | Kind::TimeWait(_) => Readiness::default(),
            Kind::Udp(udp) => {
                Readiness { readable: udp.is_readable(), writable: true, ..Readiness::default() }
            }
        }
    }

    /// Whether an application holds the socket's id.
    fn has_holder(&self) -> bool {
        match &self.kind {
            Kind::Tcp(tcp) => matches!(tcp.owner, Owner::Application | Owner::Accepting),
            Kind::Pending(pending) => pending.is_taken,
            Kind::TimeWait(_) => false,
            Kind::Bound(_) | Kind::Listener(_) | Kind::Udp(_) => true,
        }
    }
}

fn is_v6(packet: &Packet) -> bool {
    packet.data.first().is_some_and(|first| first >> 4 == 6)
}
