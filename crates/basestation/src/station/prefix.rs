//! The networks of the mobiles.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network: addresses with a common prefix (RFC 4632 section 3.1), written as `192.0.2.0/24`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    /// The address, with host bits of zero.
    network: IpAddr,
    len: u8,
}

/// A text that is not a network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not a network: expected an address with a prefix length, such as 192.0.2.0/24 \
     or 2001:db8::/64"
)]
pub struct PrefixError(String);

impl Prefix {
    /// Returns the network of one address.
    pub const fn host(address: IpAddr) -> Self {
        Self { network: address, len: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Parses a network, or an address, which stands for the network of this address alone.
    ///
    /// # Errors
    ///
    /// The text is neither.
    pub fn host_or_network(text: &str) -> Result<Self, PrefixError> {
        text.parse().map_or_else(|_| text.parse(), |address| Ok(Self::host(address)))
    }

    /// Returns the network of an address with `len` bits; `None` if the address is shorter.
    pub(super) fn of(address: IpAddr, len: u8) -> Option<Self> {
        Some(Self { network: masked(address, len)?, len })
    }

    /// Returns the length of the prefix in bits.
    pub(super) const fn len(self) -> u8 {
        self.len
    }

    /// Returns whether the network is of IPv4.
    pub(super) const fn is_ipv4(self) -> bool {
        self.network.is_ipv4()
    }

    /// Returns whether `address` is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        masked(address, self.len) == Some(self.network)
    }
}

/// Whether an address is valid on one link only, so that no router forwards packets with it as
/// their source: the unspecified address, or an IPv6 link-local address (RFC 1122 section 3.2.1.3,
/// RFC 4291 sections 2.5.2 and 2.5.6).
pub(super) fn is_of_one_link(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    is_link_local || address.is_unspecified()
}

/// Clears the host bits of an address; `None` if the prefix is longer than the address.
fn masked(address: IpAddr, len: u8) -> Option<IpAddr> {
    let len = u32::from(len);
    Some(match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(len)?).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(len)?).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    })
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let read = || {
            let (address, len) = text.split_once('/')?;
            let len = len.parse().ok()?;
            Some(Self { network: masked(address.parse().ok()?, len)?, len })
        };
        read().ok_or_else(|| PrefixError(text.to_owned()))
    }
}

impl TryFrom<String> for Prefix {
    type Error = PrefixError;

    fn try_from(text: String) -> Result<Self, PrefixError> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.to_string()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_a_network_by_its_first_bits() {
        for (network, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.77/25", "192.0.2.1", "192.0.2.128"),
            ("192.0.2.1/32", "192.0.2.1", "192.0.2.0"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::/0", "ffff::", "192.0.2.1"),
        ] {
            let prefix: Prefix = network.parse().unwrap();
            assert!(prefix.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!prefix.contains(outside.parse().unwrap()), "{network} {outside}");
            assert_eq!(prefix.to_string().parse(), Ok(prefix));
        }
    }

    #[test]
    fn an_address_alone_is_a_network_where_that_is_expected() {
        for (text, network) in [
            ("192.0.2.7", "192.0.2.7/32"),
            ("2001:db8::7", "2001:db8::7/128"),
            ("192.0.2.7/24", "192.0.2.0/24"),
        ] {
            assert_eq!(Prefix::host_or_network(text), network.parse());
        }
        let error = Prefix::host_or_network("192.0.2").unwrap_err().to_string();
        assert!(error.starts_with("`192.0.2` is not a network"), "{error}");
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "192.0.2.1", "192.0.2.0/33", "::/129", "192.0.2.0/-1", "a/8", "10.0.0.0/"]
        {
            let error = text.parse::<Prefix>().unwrap_err();
            assert!(error.to_string().contains("such as 192.0.2.0/24"), "{error}");
        }
    }
}
