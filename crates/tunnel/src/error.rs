//! Errors of keys, networks and tunnels.

use std::io;
use std::time::Duration;

use crate::{Network, PublicKey};

/// The reason why a key, a network or a configuration is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// A text is not a key. It is not repeated in the message, because it may be a secret.
    #[error(
        "this is no WireGuard key: a key is 32 bytes in base64, 44 characters with the = at the end, as `wg genkey` \
         and `wg pubkey` print it; the text has a length of {0}"
    )]
    Key(usize),
    /// A text is not a network.
    #[error(
        "{0:?} is no network: write an IP address with a prefix, such as 10.77.0.2/32 or fd77::/64"
    )]
    Network(String),
    /// The inner MTU is too small or too large.
    #[error(
        "the tunnel's MTU is {0} bytes; use 576 to 65440, with IPv6 at least 1280 (usual: 1420)"
    )]
    Mtu(usize),
    /// A keepalive interval is invalid.
    #[error("the keepalive of a peer is {0:?}; use 1 to 65535 seconds (usual: 25), or none")]
    Keepalive(Duration),
    /// A peer has the tunnel's own key.
    #[error("a peer has this end's own public key; give it the public key of the other end")]
    OwnKey,
    /// A peer exists already.
    #[error("the peer {0} is there already; list each peer once, with all its AllowedIPs")]
    KnownPeer(PublicKey),
    /// Another peer has this network.
    #[error(
        "the network {network} is in the AllowedIPs of the peer {peer} already; each network leads to one peer"
    )]
    TakenNetwork {
        /// The network.
        network: Network,
        /// The peer that has it.
        peer: PublicKey,
    },
    /// The maximum number of peers is reached.
    #[error("there are 65536 peers; remove one first")]
    TooManyPeers,
    /// The system clock is before 1970, which handshakes cannot represent.
    #[error(
        "the clock of this machine shows a time before 1970; set it, for example with `date -s`"
    )]
    Clock,
}

impl From<TunnelError> for io::Error {
    fn from(error: TunnelError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}
