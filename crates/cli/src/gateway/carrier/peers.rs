//! The peer of a carrier, as shown in reports.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_gateway::PeerFigure;
use airtcp_tunnel::PeerStatus;
use serde::Serialize;

/// A peer. `None` for values that the carrier does not have.
#[derive(Debug, Serialize)]
pub(crate) struct Peer {
    key: Option<String>,
    endpoint: Option<SocketAddr>,
    addresses: Vec<String>,
    pub(crate) seconds_since_handshake: Option<f64>,
    seconds_since_packet: Option<f64>,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Peer {
    /// The WireGuard key, or the address on a plain carrier.
    pub(crate) fn name(&self) -> &str {
        self.key.as_deref().or(self.addresses.first().map(String::as_str)).unwrap_or("-")
    }

    /// The name, short enough for a list.
    pub(crate) fn short_name(&self) -> String {
        match &self.key {
            Some(key) => format!("{}…", key.chars().take(8).collect::<String>()),
            None => self.name().to_owned(),
        }
    }

    /// The peer's endpoint and the time of its last sign of life, as text.
    pub(crate) fn state(&self) -> String {
        let ago = |what: &str, age: Option<f64>| {
            age.map_or(format!("no {what} yet"), |age| format!("last {what} {age:.0} s ago"))
        };
        if self.key.is_none() {
            return ago("packet", self.seconds_since_packet);
        }
        let at = self.endpoint.map_or("an unknown address".to_owned(), |at| at.to_string());
        format!("at {at}: {}", ago("handshake", self.seconds_since_handshake))
    }
}

impl From<PeerStatus> for Peer {
    fn from(status: PeerStatus) -> Self {
        Self {
            key: Some(status.public_key.to_string()),
            endpoint: status.endpoint,
            addresses: status.allowed_ips.iter().map(ToString::to_string).collect(),
            seconds_since_handshake: status.last_handshake.as_ref().map(Duration::as_secs_f64),
            seconds_since_packet: None,
            received_bytes: status.rx_bytes,
            sent_bytes: status.tx_bytes,
        }
    }
}

impl From<PeerFigure> for Peer {
    fn from(figure: PeerFigure) -> Self {
        Self {
            key: None,
            endpoint: None,
            addresses: vec![figure.address.to_string()],
            seconds_since_handshake: None,
            seconds_since_packet: figure.last_packet.as_ref().map(Duration::as_secs_f64),
            received_bytes: figure.received,
            sent_bytes: figure.sent,
        }
    }
}
