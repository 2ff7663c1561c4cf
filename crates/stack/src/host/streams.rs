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
    /// Opens a connection to `remote`, with the host's settings or with `config`.
    ///
    /// It is open when [`Readiness::connected`](crate::tcp::Readiness::connected) says so; if it
    /// comes to nothing, it is closed and [`Connection::error`] says why.
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

    /// Whether there may be one more connection with `remote`.
    pub(super) fn admits(&mut self, remote: SocketAddr) -> Result<(), HostError> {
        if self.is_short_of_memory(remote) {
            return Err(HostError::NoMemory);
        }
        if self.is_overdrawn(remote.ip()) {
            return Err(HostError::TooManyConnections);
        }
        Ok(())
    }

    /// Opens a connection between two ends that have none. The one that they had before would have sent the number `after`
    /// next.
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
        // RFC 9293 section 3.6.1: larger than any number of the connection before it, which may have
        // been faster than the clock of the ISNs. The distance is Linux's.
        after.filter(|after| isn <= *after).map_or(isn, |after| after + 65_537)
    }

    /// A port that has no connection with `remote`, in TIME-WAIT or not, and that nobody has bound.
    pub(super) fn port_towards(
        &mut self,
        source: IpAddr,
        remote: SocketAddr,
    ) -> Result<SocketAddr, HostError> {
        let in_use = |local| self.flows.contains_key(&FlowId { local, remote });
        let chosen = self.bindings.port_towards(&self.secret, source, remote, in_use);
        if chosen.is_err() {
            debug!(%remote, "no connection: every port is taken");
            self.counters.tcp_ext_no_ports += 1;
        }
        chosen
    }

    /// Queues as much of `data` as fits, and returns the number of bytes.
    ///
    /// # Errors
    ///
    /// [`TcpError::WouldBlock`] without room; otherwise why nothing can be sent any more.
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

    /// As [`tcp_send`](Self::tcp_send), but without a copy; see [`Connection::send_shared`].
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

    /// As [`tcp_send`](Self::tcp_send), but more follows soon: what does not fill a segment waits (`MSG_MORE`); see
    /// [`Connection::send_more`].
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

    /// Calls `send` with the most bytes that the memory limits allow, and then updates readiness.
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
        // Its holder knows: room that comes before anything is settled is news.
        known.on_write(tcp.connection.readiness().writable);
        match sent {
            Ok(_) => self.touch(now, socket),
            Err(_) => self.look_at(now, socket),
        }
        Ok(sent?)
    }

    /// Reads received bytes, and returns their number; zero is the end of the stream.
    ///
    /// # Errors
    ///
    /// [`TcpError::WouldBlock`] if none are there; otherwise why none will come.
    pub fn tcp_recv(
        &mut self,
        now: Instant,
        socket: SocketId,
        buf: &mut [u8],
    ) -> Result<usize, HostError> {
        self.read(now, socket, |connection| connection.recv(now, buf))
    }

    /// Takes bytes that arrived without a copy: `chunk` becomes them, and the memory that it had may be used again. Gives
    /// how many; zero is the end of the stream.
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
        // Its holder knows: what comes before anything is settled is news.
        known.on_read(connection.is_readable());
        // Reading has nothing to send but a window update.
        match result {
            _ if connection.has_ack_due() => self.touch(now, socket),
            Err(TcpError::WouldBlock) => {}
            _ => self.look_at(now, socket),
        }
        Ok(result?)
    }

    /// Closes the sending direction after the queued data; reading remains possible.
    pub fn tcp_shutdown(&mut self, now: Instant, socket: SocketId) -> Result<(), HostError> {
        self.owned(socket)?.connection.shutdown(now);
        self.touch(now, socket);
        Ok(())
    }

    /// Closes a connection, a listener or a bound address. The id becomes invalid.
    ///
    /// A connection delivers what is queued and ends by itself, or with a RST if there is data that
    /// was not read (RFC 2525 section 2.17). [`SocketOption::Linger`] limits how long that may take.
    /// The connections that wait at a listener are reset.
    pub fn tcp_close(&mut self, now: Instant, socket: SocketId) -> Result<(), HostError> {
        self.release(now, socket, |connection, now, counters| {
            counters.tcp_ext_abort_on_close += u64::from(connection.close(now));
        })
    }

    /// Resets a connection, refuses a SYN that is held, or closes a listener or a bound address. The id becomes invalid.
    pub fn tcp_abort(&mut self, now: Instant, socket: SocketId) -> Result<(), HostError> {
        self.release(now, socket, |connection, now, _| connection.abort(now))
    }

    /// Resets every connection, those that nobody holds any more or has accepted yet too. The ids
    /// stay good.
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
    /// Of [`SocketOption::Combination`] [`HostError::NotNegotiated`] if the strategies need what the two ends have not
    /// agreed on, and otherwise why nothing can be sent any more. The old strategies then stay.
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

    /// Gives the host other strategies: those of connections to come without settings of their own, and those of all that
    /// there are. Returns how many of these have them now; the others are over, or their two ends have not agreed on what the
    /// strategies need.
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

    /// Every connection that has not ended or is held, and its state, in no order that means anything but the same in
    /// every run.
    /// This walks all of them: it is for listings.
    pub fn tcp_connections(&self) -> impl Iterator<Item = (FlowId, State)> {
        self.sockets.iter().filter_map(|socket| match &socket.kind {
            Kind::Tcp(tcp) if !tcp.is_gone() => {
                Some((tcp.connection.flow(), tcp.connection.state()))
            }
            Kind::TimeWait(socket) => Some((socket.wait.flow(), State::TimeWait)),
            _ => None,
        })
    }

    /// What the peer of a connection may have held more.
    fn memory_left(&mut self, socket: SocketId) -> Result<ByteCount, HostError> {
        let peer = self.owned(socket)?.peer;
        Ok(self.peers.memory_left(&self.config, self.held, peer))
    }

    fn owned(&mut self, id: SocketId) -> Result<&mut TcpSocket, HostError> {
        self.socket(id)?;
        self.tcp_socket(id).ok_or(HostError::WrongKind)
    }
}
