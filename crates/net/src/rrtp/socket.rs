//! The handle of a socket, for its connections in both directions.

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

/// An RRTP endpoint on a UDP socket: connections are opened from it, and accepted if one listens.
///
/// A copy is the same socket. When the last copy, listener and stream is gone, it goes on until the
/// last connection has delivered what was written, as long as the runtime lives:
/// [`shutdown_within`](Self::shutdown_within) waits for that.
#[derive(Clone, Debug)]
pub struct RrtpSocket {
    handle: Handle,
    local: SocketAddr,
}

/// What each stream holds of its socket.
pub(super) type Handle = shared::Handle<Core>;

impl RrtpSocket {
    /// Creates a UDP socket of the kernel, bound to `local`; port 0 selects a free port.
    ///
    /// # Errors
    /// Those of bind(2), and as [`over`](Self::over).
    pub async fn bind(local: SocketAddr, limits: Limits) -> io::Result<Self> {
        Self::over(kernel::bind(local).await?, limits)
    }

    /// Uses any UDP socket, from which nothing else may receive.
    ///
    /// # Errors
    /// There is no tokio runtime here, the operating system has no randomness to give, the process
    /// has no descriptor left, or the socket is gone.
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
        debug!(%local, "RRTP socket");
        Ok(Self { handle: Handle::new(shared), local })
    }

    /// For a client: any address that leads to `remote`, any port.
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
    /// `AddrInUse`: one listens already; `NotConnected` or `NetworkDown` once the socket has ended.
    pub fn listen(&self, config: Config) -> io::Result<RrtpListener> {
        RrtpListener::new(self.clone(), config)
    }

    /// Connects to `remote`. Dropping the future cancels the attempt.
    ///
    /// # Errors
    /// `TimedOut`: nobody answered in time; `ConnectionRefused`: the peer accepts no more
    /// connections; `Unsupported`: it speaks another version; `QuotaExceeded`: there are too many
    /// connections; `NotConnected` or `NetworkDown` once the socket has ended.
    pub async fn connect(&self, remote: SocketAddr, config: Config) -> io::Result<RrtpStream> {
        RrtpStream::open(self.handle.clone(), self.local, remote, config).await
    }

    /// The address that the UDP socket is bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.shared().look(|core, _| *core.endpoint.counters())
    }

    /// Datagrams that the UDP socket could not send, for example without a route. They count as
    /// lost.
    pub fn refused(&self) -> u64 {
        self.shared().look(|core, _| core.refused)
    }

    /// The number of connections, including those that were dropped and are still closing.
    pub fn connections(&self) -> usize {
        self.shared().look(|core, _| core.endpoint.connections())
    }

    /// Ends the socket: nothing new is accepted or opened. What was written on streams that were
    /// dropped or shut down is delivered, and streams that are still open go on; once all have come
    /// to their end, or `patience` is over and the rest was aborted, the UDP socket is dropped and
    /// this returns. Of several calls the least patient counts.
    pub async fn shutdown_within(&self, patience: Duration) {
        self.shared().with(|core, now| {
            core.endpoint.listen(None);
            let until = now + patience;
            core.closing = Some(core.closing.map_or(until, |before| before.min(until)));
        });
        self.shared().driver.notify_one();
        loop {
            // Before the look, so that an end in between is heard.
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
