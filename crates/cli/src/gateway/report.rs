//! Reports what a gateway has done: status, summary at the end, metrics.

mod metrics;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use airtcp_gateway::datagram::{
    FarDatagrams, FarDatagramsStatus, NearDatagrams, NearDatagramsStatus,
};
use airtcp_gateway::{Far, FarStatus, Near, NearStatus};
use airtcp_net::Stack;
use airtcp_stack::Counters;
use airtcp_tunnel::{PeerStatus, TunnelHandle};
use serde::Serialize;

#[cfg(test)]
pub(crate) use metrics::exported;

use super::carrier::Carrier;
use crate::output;

/// Where it is read from, whenever somebody asks.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) stack: Stack,
    pub(super) tunnel: TunnelHandle,
    pub(super) end: End,
}

/// Which gateway it is.
#[derive(Clone, Debug)]
pub(super) enum End {
    Near(Near, NearDatagrams),
    Far(Far, Arc<FarDatagrams>),
}

/// How a gateway stands.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    /// The public key of this end.
    key: String,
    #[serde(flatten)]
    end: EndStatus,
    datagrams: DatagramsStatus,
    peers: Vec<Peer>,
    /// By `nstat`'s names.
    counters: Counters,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EndStatus {
    Near(NearStatus),
    Far(FarStatus),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum DatagramsStatus {
    Near(NearDatagramsStatus),
    Far(FarDatagramsStatus),
}

/// The other end of a tunnel.
#[derive(Debug, Serialize)]
struct Peer {
    key: String,
    endpoint: Option<SocketAddr>,
    addresses: Vec<String>,
    seconds_since_handshake: Option<f64>,
    received_bytes: u64,
    sent_bytes: u64,
}

impl Report {
    pub(super) fn new(carrier: &Carrier, end: End) -> Self {
        Self { stack: carrier.stack().clone(), tunnel: carrier.tunnel.clone(), end }
    }

    /// How it stands now.
    pub(super) fn status(&self) -> Status {
        Status {
            key: self.tunnel.public_key().to_string(),
            end: self.end.status(),
            datagrams: self.end.datagrams(),
            peers: self.tunnel.peers().into_iter().map(Peer::of).collect(),
            counters: self.stack.counters(),
        }
    }

    /// The local addresses of connections that were opened ahead.
    pub(super) fn spare(&self) -> Vec<SocketAddr> {
        match &self.end {
            End::Near(near, _) => near.spare(),
            End::Far(..) => Vec::new(),
        }
    }

    /// Prints it at the end: JSON on stdout, or a line for people on stderr.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return output::print_json(&self.status());
        }
        let (opened, refused, sent, received) = match self.end.status() {
            EndStatus::Near(near) => (near.opened, near.refused, near.sent, near.received),
            EndStatus::Far(far) => (far.opened, far.refused, far.sent, far.received),
        };
        let refused: u64 = refused.values().sum();
        let (sent, received) = (output::bytes(sent), output::bytes(received));
        output::note(format_args!(
            "carried {opened} connections, refused {refused}: {sent} sent, {received} received"
        ));
        Ok(())
    }
}

impl End {
    pub(super) fn status(&self) -> EndStatus {
        match self {
            Self::Near(near, _) => EndStatus::Near(near.status()),
            Self::Far(far, _) => EndStatus::Far(far.status()),
        }
    }

    pub(super) fn datagrams(&self) -> DatagramsStatus {
        match self {
            Self::Near(_, datagrams) => DatagramsStatus::Near(datagrams.status()),
            Self::Far(_, datagrams) => DatagramsStatus::Far(datagrams.status()),
        }
    }
}

impl Peer {
    fn of(status: PeerStatus) -> Self {
        Self {
            key: status.public_key.to_string(),
            endpoint: status.endpoint,
            addresses: status.allowed_ips.iter().map(ToString::to_string).collect(),
            seconds_since_handshake: status.last_handshake.as_ref().map(Duration::as_secs_f64),
            received_bytes: status.rx_bytes,
            sent_bytes: status.tx_bytes,
        }
    }
}
