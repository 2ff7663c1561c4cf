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
use super::{Host, HostError, Kind, Socket, SocketId};

/// What a queued datagram takes beside its data.
const OVERHEAD: u64 = size_of::<(FlowId, Vec<u8>)>() as u64;

/// A bound UDP port.
#[derive(Debug)]
pub(super) struct UdpSocket {
    pub(super) local: SocketAddr,
    /// The only one it talks with, if it was connected.
    peer: Option<SocketAddr>,
    /// TTL or hop limit of its packets.
    hop_limit: u8,
    /// What the network said of a datagram to that peer, to be told once.
    error: Option<Unreachable>,
    /// With their destination and where they came from.
    queue: VecDeque<(FlowId, Vec<u8>)>,
    held: ByteCount,
}

impl UdpSocket {
    pub(super) fn is_readable(&self) -> bool {
        self.error.is_some() || !self.queue.is_empty()
    }
}

/// Copies as much of a datagram as `buf` has room for, and gives how much.
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
        // RFC 8200 section 8.1: with IPv6 there is no going without.
        let good = match arrived.no_checksum {
            true => dst.is_ipv4(),
            false => !verify || verify_transport(src, dst, ip::UDP, arrived.covered),
        };
        if !good {
            debug!(%src, "datagram dropped: its checksum is wrong");
            self.counters.udp_in_csum_errors += 1;
            self.counters.udp_in_errors += 1;
            return;
        }
        let from = SocketAddr::new(src, arrived.src_port);
        let to = SocketAddr::new(dst, arrived.dst_port);
        let bound = self.udp_at(to);
        let Some(id) = bound.filter(|id| self.udp_hears(*id, from)) else {
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
            debug!(%from, "datagram dropped: the socket's queue is full");
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

    /// The network complained of a datagram. Nothing in the complaint proves that it is true: only
    /// a socket with that very peer hears of it, and only of what waiting does not help, as in
    /// Linux. Gives whether there is a socket that may have sent it.
    pub(super) fn on_udp_unreachable(&mut self, flow: &FlowId, error: Unreachable) -> bool {
        let Some(id) = self.udp_at(flow.local) else { return false };
        let Some(Socket { kind: Kind::Udp(socket), .. }) = self.sockets.get_mut(id) else {
            return false;
        };
        let heard = socket.peer == Some(flow.remote) && error.is_hard();
        debug!(remote = %flow.remote, %error, heard, "ICMP error about a datagram");
        if heard {
            socket.error = Some(error);
            self.report_readiness(id);
            return true;
        }
        socket.peer.is_none_or(|peer| peer == flow.remote)
    }

    /// What the network said of a datagram to the peer of the socket since it was last asked.
    /// Sending and receiving tell it, too, in place of what they would do.
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

    /// Takes datagrams to `local`. Unspecified addresses and port zero are as with
    /// [`tcp_listen`](Self::tcp_listen).
    pub fn udp_bind(&mut self, local: SocketAddr) -> Result<SocketId, HostError> {
        let bound = self.bindings.free_for_udp(&self.config, &self.secret, local);
        if bound == Err(HostError::NoPorts) {
            debug!(%local, "no UDP socket bound: every port is taken");
            self.counters.udp_ports_taken += 1;
        }
        Ok(self.add_udp(bound?))
    }

    /// Takes datagrams to every address and port, IPv4 and IPv6, of this host and of all others, as
    /// [`tcp_listen_any`](Self::tcp_listen_any) takes connections.
    /// [`udp_recv_flow`](Self::udp_recv_flow) gives their destination,
    /// [`udp_send_from`](Self::udp_send_from) answers.
    ///
    /// # Errors
    ///
    /// [`HostError::AddressInUse`]: there is such a socket.
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

    /// Gives a socket a peer: [`udp_send`](Self::udp_send) sends to it, and as in Linux what others
    /// send from here on counts as sent to a closed port. What has arrived stays.
    ///
    /// # Errors
    ///
    /// [`HostError::Unroutable`].
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
    /// [`HostError::NoPeer`].
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

    /// Sets the TTL or hop limit of a socket.
    pub fn udp_set_hop_limit(&mut self, socket: SocketId, hop_limit: u8) -> Result<(), HostError> {
        self.udp_socket(socket)?.hop_limit = hop_limit;
        Ok(())
    }

    /// The TTL or hop limit of a socket.
    pub fn udp_hop_limit(&self, socket: SocketId) -> Result<u8, HostError> {
        match &self.socket(socket)?.kind {
            Kind::Udp(udp) => Ok(udp.hop_limit),
            _ => Err(HostError::WrongKind),
        }
    }

    /// Whether there is room to send a datagram.
    pub fn udp_has_room(&self) -> bool {
        !self.outbox.is_full()
    }

    /// Sends one datagram.
    ///
    /// # Errors
    ///
    /// [`HostError::WouldBlock`] while too many packets wait to leave; [`HostError::MessageSize`]
    /// above what one packet holds; [`HostError::Unroutable`]; [`HostError::WrongKind`]: the socket
    /// is one for every destination; [`HostError::Unreachable`] once, if the network said so of an
    /// earlier datagram to the peer.
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
    /// `flow.remote`. The socket is one for every destination.
    ///
    /// # Errors
    ///
    /// [`HostError::WrongKind`]: it is another socket; [`HostError::Unroutable`]: one of the addresses cannot be a host's,
    /// or has port 0, or the two are of different IP versions; otherwise as
    /// [`udp_send_to`](Self::udp_send_to).
    pub fn udp_send_from(
        &mut self,
        socket: SocketId,
        data: &[u8],
        flow: &FlowId,
    ) -> Result<(), HostError> {
        self.check_any_flow(socket, flow)?;
        self.udp_emit(socket, flow, data)
    }

    /// Answers a datagram from `flow.remote` to `flow.local` with an ICMP error, Port Unreachable,
    /// as a host without a socket at that port would. The socket is one for every destination.
    /// While too many errors were sent just now, the error is not sent.
    ///
    /// # Errors
    ///
    /// As [`udp_send_from`](Self::udp_send_from), but for [`HostError::WouldBlock`] and
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

    /// Whether a socket for every destination may answer in a flow.
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

    /// Takes the oldest datagram: its length, and where it came from. `None` if none waits. What
    /// does not fit `buf` is lost, as with recvfrom(2).
    ///
    /// # Errors
    ///
    /// [`HostError::Unreachable`] once, if the network said so of a datagram to the peer.
    pub fn udp_recv_from(
        &mut self,
        socket: SocketId,
        buf: &mut [u8],
    ) -> Result<Option<(usize, SocketAddr)>, HostError> {
        Ok(self.udp_recv_flow(socket, buf)?.map(|(len, flow)| (len, flow.remote)))
    }

    /// As [`udp_recv_from`](Self::udp_recv_from), with both ends of the datagram: `remote` sent it,
    /// `local` is its destination.
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

    /// Whether a socket takes datagrams of `from`.
    fn udp_hears(&self, id: SocketId, from: SocketAddr) -> bool {
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
