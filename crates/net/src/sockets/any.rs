//! Sockets for every destination address and port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use airtcp_stack::host::SocketId;
use airtcp_stack::tcp::Unreachable;
use airtcp_types::FlowId;
use tokio::sync::Notify;
use tokio::task::coop;

use super::stack::Handle;
use super::stream::TcpStream;
use super::udp::UdpSocket;

/// Accepts TCP connections to every address and port; created by
/// [`Stack::listen_any`](super::Stack::listen_any).
///
/// Dropping it refuses the pending connections; accepted ones continue.
///
/// ```
/// # use airtcp_device::memory;
/// # use airtcp_net::Stack;
/// # use airtcp_stack::HostConfig;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (left, right) = memory::pair(1500, 64);
/// # let gateway = Stack::new(left, HostConfig::new([]))?;
/// # let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
/// let listener = gateway.listen_any(128)?;
/// # let connecting = tokio::spawn(async move { client.connect("192.0.2.7:80".parse().unwrap()).await });
/// let pending = listener.next().await?;
/// assert_eq!(pending.destination(), "192.0.2.7:80".parse()?);
/// let stream = pending.accept().await?;
/// assert_eq!(stream.local_addr()?, "192.0.2.7:80".parse()?);
/// # connecting.await??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AnyTcpListener {
    handle: Handle,
    id: SocketId,
    notify: Arc<Notify>,
}

impl AnyTcpListener {
    pub(super) fn new(handle: Handle, id: SocketId, notify: Arc<Notify>) -> Self {
        Self { handle, id, notify }
    }

    /// Waits for a SYN and returns its connection, pending: no answer has been sent yet.
    ///
    /// Cancel-safe; several tasks may wait at once.
    ///
    /// # Errors
    /// `NotConnected` or `NetworkDown`: the stack has ended or is about to end.
    pub async fn next(&self) -> io::Result<PendingStream> {
        coop::consume_budget().await;
        loop {
            // Registered before the check, so that a SYN between check and wait is not missed.
            let notified = self.notify.notified();
            let next = self.handle.shared().with(|core, _| {
                match core.host.tcp_next_pending(self.id) {
                    Ok(None) => core.alive().map(|()| None),
                    Ok(next) => Ok(next),
                    // Report the shutdown of the stack rather than the stale socket.
                    Err(error) => Err(core.open().err().unwrap_or_else(|| error.into())),
                }
            })?;
            if let Some((id, flow)) = next {
                return Ok(PendingStream { handle: self.handle.clone(), id, flow });
            }
            notified.await;
        }
    }
}

impl Drop for AnyTcpListener {
    fn drop(&mut self) {
        self.handle.shared().with(|core, now| {
            core.remove(self.id);
            // Fails if a shutdown has already closed the listener.
            let _ = core.host.tcp_close(now, self.id);
        });
    }
}

/// A connection whose SYN has not been answered yet; created by [`AnyTcpListener::next`].
///
/// Dropping it refuses the connection. A SYN is kept for 127 s, as long as Linux retransmits it.
#[must_use = "dropping it refuses the connection"]
#[derive(Debug)]
pub struct PendingStream {
    handle: Handle,
    id: SocketId,
    flow: FlowId,
}

impl PendingStream {
    /// The source address and port of the SYN.
    pub const fn source(&self) -> SocketAddr {
        self.flow.remote
    }

    /// The destination address and port of the SYN, which become the local address of the stream.
    pub const fn destination(&self) -> SocketAddr {
        self.flow.local
    }

    /// Answers the SYN and waits until the connection is established. Dropping the future resets
    /// the connection.
    ///
    /// # Errors
    /// `NotConnected`: the pending SYN expired, or the listener was dropped; `ConnectionReset` or
    /// `TimedOut`: the peer has given up; `OutOfMemory`: a limit of
    /// [`HostConfig`](airtcp_stack::HostConfig) is reached; `NetworkDown`: the device is gone.
    pub async fn accept(self) -> io::Result<TcpStream> {
        let accept = |host: &mut airtcp_stack::Host, now| host.tcp_accept_pending(now, self.id);
        TcpStream::connect(self.handle.clone(), self.flow.remote, accept).await
    }

    /// Answers the SYN with a RST: the peer gets `ConnectionRefused`. Dropping the value does the
    /// same.
    pub fn refuse(self) {}

    /// Answers the SYN with an ICMP error, as a router on the path would. The `connect` of a Linux
    /// peer fails at once with `HostUnreachable`, or with `NetworkUnreachable` for
    /// [`Unreachable::Network`].
    pub fn refuse_with(self, why: Unreachable) {
        self.handle.shared().with(|core, now| {
            // Fails if the pending SYN has expired.
            let _ = core.host.tcp_refuse_pending(now, self.id, why);
        });
    }
}

impl Drop for PendingStream {
    fn drop(&mut self) {
        self.handle.shared().with(|core, now| {
            // Fails if the SYN was accepted or has expired.
            let _ = core.host.tcp_abort(now, self.id);
        });
    }
}

/// Receives UDP datagrams to every address and port, and sends from any address and port; created
/// by [`Stack::udp_bind_any`](super::Stack::udp_bind_any).
///
/// Dropping it discards the received datagrams that were not read; sent datagrams still leave.
///
/// ```
/// # use airtcp_device::memory;
/// # use airtcp_net::Stack;
/// # use airtcp_stack::HostConfig;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (left, right) = memory::pair(1500, 64);
/// # let gateway = Stack::new(left, HostConfig::new([]))?;
/// # let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
/// let socket = gateway.udp_bind_any()?;
/// # let asking = client.udp_bind("10.0.0.2:5000".parse()?)?;
/// # asking.send_to(b"question", "192.0.2.7:53".parse()?).await?;
/// let mut buf = [0; 1500];
/// let (len, flow) = socket.recv(&mut buf).await?;
/// assert_eq!((flow.remote, flow.local), ("10.0.0.2:5000".parse()?, "192.0.2.7:53".parse()?));
/// socket.send(&buf[..len], flow).await?;
/// # assert_eq!(asking.recv_from(&mut buf).await?, (8, "192.0.2.7:53".parse()?));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AnyUdpSocket(UdpSocket);

impl AnyUdpSocket {
    pub(super) const fn new(socket: UdpSocket) -> Self {
        Self(socket)
    }

    /// Waits for a datagram; returns its length in bytes and its flow: `remote` is its source,
    /// `local` its destination. Bytes that do not fit into `buf` are lost.
    ///
    /// Cancel-safe; several tasks may wait at once.
    ///
    /// # Errors
    /// `NotConnected` or `NetworkDown`: the stack has ended or is about to end.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<(usize, FlowId)> {
        self.0.once_there_is_one(|| self.0.try_recv_flow(&mut *buf)).await
    }

    /// Sends one datagram from `flow.local`, which can be any address, to `flow.remote`, and waits
    /// if the queue is full; returns its length in bytes. To answer a datagram, send with the flow
    /// that [`recv`](Self::recv) returned.
    ///
    /// Cancel-safe: the datagram is sent whole or not at all.
    ///
    /// # Errors
    /// `InvalidInput`: the datagram is longer than the MTU allows; `NetworkUnreachable`: one of the
    /// addresses cannot belong to a host; `NotConnected` or `NetworkDown` once the stack has ended.
    pub async fn send(&self, data: &[u8], flow: FlowId) -> io::Result<usize> {
        self.0.once_there_is_room(|| self.0.try_send_from(data, &flow)).await
    }

    /// Answers a datagram of `flow` with the ICMP error Port Unreachable, as a host without a
    /// socket at `flow.local` would. A connected UDP socket of a Linux peer then fails with
    /// `ConnectionRefused`. The stack limits the rate of ICMP errors.
    ///
    /// # Errors
    /// `NetworkUnreachable`: one of the addresses cannot belong to a host; `NotConnected` or
    /// `NetworkDown` once the stack has ended.
    pub fn refuse(&self, flow: FlowId) -> io::Result<()> {
        self.0.refuse(&flow)
    }
}
