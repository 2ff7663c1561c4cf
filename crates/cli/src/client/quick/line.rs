//! A connection, whatever carries it.

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

/// A peer of the kernel's TCP that is silent for so many seconds is asked, so often, whether it is
/// still there; RRTP and this stack do so by themselves.
const IDLE: u32 = 10;
const INTERVAL: u32 = 5;
const PROBES: u32 = 4;

/// A byte stream.
#[derive(Debug)]
pub(super) enum Line {
    /// With both addresses: the kernel forgets the peer's when the connection has ended.
    Kernel(tokio::net::TcpStream, [SocketAddr; 2]),
    Stack(airtcp_net::TcpStream),
    Rrtp(RrtpStream),
}

impl Line {
    /// One of the kernel's, to or from `peer`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn kernel(stream: tokio::net::TcpStream, peer: SocketAddr) -> io::Result<Self> {
        let ends = [stream.local_addr()?, peer];
        Ok(Self::Kernel(stream, ends))
    }

    /// Has answers leave at once, and the kernel ask a silent peer; what is sent may go
    /// unacknowledged for so long.
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

    /// Tells the sender what the peer says of the network, where it can be told.
    pub(super) fn reconfigure(&self, network: &Network) {
        if let Self::Rrtp(stream) = self {
            let (kind, profile) = network.settings();
            // An error says that the connection has ended, which what is written next tells.
            let _ = stream.reconfigure_as_asked(kind, profile);
        }
    }

    /// Ends a connection of RRTP at once: dropped, it would still deliver what was written. The
    /// kernel gives up by itself what [`tune`](Self::tune) has it.
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
        // What this end sent again is of its request; of RRTP's packets of the file, what was
        // missing stands in `info`.
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

/// The same call on whatever it is.
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
