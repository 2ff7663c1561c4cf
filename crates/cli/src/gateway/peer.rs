//! The other end of a tunnel, as it is written on the command line and in a file.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use airtcp_tunnel::PublicKey;

/// `KEY[,address=IP][,preshared-key=FILE]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PeerSpec {
    /// Its public key.
    pub(super) key: PublicKey,
    /// Its address inside of the tunnel.
    pub(super) address: Option<IpAddr>,
    /// The file of the key that both ends share in addition.
    pub(super) preshared_key: Option<PathBuf>,
}

impl FromStr for PeerSpec {
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
