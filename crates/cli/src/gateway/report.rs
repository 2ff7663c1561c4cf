//! Reports the activity of a gateway: status, summary at exit, metrics.

mod metrics;

use std::collections::BTreeMap;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;

use airtcp_gateway::datagram::{
    DatagramCounters, FarDatagrams, FarDatagramsStatus, NearDatagrams, NearDatagramsStatus,
};
use airtcp_gateway::{Far, FarStatus, Near, NearStatus};
use airtcp_net::Stack;
use airtcp_recovery::Combination;
use airtcp_stack::Counters;
use serde::Serialize;
use serde_json::Value;

#[cfg(test)]
pub(crate) use metrics::exported;
pub(super) use metrics::put_carried;

use super::carrier::{Carrier, Peer, Way};
use super::ctl::{Controlled, Reported};
use super::settings::Outlets;
use crate::output::{self, Mistake};
use crate::ss::Served;
use crate::{live, metrics as exporter};

/// The source of a report, read on demand.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) stack: Stack,
    pub(super) way: Way,
    pub(super) end: End,
}

/// The gateway that is reported on.
#[derive(Clone, Debug)]
pub(super) enum End {
    Near(Near, NearDatagrams),
    Far(Far, Arc<FarDatagrams>),
}

/// The status of a gateway.
#[derive(Debug, Serialize)]
struct Status {
    /// The carrier's name in the settings.
    carrier: &'static str,
    /// The public key of this end, with WireGuard.
    key: Option<String>,
    #[serde(flatten)]
    end: EndStatus,
    datagrams: DatagramsStatus,
    peers: Vec<Peer>,
    /// The number of packets dropped because they did not come from a peer; only with the carrier
    /// `tun`.
    refused_packets: Option<u64>,
    /// The stack's counters, with the names of `nstat`.
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

/// The counters of connections, of any gateway.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) open: usize,
    pub(super) opened: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// The refused connections, by reason.
    pub(super) refused: BTreeMap<&'static str, u64>,
}

/// The counters of datagrams, of either gateway.
#[derive(Debug, Default)]
pub(super) struct CarriedDatagrams {
    pub(super) associations: usize,
    pub(super) counters: DatagramCounters,
    /// Datagrams that this gateway dropped, for all reasons.
    pub(super) dropped: u64,
}

impl Report {
    pub(super) fn new(carrier: &Carrier, end: End) -> Self {
        Self { stack: carrier.stack().clone(), way: carrier.way.clone(), end }
    }

    fn full_status(&self) -> Status {
        Status {
            carrier: self.way.name(),
            key: self.way.key(),
            end: self.end.status(),
            datagrams: self.end.datagrams(),
            peers: self.way.peers(),
            refused_packets: self.way.refused(),
            counters: self.stack.counters(),
        }
    }

    /// Answers on the control socket, and serves the metrics and the live page that are asked for,
    /// until the runtime ends. `command` is the gateway's: `gateway near`.
    ///
    /// # Errors
    /// The control socket or an address cannot be bound.
    pub(super) async fn serve(
        &self,
        command: &'static str,
        outlets: &Outlets,
    ) -> anyhow::Result<()> {
        let device = command.replace(' ', "-");
        let served = Served { command, device, stacks: vec![self.stack.clone()] };
        Controlled { served, report: self.clone() }.listen(outlets.control.as_deref())?;
        if let Some(address) = outlets.metrics {
            let report = self.clone();
            exporter::listen(address, move || ready(Some(report.clone()))).await?;
        }
        if let Some(address) = outlets.live {
            let (report, title) = (self.clone(), format!("airtcp {command}"));
            live::listen(address, title, move || ready(Some(report.snapshot()))).await?;
        }
        Ok(())
    }

    /// Prints the summary at exit: JSON on stdout, or a line for people on stderr.
    ///
    /// # Errors
    /// Writing failed.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return output::print_json(&self.full_status());
        }
        self.end.status().carried().note();
        Ok(())
    }
}

impl Reported for Report {
    fn status(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self.full_status())
    }

    fn link(&self) -> &Stack {
        &self.stack
    }

    fn spare(&self) -> Vec<SocketAddr> {
        match &self.end {
            End::Near(near, _) => near.spare(),
            End::Far(..) => Vec::new(),
        }
    }

    fn check(&self, strategies: &Combination) -> Result<(), Mistake> {
        self.way.check(strategies)
    }
}

impl Carried {
    /// Prints a line for people on stderr.
    pub(super) fn note(&self) {
        let Self { opened, refused, sent, received, .. } = self;
        let refused: u64 = refused.values().sum();
        let (sent, received) = (output::bytes(*sent), output::bytes(*received));
        output::note(format_args!(
            "carried {opened} connections, refused {refused}: {sent} sent, {received} received"
        ));
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

impl EndStatus {
    pub(super) fn carried(&self) -> Carried {
        let (open, opened, sent, received, refused) = match self {
            Self::Near(near) => (near.open, near.opened, near.sent, near.received, &near.refused),
            Self::Far(far) => (far.open, far.opened, far.sent, far.received, &far.refused),
        };
        Carried { open, opened, sent, received, refused: refused.clone() }
    }
}

impl DatagramsStatus {
    pub(super) fn carried(&self) -> CarriedDatagrams {
        let (associations, counters, dropped) = match self {
            Self::Near(near) => (near.associations, near.counters, near.dropped),
            Self::Far(far) => {
                let refused = [far.not_allowed, far.unresolved, far.unsendable, far.filtered];
                (far.associations, far.counters, far.dropped + refused.iter().sum::<u64>())
            }
        };
        let dropped = dropped + counters.dropped_full;
        CarriedDatagrams { associations, counters, dropped }
    }
}
