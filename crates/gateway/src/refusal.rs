//! The reasons why a connection is not carried.

use std::io::{self, ErrorKind};

/// The reason why a gateway does not carry a connection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The destination refused the connection.
    #[error("the destination refused the connection")]
    Refused,
    /// The far gateway has no route to the host, or the host does not answer.
    #[error("the destination is unreachable from the far gateway")]
    HostUnreachable,
    /// The far gateway has no route to the network.
    #[error("the destination's network is unreachable from the far gateway")]
    NetworkUnreachable,
    /// The destination did not answer in time.
    #[error("the destination did not answer the far gateway in time")]
    TimedOut,
    /// The rules of the far gateway forbid the destination or port.
    #[error("the far gateway does not allow this: change its rules if it should")]
    NotAllowed,
    /// The name has no address.
    #[error("the far gateway cannot resolve the name")]
    NoSuchName,
    /// A gateway has reached a limit.
    #[error("a gateway has as many connections as it may: try again later, or raise its limits")]
    Busy,
    /// Another program on the far gateway's machine, or another near gateway, listens on the port.
    #[error(
        "another program or near gateway listens on this port of the far gateway's machine: choose another port"
    )]
    PortInUse,
    /// The far gateway cannot listen on the port.
    #[error(
        "the far gateway cannot listen there: is the address one of its machine, and if the port is below 1024, may it \
         listen on such?"
    )]
    CannotListen,
    /// There is no far gateway, or the peer does not act like one.
    #[error("no far gateway: {0}")]
    NoGateway(String),
}

impl Refusal {
    /// A short name, for counters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::HostUnreachable => "host_unreachable",
            Self::NetworkUnreachable => "network_unreachable",
            Self::TimedOut => "timed_out",
            Self::NotAllowed => "not_allowed",
            Self::NoSuchName => "no_such_name",
            Self::Busy => "busy",
            Self::PortInUse => "port_in_use",
            Self::CannotListen => "cannot_listen",
            Self::NoGateway(_) => "no_gateway",
        }
    }

    /// Its code in a reply; 0 is reserved for success.
    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Refused => 1,
            Self::HostUnreachable => 2,
            Self::NetworkUnreachable => 3,
            Self::TimedOut => 4,
            Self::NotAllowed => 5,
            Self::NoSuchName => 6,
            Self::Busy => 7,
            Self::NoGateway(_) => 8,
            Self::CannotListen => 9,
            Self::PortInUse => 10,
        }
    }

    /// Returns the refusal for a code other than 0.
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Refused,
            2 => Self::HostUnreachable,
            3 => Self::NetworkUnreachable,
            4 => Self::TimedOut,
            5 => Self::NotAllowed,
            6 => Self::NoSuchName,
            7 => Self::Busy,
            8 => Self::NoGateway(
                "the far gateway cannot read the request: are both ends of the same version?"
                    .to_owned(),
            ),
            9 => Self::CannotListen,
            10 => Self::PortInUse,
            other => Self::NoGateway(format!(
                "the far gateway replies with code {other}, which this version does not know: update this end"
            )),
        }
    }

    /// Returns the refusal for an error of a dial.
    pub(crate) fn of_dial(error: &io::Error) -> Self {
        // EMFILE (24) and ENFILE (23) have no `ErrorKind`.
        if matches!(error.raw_os_error(), Some(23 | 24)) {
            return Self::Busy;
        }
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Self::Refused,
            ErrorKind::NetworkUnreachable => Self::NetworkUnreachable,
            ErrorKind::TimedOut => Self::TimedOut,
            // No local port or no memory is left.
            ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse | ErrorKind::OutOfMemory => {
                Self::Busy
            }
            _ => Self::HostUnreachable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_dial_has_the_kernels_reason() {
        for (number, refusal) in [
            (111, Refusal::Refused),
            (113, Refusal::HostUnreachable),
            (101, Refusal::NetworkUnreachable),
            (110, Refusal::TimedOut),
            (99, Refusal::Busy),
            (24, Refusal::Busy),
        ] {
            assert_eq!(Refusal::of_dial(&io::Error::from_raw_os_error(number)), refusal);
        }
    }
}
