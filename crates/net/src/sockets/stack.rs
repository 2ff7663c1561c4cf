//! A stack on a device, and its sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Alarm, Clock, Device, Watch};
use airtcp_recovery::Combination;
use airtcp_stack::counters::Counters;
use airtcp_stack::host::{Host, HostConfig, Listed};
use airtcp_stack::tcp::{State, TcpConfig};
use airtcp_types::{ByteCount, FlowId};
use rand::TryRng;
use rand::rngs::SysRng;
use tracing::{debug, warn};

use super::any::{AnyTcpListener, AnyUdpSocket};
use super::core::Core;
use super::driver::Driver;
use super::listener::TcpListener;
use super::siblings::Sibling;
use super::socket::TcpSocket;
use super::stream::TcpStream;
use super::udp::UdpSocket;
use crate::shared::{self, Shared};

/// The time-out of [`Stack::shutdown`].
const PATIENCE: Duration = Duration::from_secs(5);

/// A stack that runs on a device. This is a handle, cheap to clone.
///
/// Sockets keep their stack alive. After the last handle of any kind is dropped, the driver still
/// delivers the data already written: it continues until the peers have acknowledged every FIN, for
/// at most 60 s and only as long as the runtime lives, then drops the device. To wait for that, use
/// [`shutdown`](Self::shutdown).
#[derive(Clone, Debug)]
pub struct Stack(Handle);

/// The handle of the stack in each socket.
pub(super) type Handle = shared::Handle<Core>;

impl Stack {
    /// Starts a host on `device`, driven by a task on the current tokio runtime.
    ///
    /// A `config.secret` of zeros is replaced by random bytes from the operating system.
    /// `config.mtu` is lowered to the device's MTU, and `config.tcp.mtu` to `config.mtu`. Both are
    /// 1500 by default: to use a larger MTU, set both. HACK is not negotiated on a device that
    /// verifies checksums.
    ///
    /// # Errors
    /// There is no current tokio runtime, the operating system's source of random numbers fails, or
    /// the process has no file descriptor left.
    ///
    /// # Panics
    /// In a runtime built without its IO driver.
    pub fn new<D: Device>(device: D, config: HostConfig) -> io::Result<Self> {
        Self::start(device, config, Clock::start(), None, None)
    }

    /// Like [`new`](Self::new), with a clock that can be shared, and an observer that sees every
    /// packet and event of the host.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn watched<D: Device>(
        device: D,
        config: HostConfig,
        clock: Clock,
        watch: Watch,
    ) -> io::Result<Self> {
        Self::start(device, config, clock, Some(watch), None)
    }

    /// Like [`new`](Self::new), on one of several queues of a device. A `config.secret` of zeros is
    /// replaced by the secret of the siblings. `watch` is an observer as in
    /// [`watched`](Self::watched).
    ///
    /// Shut siblings down together: a stack that has ended keeps its device open until the others
    /// have ended, for at most twice the rest of its own time-out, because packets of their flows
    /// may arrive on its queue.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new); the driver panics in a runtime built without its time driver.
    pub fn sibling<D: Device>(
        device: D,
        mut config: HostConfig,
        sibling: Sibling,
        watch: Option<Watch>,
    ) -> io::Result<Self> {
        config.share = sibling.share();
        if config.secret.iter().all(|&byte| byte == 0) {
            config.secret = sibling.secret();
        }
        Self::start(device, config, sibling.clock(), watch, Some(sibling))
    }

    fn start<D: Device>(
        device: D,
        mut config: HostConfig,
        clock: Clock,
        watch: Option<Watch>,
        sibling: Option<Sibling>,
    ) -> io::Result<Self> {
        config.events |= watch.is_some();
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
            io::Error::other(format!("a stack requires a tokio runtime: {error}"))
        })?;
        if config.secret.iter().all(|&byte| byte == 0) {
            SysRng.try_fill_bytes(&mut config.secret).map_err(io::Error::other)?;
        }
        config.mtu = config.mtu.min(ByteCount::from(device.mtu()));
        config.checksum_offload |= device.capabilities().checksum_offload;
        config.segmentation_offload = device.capabilities().segmentation_offload;
        if config.checksum_offload && config.tcp.offers_hack() {
            warn!(
                device = device.name(),
                "HACK disabled: the device drops corrupted packets; turn off its checksum offload"
            );
        }
        debug!(device = device.name(), mtu = %config.mtu, addresses = ?config.addresses, "starting");
        let alarm = Alarm::new(clock)?;
        let shared = Arc::new(Shared::new(Core::new(Host::new(config), watch), clock));
        runtime.spawn(Driver::new(shared.clone(), device, sibling, &runtime).run(alarm));
        Ok(Self(Handle::new(shared)))
    }

    /// Listens on `local`. An unspecified address means all addresses of its family, port 0 any
    /// free port. Up to `backlog` connections wait to be accepted.
    ///
    /// # Errors
    /// `AddrInUse`: another socket has the address. `AddrNotAvailable`: the address is not one of
    /// the host's, or no port is free. `NotConnected` or `NetworkDown` once the stack has ended.
    pub fn listen(&self, local: SocketAddr, backlog: usize) -> io::Result<TcpListener> {
        let (id, notify) = self.shared().with(|core, _| {
            core.open()?;
            let id = core.host.tcp_listen(local, backlog).map_err(io::Error::from)?;
            Ok::<_, io::Error>((id, core.add_any(id)))
        })?;
        debug!(%local, backlog, "listening");
        Ok(TcpListener::new(self.0.clone(), id, notify))
    }

    /// Connects to `remote` with the connection settings of the host.
    ///
    /// Dropping the future cancels the attempt. Without an answer it fails after 247 s
    /// ([`TcpConfig::syn_retries`]); [`connect_timeout`](Self::connect_timeout) sets a shorter
    /// time.
    ///
    /// # Errors
    /// `ConnectionRefused`, `ConnectionReset`, `TimedOut`, `HostUnreachable`; `NetworkUnreachable`,
    /// also if `remote` is an address of this stack, a loopback or a multicast address, or has port
    /// 0; `AddrNotAvailable`: no port is free; `QuotaExceeded` or `OutOfMemory`: a limit of
    /// [`HostConfig::quota`] or [`HostConfig::peer_quota`] is reached; `NotConnected` or
    /// `NetworkDown` once the stack has ended.
    pub async fn connect(&self, remote: SocketAddr) -> io::Result<TcpStream> {
        let open = |host: &mut Host, now| host.tcp_connect(now, remote, None);
        TcpStream::connect(self.0.clone(), remote, open).await
    }

    /// Connects to `remote`, with a time-out of `limit`.
    ///
    /// # Errors
    /// `TimedOut`: the connection was not established within `limit`; otherwise as
    /// [`connect`](Self::connect).
    ///
    /// # Panics
    /// In a runtime built without its time driver.
    pub async fn connect_timeout(
        &self,
        remote: SocketAddr,
        limit: Duration,
    ) -> io::Result<TcpStream> {
        match tokio::time::timeout(limit, self.connect(remote)).await {
            Ok(connected) => connected,
            Err(_) => {
                let why = format!("no connection to {remote} within {limit:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
        }
    }

    /// Connects to `remote` with the settings `config`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        &self,
        remote: SocketAddr,
        config: TcpConfig,
    ) -> io::Result<TcpStream> {
        let open = |host: &mut Host, now| host.tcp_connect(now, remote, Some(config));
        TcpStream::connect(self.0.clone(), remote, open).await
    }

    /// Creates a TCP socket to configure before it connects or listens.
    pub fn tcp_socket(&self) -> TcpSocket {
        TcpSocket::new(self.0.clone())
    }

    /// Opens a UDP socket on `local`; address and port as in [`listen`](Self::listen).
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn udp_bind(&self, local: SocketAddr) -> io::Result<UdpSocket> {
        let (id, notify) = self.shared().with(|core, _| {
            core.open()?;
            let id = core.host.udp_bind(local).map_err(io::Error::from)?;
            Ok::<_, io::Error>((id, core.add_any(id)))
        })?;
        Ok(UdpSocket::new(self.0.clone(), id, notify))
    }

    /// Listens on every address and port, IPv4 and IPv6, of this stack and of all other hosts: it
    /// accepts all connections that the kernel routes into the device. Listeners on an address of
    /// this stack take precedence. At most `backlog` connections are pending at a time.
    ///
    /// From the first call on, the stack answers for foreign addresses: after the listener is
    /// dropped it refuses their connections. It does not answer pings to them.
    ///
    /// # Errors
    /// `AddrInUse`: such a listener already exists. `NotConnected` or `NetworkDown` once the stack
    /// has ended.
    pub fn listen_any(&self, backlog: usize) -> io::Result<AnyTcpListener> {
        let (id, notify) = self.shared().with(|core, _| {
            core.open()?;
            let id = core.host.tcp_listen_any(backlog).map_err(io::Error::from)?;
            Ok::<_, io::Error>((id, core.add_any(id)))
        })?;
        debug!(backlog, "listening for every destination");
        Ok(AnyTcpListener::new(self.0.clone(), id, notify))
    }

    /// Connects to `remote` from `source`, an address and port of another host, with the connection
    /// settings of the host: what a gateway does in the place of its client. Packets to `source`
    /// have to be routed into the device.
    ///
    /// Dropping the future cancels the attempt.
    ///
    /// ```
    /// # use airtcp_device::memory;
    /// # use airtcp_net::Stack;
    /// # use airtcp_stack::HostConfig;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (left, right) = memory::pair(1500, 64);
    /// # let gateway = Stack::new(left, HostConfig::new([]))?;
    /// # let server = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
    /// # let listener = server.listen("10.0.0.2:80".parse()?, 8)?;
    /// let client = "192.0.2.7:4000".parse()?;
    /// let stream = gateway.connect_as(client, "10.0.0.2:80".parse()?).await?;
    /// assert_eq!(stream.local_addr()?, client);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NetworkUnreachable`: no other host can have one of the addresses, or they differ in
    /// version. `AddrNotAvailable`: there is a connection between the two. Otherwise as
    /// [`connect`](Self::connect).
    pub async fn connect_as(
        &self,
        source: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<TcpStream> {
        let flow = FlowId { local: source, remote };
        let open = |host: &mut Host, now| host.tcp_connect_as(now, flow, None);
        TcpStream::connect(self.0.clone(), remote, open).await
    }

    /// Opens a UDP socket for every address and port, like [`listen_any`](Self::listen_any) for
    /// TCP.
    ///
    /// # Errors
    /// As [`listen_any`](Self::listen_any).
    pub fn udp_bind_any(&self) -> io::Result<AnyUdpSocket> {
        let (id, notify) = self.shared().with(|core, _| {
            core.open()?;
            let id = core.host.udp_bind_any().map_err(io::Error::from)?;
            Ok::<_, io::Error>((id, core.add_any(id)))
        })?;
        Ok(AnyUdpSocket::new(UdpSocket::new(self.0.clone(), id, notify)))
    }

    /// The host's counters, with `nstat`'s names.
    pub fn counters(&self) -> Counters {
        self.shared().look(|core, _| core.host.counters().clone())
    }

    /// The device's counters as of the last batch.
    pub fn device_counters(&self) -> airtcp_device::Counters {
        self.shared().look(|core, _| core.device)
    }

    /// The memory of all sockets in bytes, including closed connections whose last packet has not
    /// left yet.
    pub fn held(&self) -> ByteCount {
        self.shared().look(|core, _| core.host.held())
    }

    /// Replaces the strategies of the stack: for future connections without settings of their own,
    /// and for all existing connections. Returns the number of existing connections that now use
    /// them; the others have ended, or did not negotiate an option that the strategies need.
    pub fn set_combination(&self, combination: &Combination) -> usize {
        self.shared().with(|core, now| core.host.tcp_set_combination(now, combination))
    }

    /// Every connection with its state, including closed ones in TIME-WAIT.
    pub fn connections(&self) -> Vec<(FlowId, State)> {
        self.shared().look(|core, _| core.host.tcp_connections().collect())
    }

    /// The first `most` connections with the details of `ss -tinm`. The stack is locked during the
    /// call.
    pub fn listing(&self, most: usize) -> Vec<Listed> {
        self.shared().look(|core, now| core.host.tcp_listing(now, most))
    }

    /// Shuts a server down: accepts no new connections, lets open ones finish, then closes the
    /// rest.
    ///
    /// Listeners are closed: [`accept`](TcpListener::accept) returns `NotConnected`, and
    /// connections that were not accepted are reset. No socket can be opened. Streams and UDP
    /// sockets continue. When the last stream is dropped, the remaining sockets are closed as by
    /// [`shutdown_within`](Self::shutdown_within), within the rest of `patience`. If streams remain
    /// after `patience`, their connections are reset, so that the peers do not mistake truncated
    /// data for complete data.
    ///
    /// If the future is dropped before it completes, the stack continues without listeners.
    ///
    /// ```
    /// # use airtcp_net::{Stack, TcpStream};
    /// # async fn handle(stream: TcpStream) {}
    /// # async fn example(stack: Stack, shutdown: impl Future) -> std::io::Result<()> {
    /// let listener = stack.listen("0.0.0.0:80".parse().unwrap(), 128)?;
    /// tokio::spawn(async move {
    ///     while let Ok((stream, _)) = listener.accept().await {
    ///         tokio::spawn(handle(stream));
    ///     }
    /// });
    /// shutdown.await;
    /// stack.drain(std::time::Duration::from_secs(30)).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// In a runtime built without its time driver.
    pub async fn drain(&self, patience: Duration) {
        let (begun, idle) = self.shared().with(|core, now| {
            core.drain(now);
            (now, core.idle.clone())
        });
        let last_stream = async {
            loop {
                // Registered before the check, so that the end of the last stream is not missed.
                let gone = idle.notified();
                if self.shared().look(|core, _| core.alive().is_err() || !core.has_streams()) {
                    return;
                }
                gone.await;
            }
        };
        if tokio::time::timeout(patience, last_stream).await.is_err() {
            // After a FIN, the peer would take truncated data for complete.
            self.reset_connections();
        }
        let spent = self.shared().look(|_, now| now.since(begun));
        self.shutdown_within(patience.saturating_sub(spent)).await;
    }

    /// Resets every connection, including those that were not accepted yet. Listeners stay open,
    /// and streams return errors.
    pub fn reset_connections(&self) {
        self.shared().with(|core, now| core.host.tcp_abort_all(now));
    }

    /// Closes every socket gracefully within 5 s; see [`shutdown_within`](Self::shutdown_within).
    pub async fn shutdown(&self) {
        self.shutdown_within(PATIENCE).await;
    }

    /// Closes every socket gracefully and stops the stack.
    ///
    /// From now on no socket can be opened, no connection accepted and no data written. Data
    /// already written is delivered, then the FINs; reading continues meanwhile. When the peers
    /// have acknowledged everything, or when `patience` is over and the remaining connections have
    /// been reset, the device is dropped and this call returns. The remaining sockets then return
    /// errors. [`drain`](Self::drain) lets open streams finish first.
    pub async fn shutdown_within(&self, patience: Duration) {
        self.shared().with(|core, now| core.close(now, patience));
        self.shared().driver.notify_one();
        let _ = self.closed().await;
    }

    /// Waits until the stack has ended, and returns the reason: `NetworkDown` if the device is
    /// gone, `NotConnected` after a shutdown.
    pub async fn closed(&self) -> io::Error {
        loop {
            // Registered before the check, so that the end of the driver is not missed.
            let done = self.shared().done.notified();
            if let Err(error) = self.shared().look(|core, _| core.alive()) {
                return error;
            }
            done.await;
        }
    }

    fn shared(&self) -> &Shared<Core> {
        self.0.shared()
    }
}
