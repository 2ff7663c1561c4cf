//! An address with a prefix length.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::TestbedError;

/// An address with the length of its network's prefix in bits (RFC 4632 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cidr {
    /// The address, host bits included.
    pub address: IpAddr,
    /// The prefix length, up to 32 for IPv4 and 128 for IPv6.
    pub prefix: u8,
}

impl FromStr for Cidr {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<Self, TestbedError> {
        let parsed = || {
            let (address, prefix) = text.split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            let prefix: u8 = prefix.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            (prefix <= most).then_some(Self { address, prefix })
        };
        parsed().ok_or_else(|| TestbedError::Cidr { text: text.to_owned() })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_agree() {
        for text in ["10.0.0.1/24", "fd00::1/64", "0.0.0.0/0", "::1/128"] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["10.0.0.1", "10.0.0.1/33", "fd00::1/129", "10.0.0/8", "/", "1.2.3.4/-1"] {
            assert!(text.parse::<Cidr>().unwrap_err().to_string().contains(text));
        }
    }
}
