//! Reports the visitors and the counters of a foreign agent.

use std::net::IpAddr;

use airtcp_basestation::home::{ForeignAgent, ForeignCounters, Relay, RelayCounters};
use airtcp_basestation::{Bridge, Side};
use airtcp_device::{Device, Tun};
use airtcp_net::Driver;
use airtcp_types::Instant;
use serde::Serialize;

use crate::output;
use crate::station::report::{DevicePackets, tree};
use crate::table::table;

/// The visitors and the counters.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Since the start.
    seconds: f64,
    visitors: Vec<Visitor>,
    wired: SideReport,
    wireless: SideReport,
    registrations: RelayCounters,
    tunnels: ForeignCounters,
}

/// A registered mobile.
#[derive(Debug, Serialize)]
pub(in crate::station) struct Visitor {
    address: IpAddr,
    home_agent: IpAddr,
    /// Until the registration ends.
    seconds: u64,
}

/// The device of a side.
#[derive(Debug, Default, Serialize)]
struct SideReport {
    device: String,
    #[serde(flatten)]
    packets: DevicePackets,
}

impl Report {
    pub(super) fn of(driver: &Driver<ForeignAgent<Bridge>, Tun>) -> Self {
        let now = driver.clock().now();
        let agent = driver.node();
        Self {
            seconds: now.as_secs_f64(),
            visitors: Visitor::all(agent.relay(), now).collect(),
            wired: SideReport::of(driver, Side::Wired),
            wireless: SideReport::of(driver, Side::Wireless),
            registrations: agent.relay().counters(),
            tunnels: agent.counters(),
        }
    }

    /// Prints the report, as text or as a line of JSON.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        output::print_counters(self, json, || self.text())
    }

    fn text(&self) -> anyhow::Result<String> {
        let visitors = match self.visitors.as_slice() {
            [] => "no mobile is registered".to_owned(),
            visitors => {
                let rows = visitors.iter().map(|of| {
                    [of.address.to_string(), of.home_agent.to_string(), of.seconds.to_string()]
                });
                table(["Home address", "Home agent", "Seconds left"], 2, rows).to_string()
            }
        };
        let counters = serde_json::json!({
            "wired": self.wired,
            "wireless": self.wireless,
            "registrations": self.registrations,
            "tunnels": self.tunnels,
        });
        Ok([visitors, tree(&counters)].join("\n").trim_end().to_owned())
    }
}

impl Visitor {
    /// Returns the mobiles whose registration has not ended.
    pub(in crate::station) fn all(relay: &Relay, now: Instant) -> impl Iterator<Item = Self> {
        let visitors = relay.visitors().filter(move |(_, visitor)| visitor.until > now);
        visitors.map(move |(address, visitor)| Self {
            address,
            home_agent: visitor.home_agent,
            seconds: visitor.until.since(now).as_secs(),
        })
    }
}

impl SideReport {
    fn of(driver: &Driver<ForeignAgent<Bridge>, Tun>, side: Side) -> Self {
        let port = side.port();
        let device = driver.device(port.0.into()).name().to_owned();
        Self { device, packets: DevicePackets::of(driver, port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_is_a_line_and_counters_of_zero_are_left_out() {
        let mut report = Report {
            seconds: 1.0,
            visitors: Vec::new(),
            wired: SideReport { device: "visit0".to_owned(), ..SideReport::default() },
            wireless: SideReport { device: "visit1".to_owned(), ..SideReport::default() },
            registrations: RelayCounters { requests: 2, ..RelayCounters::default() },
            tunnels: ForeignCounters::default(),
        };
        let words = |report: &Report| -> Vec<String> {
            let text = report.text().unwrap();
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let found = words(&report);
        assert_eq!(found[0], "no mobile is registered");
        for line in ["device visit0", "device visit1", "requests 2"] {
            assert!(found.iter().any(|found| found == line), "{found:?}");
        }
        assert!(!found.iter().any(|line| line.starts_with("denied")), "{found:?}");
        let (address, home_agent) = ([192, 0, 2, 7].into(), [192, 0, 2, 1].into());
        report.visitors.push(Visitor { address, home_agent, seconds: 59 });
        assert_eq!(words(&report)[2], "192.0.2.7 192.0.2.1 59");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["visitors"][0]["seconds"], 59);
    }
}
