//! The other gateway, as written on the command line and in a file.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use airtcp_tunnel::PublicKey;

use crate::output::Mistake;

/// The key or the address of a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PeerSpec {
    /// The peer of a WireGuard carrier.
    Key(KeyPeer),
    /// The peer of a plain carrier.
    Address(IpAddr),
}

/// `KEY[,address=IP][,preshared-key=FILE]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyPeer {
    /// The peer's public key.
    pub(super) key: PublicKey,
    /// The peer's address inside the tunnel.
    pub(super) address: Option<IpAddr>,
    /// The file with the preshared key of both ends.
    pub(super) preshared_key: Option<PathBuf>,
}

impl FromStr for PeerSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Address).or_else(|_| text.parse().map(Self::Key))
    }
}

impl FromStr for KeyPeer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "write KEY[,address=IP][,preshared-key=FILE], with the public key that `airtcp gateway keygen --out \
                               FILE` prints at the other end";
        let mut parts = text.split(',');
        let key = parts.next().unwrap_or_default().trim();
        let key = key.parse().map_err(|error| format!("`{key}`: {error}; {EXAMPLE}"))?;
        let mut peer = Self { key, address: None, preshared_key: None };
        for part in parts {
            match part.trim().split_once('=') {
                Some(("address", address)) => {
                    let address = address
                        .parse()
                        .map_err(|_| format!("`{address}` is no address; {EXAMPLE}"))?;
                    peer.address = Some(address);
                }
                Some(("preshared-key", file)) if !file.is_empty() => {
                    peer.preshared_key = Some(file.into());
                }
                _ => return Err(format!("`{part}` is not understood; {EXAMPLE}")),
            }
        }
        Ok(peer)
    }
}

impl PeerSpec {
    /// Returns the key for WireGuard.
    ///
    /// # Errors
    /// The peer is given by its address.
    pub(super) fn with_key(self) -> Result<KeyPeer, Mistake> {
        match self {
            Self::Key(peer) => Ok(peer),
            Self::Address(address) => Err(Mistake::new(format!(
                "the peer {address} is an address, and WireGuard needs the public key that `airtcp gateway keygen --out FILE` \
                 prints at the other end; write KEY,address={address}"
            ))),
        }
    }

    /// Returns the address for a plain carrier.
    ///
    /// # Errors
    /// The peer is given by its key.
    pub(super) fn without_key(self) -> Result<IpAddr, Mistake> {
        match self {
            Self::Address(address) => Ok(address),
            Self::Key(peer) => Err(Mistake::new(format!(
                "the peer {} is a key, and --carrier tun has none: write the address of the other gateway alone, for example \
                 --peer 10.77.0.1",
                peer.key
            ))),
        }
    }
}
