//! Errors of socket calls.

use std::net::{IpAddr, SocketAddr};

use airtcp_types::FlowId;

use crate::tcp::{SwitchError, TcpError, Unreachable};

/// The error of a socket call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The socket was closed.
    #[error("the socket is closed")]
    Stale,
    /// The operation is not supported by this kind of socket.
    #[error("the operation is not supported by this kind of socket")]
    WrongKind,
    /// Another socket has the address.
    #[error("address {0} is in use")]
    AddressInUse(SocketAddr),
    /// A connection with the same local and remote address already exists.
    #[error("{} already has a connection with {}, possibly in TIME-WAIT", .0.local, .0.remote)]
    FlowInUse(FlowId),
    /// The address is not one of the host's.
    #[error("{0} is not an address of this host")]
    NotLocal(IpAddr),
    /// No port is left: each has a listener or a connection with the same peer, possibly in
    /// TIME-WAIT.
    #[error("all ephemeral ports are in use or in TIME-WAIT")]
    NoPorts,
    /// The host has no address from which to reach the peer, or no other host can have the peer's
    /// address.
    #[error("{0} is unreachable from this host")]
    Unroutable(SocketAddr),
    /// The host's memory limit is reached.
    #[error("the host's memory limit is reached")]
    NoMemory,
    /// The limit of connections of the host or of the peer is reached
    /// ([`HostConfig::quota`](super::HostConfig::quota)).
    #[error("the limit of connections is reached")]
    TooManyConnections,
    /// Too many packets wait to be transmitted; try again once some of them have left.
    #[error("not ready")]
    WouldBlock,
    /// The datagram is too long for one packet.
    #[error("the datagram has {len} bytes, and at most {max} fit")]
    MessageSize {
        /// The length of the datagram (bytes).
        len: usize,
        /// The maximum length (bytes).
        max: usize,
    },
    /// The socket has no peer.
    #[error("the socket has no peer: connect it, or pass an address")]
    NoPeer,
    /// The network reported an ICMP error for a datagram.
    #[error("{0}")]
    Unreachable(Unreachable),
    /// The combination needs a TCP option that the two ends did not negotiate.
    #[error(
        "the combination needs {0}, which this connection did not negotiate: choose it when you open the connection"
    )]
    NotNegotiated(&'static str),
    /// The connection reported an error.
    #[error(transparent)]
    Tcp(#[from] TcpError),
}

impl From<SwitchError> for HostError {
    fn from(error: SwitchError) -> Self {
        match error {
            SwitchError::NotNegotiated(missing) => Self::NotNegotiated(missing),
            SwitchError::Ended(error) => Self::Tcp(error),
        }
    }
}
