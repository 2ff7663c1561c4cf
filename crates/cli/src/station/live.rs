//! The state of a base station on the live page.

use airtcp_basestation::station::{FlowRecord, Status};
use airtcp_device::Tun;
use airtcp_net::Driver;
use serde_json::Value;

use super::metrics::REACHES;
use super::middle::Middle;
use super::report::{Report, SideReport};
use crate::live::{Chart, MOST_FLOWS, Snapshot, Table, rounded};

const COLUMNS: [&str; 5] =
    ["fixed host", "mobile", "not acknowledged (kB)", "window of the mobile (kB)", "sender"];

/// Returns the current state.
pub(super) fn snapshot(driver: &Driver<Middle, Tun>) -> Snapshot {
    let report = Report::with(driver, 0);
    let mut snapshot = Snapshot::default();
    snapshot.charts.push(throughput(&report.wired, &report.wireless));
    if let (Some(station), Some(status)) = (driver.node().station(), &report.station) {
        show(&mut snapshot, status, (!report.mobiles.is_empty()).then(|| station.known_mobiles()));
        let rows = station.flows(MOST_FLOWS).iter().map(row).collect();
        let table = Table { title: "Flows", columns: &COLUMNS, rows, total: status.flows };
        snapshot.table = Some(table);
    }
    for (name, side) in [("Wired side", report.wired), ("Wireless side", report.wireless)] {
        let lost = side.sent_dropped_full + side.sent_dropped_link_down + side.sent_errors;
        snapshot.figure(name, format!("{}, {lost} packets not sent", side.device));
    }
    snapshot
}

fn throughput(wired: &SideReport, wireless: &SideReport) -> Chart {
    let series = [
        ("from the wired side", wired.received_bytes),
        ("to it", wired.sent_bytes),
        ("from the wireless side", wireless.received_bytes),
        ("to the mobile", wireless.sent_bytes),
    ];
    Chart::rates("Throughput", series)
}

/// Shows a station; `known` is the number of known mobiles if there can be any. The state of the
/// mobile is then that of all others.
fn show(snapshot: &mut Snapshot, status: &Status, known: Option<usize>) {
    let reach = REACHES.into_iter().find(|(_, reach)| *reach == status.reach);
    let fading = if status.fading { ", fading" } else { "" };
    let [mobile, power, in_reach] = match known {
        None => ["Mobile", "Power received from the mobile", "Mobile in reach"],
        Some(_) => ["Other mobiles", "Power received from other mobiles", "Other mobiles in reach"],
    };
    if let Some(known) = known {
        snapshot.figure("Known mobiles", format!("{known}: see basestation ctl status"));
    }
    snapshot.figure(mobile, format!("{}{fading}", reach.map_or("", |(name, _)| name)));
    snapshot.figure("Policy", status.policy.name());
    if status.received_power > 0.0 {
        let dbm = 10.0 * (status.received_power * 1e3).log10();
        snapshot.figure(power, format!("{dbm:.0} dBm"));
    }
    snapshot.figure("Packets held until the mobile returns", status.held);
    snapshot.figure("Flows evicted", status.evicted);
    let ([to, from], [up, down]) = (status.air, status.radio);
    let counters = &status.counters;
    let is_there = f64::from(u8::from(status.connected));
    snapshot.charts.extend([
        Chart::gauges(
            "Queue of the radio",
            "packets",
            [("to the mobile", status.queued[0] as f64), ("from it", status.queued[1] as f64)],
        ),
        Chart::counters(
            "On the air",
            "1/s",
            [
                ("tries to the mobile", to.tries as f64),
                ("tries from it", from.tries as f64),
                ("collisions", (to.collisions + from.collisions) as f64),
                ("packets lost to the mobile", up.channel_lost as f64),
                ("packets lost from it", down.channel_lost as f64),
                ("dropped by full queues", (up.queue_dropped + down.queue_dropped) as f64),
            ],
        ),
        Chart::counters(
            "What the policy does",
            "1/s",
            [
                ("marked", counters.marked as f64),
                ("duplicate ACKs dropped", counters.hidden as f64),
                ("duplicate ACKs delayed", counters.delayed as f64),
                ("sent again from the cache", counters.sent_again as f64),
                ("windows closed", counters.frozen as f64),
                ("held", counters.held as f64),
                ("held, then dropped", counters.held_dropped as f64),
            ],
        ),
        Chart::gauges(
            "Packets held",
            "kB",
            [
                ("until the mobile returns", status.held_bytes as f64 / 1e3),
                ("in the cache, or delayed", status.cached as f64 / 1e3),
            ],
        ),
        Chart::gauges(
            "Flows",
            "",
            [
                ("of the mobile", status.flows as f64),
                ("not answered yet", status.unproven as f64),
                ("frozen", status.frozen as f64),
            ],
        ),
        Chart::gauges(in_reach, "", [("1: in reach", is_there)]),
        Chart::gauges("Memory of the flows", "MB", [("held", status.memory as f64 / 1e6)]),
    ]);
}

fn row(flow: &FlowRecord) -> Vec<Value> {
    let kilobytes = |bytes: u64| rounded(bytes as f64 / 1e3);
    let seen: u64 = flow.seen.iter().map(|(first, end)| u64::from(end.wrapping_sub(*first))).sum();
    let scale = flow.window_scale.unwrap_or(0).min(14);
    let window = flow.window.map(|window| kilobytes(u64::from(window) << scale));
    vec![
        flow.key.fixed.to_string().into(),
        flow.key.mobile.to_string().into(),
        kilobytes(seen).into(),
        window.into(),
        if flow.is_frozen { "stopped" } else { "sends" }.into(),
    ]
}

#[cfg(test)]
mod tests {
    use airtcp_basestation::station::{FlowKey, Reach, Transfer};
    use airtcp_basestation::{Policy, Station, StationConfig};
    use airtcp_types::Instant;

    use super::*;

    #[test]
    fn a_station_shows_its_radio_its_mobile_and_what_it_holds() {
        let config = StationConfig { policy: Policy::TcpEcn, ..StationConfig::default() };
        let mut status = Station::new(&config).unwrap().status(Instant::from_millis(1_500));
        (status.reach, status.held_bytes, status.received_power) = (Reach::Gone, 3_000, 1e-9);
        (status.queued, status.air[1].tries, status.counters.marked) = ([7, 8], 9, 10);
        let mut snapshot = Snapshot::default();
        show(&mut snapshot, &status, None);
        let json = serde_json::to_value(&snapshot).unwrap();
        let series = |title: &str, place: usize| {
            let charts = json["charts"].as_array().unwrap();
            let chart = charts.iter().find(|chart| chart["title"] == title);
            chart.unwrap()["series"][place][1].clone()
        };
        assert_eq!(json["figures"][0], serde_json::json!(["Mobile", "gone"]));
        assert_eq!(json["figures"][2][1], "-60 dBm");
        assert_eq!(
            (series("Queue of the radio", 0), series("Queue of the radio", 1)),
            (7.0.into(), 8.0.into())
        );
        assert_eq!(series("On the air", 1), 9.0);
        assert_eq!(series("What the policy does", 0), 10.0);
        assert_eq!(series("Packets held", 0), 3.0);
        let mut snapshot = Snapshot::default();
        show(&mut snapshot, &status, Some(3));
        let json = serde_json::to_value(&snapshot).unwrap();
        assert_eq!(json["figures"][0][1], "3: see basestation ctl status");
        assert_eq!(json["figures"][1], serde_json::json!(["Other mobiles", "gone"]));
    }

    #[test]
    fn a_flow_has_its_bytes_on_the_way_and_the_scaled_window() {
        let ends = ["192.0.2.1:80", "198.51.100.7:4711"].map(|end| end.parse().unwrap());
        let flow = FlowRecord {
            key: FlowKey { fixed: ends[0], mobile: ends[1] },
            // The range crosses the wrap of sequence numbers.
            seen: vec![(u32::MAX - 999, 1_000), (2_000, 2_500)],
            acked: None,
            floor: 0,
            seq: None,
            window: Some(1_000),
            window_scale: Some(7),
            timestamps: None,
            is_frozen: true,
            transfer: Transfer::default(),
        };
        let row = Value::from(row(&flow));
        let expected =
            serde_json::json!(["192.0.2.1:80", "198.51.100.7:4711", 2.5, 128.0, "stopped"]);
        assert_eq!(row, expected);
    }
}
