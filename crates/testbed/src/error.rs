//! Errors of a testbed.

use std::io;

/// The reason why a testbed could not be created or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// This process cannot have namespaces, or there is no TUN device.
    #[error("no network namespaces with TUN devices here: {reason}")]
    Unavailable {
        /// The missing feature, and the remedy.
        reason: String,
    },
    /// The kernel has no congestion control with this name.
    #[error("this kernel has no congestion control {name}; `modprobe tcp_{name}` may load it")]
    NoControl {
        /// The requested name.
        name: String,
    },
    /// The namespace has no interface with this name.
    #[error("the namespace has no interface {name}")]
    NoInterface {
        /// The requested name.
        name: String,
    },
    /// The text is not an address with a prefix length.
    #[error(
        "\"{text}\" is not an address with a prefix length (up to 32 for IPv4, 128 for IPv6), as in \
         10.0.0.1/24 or fd00::1/64"
    )]
    Cidr {
        /// The text.
        text: String,
    },
    /// A TUN device cannot be opened.
    #[error(transparent)]
    Device(#[from] airtcp_device::DeviceError),
    /// An emulated link failed.
    #[error("the emulated link failed: {0}")]
    Link(#[from] airtcp_net::DriveError),
    /// The kernel rejected an operation.
    #[error("{doing}: {source}")]
    Refused {
        /// The operation.
        doing: String,
        /// The error of the kernel.
        source: io::Error,
    },
}

impl TestbedError {
    pub(crate) fn refused(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Refused { doing, source }
    }
}
