//! Listeners: passive opens.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use airtcp_types::Instant;

use crate::tcp::TcpConfig;

use super::bindings::ANY;
use super::{Host, HostError, Kind, Owner, Socket, SocketId};

/// A port that takes connections.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) local: SocketAddr,
    backlog: usize,
    /// What its connections start from, if not from the host's settings.
    pub(super) config: Option<Box<TcpConfig>>,
    /// Connections whose handshake goes on.
    pub(super) half_open: BTreeSet<SocketId>,
    /// Connections that wait to be accepted, the oldest first.
    pub(super) waiting: VecDeque<SocketId>,
    /// Until when a cookie that was sent may come back.
    pub(super) cookies_until: Option<Instant>,
}

impl Listener {
    /// Whether it listens at every address and port. SYNs then wait in place of connections: `waiting` has those that
    /// the program has not seen, `half_open` those that it has neither accepted nor refused.
    pub(super) fn is_any(&self) -> bool {
        self.local == ANY
    }

    /// Whether there is no room for another half-open connection.
    pub(super) fn is_full(&self) -> bool {
        self.half_open.len() + self.waiting.len() >= self.backlog
    }

    /// Whether there is no room for another connection to be accepted.
    pub(super) fn is_unattended(&self) -> bool {
        self.waiting.len() >= self.backlog
    }

    pub(super) fn is_readable(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl Host {
    /// Takes connections to `local`. At most `backlog` of them, half-open or not yet accepted, wait
    /// at a time. SYNs beyond that are answered by cookies (RFC 4987), of which nothing is kept; where
    /// `backlog` connections wait to be accepted they are dropped, and the peer tries again.
    ///
    /// `0.0.0.0` stands for every IPv4 address and `[::]` for every IPv6 address, neither for both;
    /// a listener at the very address goes before one at all. Port zero is any free one.
    pub fn tcp_listen(&mut self, local: SocketAddr, backlog: usize) -> Result<SocketId, HostError> {
        self.listen(local, backlog, None)
    }

    /// As [`tcp_listen`](Self::tcp_listen), with settings of their own for its connections.
    pub fn tcp_listen_with(
        &mut self,
        local: SocketAddr,
        backlog: usize,
        config: TcpConfig,
    ) -> Result<SocketId, HostError> {
        let config = self.config.fitted(config);
        self.listen(local, backlog, Some(Box::new(config)))
    }

    fn listen(
        &mut self,
        local: SocketAddr,
        backlog: usize,
        config: Option<Box<TcpConfig>>,
    ) -> Result<SocketId, HostError> {
        let local = self.free_address(local)?;
        Ok(self.add_listener(local, backlog, config))
    }

    /// Listens at an address that nobody has.
    pub(super) fn add_listener(
        &mut self,
        local: SocketAddr,
        backlog: usize,
        config: Option<Box<TcpConfig>>,
    ) -> SocketId {
        let backlog = backlog.clamp(1, self.config.backlog.max(1));
        let listener = Listener {
            local,
            backlog,
            config,
            half_open: BTreeSet::new(),
            waiting: VecDeque::new(),
            cookies_until: None,
        };
        let id = self.sockets.insert(Socket::new(Kind::Listener(listener)));
        self.bindings.add_listener(local, id);
        id
    }

    /// The listener `id`.
    pub(super) fn listener(&mut self, id: SocketId) -> Option<&mut Listener> {
        match &mut self.sockets.get_mut(id)?.kind {
            Kind::Listener(listener) => Some(listener),
            _ => None,
        }
    }

    /// Sets the settings of future connections of a listener.
    ///
    /// # Errors
    ///
    /// [`HostError::WrongKind`]: it is no listener.
    pub fn tcp_set_listener_config(
        &mut self,
        listener: SocketId,
        config: TcpConfig,
    ) -> Result<(), HostError> {
        self.socket(listener)?;
        let config = self.config.fitted(config);
        let listener = self.listener(listener).ok_or(HostError::WrongKind)?;
        listener.config = Some(Box::new(config));
        Ok(())
    }

    /// Accepts the oldest waiting connection, with its peer; `None` if none waits.
    ///
    /// It may have ended since: reading from it then says so.
    pub fn tcp_accept(
        &mut self,
        now: Instant,
        listener: SocketId,
    ) -> Result<Option<(SocketId, SocketAddr)>, HostError> {
        self.socket(listener)?;
        let queue = self.listener(listener).filter(|queue| !queue.is_any());
        let queue = queue.ok_or(HostError::WrongKind)?;
        let Some(id) = queue.waiting.pop_front() else { return Ok(None) };
        self.report_readiness(listener);
        let Some(tcp) = self.tcp_socket(id) else { return Ok(None) };
        tcp.owner = Owner::Application;
        let remote = tcp.connection.flow().remote;
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.known.forget();
        }
        self.look_at(now, id);
        Ok(Some((id, remote)))
    }

    /// Removes a listener. Connections that nobody accepted are reset.
    pub(super) fn close_listener(&mut self, now: Instant, id: SocketId) {
        self.withdraw_readiness(id);
        let Some(Socket { kind: Kind::Listener(listener), .. }) = self.sockets.remove(id) else {
            return;
        };
        self.bindings.remove_listener(listener.local);
        for child in listener.half_open.into_iter().chain(listener.waiting) {
            self.refuse_pending(child);
            self.hand_over(child, Owner::Nobody);
            if let Some(tcp) = self.tcp_socket(child) {
                tcp.connection.abort(now);
                self.touch(now, child);
            }
        }
    }
}
