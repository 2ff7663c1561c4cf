//! Passive opens: what applications call.

use std::net::SocketAddr;

use airtcp_types::Instant;

use crate::tcp::TcpConfig;

use super::listener::Listener;
use super::{Host, HostError, Kind, Owner, Socket, SocketId};

impl Host {
    /// Takes connections to `local`. At most `backlog` of them, half-open or not yet accepted, wait
    /// at a time. SYNs beyond that are answered by cookies (RFC 4987), and nothing of them is kept;
    /// where `backlog` connections wait to be accepted they are dropped, and the peer tries again.
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
        let listener = Listener::new(local, backlog.min(self.config.backlog), config);
        let id = self.sockets.insert(Socket::new(Kind::Listener(listener)));
        self.bindings.add_listener(local, id);
        id
    }

    /// The listener `id`.
    pub(super) fn listener(&self, id: SocketId) -> Option<&Listener> {
        match &self.sockets.get(id)?.kind {
            Kind::Listener(listener) => Some(listener),
            _ => None,
        }
    }

    /// As [`listener`](Self::listener), to change it.
    pub(super) fn listener_mut(&mut self, id: SocketId) -> Option<&mut Listener> {
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
        self.listener_mut(listener).ok_or(HostError::WrongKind)?.set_config(config);
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
        let queue = self.listener_mut(listener).filter(|queue| !queue.is_any());
        let Some(id) = queue.ok_or(HostError::WrongKind)?.accept() else { return Ok(None) };
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
        self.bindings.remove_listener(listener.local());
        for child in listener.into_children() {
            self.refuse_pending(child);
            self.hand_over(child, Owner::Nobody);
            if let Some(tcp) = self.tcp_socket(child) {
                tcp.connection.abort(now);
                self.touch(now, child);
            }
        }
    }
}
