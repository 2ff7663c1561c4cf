//! Reports the state and the counters of a base station.

use airtcp_basestation::Side;
use airtcp_basestation::station::{MobileStatus, Status};
use airtcp_device::{Device, Tun};
use airtcp_net::Driver;
use airtcp_types::{Node, PortId};
use serde::Serialize;
use serde_json::Value;

use super::handoff::HandoffReport;
use super::middle::Middle;
use crate::output;
use crate::table::table;

/// The state and all counters.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Since the start.
    pub(super) seconds: f64,
    pub(super) wired: SideReport,
    pub(super) wireless: SideReport,
    /// `None` for a bridge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) station: Option<Status>,
    /// Only if the station hands mobiles over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) handoff: Option<HandoffReport>,
    /// Empty if no mobile can be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) mobiles: Vec<MobileStatus>,
    /// The number of known mobiles that are not in the list.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) mobiles_left_out: usize,
}

const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The counters of a device.
#[derive(Debug, Default, Serialize)]
pub(super) struct SideReport {
    pub(super) device: String,
    pub(super) received_packets: u64,
    pub(super) received_bytes: u64,
    /// Packets that arrived here without a whole IP header. A station counts them for both sides
    /// together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dropped_not_ip: Option<u64>,
    sent_packets: u64,
    pub(super) sent_bytes: u64,
    /// Packets not sent, because the device was full for too long.
    pub(super) sent_dropped_full: u64,
    /// Packets not sent, because the device was down.
    pub(super) sent_dropped_link_down: u64,
    /// Packets not sent, because the kernel refused them.
    pub(super) sent_errors: u64,
}

/// The packets of an agent's device.
#[derive(Debug, Default, Serialize)]
pub(super) struct DevicePackets {
    pub(super) received_packets: u64,
    pub(super) sent_packets: u64,
    /// Packets not sent, because the device was full for too long, down, or refused them.
    pub(super) not_sent_packets: u64,
}

impl Report {
    pub(super) fn of(driver: &Driver<Middle, Tun>) -> Self {
        Self::with(driver, usize::MAX)
    }

    /// Creates a report with at most `most` known mobiles.
    pub(super) fn with(driver: &Driver<Middle, Tun>, most: usize) -> Self {
        let now = driver.clock().now();
        let station = driver.node().station();
        let handoff = match driver.node() {
            Middle::Handoff(agent) => Some(HandoffReport::of(agent, now)),
            _ => None,
        };
        Self {
            seconds: now.as_secs_f64(),
            wired: SideReport::of(driver, Side::Wired),
            wireless: SideReport::of(driver, Side::Wireless),
            station: station.map(|station| station.status(now)),
            handoff,
            mobiles: station.map_or(Vec::new(), |station| station.first_mobiles(now, most)),
            mobiles_left_out: station
                .map_or(0, |station| station.known_mobiles().saturating_sub(most)),
        }
    }

    /// Prints the report, as text or as a line of JSON.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        output::print_counters(self, json, || Ok(text(&serde_json::to_value(self)?)))
    }
}

impl SideReport {
    fn of(driver: &Driver<Middle, Tun>, side: Side) -> Self {
        let port = usize::from(side.port().0);
        let device = driver.device(port);
        let counters = device.counters();
        Self {
            device: device.name().to_owned(),
            received_packets: counters.rx_packets,
            received_bytes: counters.rx_bytes,
            dropped_not_ip: match driver.node() {
                Middle::Bridge(bridge) => Some(bridge.counters(side).dropped_not_ip),
                Middle::Station(_) | Middle::Handoff(_) => None,
            },
            sent_packets: counters.tx_packets,
            sent_bytes: counters.tx_bytes,
            sent_dropped_full: driver.dropped(port),
            sent_dropped_link_down: counters.tx_dropped,
            sent_errors: counters.tx_errors,
        }
    }
}

impl DevicePackets {
    pub(super) fn of<N: Node>(driver: &Driver<N, Tun>, port: PortId) -> Self {
        let port = usize::from(port.0);
        let counters = driver.device(port).counters();
        Self {
            received_packets: counters.rx_packets,
            sent_packets: counters.tx_packets,
            not_sent_packets: driver.dropped(port) + counters.tx_dropped + counters.tx_errors,
        }
    }
}

/// Formats a report: the figures, a line each, and then the mobiles, a line each.
pub(super) fn text(report: &Value) -> String {
    let mut report = report.clone();
    let mobiles = report.as_object_mut().and_then(|fields| fields.remove("mobiles"));
    let text = tree(&report);
    match mobiles.as_ref().and_then(Value::as_array) {
        Some(mobiles) => format!("{text}\n\n{}", lines(mobiles)),
        None => text,
    }
}

/// Formats mobiles, a line each.
fn lines(mobiles: &[Value]) -> String {
    let header =
        ["Mobile", "Reach", "For", "Queued", "Held", "Flows", "To it", "From it", "Air", "Dropped"];
    let rows = mobiles.iter().map(|mobile| {
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let sum = |names: [&str; 2]| names.map(|name| count(&mobile[name])).iter().sum::<u64>();
        let bytes = |way: &str| output::bytes(count(&mobile["traffic"][way]["bytes"]));
        let share = |way: &str| mobile["air_share"][way].as_f64().unwrap_or(0.0);
        let dropped = count(&mobile["queue_dropped"]) + count(&mobile["counters"]["held_dropped"]);
        [
            mobile["name"].as_str().unwrap_or("-").to_owned(),
            mobile["reach"].as_str().unwrap_or("-").to_owned(),
            format!("{:.0} s", mobile["reach_seconds"].as_f64().unwrap_or(0.0)),
            format!("{} packets", count(&mobile["queued"]["to_mobile"])),
            format!("{} packets", count(&mobile["held"])),
            sum(["flows", "frozen"]).to_string(),
            bytes("to_mobile"),
            bytes("from_mobile"),
            format!("{:.0} %", 100.0 * share("to_mobile")),
            format!("{dropped} packets"),
        ]
    });
    table(header, 2, rows).to_string()
}

/// Formats names and values with units, a line each, without values that are 0.
pub(super) fn tree(value: &Value) -> String {
    let mut lines = Vec::new();
    branch(value, &[], &mut lines);
    lines.join("\n")
}

/// Formats the fields of `value`, whose path is `path`.
fn branch(value: &Value, path: &[&str], lines: &mut Vec<String>) {
    let Some(fields) = value.as_object() else { return lines.push(leaf(value)) };
    let indent = " ".repeat(2 * path.len());
    for (name, value) in fields {
        let title = format!("{indent}{}", name.replace('_', " "));
        let path = [path, &[name.as_str()]].concat();
        if value.is_object() {
            let before = lines.len();
            lines.push(title);
            branch(value, &path, lines);
            if lines.len() == before + 1 {
                lines.pop();
            }
        } else if value.as_f64() != Some(0.0) {
            lines.push(format!("{title:30}{}{}", leaf(value), unit(&path)));
        }
    }
}

/// Returns the unit of a value whose name does not contain it.
fn unit(path: &[&str]) -> &'static str {
    match path {
        [.., name] if ["bytes", "packets", "events"].iter().any(|end| name.ends_with(end)) => "",
        [.., "received_power"] => " W",
        [.., "memory" | "cached"] => " bytes",
        ["station", "mobile_full"] => " packets",
        ["station", "unproven" | "frozen" | "evicted"] | [.., "counters", "let_go"] => " flows",
        [.., "counters", "frozen" | "made" | "hidden"] => " ACKs",
        ["station", "held"] | [.., "queued", _] | [.., "counters", _] | [.., "radio", _, _] => {
            " packets"
        }
        ["wired" | "wireless", name] if *name != "device" => " packets",
        _ => "",
    }
}

fn leaf(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            if number.abs() < 1e-3 { format!("{number:.3e}") } else { format!("{number:.3}") }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_mobile_is_a_line_with_units() {
        let value = json!({
            "seconds": 1.0,
            "mobiles": [{
                "name": "m1", "reach": "gone", "reach_seconds": 12.4, "held": 3, "flows": 2,
                "frozen": 1, "queued": {"to_mobile": 4, "from_mobile": 0}, "queue_dropped": 5,
                "traffic": {"to_mobile": {"bytes": 2_048}, "from_mobile": {"bytes": 40}},
                "air_share": {"to_mobile": 0.25, "from_mobile": 0.5},
                "counters": {"held_dropped": 6},
            }],
        });
        let text = text(&value);
        let words: Vec<_> = text.lines().last().unwrap().split_whitespace().collect();
        let expected = "m1 gone 12 s 4 packets 3 packets 3 2 KiB 40 B 25 % 11 packets";
        assert_eq!(words.join(" "), expected, "{text}");
        assert!(text.starts_with("seconds"), "{text}");
    }

    #[test]
    fn zero_counters_are_omitted_and_figures_have_units() {
        let value = json!({
            "seconds": 1.5,
            "wired": {"device": "tun0", "sent_packets": 3, "sent_errors": 0, "sent_dropped_full": 2},
            "station": {
                "counters": {"marked": 0, "made": 2, "held": 3}, "connected": true, "flows": 4,
                "received_power": 4e-10, "frozen": 1, "held": 9, "held_bytes": 9000,
                "queued": {"to_mobile": 5, "from_mobile": 0},
                "radio": {"to_mobile": {"forwarded": 6, "forwarded_bytes": 600}},
                "air": {"to_mobile": {"tries": 7, "air_time_ns": 8}},
            },
        });
        let text = tree(&value);
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let expected = [
            "seconds 1.500",
            "station",
            "connected yes",
            "received power 4.000e-10 W",
            "flows 4",
            "frozen 1 flows",
            "held 9 packets",
            "held bytes 9000",
            "counters",
            "made 2 ACKs",
            "held 3 packets",
            "queued",
            "to mobile 5 packets",
            "radio",
            "to mobile",
            "forwarded 6 packets",
            "forwarded bytes 600",
            "air",
            "to mobile",
            "tries 7",
            "air time ns 8",
            "wired",
            "device tun0",
            "sent packets 3",
            "sent dropped full 2 packets",
        ];
        let mut sorted = [lines.clone(), Vec::new()].concat();
        sorted.sort_unstable();
        let mut expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        expected.sort_unstable();
        assert_eq!(sorted, expected, "{text}");
    }
}
