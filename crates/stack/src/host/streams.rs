//! The socket calls of TCP.

use std::net::{IpAddr, SocketAddr};

use airtcp_recovery::Combination;
use airtcp_types::{ByteCount, FlowId, Instant, SeqNumber, SharedBytes};
use tracing::debug;

use crate::counters::Counters;
use crate::tcp::{
    Chunk, Connection, LEAST, Offer, Outlet, SocketOption, State, TcpConfig, TcpError,
};

use super::{Host, HostError, Kind, Owner, Socket, SocketId, TcpSocket};

impl Host {
    /// Opens a connection to `remote` with the host's settings, or with `config`.
    ///
    /// The connection is open once [`Readiness::connected`](crate::tcp::Readiness::connected) is
    /// set. If the attempt fails, the connection is closed and [`Connection::error`] returns the
    /// reason.
    ///
    /// # Errors
    ///
    /// [`HostError::NoMemory`] and [`HostError::TooManyConnections`] if a limit is reached;
    /// [`HostError::Unroutable`] if the host has no address from which to reach `remote`;
    /// [`HostError::NoPorts`] if no port is free.
    pub fn tcp_connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        config: Option<TcpConfig>,
    ) -> Result<SocketId, HostError> {
        self.admits(remote)?;
        let source = self.config.source_for(remote).ok_or(HostError::Unroutable(remote))?;
        let local = self.port_towards(source, remote)?;
        Ok(self.open(now, FlowId { local, remote }, config, None))
    }

    /// Checks that the limits allow another connection with `remote`.
    pub(super) fn admits(&mut self, remote: SocketAddr) -> Result<(), HostError> {
        if self.is_short_of_memory(remote) {
            return Err(HostError::NoMemory);
        }
        if self.is_overdrawn(remote.ip()) {
            return Err(HostError::TooManyConnections);
        }
        Ok(())
    }

    /// Opens a connection in a flow that has none. `after` is the next sequence number of the
    /// flow's previous connection.
    pub(super) fn open(
        &mut self,
        now: Instant,
        flow: FlowId,
        config: Option<TcpConfig>,
        after: Option<SeqNumber>,
    ) -> SocketId {
        let mut config = match config {
            Some(config) => self.config.fitted(config),
            None => self.config.tcp.clone(),
        };
        if self.config.checksum_offload && config.offers_hack() {
            config.hack = Offer::Never;
            self.counters.tcp_ext_hack_offloaded += 1;
        }
        let isn = self.initial_number(now, &flow, after);
        let ts_offset = self.secret.timestamp_offset(&flow);
        let connection = Connection::connect(now, flow, isn, ts_offset, &config);
        self.counters.tcp_active_opens += 1;
        let id = self.adopt(now, connection, Owner::Application);
        self.touch(now, id);
        id
    }

    /// The initial sequence number of a connection.
    pub(super) fn initial_number(
        &self,
        now: Instant,
        flow: &FlowId,
        after: Option<SeqNumber>,
    ) -> SeqNumber {
        let isn = self.secret.isn(now, flow);
        // RFC 9293 section 3.6.1: larger than any number of the connection before it, which may
        // have been faster than the clock of the ISNs. The distance is Linux's.
        after.filter(|after| isn <= *after).map_or(isn, |after| after + 65_537)
    }

    /// Chooses a port that has no connection with `remote`, in TIME-WAIT or not, and is not bound.
    pub(super) fn port_towards(
        &mut self,
        source: IpAddr,
        remote: SocketAddr,
    ) -> Result<SocketAddr, HostError> {
        let in_use = |local| self.flows.contains_key(&FlowId { local, remote });
        let chosen = self.bindings.port_towards(&self.secret, source, remote, in_use);
        if chosen.is_err() {
            debug!(%remote, "connect failed: no free port");
            self.counters.tcp_ext_no_ports += 1;
        }
        chosen
    }

    /// Appends as much of `data` as fits to the send buffer, and returns the number of bytes.
    ///
    /// # Errors
    ///
    /// [`TcpError::WouldBlock`] if the buffer is full; otherwise the reason why no more data can be
    /// sent.
    pub fn tcp_send(
        &mut self,
        now: Instant,
        socket: SocketId,
        data: &[u8],
    ) -> Result<usize, HostError> {
        self.send_by(now, socket, |connection, outlet, most| {
            connection.send(now, &data[..data.len().min(most)], outlet)
        })
    }

    /// Sends as [`tcp_send`](Self::tcp_send), but without a copy; see [`Connection::send_shared`].
    ///
    /// # Errors
    ///
    /// As [`tcp_send`](Self::tcp_send).
    pub fn tcp_send_shared(
        &mut self,
        now: Instant,
        socket: SocketId,
        data: &SharedBytes,
    ) -> Result<usize, HostError> {
        self.send_by(now, socket, |connection, outlet, most| {
            connection.send_shared(now, data.part(0..most), outlet)
        })
    }

    /// Sends as [`tcp_send`](Self::tcp_send), but more data follows soon: data that does not fill a
    /// segment waits (`MSG_MORE`); see [`Connection::send_more`].
    ///
    /// # Errors
    ///
    /// As [`tcp_send`](Self::tcp_send).
    pub fn tcp_send_more(
        &mut self,
        now: Instant,
        socket: SocketId,
        data: &[u8],
    ) -> Result<usize, HostError> {
        self.send_by(now, socket, |connection, outlet, most| {
            connection.send_more(now, &data[..data.len().min(most)], outlet)
        })
    }

    /// Calls `send` with the maximum number of bytes that the memory limits allow, and updates the
    /// readiness.
    fn send_by(
        &mut self,
        now: Instant,
        socket: SocketId,
        send: impl FnOnce(&mut Connection, &mut Outlet, usize) -> Result<usize, TcpError>,
    ) -> Result<usize, HostError> {
        let left = self.memory_left(socket)?;
        let Some(Socket { kind: Kind::Tcp(tcp), known }) = self.sockets.get_mut(socket) else {
            return Err(HostError::WrongKind);
        };
        tcp.connection.set_memory_pressure(left == ByteCount::ZERO);
        let most = left.max(LEAST).as_usize();
        let sent = send(&mut tcp.connection, &mut self.outlet, most);
        // The writer has seen this value: room that appears later must be reported as a change.
        known.on_write(tcp.connection.readiness().writable);
        match sent {
            Ok(_) => self.touch(now, socket),
            Err(_) => self.look_at(now, socket),
        }
        Ok(sent?)
    }

    /// Copies received bytes to `buf` and returns their number; zero is the end of the stream.
    ///
    /// # Errors
    ///
    /// [`TcpError::WouldBlock`] if no data is available; otherwise the reason why none will follow.
    pub fn tcp_recv(
        &mut self,
        now: Instant,
        socket: SocketId,
        buf: &mut [u8],
    ) -> Result<usize, HostError> {
        self.read(now, socket, |connection| connection.recv(now, buf))
    }

    /// Receives bytes without a copy: `chunk` then refers to them, and the memory it referred to
    /// before may be reused. Returns the number of bytes; zero is the end of the stream.
    ///
    /// # Errors
    ///
    /// As [`tcp_recv`](Self::tcp_recv).
    pub fn tcp_recv_chunk(
        &mut self,
        now: Instant,
        socket: SocketId,
        chunk: &mut Chunk,
    ) -> Result<usize, HostError> {
        self.read(now, socket, |connection| connection.recv_chunk(now, chunk))
    }

    fn read(
        &mut self,
        now: Instant,
        socket: SocketId,
        recv: impl FnOnce(&mut Connection) -> Result<usize, TcpError>,
    ) -> Result<usize, HostError> {
        let left = self.memory_left(socket)?;
        let Some(Socket { kind: Kind::Tcp(tcp), known }) = self.sockets.get_mut(socket) else {
            return Err(HostError::WrongKind);
        };
        let connection = &mut tcp.connection;
        connection.set_memory_pressure(left == ByteCount::ZERO);
        let result = recv(connection);
        // The reader has seen this value: data that arrives later must be reported as a change.
        known.on_read(connection.is_readable());
        // A read can only cause a window update to be sent.
        match result {
            _ if connection.has_ack_due() => self.touch(now, socket),
            Err(TcpError::WouldBlock) => {}
            _ => self.look_at(now, socket),
        }
        Ok(result?)
    }

    /// Closes the sending direction after the queued data; reading remains possible.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a
    /// connection.
    pub fn tcp_shutdown(&mut self, now: Instant, socket: SocketId) -> Result<(), HostError> {
        self.owned(socket)?.connection.shutdown(now);
        self.touch(now, socket);
        Ok(())
    }

    /// Closes a connection, a listener or a bound address. The id becomes invalid.
    ///
    /// A connection delivers the queued data and then ends by itself. If received data was not
    /// read, it is reset (RFC 2525 section 2.17). [`SocketOption::Linger`] limits the time this may
    /// take. The connections that wait at a listener are reset.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is already closed; [`HostError::WrongKind`] if it is a
    /// UDP socket.
    pub fn tcp_close(&mut self, now: Instant, socket: SocketId) -> Result<(), HostError> {
        self.release(now, socket, |connection, now, counters| {
            counters.tcp_ext_abort_on_close += u64::from(connection.close(now));
        })
    }

    /// Resets a connection, refuses a pending SYN, or closes a listener or a bound address. The id
    /// becomes invalid.
    ///
    /// # Errors
    ///
    /// As [`tcp_close`](Self::tcp_close).
    pub fn tcp_abort(&mut self, now: Instant, socket: SocketId) -> Result<(), HostError> {
        self.release(now, socket, |connection, now, _| connection.abort(now))
    }

    /// Resets every connection, including those that the application has closed or not yet
    /// accepted. The ids remain valid.
    pub fn tcp_abort_all(&mut self, now: Instant) {
        let all: Vec<SocketId> = self.sockets.ids().collect();
        for id in all {
            if let Some(tcp) = self.tcp_socket(id) {
                tcp.connection.abort(now);
                self.touch(now, id);
            } else {
                self.end_time_wait(now, id);
            }
        }
    }

    fn release(
        &mut self,
        now: Instant,
        id: SocketId,
        how: impl FnOnce(&mut Connection, Instant, &mut Counters),
    ) -> Result<(), HostError> {
        match self.socket(id)?.kind {
            Kind::Listener(_) => {
                self.close_listener(now, id);
                return Ok(());
            }
            Kind::Bound(_) => {
                self.unbind(id);
                return Ok(());
            }
            Kind::Pending(_) => {
                self.refuse_pending(id);
                return Ok(());
            }
            _ => {}
        }
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) else {
            return Err(HostError::WrongKind);
        };
        how(&mut tcp.connection, now, &mut self.counters);
        self.hand_over(id, Owner::Nobody);
        self.withdraw_readiness(id);
        self.touch(now, id);
        Ok(())
    }

    /// A read-only view of a connection.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a
    /// connection.
    pub fn tcp(&self, socket: SocketId) -> Result<&Connection, HostError> {
        match &self.socket(socket)?.kind {
            Kind::Tcp(tcp) => Ok(&tcp.connection),
            _ => Err(HostError::WrongKind),
        }
    }

    /// Sets an option of a connection.
    ///
    /// # Errors
    ///
    /// [`SocketOption::Combination`] returns [`HostError::NotNegotiated`] if the strategies need an
    /// option that the two ends did not negotiate, and otherwise the reason why no more data can be
    /// sent. The old strategies then stay in use.
    ///
    /// Every option returns [`HostError::Stale`] if the socket is closed, and
    /// [`HostError::WrongKind`] if it is not a connection.
    pub fn tcp_set(
        &mut self,
        now: Instant,
        socket: SocketId,
        option: SocketOption,
    ) -> Result<(), HostError> {
        let set = option.apply(now, &mut self.owned(socket)?.connection);
        if set != Ok(false) {
            self.touch(now, socket);
        }
        set?;
        Ok(())
    }

    /// Changes the sender's strategies: those of future connections without settings of their own,
    /// and those of all existing connections. Returns the number of connections changed; the others
    /// have ended, or did not negotiate an option that the strategies need.
    pub fn tcp_set_combination(&mut self, now: Instant, combination: &Combination) -> usize {
        self.config.tcp.sender.combination = combination.clone();
        let ids: Vec<SocketId> = self.sockets.ids().collect();
        let mut changed = 0;
        for id in ids {
            let Some(tcp) = self.tcp_socket(id) else { continue };
            if tcp.connection.set_combination(now, combination).is_ok() {
                changed += 1;
                self.touch(now, id);
            }
        }
        changed
    }

    /// Returns the addresses and the state of every connection, except those that have ended and
    /// are not held. The order has no meaning, but is the same in every run. It iterates over all
    /// sockets: use it for listings only.
    pub fn tcp_connections(&self) -> impl Iterator<Item = (FlowId, State)> {
        self.sockets.iter().filter_map(|socket| match &socket.kind {
            Kind::Tcp(tcp) if !tcp.is_gone() => {
                Some((tcp.connection.flow(), tcp.connection.state()))
            }
            Kind::TimeWait(socket) => Some((socket.wait.flow(), State::TimeWait)),
            _ => None,
        })
    }

    /// The memory that the peer of a connection may still use.
    fn memory_left(&mut self, socket: SocketId) -> Result<ByteCount, HostError> {
        let peer = self.owned(socket)?.peer;
        Ok(self.peers.memory_left(&self.config, self.held, peer))
    }

    fn owned(&mut self, id: SocketId) -> Result<&mut TcpSocket, HostError> {
        self.socket(id)?;
        self.tcp_socket(id).ok_or(HostError::WrongKind)
    }
}
