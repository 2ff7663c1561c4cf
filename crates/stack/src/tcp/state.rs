//! The states of a connection (RFC 9293 section 3.3.2).

use std::fmt;

/// The state of a connection, named as in RFC 9293. LISTEN is a state of the host, not of a
/// connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are RFC 9293's")]
pub enum State {
    Closed,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl State {
    /// The name in capitals, as in RFC 9293.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }

    /// The name that `ss` prints.
    pub const fn ss_name(self) -> &'static str {
        match self {
            Self::Closed => "UNCONN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECV",
            Self::Established => "ESTAB",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }

    /// Whether both sides know each other's sequence numbers (RFC 9293 section 3.5).
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// Whether the connection counts in `TcpCurrEstab` (RFC 4022): ESTABLISHED or CLOSE-WAIT.
    pub const fn counts_as_established(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }

    /// Whether the peer may still send data: its FIN has not arrived in order.
    pub(super) const fn takes_data(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
