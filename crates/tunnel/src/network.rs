//! Networks, for AllowedIPs.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ip_network::IpNetwork;

use crate::TunnelError;

/// A network: all addresses with the same prefix, such as `10.77.0.0/24`, `fd77::2/128` or
/// `0.0.0.0/0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Network(pub(crate) IpNetwork);

impl Network {
    /// Returns the network of `address` with a prefix of `prefix_len` bits.
    ///
    /// # Errors
    /// [`TunnelError::Network`] if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix_len: u8) -> Result<Self, TunnelError> {
        IpNetwork::new_truncate(address, prefix_len)
            .map(Self)
            .map_err(|_| TunnelError::Network(format!("{address}/{prefix_len}")))
    }

    /// Returns its first address.
    pub fn address(self) -> IpAddr {
        self.0.network_address()
    }

    /// Returns the length of its prefix in bits.
    pub fn prefix_len(self) -> u8 {
        self.0.netmask()
    }

    /// Returns whether `address` is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(address)
    }
}

/// The network of a single address.
impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Self(address.into())
    }
}

impl FromStr for Network {
    type Err = TunnelError;

    /// Parses a network such as `10.0.0.0/8`, or a single address. As in `wg`, host bits are
    /// cleared.
    fn from_str(text: &str) -> Result<Self, TunnelError> {
        let error = || TunnelError::Network(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| error())?;
        match prefix {
            Some(prefix) => {
                Self::new(address, prefix.parse().map_err(|_| error())?).map_err(|_| error())
            }
            None => Ok(address.into()),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_wg_does() {
        for (text, shown) in [
            ("10.77.0.2/24", "10.77.0.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("10.0.0.1", "10.0.0.1/32"),
            ("fd77::1/64", "fd77::/64"),
            ("::/0", "::/0"),
        ] {
            let network: Network = text.parse().unwrap();
            assert_eq!(network.to_string(), shown);
            assert_eq!(Network::new(network.address(), network.prefix_len()), Ok(network));
            assert!(network.contains(network.address()));
        }
        for text in ["", "10.0.0.1/33", "10.0.0.1/-1", "fd77::/129", "host/24", "10.0.0.1/24/8"] {
            assert_eq!(text.parse::<Network>(), Err(TunnelError::Network(text.to_owned())));
        }
    }
}
