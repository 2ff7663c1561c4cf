//! What a connection refuses, and why it ends.

/// Why a call cannot be served, or why the connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TcpError {
    /// Nothing can be read or written right now; readiness says when.
    #[error("not ready")]
    WouldBlock,
    /// The sending direction was closed here.
    #[error("the sending side is closed")]
    Shutdown,
    /// The peer answered the SYN with a RST, or its host has nobody at that port.
    #[error("connection refused")]
    Refused,
    /// The peer sent a RST.
    #[error("connection reset by peer")]
    Reset,
    /// This end sent a RST.
    #[error("connection aborted")]
    Aborted,
    /// The peer has not answered for too long.
    #[error("connection timed out")]
    TimedOut,
    /// The network said that the peer cannot be reached.
    #[error("{0}")]
    Unreachable(Unreachable),
}

/// An ICMP or ICMPv6 error about a connection, as far as TCP tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unreachable {
    /// No route to the network.
    #[error("network unreachable")]
    Network,
    /// The host does not answer, or a hop limit ran out.
    #[error("host unreachable")]
    Host,
    /// A filter is in the way.
    #[error("communication prohibited")]
    Prohibited,
    /// The host does not speak TCP.
    #[error("protocol unreachable")]
    Protocol,
    /// Nobody has that port.
    #[error("port unreachable")]
    Port,
}

impl Unreachable {
    /// Whether waiting does not help (RFC 1122 section 4.2.3.9).
    pub const fn is_hard(self) -> bool {
        matches!(self, Self::Prohibited | Self::Protocol | Self::Port)
    }
}
