//! Bound addresses that are not yet listening or connected, as after bind(2).

use std::net::SocketAddr;

use airtcp_types::{FlowId, Instant};
use tracing::debug;

use crate::tcp::TcpConfig;

use super::{Host, HostError, Kind, Socket, SocketId};

/// An address that is reserved for one socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) local: SocketAddr,
    /// Whether the host chose the port, and may choose another one.
    chosen: bool,
}

impl Host {
    /// Binds `local` for a connection or a listener. Unspecified addresses and port zero are
    /// handled as in [`tcp_listen`](Self::tcp_listen). Existing connections at the address, in
    /// TIME-WAIT or not, do not prevent this, as with `SO_REUSEADDR`.
    ///
    /// # Errors
    ///
    /// [`HostError::AddressInUse`] if the address is bound or has a listener;
    /// [`HostError::NotLocal`] if it is not an address of the host; [`HostError::NoPorts`] if no
    /// port is free.
    pub fn tcp_bind(&mut self, local: SocketAddr) -> Result<SocketId, HostError> {
        let chosen = local.port() == 0;
        let local = self.free_address(local)?;
        self.bindings.reserve(local);
        Ok(self.sockets.insert(Socket::new(Kind::Bound(Bound { local, chosen }))))
    }

    /// Opens a connection as [`tcp_connect`](Self::tcp_connect), from a bound address. The id of
    /// the bound address becomes invalid, unless the call fails.
    ///
    /// # Errors
    ///
    /// [`HostError::FlowInUse`] if such a connection exists. If the host chose the port, it chooses
    /// another one instead. [`HostError::Stale`] if `bound` is closed; [`HostError::WrongKind`] if
    /// it is not a bound address; otherwise as [`tcp_connect`](Self::tcp_connect).
    pub fn tcp_connect_from(
        &mut self,
        now: Instant,
        bound: SocketId,
        remote: SocketAddr,
        config: Option<TcpConfig>,
    ) -> Result<SocketId, HostError> {
        let Bound { local, chosen } = self.bound(bound)?;
        self.admits(remote)?;
        let source = self
            .config
            .source_for(remote)
            .filter(|source| source.is_ipv4() == local.is_ipv4())
            .ok_or(HostError::Unroutable(remote))?;
        let ip = if local.ip().is_unspecified() { source } else { local.ip() };
        let mut flow = FlowId { local: SocketAddr::new(ip, local.port()), remote };
        if self.flows.contains_key(&flow) {
            if !chosen {
                return Err(HostError::FlowInUse(flow));
            }
            flow.local = self.port_towards(ip, remote)?;
        }
        self.unbind(bound);
        Ok(self.open(now, flow, config, None))
    }

    /// Listens as [`tcp_listen_with`](Self::tcp_listen_with), at a bound address. The id of the
    /// bound address becomes invalid. `backlog` is a number of connections.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`] if `bound` is closed; [`HostError::WrongKind`] if it is not a bound
    /// address.
    pub fn tcp_listen_at(
        &mut self,
        bound: SocketId,
        backlog: usize,
        config: TcpConfig,
    ) -> Result<SocketId, HostError> {
        let Bound { local, .. } = self.bound(bound)?;
        self.unbind(bound);
        let config = self.config.fitted(config);
        Ok(self.add_listener(local, backlog, Some(Box::new(config))))
    }

    /// Checks that `local` is an address of the host and is free. Chooses a port if the port is
    /// zero.
    pub(super) fn free_address(&mut self, local: SocketAddr) -> Result<SocketAddr, HostError> {
        let bound = self.bindings.free_for_tcp(&self.config, &self.secret, local);
        if bound == Err(HostError::NoPorts) {
            debug!(%local, "TCP bind failed: no free port");
            self.counters.tcp_ext_no_ports += 1;
        }
        bound
    }

    pub(super) fn unbind(&mut self, id: SocketId) {
        if let Some(Socket { kind: Kind::Bound(bound), .. }) = self.sockets.remove(id) {
            self.bindings.release(bound.local);
        }
    }

    fn bound(&self, id: SocketId) -> Result<Bound, HostError> {
        match self.socket(id)?.kind {
            Kind::Bound(bound) => Ok(bound),
            _ => Err(HostError::WrongKind),
        }
    }
}
