//! UDP sockets (RFC 768, RFC 1122 section 4.1).

use std::collections::VecDeque;
use std::net::SocketAddr;

use airtcp_types::{ByteCount, FlowId, Instant, Packet};
use airtcp_wire::checksum::verify_transport;
use airtcp_wire::icmp::Complaint;
use airtcp_wire::{ip, udp};
use tracing::debug;

use crate::tcp::Unreachable;

use super::bindings::ANY;
use super::outbox::MAX_WAITING;
use super::{Host, HostError, Kind, Socket, SocketId};

/// The memory overhead of a queued datagram.
const OVERHEAD: u64 = size_of::<(FlowId, Vec<u8>)>() as u64;

/// A bound UDP port.
#[derive(Debug)]
pub(super) struct UdpSocket {
    pub(super) local: SocketAddr,
    /// The only peer, if the socket is connected.
    peer: Option<SocketAddr>,
    /// TTL or hop limit of its packets.
    hop_limit: u8,
    /// The pending ICMP error for a datagram to the peer, reported once.
    error: Option<Unreachable>,
    /// Received datagrams, each with its destination and its source.
    queue: VecDeque<(FlowId, Vec<u8>)>,
    held: ByteCount,
}

impl UdpSocket {
    pub(super) fn is_readable(&self) -> bool {
        self.error.is_some() || !self.queue.is_empty()
    }
}

/// Copies as much of a datagram as fits into `buf`, and returns the number of bytes.
fn copy(data: &[u8], buf: &mut [u8]) -> usize {
    let len = data.len().min(buf.len());
    buf[..len].copy_from_slice(&data[..len]);
    len
}

fn cost(data: &[u8]) -> ByteCount {
    ByteCount::from(data.len()) + ByteCount(OVERHEAD)
}

impl Host {
    pub(super) fn on_udp(
        &mut self,
        now: Instant,
        datagram: &ip::Datagram<'_>,
        verify: bool,
        packet: &Packet,
    ) {
        let (src, dst) = (datagram.src, datagram.dst);
        let arrived = match udp::parse(datagram.payload) {
            Ok(arrived) => arrived,
            Err(error) => {
                debug!(%src, %error, "datagram dropped");
                self.counters.udp_in_errors += 1;
                return;
            }
        };
        // RFC 8200 section 8.1: a UDP datagram over IPv6 must have a checksum.
        let good = match arrived.no_checksum {
            true => dst.is_ipv4(),
            false => !verify || verify_transport(src, dst, ip::UDP, arrived.covered),
        };
        if !good {
            debug!(%src, "datagram dropped: bad checksum");
            self.counters.udp_in_csum_errors += 1;
            self.counters.udp_in_errors += 1;
            return;
        }
        let from = SocketAddr::new(src, arrived.src_port);
        let to = SocketAddr::new(dst, arrived.dst_port);
        let bound = self.udp_at(to);
        let Some(id) = bound.filter(|id| self.udp_accepts(*id, from)) else {
            if self.pass_on(packet) {
                return;
            }
            self.counters.udp_no_ports += 1;
            self.complain(now, datagram.src, datagram.dst, Complaint::Port, &packet.data);
            return;
        };
        let starved = self.is_out_of_memory();
        let Some(Socket { kind: Kind::Udp(socket), .. }) = self.sockets.get_mut(id) else { return };
        let cost = cost(arrived.payload);
        if starved || socket.held + cost > self.config.udp_receive_buffer {
            debug!(%from, "datagram dropped: receive queue full, or out of memory");
            self.counters.udp_rcvbuf_errors += 1;
            self.counters.udp_in_errors += 1;
            return;
        }
        socket.queue.push_back((FlowId { local: to, remote: from }, arrived.payload.to_vec()));
        socket.held += cost;
        self.held += cost;
        self.counters.udp_in_datagrams += 1;
        self.report_readiness(id);
    }

    /// Handles an ICMP error about a datagram. Nothing proves that the error is genuine: it is
    /// reported only to a socket connected to that peer, and only if it is a hard error, as in
    /// Linux. Returns whether a socket exists that may have sent the datagram.
    pub(super) fn on_udp_unreachable(&mut self, flow: &FlowId, error: Unreachable) -> bool {
        let Some(id) = self.udp_at(flow.local) else { return false };
        let Some(Socket { kind: Kind::Udp(socket), .. }) = self.sockets.get_mut(id) else {
            return false;
        };
        let heard = socket.peer == Some(flow.remote) && error.is_hard();
        debug!(remote = %flow.remote, %error, heard, "ICMP error received for a datagram");
        if heard {
            socket.error = Some(error);
            self.report_readiness(id);
            return true;
        }
        socket.peer.is_none_or(|peer| peer == flow.remote)
    }

    /// Returns the pending ICMP error for a datagram to the socket's peer, and clears it. Send and
    /// receive calls return it, too, instead of sending or receiving.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a UDP
    /// socket.
    pub fn udp_take_error(&mut self, socket: SocketId) -> Result<Option<Unreachable>, HostError> {
        let error = self.udp_socket(socket)?.error.take();
        self.report_readiness(socket);
        Ok(error)
    }

    fn take_unreachable(&mut self, socket: SocketId) -> Result<(), HostError> {
        match self.udp_take_error(socket)? {
            Some(error) => Err(HostError::Unreachable(error)),
            None => Ok(()),
        }
    }

    /// Binds a socket to `local`. Unspecified addresses and port zero are handled as in
    /// [`tcp_listen`](Self::tcp_listen).
    ///
    /// # Errors
    ///
    /// [`HostError::AddressInUse`] if another UDP socket has the address;
    /// [`HostError::NotLocal`] if it is not an address of the host; [`HostError::NoPorts`] if no
    /// port is free.
    pub fn udp_bind(&mut self, local: SocketAddr) -> Result<SocketId, HostError> {
        let bound = self.bindings.free_for_udp(&self.config, &self.secret, local);
        if bound == Err(HostError::NoPorts) {
            debug!(%local, "UDP bind failed: no free port");
            self.counters.udp_ports_taken += 1;
        }
        Ok(self.add_udp(bound?))
    }

    /// Binds a socket to every address and port, IPv4 and IPv6, of this host and of all others, as
    /// [`tcp_listen_any`](Self::tcp_listen_any) does for connections.
    /// [`udp_recv_flow`](Self::udp_recv_flow) returns the destination of a datagram, and
    /// [`udp_send_from`](Self::udp_send_from) replies.
    ///
    /// # Errors
    ///
    /// [`HostError::AddressInUse`] if such a socket exists.
    pub fn udp_bind_any(&mut self) -> Result<SocketId, HostError> {
        if self.bindings.udp(ANY, false).is_some() {
            return Err(HostError::AddressInUse(ANY));
        }
        self.intercepts = true;
        Ok(self.add_udp(ANY))
    }

    fn add_udp(&mut self, local: SocketAddr) -> SocketId {
        let socket = UdpSocket {
            local,
            peer: None,
            hop_limit: self.config.hop_limit,
            error: None,
            queue: VecDeque::new(),
            held: ByteCount::ZERO,
        };
        let id = self.sockets.insert(Socket::new(Kind::Udp(socket)));
        self.bindings.add_udp(local, id);
        self.report_readiness(id);
        id
    }

    /// Connects a socket to a peer: [`udp_send`](Self::udp_send) sends to it. As in Linux,
    /// datagrams from other peers are from now on treated as sent to a closed port. Queued
    /// datagrams stay.
    ///
    /// # Errors
    ///
    /// [`HostError::Unroutable`] if the peer cannot be reached from the socket's address;
    /// [`HostError::WrongKind`] if the socket is bound to every destination.
    pub fn udp_connect(&mut self, socket: SocketId, peer: SocketAddr) -> Result<(), HostError> {
        let local = self.udp_socket(socket)?.local;
        if local == ANY {
            return Err(HostError::WrongKind);
        }
        let same = |source: &std::net::IpAddr| source.is_ipv4() == local.is_ipv4();
        self.config.source_for(peer).filter(same).ok_or(HostError::Unroutable(peer))?;
        self.udp_socket(socket)?.peer = Some(peer);
        Ok(())
    }

    /// The peer of a connected socket.
    ///
    /// # Errors
    ///
    /// [`HostError::NoPeer`] if the socket is not connected.
    pub fn udp_peer(&self, socket: SocketId) -> Result<SocketAddr, HostError> {
        match &self.socket(socket)?.kind {
            Kind::Udp(udp) => udp.peer.ok_or(HostError::NoPeer),
            _ => Err(HostError::WrongKind),
        }
    }

    /// Sends one datagram to the peer of the socket.
    ///
    /// # Errors
    ///
    /// [`HostError::NoPeer`]; otherwise as [`udp_send_to`](Self::udp_send_to).
    pub fn udp_send(&mut self, socket: SocketId, data: &[u8]) -> Result<(), HostError> {
        let peer = self.udp_peer(socket)?;
        self.udp_send_to(socket, data, peer)
    }

    /// Sets the TTL or hop limit of a socket, in hops.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a UDP
    /// socket.
    pub fn udp_set_hop_limit(&mut self, socket: SocketId, hop_limit: u8) -> Result<(), HostError> {
        self.udp_socket(socket)?.hop_limit = hop_limit;
        Ok(())
    }

    /// The TTL or hop limit of a socket, in hops.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a UDP
    /// socket.
    pub fn udp_hop_limit(&self, socket: SocketId) -> Result<u8, HostError> {
        match &self.socket(socket)?.kind {
            Kind::Udp(udp) => Ok(udp.hop_limit),
            _ => Err(HostError::WrongKind),
        }
    }

    /// Whether the queue has room for another datagram.
    pub fn udp_has_room(&self) -> bool {
        self.outbox.len() < self.config.udp_send_queue.clamp(1, MAX_WAITING)
    }

    /// Sends one datagram.
    ///
    /// # Errors
    ///
    /// - [`HostError::WouldBlock`] while too many packets wait to be transmitted.
    /// - [`HostError::MessageSize`] if the datagram does not fit one packet.
    /// - [`HostError::Unroutable`] if `to` cannot be reached from the socket's address.
    /// - [`HostError::WrongKind`] if the socket is bound to every destination.
    /// - [`HostError::Unreachable`], once, if an ICMP error arrived for an earlier datagram to the
    ///   peer.
    pub fn udp_send_to(
        &mut self,
        socket: SocketId,
        data: &[u8],
        to: SocketAddr,
    ) -> Result<(), HostError> {
        self.take_unreachable(socket)?;
        let local = self.udp_socket(socket)?.local;
        if local == ANY {
            return Err(HostError::WrongKind);
        }
        let source = match local.ip() {
            any if any.is_unspecified() => self.config.source_for(to),
            own => self.config.source_for(to).map(|_| own),
        };
        let source = source
            .filter(|source| source.is_ipv4() == local.is_ipv4() && to.is_ipv4() == local.is_ipv4())
            .ok_or(HostError::Unroutable(to))?;
        let flow = FlowId { local: SocketAddr::new(source, local.port()), remote: to };
        self.udp_emit(socket, &flow, data)
    }

    /// Sends one datagram from `flow.local`, an address of this host or of any other, to
    /// `flow.remote`. The socket must be bound to every destination.
    ///
    /// # Errors
    ///
    /// [`HostError::WrongKind`] if the socket is another one; [`HostError::Unroutable`] if one of
    /// the addresses cannot be a host's or has port 0, or if the two are of different IP versions;
    /// otherwise as [`udp_send_to`](Self::udp_send_to).
    pub fn udp_send_from(
        &mut self,
        socket: SocketId,
        data: &[u8],
        flow: &FlowId,
    ) -> Result<(), HostError> {
        self.check_any_flow(socket, flow)?;
        self.udp_emit(socket, flow, data)
    }

    /// Answers a datagram from `flow.remote` to `flow.local` with ICMP Port Unreachable, as a host
    /// without a socket at that port would. The socket must be bound to every destination. The rate
    /// limit of ICMP errors applies.
    ///
    /// # Errors
    ///
    /// As [`udp_send_from`](Self::udp_send_from), except [`HostError::WouldBlock`] and
    /// [`HostError::MessageSize`].
    pub fn udp_refuse(
        &mut self,
        now: Instant,
        socket: SocketId,
        flow: &FlowId,
    ) -> Result<(), HostError> {
        self.check_any_flow(socket, flow)?;
        let FlowId { local, remote } = *flow;
        let theirs = FlowId { local: remote, remote: local };
        let quoted = udp::emit(&theirs, self.config.hop_limit, &[]);
        self.complain(now, remote.ip(), local.ip(), Complaint::Port, &quoted.data);
        Ok(())
    }

    /// Checks that a socket is bound to every destination and may send in a flow.
    fn check_any_flow(&mut self, socket: SocketId, flow: &FlowId) -> Result<(), HostError> {
        if self.udp_socket(socket)?.local != ANY {
            return Err(HostError::WrongKind);
        }
        let FlowId { local, remote } = *flow;
        let config = &self.config;
        let is_sound = config.is_own(local.ip()) || config.may_be_peer(local.ip());
        if local.port() == 0 || !is_sound {
            return Err(HostError::Unroutable(local));
        }
        let is_reachable = remote.port() != 0 && config.may_be_peer(remote.ip());
        if !is_reachable || local.is_ipv4() != remote.is_ipv4() {
            return Err(HostError::Unroutable(remote));
        }
        Ok(())
    }

    fn udp_emit(&mut self, socket: SocketId, flow: &FlowId, data: &[u8]) -> Result<(), HostError> {
        let hop_limit = self.udp_socket(socket)?.hop_limit;
        let to = flow.remote;
        let header = if to.is_ipv4() { ip::V4_HEADER_LEN } else { ip::V6_HEADER_LEN };
        let max = usize::from(self.config.packet_limit()).saturating_sub(header + udp::HEADER_LEN);
        if data.len() > max {
            return Err(HostError::MessageSize { len: data.len(), max });
        }
        if !self.udp_has_room() {
            return Err(HostError::WouldBlock);
        }
        let packet = match self.config.segmentation_offload {
            true => udp::emit_open(flow, hop_limit, data),
            false => udp::emit(flow, hop_limit, data),
        };
        self.queue(packet);
        self.counters.udp_out_datagrams += 1;
        Ok(())
    }

    /// Receives the oldest datagram and returns its length and its source; `None` if none is
    /// queued. Bytes that do not fit `buf` are lost, as with recvfrom(2).
    ///
    /// # Errors
    ///
    /// [`HostError::Unreachable`], once, if an ICMP error arrived for a datagram to the peer;
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a UDP
    /// socket.
    pub fn udp_recv_from(
        &mut self,
        socket: SocketId,
        buf: &mut [u8],
    ) -> Result<Option<(usize, SocketAddr)>, HostError> {
        Ok(self.udp_recv_flow(socket, buf)?.map(|(len, flow)| (len, flow.remote)))
    }

    /// Receives as [`udp_recv_from`](Self::udp_recv_from), but returns both ends of the datagram:
    /// `remote` is its source, `local` its destination.
    ///
    /// # Errors
    ///
    /// As [`udp_recv_from`](Self::udp_recv_from).
    pub fn udp_recv_flow(
        &mut self,
        socket: SocketId,
        buf: &mut [u8],
    ) -> Result<Option<(usize, FlowId)>, HostError> {
        self.take_unreachable(socket)?;
        let udp = self.udp_socket(socket)?;
        let Some((flow, data)) = udp.queue.pop_front() else { return Ok(None) };
        let cost = cost(&data);
        udp.held -= cost;
        self.held -= cost;
        self.report_readiness(socket);
        Ok(Some((copy(&data, buf), flow)))
    }

    /// Peeks: as [`udp_recv_from`](Self::udp_recv_from), but the datagram stays in the queue.
    ///
    /// # Errors
    ///
    /// As [`udp_recv_from`](Self::udp_recv_from).
    pub fn udp_peek_from(
        &mut self,
        socket: SocketId,
        buf: &mut [u8],
    ) -> Result<Option<(usize, SocketAddr)>, HostError> {
        self.take_unreachable(socket)?;
        let udp = self.udp_socket(socket)?;
        Ok(udp.queue.front().map(|(flow, data)| (copy(data, buf), flow.remote)))
    }

    /// Closes a UDP socket. The id becomes invalid.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a UDP
    /// socket.
    pub fn udp_close(&mut self, socket: SocketId) -> Result<(), HostError> {
        let (local, held) = {
            let udp = self.udp_socket(socket)?;
            (udp.local, udp.held)
        };
        self.withdraw_readiness(socket);
        self.bindings.remove_udp(local);
        self.held -= held;
        self.sockets.remove(socket);
        Ok(())
    }

    /// Whether a socket accepts datagrams from `from`.
    fn udp_accepts(&self, id: SocketId, from: SocketAddr) -> bool {
        match self.sockets.get(id).map(|socket| &socket.kind) {
            Some(Kind::Udp(udp)) => udp.peer.is_none_or(|peer| peer == from),
            _ => false,
        }
    }

    fn udp_socket(&mut self, id: SocketId) -> Result<&mut UdpSocket, HostError> {
        self.socket(id)?;
        match self.sockets.get_mut(id).map(|socket| &mut socket.kind) {
            Some(Kind::Udp(udp)) => Ok(udp),
            _ => Err(HostError::WrongKind),
        }
    }
}
