//! The destination of a program: an address or a name, and a port.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The host of a destination.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum HostAddress {
    /// An address.
    Ip(IpAddr),
    /// A name of 1 to 255 bytes, which the far gateway resolves.
    Name(String),
}

/// A host and a TCP or UDP port: `name:443`, `192.0.2.1:80`, `[::1]:22`.
///
/// ```
/// use airtcp_gateway::Destination;
///
/// let to: Destination = "example.org:443".parse()?;
/// assert_eq!(to.to_string(), "example.org:443");
/// assert_eq!("[::1]:22".parse::<Destination>()?, Destination::from("[::1]:22".parse::<std::net::SocketAddr>()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Destination {
    /// The host.
    pub host: HostAddress,
    /// The port, not 0.
    pub port: u16,
}

/// The reason why a text is not a destination.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DestinationError {
    /// The port is missing.
    #[error(
        "{0:?} has no port: write host:port with a port from 1 to 65535, such as example.org:443 or [::1]:22"
    )]
    Port(String),
    /// The port is not one from 1 to 65535.
    #[error(
        "{0:?} has no port from 1 to 65535: write host:port, such as example.org:443 or [::1]:22"
    )]
    PortRange(String),
    /// The host is not a name or address.
    #[error(
        "{0:?} is not a host: write a name of at most 255 bytes without spaces, an IPv4 address, or an IPv6 address in brackets"
    )]
    Host(String),
}

impl Destination {
    /// Creates the destination `host:port`; `host` is an address, with or without brackets, or a
    /// name.
    ///
    /// # Errors
    /// The port is 0, or `host` is neither an address nor a name.
    pub fn new(host: &str, port: u16) -> Result<Self, DestinationError> {
        if port == 0 {
            return Err(DestinationError::PortRange(format!("{host}:{port}")));
        }
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let host = match (bare.unwrap_or(host).parse::<IpAddr>(), bare) {
            (Ok(ip), _) => HostAddress::Ip(ip),
            (Err(_), None) if is_name(host) => HostAddress::Name(host.to_owned()),
            _ => return Err(DestinationError::Host(host.to_owned())),
        };
        Ok(Self { host, port })
    }
}

/// Whether `name` may be passed to a resolver. The resolver decides what a name may contain, except
/// for characters that would be ambiguous in a log or in `host:port`.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b":/[]@\\\"'".contains(&byte))
}

impl From<SocketAddr> for Destination {
    fn from(address: SocketAddr) -> Self {
        Self { host: HostAddress::Ip(address.ip()), port: address.port() }
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let parts = text.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
        let (host, port) = parts.ok_or_else(|| DestinationError::Port(text.to_owned()))?;
        let port = port.parse().map_err(|_| DestinationError::PortRange(text.to_owned()))?;
        if host.contains(':') && !host.starts_with('[') {
            return Err(DestinationError::Host(host.to_owned()));
        }
        Self::new(host, port)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostAddress::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            HostAddress::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_shown_as_they_are_written() {
        for text in ["example.org:443", "192.0.2.1:80", "[2001:db8::1]:22", "_ldap._tcp.x:389"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        let bare = Destination::new("2001:db8::1", 22).unwrap();
        assert_eq!(bare, Destination::new("[2001:db8::1]", 22).unwrap());
    }

    #[test]
    fn nonsense_is_refused() {
        let long = format!("{}:80", "a".repeat(256));
        for text in [
            "",
            ":80",
            "example.org",
            "example.org:",
            "example.org:0",
            "example.org:65536",
            "a b:80",
            "a\nb:80",
            "::1:80",
            "[example.org]:80",
            "[::1:80",
            "a/b:80",
            &long,
        ] {
            assert!(text.parse::<Destination>().is_err(), "{text:?}");
        }
    }
}
