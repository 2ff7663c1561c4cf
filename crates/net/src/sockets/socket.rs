//! A TCP socket that is configured before it connects or listens.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airtcp_recovery::{Combination, CombinationError};
use airtcp_stack::host::SocketId;
use airtcp_stack::tcp::{KeepAlive, TcpConfig};
use airtcp_types::ByteCount;
use tracing::debug;

use super::listener::TcpListener;
use super::stack::Handle;
use super::stream::TcpStream;

/// The minimum size of a buffer, so that data can flow; Linux's minimum is similar.
const LEAST_BUFFER: u32 = 2048;

/// A TCP socket to configure before it connects or listens; created by
/// [`Stack::tcp_socket`](super::Stack::tcp_socket).
///
/// It starts with the connection settings of the host. Accepted connections inherit the settings of
/// the listening socket. The methods are those of tokio's `TcpSocket`. Binding works as with
/// `SO_REUSEADDR`: connections that use the address, in TIME-WAIT or not, do not prevent it.
///
/// ```
/// # use airtcp_device::memory;
/// # use airtcp_net::Stack;
/// # use airtcp_stack::HostConfig;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (left, right) = memory::pair(1500, 64);
/// # let server = Stack::new(left, HostConfig::new(["10.0.0.1/24".parse()?]))?;
/// # let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
/// let socket = server.tcp_socket();
/// socket.set_congestion("westwood")?;
/// socket.bind("10.0.0.1:80".parse()?)?;
/// let listener = socket.listen(128)?;
///
/// let socket = client.tcp_socket();
/// socket.set_recv_buffer_size(256 * 1024)?;
/// socket.set_nodelay(true)?;
/// socket.bind("10.0.0.2:5000".parse()?)?;
/// let stream = socket.connect("10.0.0.1:80".parse()?).await?;
/// let (accepted, peer) = listener.accept().await?;
/// assert_eq!(peer, "10.0.0.2:5000".parse()?);
/// assert_eq!(accepted.info()?.combination, "rack/westwood");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TcpSocket {
    handle: Handle,
    settings: Mutex<Settings>,
}

#[derive(Debug)]
struct Settings {
    config: TcpConfig,
    bound: Option<SocketId>,
}

impl TcpSocket {
    pub(super) fn new(handle: Handle) -> Self {
        let config = handle.shared().look(|core, _| core.host.config().tcp.clone());
        Self { handle, settings: Mutex::new(Settings { config, bound: None }) }
    }

    /// Sets the maximum size of the send buffer (bytes), at least 2,048.
    ///
    /// # Errors
    /// None; the methods below return a `Result` to match tokio's signatures.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|config| config.send_buffer = buffer(size))
    }

    /// The maximum size of the send buffer (bytes).
    ///
    /// # Errors
    /// None.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        Ok(u32::try_from(self.settings().config.send_buffer.0).unwrap_or(u32::MAX))
    }

    /// Sets the maximum size of the receive buffer (bytes), at least 2,048. The window scale
    /// follows from it.
    ///
    /// # Errors
    /// None.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|config| config.receive_buffer = buffer(size))
    }

    /// The maximum size of the receive buffer (bytes).
    ///
    /// # Errors
    /// None.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        Ok(u32::try_from(self.settings().config.receive_buffer.0).unwrap_or(u32::MAX))
    }

    /// Disables or enables Nagle's algorithm (`TCP_NODELAY`).
    ///
    /// # Errors
    /// None.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        self.set(|config| config.nodelay = on)
    }

    /// Whether Nagle's algorithm is disabled.
    ///
    /// # Errors
    /// None.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.settings().config.nodelay)
    }

    /// Enables keep-alive with Linux's intervals, or disables it.
    ///
    /// # Errors
    /// None.
    pub fn set_keepalive(&self, on: bool) -> io::Result<()> {
        self.set_keep_alive(on.then(KeepAlive::default))
    }

    /// Whether keep-alive is enabled.
    ///
    /// # Errors
    /// None.
    pub fn keepalive(&self) -> io::Result<bool> {
        Ok(self.settings().config.keep_alive.is_some())
    }

    /// Enables keep-alive with these intervals, or disables it.
    ///
    /// # Errors
    /// None.
    pub fn set_keep_alive(&self, settings: Option<KeepAlive>) -> io::Result<()> {
        self.set(|config| config.keep_alive = settings)
    }

    /// Sets deferred accept (`TCP_DEFER_ACCEPT`): the listener holds a connection until data or a
    /// FIN arrives, or until the first SYN-ACK time-out after `time`. With `None`, the default, or
    /// zero it does not hold connections. As in Linux, data out of order is enough, so there may be
    /// nothing to read yet.
    ///
    /// # Errors
    /// None.
    pub fn set_defer_accept(&self, time: Option<Duration>) -> io::Result<()> {
        self.set(|config| config.defer_accept = time)
    }

    /// The maximum time of deferred accept.
    ///
    /// # Errors
    /// None.
    pub fn defer_accept(&self) -> io::Result<Option<Duration>> {
        Ok(self.settings().config.defer_accept)
    }

    /// Sets the TTL or hop limit, 1 to 255.
    ///
    /// # Errors
    /// `InvalidInput`: `ttl` is out of range.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hop_limit = hop_limit(ttl)?;
        self.set(|config| config.hop_limit = hop_limit)
    }

    /// The TTL or hop limit.
    ///
    /// # Errors
    /// None.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.settings().config.hop_limit.into())
    }

    /// Sets the strategies of the sender.
    ///
    /// # Errors
    /// None.
    pub fn set_combination(&self, combination: &Combination) -> io::Result<()> {
        self.set(|config| config.sender.combination = combination.clone())
    }

    /// The strategies of the sender.
    pub fn combination(&self) -> Combination {
        self.settings().config.sender.combination.clone()
    }

    /// Sets the loss detection by name, such as `rack`. The other strategies stay.
    ///
    /// # Errors
    /// `InvalidInput`: the name is unknown; the message lists the names.
    pub fn set_detection(&self, name: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(Some(name), None, None))
    }

    /// Sets the congestion control by name, such as `cubic`. The other strategies stay, except that
    /// the default judge is removed if the default control is replaced.
    ///
    /// # Errors
    /// As [`set_detection`](Self::set_detection).
    pub fn set_congestion(&self, name: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(None, Some(name), None))
    }

    /// Sets the judges by name, such as `hack+dcr:timer`; an empty `names` removes all judges. The
    /// other strategies stay.
    ///
    /// # Errors
    /// As [`set_detection`](Self::set_detection).
    pub fn set_judge(&self, names: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(None, None, Some(names)))
    }

    /// Binds to `local`, so that no other socket can bind or listen there. An unspecified address
    /// means all addresses of its family, port 0 any free port.
    ///
    /// # Errors
    /// `AddrInUse`: another socket is bound to the address or listens on it; `AddrNotAvailable`:
    /// the address is not one of the stack's, or no port is free; `InvalidInput`: the socket is
    /// already bound; `NotConnected` or `NetworkDown` once the stack has ended.
    pub fn bind(&self, local: SocketAddr) -> io::Result<()> {
        let mut settings = self.settings();
        if settings.bound.is_some() {
            return Err(invalid("the socket is bound already"));
        }
        let bound = self.handle.shared().with(|core, _| {
            core.open()?;
            core.host.tcp_bind(local).map_err(io::Error::from)
        })?;
        settings.bound = Some(bound);
        Ok(())
    }

    /// The bound address.
    ///
    /// # Errors
    /// `InvalidInput`: the socket is not bound.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let bound = self.settings().bound.ok_or_else(|| invalid("the socket is not bound"))?;
        self.handle.shared().look(|core, _| core.host.local_addr(bound).map_err(io::Error::from))
    }

    /// Connects to `remote`. Dropping the future cancels the attempt.
    ///
    /// If port 0 was bound, and the chosen port already has a connection to `remote`, another port
    /// is used.
    ///
    /// # Errors
    /// As [`Stack::connect`](super::Stack::connect); also `AddrNotAvailable` if the bound address
    /// already has a connection to `remote`, even one in TIME-WAIT.
    pub async fn connect(self, remote: SocketAddr) -> io::Result<TcpStream> {
        let (config, bound) = self.settings().parts();
        let connecting = TcpStream::connect(self.handle.clone(), remote, |host, now| match bound {
            Some(bound) => host.tcp_connect_from(now, bound, remote, Some(config)),
            None => host.tcp_connect(now, remote, Some(config)),
        });
        connecting.await
    }

    /// Listens on the bound address. Up to `backlog` connections wait to be accepted.
    ///
    /// # Errors
    /// `InvalidInput`: the socket is not bound; `NotConnected` or `NetworkDown` once the stack has
    /// ended.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let (config, bound) = self.settings().parts();
        let bound = bound.ok_or_else(|| invalid("the socket is not bound"))?;
        let backlog = usize::try_from(backlog).unwrap_or(usize::MAX);
        let (id, notify) = self.handle.shared().with(|core, _| {
            core.open()?;
            let id = core.host.tcp_listen_at(bound, backlog, config).map_err(io::Error::from)?;
            Ok::<_, io::Error>((id, core.add_any(id)))
        })?;
        debug!(backlog, "listening");
        Ok(TcpListener::new(self.handle.clone(), id, notify))
    }

    fn choose(
        &self,
        choice: impl FnOnce(&Combination) -> Result<Combination, CombinationError>,
    ) -> io::Result<()> {
        let combination = &mut self.settings().config.sender.combination;
        *combination = choice(combination).map_err(invalid)?;
        Ok(())
    }

    fn set(&self, set: impl FnOnce(&mut TcpConfig)) -> io::Result<()> {
        set(&mut self.settings().config);
        Ok(())
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settings {
    fn parts(&self) -> (TcpConfig, Option<SocketId>) {
        (self.config.clone(), self.bound)
    }
}

impl Drop for TcpSocket {
    fn drop(&mut self) {
        if let Some(bound) = self.settings().bound {
            // Fails if the socket has become a connection or a listener.
            let _ = self.handle.shared().with(|core, now| core.host.tcp_close(now, bound));
        }
    }
}

fn buffer(size: u32) -> ByteCount {
    ByteCount(size.max(LEAST_BUFFER).into())
}

/// Converts a TTL or hop limit, 1 to 255.
pub(super) fn hop_limit(ttl: u32) -> io::Result<u8> {
    let hop_limit = u8::try_from(ttl).ok().filter(|&hop_limit| hop_limit > 0);
    hop_limit.ok_or_else(|| invalid(format!("TTL {ttl}: expected 1 to 255")))
}

pub(super) fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
