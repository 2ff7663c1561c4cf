//! Mapping of the stack's errors to `errno`.

use airtcp_stack::HostError;
use airtcp_stack::tcp::{TcpError, Unreachable};
use nix::errno::Errno;

pub(crate) fn errno(error: HostError) -> Errno {
    match error {
        HostError::Stale => Errno::EBADF,
        HostError::WrongKind => Errno::EINVAL,
        HostError::AddressInUse(_) | HostError::NoPorts => Errno::EADDRINUSE,
        HostError::FlowInUse(_) | HostError::NotLocal(_) => Errno::EADDRNOTAVAIL,
        HostError::Unroutable(_) => Errno::ENETUNREACH,
        HostError::NoMemory | HostError::TooManyConnections => Errno::ENOBUFS,
        HostError::WouldBlock => Errno::EAGAIN,
        HostError::MessageSize { .. } => Errno::EMSGSIZE,
        HostError::NoPeer => Errno::ENOTCONN,
        HostError::Unreachable(error) => unreachable_errno(error),
        HostError::NotNegotiated(_) => Errno::EOPNOTSUPP,
        HostError::Tcp(error) => tcp_errno(error),
        _ => Errno::EIO,
    }
}

pub(crate) const fn tcp_errno(error: TcpError) -> Errno {
    match error {
        TcpError::WouldBlock => Errno::EAGAIN,
        TcpError::Shutdown => Errno::EPIPE,
        TcpError::Refused => Errno::ECONNREFUSED,
        TcpError::Reset => Errno::ECONNRESET,
        TcpError::Aborted => Errno::ECONNABORTED,
        TcpError::TimedOut => Errno::ETIMEDOUT,
        TcpError::Unreachable(error) => unreachable_errno(error),
    }
}

const fn unreachable_errno(error: Unreachable) -> Errno {
    match error {
        Unreachable::Network => Errno::ENETUNREACH,
        Unreachable::Host | Unreachable::Prohibited => Errno::EHOSTUNREACH,
        Unreachable::Protocol => Errno::ENOPROTOOPT,
        Unreachable::Port => Errno::ECONNREFUSED,
    }
}
