//! Configuration of a tunnel and its peers.

use std::net::SocketAddr;
use std::time::Duration;

use crate::{Network, PresharedKey, PrivateKey, PublicKey, TunnelError};

/// The configuration of a peer.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The public key, unique among the peers.
    pub public_key: PublicKey,
    /// The preshared key, if the peer has the same.
    pub preshared_key: Option<PresharedKey>,
    /// The endpoint. A peer without an endpoint must send first. The endpoint is updated when the
    /// peer roams.
    pub endpoint: Option<SocketAddr>,
    /// AllowedIPs: the destinations of packets to the peer, and the sources accepted from it. The
    /// longest prefix decides.
    pub allowed_ips: Vec<Network>,
    /// The interval of keepalives on an idle tunnel, rounded up to whole seconds, to keep NAT
    /// mappings alive; 25 s is usual. With an interval, the session is established at once and
    /// again whenever it ends; without one, when there is a packet to send.
    pub keepalive: Option<Duration>,
}

impl PeerConfig {
    /// Creates a peer without AllowedIPs and endpoint.
    pub const fn new(public_key: PublicKey) -> Self {
        Self {
            public_key,
            preshared_key: None,
            endpoint: None,
            allowed_ips: Vec::new(),
            keepalive: None,
        }
    }

    /// Returns the keepalive interval in whole seconds.
    pub(crate) fn keepalive_seconds(&self) -> Result<Option<u16>, TunnelError> {
        let Some(interval) = self.keepalive else { return Ok(None) };
        let seconds = interval.as_secs() + u64::from(interval.subsec_nanos() > 0);
        match u16::try_from(seconds) {
            Ok(seconds) if seconds > 0 => Ok(Some(seconds)),
            _ => Err(TunnelError::Keepalive(interval)),
        }
    }
}

/// The configuration of a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// The private key of this end.
    pub private_key: PrivateKey,
    /// The peers.
    pub peers: Vec<PeerConfig>,
    /// The maximum length of an inner packet in bytes. WireGuard adds 60 bytes over IPv4 and 80
    /// bytes over IPv6: with 1500 bytes outside, 1420 fits with both, 1440 only with IPv4.
    pub mtu: usize,
}

impl TunnelConfig {
    /// Creates the configuration of a tunnel without peers, with the usual MTU of 1420.
    pub const fn new(private_key: PrivateKey) -> Self {
        Self { private_key, peers: Vec::new(), mtu: 1420 }
    }
}
