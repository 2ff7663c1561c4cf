//! The handle of an RRTP endpoint on a UDP socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Alarm, Clock};
use airtcp_rrtp::{Config, Counters, Endpoint, Limits};
use rand::TryRng;
use rand::rngs::SysRng;
use tokio::runtime;
use tracing::debug;

use super::core::Core;
use super::datagrams::DatagramSocket;
use super::driver::Driver;
use super::kernel;
use super::listener::RrtpListener;
use super::stream::RrtpStream;
use crate::shared::{self, Shared};

/// An RRTP endpoint on a UDP socket. It opens connections, and accepts them while a listener
/// exists.
///
/// Clones share the endpoint. After the last clone, listener and stream is dropped, the endpoint
/// continues until the last connection has delivered the data already written, and only as long as
/// the runtime lives. [`shutdown_within`](Self::shutdown_within) waits for that.
#[derive(Clone, Debug)]
pub struct RrtpSocket {
    handle: Handle,
    local: SocketAddr,
}

/// The handle of the socket in each stream.
pub(super) type Handle = shared::Handle<Core>;

impl RrtpSocket {
    /// Creates an endpoint on a UDP socket of the kernel, bound to `local`; port 0 selects a free
    /// port.
    ///
    /// # Errors
    /// The errors of bind(2); otherwise as [`over`](Self::over).
    pub async fn bind(local: SocketAddr, limits: Limits) -> io::Result<Self> {
        Self::over(kernel::bind(local).await?, limits)
    }

    /// Creates an endpoint on `socket`. Nothing else may receive from that socket.
    ///
    /// # Errors
    /// There is no current tokio runtime, the operating system's source of random numbers fails,
    /// the process has no file descriptor left, or the socket is gone.
    ///
    /// # Panics
    /// In a runtime built without its IO driver.
    pub fn over<S: DatagramSocket>(socket: S, limits: Limits) -> io::Result<Self> {
        let runtime = runtime::Handle::try_current().map_err(io::Error::other)?;
        let (mut key, clock, local) = ([0; 16], Clock::start(), socket.local_addr()?);
        SysRng.try_fill_bytes(&mut key).map_err(io::Error::other)?;
        let alarm = Alarm::new(clock)?;
        let shared = Arc::new(Shared::new(Core::new(Endpoint::new(limits, key)), clock));
        runtime.spawn(Driver::new(shared.clone(), Arc::new(socket)).run(alarm));
        debug!(%local, "RRTP socket bound");
        Ok(Self { handle: Handle::new(shared), local })
    }

    /// Creates a client's endpoint: on any local address of the IP version of `remote`, and any
    /// port.
    pub(super) async fn towards(remote: SocketAddr) -> io::Result<Self> {
        let any = match remote {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        Self::bind(any, Limits::default()).await
    }

    /// Listens for connections with `config` until the listener is dropped.
    ///
    /// # Errors
    /// `AddrInUse`: the socket already has a listener; `NotConnected` or `NetworkDown` once it has
    /// ended.
    pub fn listen(&self, config: Config) -> io::Result<RrtpListener> {
        RrtpListener::new(self.clone(), config)
    }

    /// Connects to `remote`. Dropping the future cancels the attempt.
    ///
    /// # Errors
    /// `TimedOut`: the peer did not answer in time; `ConnectionRefused`: the peer accepts no more
    /// connections; `Unsupported`: the peer uses another version; `QuotaExceeded`: there are too
    /// many connections; `NotConnected` or `NetworkDown` once the socket has ended.
    pub async fn connect(&self, remote: SocketAddr, config: Config) -> io::Result<RrtpStream> {
        RrtpStream::open(self.handle.clone(), self.local, remote, config).await
    }

    /// The address that the UDP socket is bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The counters of the endpoint.
    pub fn counters(&self) -> Counters {
        self.shared().look(|core, _| *core.endpoint.counters())
    }

    /// The number of datagrams that the UDP socket failed to send, for example without a route.
    /// They count as lost.
    pub fn refused(&self) -> u64 {
        self.shared().look(|core, _| core.refused)
    }

    /// The number of connections, including those whose stream was dropped and that are still
    /// closing.
    pub fn connections(&self) -> usize {
        self.shared().look(|core, _| core.endpoint.connections())
    }

    /// Closes the socket: no connection is accepted or opened from now on. Data written to streams
    /// that were dropped or shut down is delivered, and open streams continue. When all connections
    /// have ended, or when `patience` is over and the rest has been aborted, the UDP socket is
    /// dropped and this call returns. Of several calls the shortest time-out applies.
    pub async fn shutdown_within(&self, patience: Duration) {
        self.shared().with(|core, now| {
            core.endpoint.listen(None);
            let until = now + patience;
            core.closing = Some(core.closing.map_or(until, |before| before.min(until)));
        });
        self.shared().driver.notify_one();
        loop {
            // Registered before the check, so that the end of the driver is not missed.
            let done = self.shared().done.notified();
            if self.shared().look(|core, _| core.ended.is_some()) {
                return;
            }
            done.await;
        }
    }

    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn shared(&self) -> &Shared<Core> {
        self.handle.shared()
    }
}
