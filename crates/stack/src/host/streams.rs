//! What applications do with connections.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_recovery::{Combination, Sender};
use airtcp_types::{ByteCount, FlowId, Instant, SharedBytes};
use tracing::debug;

use crate::counters::Counters;
use crate::tcp::{
    Chunk, Connection, Info, KeepAlive, LEAST, Offer, Outlet, State, TcpConfig, TcpError,
};

use super::{Host, HostError, Kind, Owner, Socket, SocketId, TcpSocket};

impl Host {
    /// Opens a connection to `remote`, with the host's settings or with `config`.
    ///
    /// It is open when [`Readiness::connected`](crate::tcp::Readiness::connected) says so; if it
    /// comes to nothing, it is closed and [`tcp_error`](Self::tcp_error) says why.
    pub fn tcp_connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        config: Option<TcpConfig>,
    ) -> Result<SocketId, HostError> {
        self.admits(remote)?;
        let source = self.config.source_for(remote).ok_or(HostError::Unroutable(remote))?;
        let local = self.port_towards(source, remote)?;
        Ok(self.open(now, FlowId { local, remote }, config))
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

    /// Opens a connection between two ends that have none.
    pub(super) fn open(
        &mut self,
        now: Instant,
        flow: FlowId,
        config: Option<TcpConfig>,
    ) -> SocketId {
        let mut config = match config {
            Some(config) => self.config.fitted(config),
            None => self.config.tcp.clone(),
        };
        if self.config.checksum_offload && config.offers_hack() {
            config.hack = Offer::Never;
            self.counters.tcp_ext_hack_offloaded += 1;
        }
        let isn = self.secret.isn(now, &flow);
        let ts_offset = self.secret.timestamp_offset(&flow);
        let connection = Connection::connect(now, flow, isn, ts_offset, &config);
        self.counters.tcp_active_opens += 1;
        let id = self.adopt(now, connection, Owner::Application);
        self.touch(now, id);
        id
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

    /// Queues as much of `data` as there is room for, and gives how many bytes that was.
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

    /// Takes bytes that arrived, and gives how many; zero is the end of the stream.
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

    /// Copies bytes that arrived and leaves them to be read; gives how many, zero at the end of the stream.
    ///
    /// # Errors
    ///
    /// As [`tcp_recv`](Self::tcp_recv).
    pub fn tcp_peek(&self, socket: SocketId, buf: &mut [u8]) -> Result<usize, HostError> {
        Ok(self.connection(socket)?.peek(buf)?)
    }

    /// Ends the stream after what is queued; reading goes on.
    pub fn tcp_shutdown(&mut self, now: Instant, socket: SocketId) -> Result<(), HostError> {
        self.with(now, socket, |connection| {
            connection.shutdown(now);
            Ok(())
        })
    }

    /// Lets go of a connection, a listener or a bound address. The id is stale from here on.
    ///
    /// A connection delivers what is queued and ends by itself, or with a RST if there is data that
    /// was not read (RFC 2525 section 2.17). [`tcp_set_linger`](Self::tcp_set_linger) limits how long that may take.
    /// The connections that wait at a listener are reset.
    pub fn tcp_close(&mut self, now: Instant, socket: SocketId) -> Result<(), HostError> {
        let linger = self.tcp_socket(socket).and_then(|tcp| tcp.linger);
        self.release(now, socket, |connection, now, counters| {
            let lost = match linger {
                Some(limit) => connection.close_within(now, limit),
                None => connection.close(now),
            };
            counters.tcp_ext_abort_on_close += u64::from(lost);
        })
    }

    /// Sets how long [`tcp_close`](Self::tcp_close) may take (`SO_LINGER`): what the peer has not acknowledged by then,
    /// the FIN included, is thrown away with a RST, at once with a limit of zero. `None`, the default, is no limit but
    /// that of time-outs.
    pub fn tcp_set_linger(
        &mut self,
        socket: SocketId,
        limit: Option<Duration>,
    ) -> Result<(), HostError> {
        self.owned(socket)?.linger = limit;
        Ok(())
    }

    /// How long [`tcp_close`](Self::tcp_close) may take.
    pub fn tcp_linger(&self, socket: SocketId) -> Result<Option<Duration>, HostError> {
        match &self.socket(socket)?.kind {
            Kind::Tcp(tcp) => Ok(tcp.linger),
            _ => Err(HostError::WrongKind),
        }
    }

    /// Sets how long sent data, or a peer that answers no keep-alive, may go unanswered, and how long data may wait for a
    /// closed window to open (`TCP_USER_TIMEOUT`, RFC 5482); `None`, the default, for the usual number of time-outs.
    pub fn tcp_set_user_timeout(
        &mut self,
        now: Instant,
        socket: SocketId,
        limit: Option<Duration>,
    ) -> Result<(), HostError> {
        self.with(now, socket, |connection| {
            connection.set_user_timeout(limit);
            Ok(())
        })
    }

    /// Resets a connection, or closes a listener or lets go of a bound address. The id is stale from here on.
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
            _ => {}
        }
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) else {
            return Err(HostError::WrongKind);
        };
        how(&mut tcp.connection, now, &mut self.counters);
        tcp.owner = Owner::Nobody;
        self.untell(id);
        self.touch(now, id);
        Ok(())
    }

    /// The strategies that a connection's sender has, or will begin with.
    ///
    /// # Errors
    ///
    /// [`TcpError::Shutdown`], or why the connection ended, once nothing can be sent any more.
    pub fn tcp_combination(&self, socket: SocketId) -> Result<&Combination, HostError> {
        let connection = self.connection(socket)?;
        let ended = || connection.error().unwrap_or(TcpError::Shutdown);
        Ok(connection.combination().ok_or_else(ended)?)
    }

    /// Turns Nagle's algorithm off or on.
    pub fn tcp_set_nodelay(
        &mut self,
        now: Instant,
        socket: SocketId,
        nodelay: bool,
    ) -> Result<(), HostError> {
        if self.owned(socket)?.connection.set_nodelay(nodelay) {
            self.touch(now, socket);
        }
        Ok(())
    }

    /// Whether Nagle's algorithm is off.
    pub fn tcp_nodelay(&self, socket: SocketId) -> Result<bool, HostError> {
        self.connection(socket).map(Connection::nodelay)
    }

    /// Has a connection acknowledge at once for a while, or lets ACKs wait (`TCP_QUICKACK`); see
    /// [`Connection::set_quick_ack`].
    pub fn tcp_set_quick_ack(
        &mut self,
        now: Instant,
        socket: SocketId,
        on: bool,
    ) -> Result<(), HostError> {
        self.with(now, socket, |connection| {
            connection.set_quick_ack(on);
            Ok(())
        })
    }

    /// Whether ACKs do not wait for data that they can ride on.
    pub fn tcp_quick_ack(&self, socket: SocketId) -> Result<bool, HostError> {
        self.connection(socket).map(Connection::quick_ack)
    }

    /// Lets only full segments of a connection leave, or what was held back (`TCP_CORK`); see
    /// [`Connection::set_cork`].
    pub fn tcp_set_cork(
        &mut self,
        now: Instant,
        socket: SocketId,
        cork: bool,
    ) -> Result<(), HostError> {
        self.with(now, socket, |connection| {
            connection.set_cork(cork);
            Ok(())
        })
    }

    /// Whether only full segments leave.
    pub fn tcp_cork(&self, socket: SocketId) -> Result<bool, HostError> {
        self.connection(socket).map(Connection::cork)
    }

    /// Sets how much may be written and not sent yet (`TCP_NOTSENT_LOWAT`); see
    /// [`Connection::set_not_sent_low_water`].
    pub fn tcp_set_not_sent_low_water(
        &mut self,
        now: Instant,
        socket: SocketId,
        mark: Option<ByteCount>,
    ) -> Result<(), HostError> {
        self.with(now, socket, |connection| {
            connection.set_not_sent_low_water(mark);
            Ok(())
        })
    }

    /// How much may be written and not sent.
    pub fn tcp_not_sent_low_water(&self, socket: SocketId) -> Result<Option<ByteCount>, HostError> {
        self.connection(socket).map(Connection::not_sent_low_water)
    }

    /// Sets the size of the send buffer of a connection (`SO_SNDBUF`); see [`Connection::set_send_buffer`].
    pub fn tcp_set_send_buffer(
        &mut self,
        now: Instant,
        socket: SocketId,
        size: ByteCount,
    ) -> Result<(), HostError> {
        self.with(now, socket, |connection| {
            connection.set_send_buffer(size);
            Ok(())
        })
    }

    /// Sets the most that the receive buffer of a connection grows to (`SO_RCVBUF`); see
    /// [`Connection::set_receive_buffer`].
    pub fn tcp_set_receive_buffer(
        &mut self,
        now: Instant,
        socket: SocketId,
        most: ByteCount,
    ) -> Result<(), HostError> {
        self.with(now, socket, |connection| {
            connection.set_receive_buffer(most);
            Ok(())
        })
    }

    /// Sets TTL or hop limit of what a connection sends from now on.
    pub fn tcp_set_hop_limit(&mut self, socket: SocketId, hop_limit: u8) -> Result<(), HostError> {
        self.owned(socket)?.connection.set_hop_limit(hop_limit);
        Ok(())
    }

    /// TTL or hop limit of what a connection sends.
    pub fn tcp_hop_limit(&self, socket: SocketId) -> Result<u8, HostError> {
        self.connection(socket).map(Connection::hop_limit)
    }

    /// Asks a silent peer whether it is still there, from now on, or never.
    pub fn tcp_set_keep_alive(
        &mut self,
        now: Instant,
        socket: SocketId,
        settings: Option<KeepAlive>,
    ) -> Result<(), HostError> {
        self.with(now, socket, |connection| {
            connection.set_keep_alive(now, settings);
            Ok(())
        })
    }

    /// Gives a connection other strategies, at any time; see [`Connection::set_combination`].
    ///
    /// # Errors
    ///
    /// [`HostError::NotNegotiated`] if they need what the two ends have not agreed on; otherwise why
    /// nothing can be sent any more. The old strategies then stay.
    pub fn tcp_set_combination(
        &mut self,
        now: Instant,
        socket: SocketId,
        combination: &Combination,
    ) -> Result<(), HostError> {
        let result = self.owned(socket)?.connection.set_combination(now, combination);
        self.touch(now, socket);
        Ok(result?)
    }

    /// What `ss -ti` would say of a connection.
    pub fn tcp_info(&self, now: Instant, socket: SocketId) -> Result<Info, HostError> {
        self.connection(socket).map(|connection| connection.info(now))
    }

    /// Bytes of a connection that have arrived and were not read, those behind a hole too.
    pub fn tcp_unread(&self, socket: SocketId) -> Result<ByteCount, HostError> {
        self.connection(socket).map(Connection::unread)
    }

    /// The state of a connection.
    pub fn tcp_state(&self, socket: SocketId) -> Result<State, HostError> {
        self.connection(socket).map(Connection::state)
    }

    /// Why a connection ended, if not as it should.
    pub fn tcp_error(&self, socket: SocketId) -> Result<Option<TcpError>, HostError> {
        self.connection(socket).map(Connection::error)
    }

    /// The two ends of a connection.
    pub fn tcp_flow(&self, socket: SocketId) -> Result<FlowId, HostError> {
        self.connection(socket).map(Connection::flow)
    }

    /// The sender of a connection, to look at; `None` before it is established.
    pub fn tcp_sender(&self, socket: SocketId) -> Result<Option<&Sender>, HostError> {
        self.connection(socket).map(Connection::sender)
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

    /// Calls a connection, and sees to what follows from it.
    fn with<T>(
        &mut self,
        now: Instant,
        id: SocketId,
        call: impl FnOnce(&mut Connection) -> Result<T, TcpError>,
    ) -> Result<T, HostError> {
        let result = call(&mut self.owned(id)?.connection);
        self.touch(now, id);
        Ok(result?)
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

    fn connection(&self, id: SocketId) -> Result<&Connection, HostError> {
        match &self.socket(id)?.kind {
            Kind::Tcp(tcp) => Ok(&tcp.connection),
            _ => Err(HostError::WrongKind),
        }
    }
}
