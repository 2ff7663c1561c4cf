//! Settings of a tunnel and its peers.

use std::net::SocketAddr;
use std::time::Duration;

use crate::{Network, PresharedKey, PrivateKey, PublicKey, TunnelError};

/// A peer.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Its public key. No two peers have the same.
    pub public_key: PublicKey,
    /// A secret shared with it, if it has the same.
    pub preshared_key: Option<PresharedKey>,
    /// Where it is. A peer whose endpoint is not known has to send first; the endpoint follows a peer that moves.
    pub endpoint: Option<SocketAddr>,
    /// Packets to these addresses go to it, and only packets from them are taken from it. The longest prefix decides.
    pub allowed_ips: Vec<Network>,
    /// How often an idle tunnel sends something, in whole seconds (a fraction is rounded up): it keeps the path through
    /// a NAT open, 25 s is usual. With it the tunnel is set up at once and whenever it is gone; without it, when there
    /// is something to send.
    pub keepalive: Option<Duration>,
}

impl PeerConfig {
    /// A peer that may send nothing yet and whose endpoint is not known.
    pub const fn new(public_key: PublicKey) -> Self {
        Self {
            public_key,
            preshared_key: None,
            endpoint: None,
            allowed_ips: Vec::new(),
            keepalive: None,
        }
    }

    /// The keepalive in whole seconds.
    pub(crate) fn keepalive_seconds(&self) -> Result<Option<u16>, TunnelError> {
        let Some(interval) = self.keepalive else { return Ok(None) };
        let seconds = interval.as_secs() + u64::from(interval.subsec_nanos() > 0);
        match u16::try_from(seconds) {
            Ok(seconds) if seconds > 0 => Ok(Some(seconds)),
            _ => Err(TunnelError::Keepalive(interval)),
        }
    }
}

/// A tunnel.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// The private key of this end.
    pub private_key: PrivateKey,
    /// The peers.
    pub peers: Vec<PeerConfig>,
    /// The longest inner packet in bytes. WireGuard adds 60 bytes where the outside is IPv4, and 80 where it is IPv6:
    /// 1420 fits into 1500 with both, 1440 only with IPv4.
    pub mtu: usize,
}

impl TunnelConfig {
    /// A tunnel without peers, with the usual MTU of 1420.
    pub const fn new(private_key: PrivateKey) -> Self {
        Self { private_key, peers: Vec::new(), mtu: 1420 }
    }
}
