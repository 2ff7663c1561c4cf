//! Errors of connections.

/// The error of a call, or the reason why the connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TcpError {
    /// Nothing can be read or written now; wait for readiness.
    #[error("not ready")]
    WouldBlock,
    /// The sending direction was closed by this end.
    #[error("the sending side is closed")]
    Shutdown,
    /// The peer answered the SYN with a RST, or its host reported the port unreachable.
    #[error("connection refused")]
    Refused,
    /// The peer sent a RST.
    #[error("connection reset by peer")]
    Reset,
    /// This end sent a RST.
    #[error("connection aborted")]
    Aborted,
    /// The peer did not answer in time.
    #[error("connection timed out")]
    TimedOut,
    /// The network reported the peer as unreachable.
    #[error("{0}")]
    Unreachable(Unreachable),
}

/// The kinds of ICMP and ICMPv6 errors that TCP distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unreachable {
    /// No route to the network.
    #[error("network unreachable")]
    Network,
    /// The host does not answer, or the hop limit was exceeded.
    #[error("host unreachable")]
    Host,
    /// Communication is prohibited by a filter.
    #[error("communication prohibited")]
    Prohibited,
    /// The host does not speak TCP.
    #[error("protocol unreachable")]
    Protocol,
    /// No socket has the port.
    #[error("port unreachable")]
    Port,
}

impl Unreachable {
    /// Whether it is a hard error (RFC 1122 section 4.2.3.9).
    pub const fn is_hard(self) -> bool {
        matches!(self, Self::Prohibited | Self::Protocol | Self::Port)
    }
}
