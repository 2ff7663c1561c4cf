//! A connection over any of the transports.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use airtcp_net::rrtp::RrtpStream;
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::network::Network;
use crate::client::report::{End, Ends};

/// Keep-alive of the kernel's TCP: seconds of silence before the first probe, seconds between
/// probes, and their number. RRTP and this stack have keep-alives of their own.
const IDLE: u32 = 10;
const INTERVAL: u32 = 5;
const PROBES: u32 = 4;

/// A byte stream.
#[derive(Debug)]
pub(super) enum Line {
    /// With the local and the peer's address: the kernel no longer reports the peer's once the
    /// connection has ended.
    Kernel(tokio::net::TcpStream, [SocketAddr; 2]),
    Stack(airtcp_net::TcpStream),
    Rrtp(RrtpStream),
}

impl Line {
    /// Wraps a connection of the kernel's TCP with `peer`.
    ///
    /// # Errors
    /// The kernel does not report the local address.
    pub(super) fn kernel(stream: tokio::net::TcpStream, peer: SocketAddr) -> io::Result<Self> {
        let ends = [stream.local_addr()?, peer];
        Ok(Self::Kernel(stream, ends))
    }

    /// Configures a connection of the kernel's TCP: no Nagle delay, keep-alive, and
    /// `unacknowledged` as the longest time that sent data may remain unacknowledged.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn tune(&self, unacknowledged: Duration) -> io::Result<()> {
        match self {
            Self::Kernel(stream, _) => {
                stream.set_nodelay(true)?;
                setsockopt(stream, sockopt::KeepAlive, &true)?;
                setsockopt(stream, sockopt::TcpKeepIdle, &IDLE)?;
                setsockopt(stream, sockopt::TcpKeepInterval, &INTERVAL)?;
                setsockopt(stream, sockopt::TcpKeepCount, &PROBES)?;
                let milliseconds = u32::try_from(unacknowledged.as_millis()).unwrap_or(u32::MAX);
                Ok(setsockopt(stream, sockopt::TcpUserTimeout, &milliseconds)?)
            }
            Self::Stack(stream) => stream.set_nodelay(true),
            Self::Rrtp(_) => Ok(()),
        }
    }

    /// Configures the sender for the network that the client describes; only RRTP supports this.
    pub(super) fn reconfigure(&self, network: &Network) {
        if let Self::Rrtp(stream) = self {
            let (kind, profile) = network.settings();
            // On an error the connection has ended, which the next write reports.
            let _ = stream.reconfigure_as_asked(kind, profile);
        }
    }

    /// Aborts a connection of RRTP at once; if it were dropped, it would still deliver the written
    /// data. The kernel gives up by itself after the time set by [`tune`](Self::tune).
    pub(super) fn abort(&self) {
        if let Self::Rrtp(stream) = self {
            stream.abort();
        }
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Kernel(_, [_, peer]) => Ok(*peer),
            Self::Stack(stream) => stream.peer_addr(),
            Self::Rrtp(stream) => stream.peer_addr(),
        }
    }
}

impl Ends for Line {
    fn end(&self) -> anyhow::Result<End> {
        // Retransmissions of this end belong to its request. `info` has the losses of RRTP's
        // packets of the file.
        match self {
            Self::Stack(stream) => Ok(End { retransmissions: None, ..stream.end()? }),
            Self::Kernel(_, [local, peer]) => {
                Ok(End { local: *local, peer: *peer, retransmissions: None, info: Value::Null })
            }
            Self::Rrtp(stream) => Ok(End {
                local: stream.local_addr()?,
                peer: stream.peer_addr()?,
                retransmissions: None,
                info: serde_json::to_value(stream.info()?)?,
            }),
        }
    }
}

/// Evaluates the same call on the stream of any transport.
macro_rules! each {
    ($line:expr, $stream:ident => $call:expr) => {
        match $line.get_mut() {
            Line::Kernel($stream, _) => $call,
            Line::Stack($stream) => $call,
            Line::Rrtp($stream) => $call,
        }
    };
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(context, buf))
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(context, data))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}
