//! Requests and responses of a base station's control socket.

use airtcp_basestation::Policy;
use airtcp_device::Tun;
use airtcp_net::Driver;
use anyhow::bail;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::middle::Middle;
use super::report::Report;

/// The maximum number of flows in a response. Packets wait while it is created.
const MOST_FLOWS: usize = 1_000;

/// Requests to a running base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub(super) enum Request {
    /// Show whether the mobile is in reach, and the counters
    Status,
    /// List the thousand flows that were used last
    Flows,
    /// Announce that the mobile is about to leave: close the senders' windows, and deliver what is
    /// under way
    Freeze,
    /// Announce that the mobile has left
    Disconnect,
    /// Announce that the mobile is back, or stays
    Reconnect,
}

/// Performs a request.
///
/// # Errors
/// The station does not support the request in its configuration.
pub(super) fn answer(request: Request, driver: &mut Driver<Middle, Tun>) -> anyhow::Result<Value> {
    let now = driver.clock().now();
    let Middle::Station(station) = driver.node_mut() else {
        bail!("this base station has no radio")
    };
    match request {
        Request::Status => {}
        Request::Flows => return Ok(serde_json::to_value(station.flows(MOST_FLOWS))?),
        Request::Freeze if station.policy() != Policy::TcpEcn => {
            let name = station.policy().name();
            bail!("this needs the policy tcp-ecn, and the base station has {name}")
        }
        Request::Freeze => station.freeze(now),
        Request::Disconnect => station.disconnect(now),
        Request::Reconnect => station.reconnect(now),
    }
    tracing::debug!(?request, "by the control socket");
    Ok(serde_json::to_value(Report::of(driver))?)
}
