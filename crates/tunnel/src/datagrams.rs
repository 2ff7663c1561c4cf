//! The transport of a tunnel's datagrams, and its implementation for UDP sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::UdpSocket;

/// The requested size of a socket's buffers in bytes; the kernel may limit it. 1 Gbit/s is 90
/// packets per millisecond.
const BUFFER: usize = 4 << 20;

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

/// Opens a UDP socket with large buffers for a tunnel. Bound to `[::]`, it also supports IPv4.
///
/// # Errors
/// Those of bind(2).
pub async fn bind(local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(local).await?;
    setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
    setsockopt(&socket, sockopt::SndBuf, &BUFFER)?;
    Ok(socket)
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
