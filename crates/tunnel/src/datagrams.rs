//! The transport of a tunnel's datagrams, and its implementation for UDP sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use nix::sys::socket::{
    self, AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, setsockopt, sockopt,
};
use tokio::net::UdpSocket;

/// The requested size of a socket's receive buffer in bytes; the kernel may limit it. 1 Gbit/s is
/// 90 packets per millisecond.
const RECEIVE: usize = 4 << 20;
/// The requested size of its send buffer, about 180 packets: enough for 1 Gbit/s. On a slow device,
/// whatever waits in it delays all flows alike.
const SEND: usize = 208 << 10;

/// A transport of datagrams: a UDP socket, or an equivalent.
///
/// Datagrams may be lost, reordered and forged. Socket options such as routing marks are set when
/// the socket is opened.
pub trait Datagrams: Send + Sync + 'static {
    /// Receives a datagram; returns its length in bytes and its source. Datagrams longer than `buf`
    /// are cut.
    ///
    /// # Errors
    /// `WouldBlock`: there is no datagram. `NotConnected`: no datagram will arrive any more. Other
    /// errors are counted, and the next call may succeed.
    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends a datagram.
    ///
    /// # Errors
    /// `WouldBlock`: there is no room now. Any other: this datagram cannot be sent.
    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Waits until there may be a datagram. Cancel-safe.
    ///
    /// # Errors
    /// No datagram will arrive any more.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until a datagram may be sent. Cancel-safe.
    ///
    /// # Errors
    /// There will be no room any more.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Opens a UDP socket for a tunnel, with a large receive buffer. Bound to `[::]`, it also supports
/// IPv4, whatever the sysctl `net.ipv6.bindv6only` says.
///
/// # Errors
/// Those of socket(2) and bind(2).
///
/// # Panics
/// Panics outside a tokio runtime with IO.
pub async fn bind(local: SocketAddr) -> io::Result<UdpSocket> {
    let family = if local.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket::socket(family, SockType::Datagram, flags, SockProtocol::Udp)?;
    if local.is_ipv6() {
        // The sysctl decides when a socket is created. It cannot change once the socket is bound.
        setsockopt(&socket, sockopt::Ipv6V6Only, &false)?;
    }
    socket::bind(socket.as_raw_fd(), &SockaddrStorage::from(local))?;
    setsockopt(&socket, sockopt::RcvBuf, &RECEIVE)?;
    setsockopt(&socket, sockopt::SndBuf, &SEND)?;
    UdpSocket::from_std(std::net::UdpSocket::from(socket))
}

impl Datagrams for UdpSocket {
    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.try_recv_from(buf)
    }

    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.try_send_to(data, to)
    }

    async fn readable(&self) -> io::Result<()> {
        self.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }
}

impl<D: Datagrams> Datagrams for Arc<D> {
    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        (**self).try_recv_from(buf)
    }

    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        (**self).try_send_to(data, to)
    }

    async fn readable(&self) -> io::Result<()> {
        (**self).readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        (**self).writable().await
    }
}
