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

/// What a base station can be asked and told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub(super) enum Request {
    /// How it stands, and its counters
    Status,
    /// The thousand flows that were used last
    Flows,
    /// The mobile is about to leave: windows are closed, and what is under way still reaches it
    Freeze,
    /// The mobile is gone
    Disconnect,
    /// The mobile is back, or stays
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
