//! Conversion of host and connection errors to [`io::Error`].

use std::io::{self, ErrorKind};

use crate::host::HostError;
use crate::tcp::{TcpError, Unreachable};

/// The error's text is that of the [`HostError`].
impl From<HostError> for io::Error {
    fn from(error: HostError) -> Self {
        Self::new(host_kind(&error), error)
    }
}

/// The error's text is that of the [`TcpError`].
impl From<TcpError> for io::Error {
    fn from(error: TcpError) -> Self {
        Self::new(tcp_kind(error), error)
    }
}

/// The error's text is that of the [`Unreachable`].
impl From<Unreachable> for io::Error {
    fn from(error: Unreachable) -> Self {
        Self::new(unreachable_kind(error), error)
    }
}

const fn host_kind(error: &HostError) -> ErrorKind {
    match error {
        HostError::Stale | HostError::NoPeer => ErrorKind::NotConnected,
        HostError::WrongKind | HostError::MessageSize { .. } => ErrorKind::InvalidInput,
        HostError::AddressInUse(_) => ErrorKind::AddrInUse,
        HostError::NotLocal(_) | HostError::NoPorts | HostError::FlowInUse(_) => {
            ErrorKind::AddrNotAvailable
        }
        HostError::Unroutable(_) => ErrorKind::NetworkUnreachable,
        HostError::NoMemory => ErrorKind::OutOfMemory,
        HostError::TooManyConnections => ErrorKind::QuotaExceeded,
        HostError::WouldBlock => ErrorKind::WouldBlock,
        HostError::NotNegotiated(_) => ErrorKind::Unsupported,
        HostError::Unreachable(error) => unreachable_kind(*error),
        HostError::Tcp(error) => tcp_kind(*error),
    }
}

const fn tcp_kind(error: TcpError) -> ErrorKind {
    match error {
        TcpError::WouldBlock => ErrorKind::WouldBlock,
        TcpError::Shutdown => ErrorKind::BrokenPipe,
        TcpError::Refused => ErrorKind::ConnectionRefused,
        TcpError::Reset => ErrorKind::ConnectionReset,
        TcpError::Aborted => ErrorKind::ConnectionAborted,
        TcpError::TimedOut => ErrorKind::TimedOut,
        TcpError::Unreachable(error) => unreachable_kind(error),
    }
}

/// The kind of the error code that Linux reports for this ICMP error.
const fn unreachable_kind(error: Unreachable) -> ErrorKind {
    match error {
        Unreachable::Network => ErrorKind::NetworkUnreachable,
        // Linux reports ECONNREFUSED for a closed port.
        Unreachable::Port => ErrorKind::ConnectionRefused,
        Unreachable::Host | Unreachable::Prohibited | Unreachable::Protocol => {
            ErrorKind::HostUnreachable
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_the_one_users_match_and_the_text_is_the_hosts() {
        let refused = io::Error::from(HostError::Tcp(TcpError::Refused));
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let written = io::Error::from(HostError::Tcp(TcpError::Shutdown));
        assert_eq!(written.kind(), ErrorKind::BrokenPipe);
        let port = io::Error::from(TcpError::Unreachable(Unreachable::Port));
        assert_eq!(
            (port.kind(), port.to_string().as_str()),
            (ErrorKind::ConnectionRefused, "port unreachable")
        );
    }
}
