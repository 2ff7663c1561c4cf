//! A host and a port.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use anyhow::Context;

use crate::output;

/// A host, by name or address, and a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Place {
    /// Looks up the addresses of the host with the operating system, each with the port.
    pub(super) async fn lookup(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let found = found.with_context(|| format!("looking up {}", self.host));
        match found {
            Ok(found) => Ok(found.collect()),
            Err(error) => Err(output::with_advice(error, "check the name, or use an IP address")),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HELP: &str =
            "expected HOST:PORT with a port from 1 to 65535; for example 10.0.0.1:7 or [fd00::1]:7";
        let (host, port) = text.rsplit_once(':').ok_or(HELP)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match bare {
            Some(host) => host,
            // Without brackets, the end of an IPv6 address is ambiguous.
            None if host.contains(':') => return Err(HELP.to_owned()),
            None => host,
        };
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(HELP)?;
        if host.is_empty() {
            return Err(HELP.to_owned());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_agree() {
        for text in ["10.0.0.1:7", "[fd00::1]:7", "a.example:65535"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        for bad in
            ["", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", ":7", "[]:7", "fd00::1:7", "a:b"]
        {
            assert!(bad.parse::<Place>().unwrap_err().contains("for example"), "{bad}");
        }
    }
}
