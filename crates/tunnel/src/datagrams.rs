//! The trait of transports for a tunnel's datagrams, and UDP sockets as one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::UdpSocket;

/// What is asked of the kernel for a socket's buffers, in bytes; it gives what it may. A millisecond of 1 Gbit/s has 90
/// packets.
const BUFFER: usize = 4 << 20;

/// Something that carries datagrams: a UDP socket, or what behaves like one.
///
/// Datagrams may be lost, reordered and forged. Routing marks and other options of a socket are set by who opens it.
pub trait Datagrams: Send + Sync + 'static {
    /// Takes a datagram: its length in bytes and where it came from. What is longer than `buf` is cut.
    ///
    /// # Errors
    /// `WouldBlock`: there is none. `NotConnected`: there will never be one. Others are counted, and the next call may
    /// succeed.
    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends a datagram.
    ///
    /// # Errors
    /// `WouldBlock`: not now. Any other: this one cannot be sent.
    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Waits until there may be a datagram. Cancel-safe.
    ///
    /// # Errors
    /// There will never be one.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until a datagram may be sent. Cancel-safe.
    ///
    /// # Errors
    /// There will never be room.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Opens a UDP socket for a tunnel, with large buffers. Bound to `[::]` it has IPv4 as well.
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
