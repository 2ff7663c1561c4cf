//! Reports the registrations and the counters of a home agent.

use airtcp_basestation::home::HomeStatus;
use airtcp_device::{Device, Tun};
use airtcp_net::Driver;
use airtcp_types::PortId;
use serde::Serialize;

use super::Keeper;
use crate::output;
use crate::station::report::{DevicePackets, tree};
use crate::table::table;

/// The state and the counters.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Since the start.
    seconds: f64,
    device: DeviceReport,
    #[serde(flatten)]
    status: HomeStatus,
}

/// The device.
#[derive(Debug, Serialize)]
struct DeviceReport {
    name: String,
    #[serde(flatten)]
    packets: DevicePackets,
}

impl Report {
    pub(super) fn of(driver: &Driver<Keeper, Tun>) -> Self {
        let now = driver.clock().now();
        Self {
            seconds: now.as_secs_f64(),
            device: DeviceReport {
                name: driver.device(0).name().to_owned(),
                packets: DevicePackets::of(driver, PortId(0)),
            },
            status: driver.node().agent.status(now),
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
        let mobiles = match self.status.bindings.as_slice() {
            [] => "no mobile is registered".to_owned(),
            bindings => {
                let rows = bindings.iter().map(|binding| {
                    [
                        binding.mobile.clone(),
                        binding.address.to_string(),
                        binding.care_of.to_string(),
                        binding.station.clone().unwrap_or_else(|| "-".to_owned()),
                        binding.seconds.to_string(),
                    ]
                });
                let header =
                    ["Mobile", "Home address", "Care-of address", "Station", "Seconds left"];
                table(header, 4, rows).to_string()
            }
        };
        let device = tree(&serde_json::to_value(&self.device)?);
        let counters = tree(&serde_json::to_value(self.status.counters)?);
        Ok([mobiles, device, counters].join("\n").trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use airtcp_basestation::home::{BindingStatus, HomeCounters};

    use super::*;

    #[test]
    fn a_registered_mobile_is_a_line_and_counters_of_zero_are_left_out() {
        let mut report = Report {
            seconds: 1.0,
            device: DeviceReport {
                name: "home0".to_owned(),
                packets: DevicePackets { received_packets: 3, ..DevicePackets::default() },
            },
            status: HomeStatus {
                bindings: Vec::new(),
                counters: HomeCounters { requests: 2, ..HomeCounters::default() },
            },
        };
        let words = |report: &Report| -> Vec<String> {
            let text = report.text().unwrap();
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let rest = ["name home0", "received packets 3", "requests 2"];
        assert_eq!(words(&report), [&["no mobile is registered"][..], &rest].concat());
        report.status.bindings.push(BindingStatus {
            mobile: "van".to_owned(),
            address: [192, 0, 2, 7].into(),
            care_of: [198, 51, 100, 1].into(),
            station: None,
            seconds: 59,
        });
        assert_eq!(words(&report)[2], "van 192.0.2.7 198.51.100.1 - 59");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(
            (&json["counters"]["requests"], &json["bindings"][0]["seconds"]),
            (&2.into(), &59.into())
        );
    }
}
