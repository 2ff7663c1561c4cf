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
/// The maximum number of known mobiles in a response.
const MOST_MOBILES: usize = 1_000;

/// A request to a running base station.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) command: Command,
    /// The name of a mobile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mobile: Option<String>,
}

/// The commands of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Command {
    /// Show which mobiles are in reach, and the counters
    Status,
    /// List the thousand flows that were used last
    Flows,
    /// Announce that all mobiles are about to leave: close the senders' windows, and deliver what is
    /// under way
    Freeze,
    /// Announce that all mobiles have left
    Disconnect,
    /// Announce that all mobiles are back, or stay
    Reconnect,
    /// Announce that one mobile has left
    Leave,
    /// Announce that one mobile is back, or stays
    Join,
}

impl Request {
    /// The request for the status.
    pub(super) const STATUS: Self = Self { command: Command::Status, mobile: None };
}

/// Performs a request.
///
/// # Errors
/// The station does not support the request in its configuration; the mobile is missing or not
/// known.
pub(super) fn answer(request: &Request, driver: &mut Driver<Middle, Tun>) -> anyhow::Result<Value> {
    let now = driver.clock().now();
    let Some(station) = driver.node_mut().station_mut() else {
        bail!("this base station has no radio")
    };
    match (request.command, request.mobile.as_deref()) {
        (Command::Leave, Some(name)) => station.leave(now, name)?,
        (Command::Join, Some(name)) => station.join(now, name)?,
        (Command::Leave | Command::Join, None) => bail!(
            "leave and join need the name of a mobile: `basestation ctl status` lists the mobiles"
        ),
        (_, Some(_)) => bail!("only leave and join take the name of a mobile"),
        (Command::Status, None) => {}
        (Command::Flows, None) => return Ok(serde_json::to_value(station.flows(MOST_FLOWS))?),
        (Command::Freeze, None) if station.policy() != Policy::TcpEcn => {
            let name = station.policy().name();
            bail!("this needs the policy tcp-ecn, and the base station has {name}")
        }
        (Command::Freeze, None) => station.freeze(now),
        (Command::Disconnect, None) => station.disconnect(now),
        (Command::Reconnect, None) => station.reconnect(now),
    }
    tracing::debug!(?request, "by the control socket");
    Ok(serde_json::to_value(report(request, driver)?)?)
}

/// Returns the state with the first mobiles, or with the one that a request names.
fn report(request: &Request, driver: &Driver<Middle, Tun>) -> anyhow::Result<Report> {
    let report = Report::with(driver, MOST_MOBILES);
    let (Some(station), Some(name)) = (driver.node().station(), &request.mobile) else {
        return Ok(report);
    };
    let mobiles = vec![station.mobile(driver.clock().now(), name)?];
    Ok(Report { mobiles, mobiles_left_out: 0, ..report })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_command_and_perhaps_a_mobile() {
        let text = serde_json::to_string(&Request::STATUS).unwrap();
        assert_eq!(text, r#"{"command":"status"}"#);
        let leave = r#"{"command":"leave","mobile":"m1"}"#;
        let request: Request = serde_json::from_str(leave).unwrap();
        assert_eq!((request.command, request.mobile.as_deref()), (Command::Leave, Some("m1")));
        assert_eq!(serde_json::to_string(&request).unwrap(), leave);
        assert!(serde_json::from_str::<Request>(r#"{"command":"leave","name":"m1"}"#).is_err());
    }
}
