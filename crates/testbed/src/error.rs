//! Errors of a testbed.

use std::io;

/// Why a testbed could not be made or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// This process may not have namespaces, or there is no TUN device. The reason says what to do.
    #[error("no network namespaces with TUN devices here: {reason}")]
    Unavailable {
        /// What is missing, and what to do about it.
        reason: String,
    },
    /// The kernel has no congestion control of that name.
    #[error("this kernel has no congestion control {name}; `modprobe tcp_{name}` may load it")]
    NoControl {
        /// The name asked for.
        name: String,
    },
    /// The namespace has no interface of that name.
    #[error("the namespace has no interface {name}")]
    NoInterface {
        /// The name asked for.
        name: String,
    },
    /// Not an address with a prefix length.
    #[error(
        "\"{text}\" is not an address with a prefix length (up to 32 for IPv4, 128 for IPv6), as in \
         10.0.0.1/24 or fd00::1/64"
    )]
    Cidr {
        /// What was given.
        text: String,
    },
    /// A TUN device cannot be had.
    #[error(transparent)]
    Device(#[from] airtcp_device::DeviceError),
    /// An emulated link broke.
    #[error("the emulated link failed: {0}")]
    Link(#[from] airtcp_net::DriveError),
    /// The kernel refused something.
    #[error("{doing}: {source}")]
    Refused {
        /// What was being done.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl TestbedError {
    pub(crate) fn refused(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Refused { doing, source }
    }
}
