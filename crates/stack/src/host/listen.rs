//! Passive opens: the socket calls.

use std::net::SocketAddr;

use airtcp_types::Instant;

use crate::tcp::TcpConfig;

use super::listener::Listener;
use super::{Host, HostError, Kind, Owner, Socket, SocketId};

impl Host {
    /// Listens at `local`. At most `backlog` connections, half-open or not yet accepted, wait at a
    /// time. Further SYNs are answered with SYN cookies (RFC 4987), without state; once `backlog`
    /// connections wait to be accepted, SYNs are dropped and the peer retransmits them.
    ///
    /// `0.0.0.0` stands for every IPv4 address and `[::]` for every IPv6 address; neither stands
    /// for both. A listener at a specific address takes precedence. Port zero stands for any free
    /// port.
    ///
    /// # Errors
    ///
    /// As [`tcp_bind`](Self::tcp_bind).
    pub fn tcp_listen(&mut self, local: SocketAddr, backlog: usize) -> Result<SocketId, HostError> {
        self.listen(local, backlog, None)
    }

    /// Listens as [`tcp_listen`](Self::tcp_listen), with settings for the connections of this
    /// listener. `backlog` is a number of connections.
    ///
    /// # Errors
    ///
    /// As [`tcp_bind`](Self::tcp_bind).
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

    /// Adds a listener at a free address.
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

    /// The listener `id`, mutable.
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
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a
    /// listener.
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

    /// Accepts the oldest waiting connection and returns it with the peer's address; `None` if none
    /// waits.
    ///
    /// The connection may have ended meanwhile: reading from it then returns the reason.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if the socket is closed; [`HostError::WrongKind`] if it is not a
    /// listener, or is one at [every destination](Self::tcp_listen_any).
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

    /// Removes a listener. Connections that were not accepted are reset.
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
