//! Bound addresses that are not yet listening or connected, as after bind(2).

use std::net::SocketAddr;

use airtcp_types::{FlowId, Instant};
use tracing::debug;

use crate::tcp::TcpConfig;

use super::{Host, HostError, Kind, Socket, SocketId};

/// An address that nobody else gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) local: SocketAddr,
    /// The host chose the port, and may choose another one.
    chosen: bool,
}

impl Host {
    /// Takes `local` for a connection or a listener; unspecified addresses and port zero are as with
    /// [`tcp_listen`](Self::tcp_listen). Connections that have it, in TIME-WAIT or not, do not matter, as
    /// with `SO_REUSEADDR`.
    ///
    /// # Errors
    ///
    /// [`HostError::AddressInUse`]: it is bound, or listened on; [`HostError::NotLocal`];
    /// [`HostError::NoPorts`].
    pub fn tcp_bind(&mut self, local: SocketAddr) -> Result<SocketId, HostError> {
        let chosen = local.port() == 0;
        let local = self.free_address(local)?;
        self.bindings.reserve(local);
        Ok(self.sockets.insert(Socket::new(Kind::Bound(Bound { local, chosen }))))
    }

    /// As [`tcp_connect`](Self::tcp_connect), from a bound address. The id of that is stale from here on,
    /// but stays good where this fails.
    ///
    /// # Errors
    ///
    /// [`HostError::FlowInUse`]: there is such a connection. Where the port was the host's choice, it
    /// chooses another one instead.
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

    /// As [`tcp_listen_with`](Self::tcp_listen_with), at a bound address. The id of that is stale from here
    /// on.
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

    /// Checks that `local` is the host's and that nobody has it, and chooses its port if that is zero.
    pub(super) fn free_address(&mut self, local: SocketAddr) -> Result<SocketAddr, HostError> {
        let bound = self.bindings.free_for_tcp(&self.config, &self.secret, local);
        if bound == Err(HostError::NoPorts) {
            debug!(%local, "nothing bound: every port is taken");
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
