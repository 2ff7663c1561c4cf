//! A report for Prometheus: by the names that `status` has.

use std::fmt;

use airtcp_basestation::station::{Reach, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use serde::Serialize;
use serde_json::Value;

use super::report::Report;
use crate::metrics::{put, put_by};

pub(super) const REACHES: [(&str, Reach); 4] = [
    ("there", Reach::There),
    ("leaving", Reach::Leaving),
    ("gone", Reach::Gone),
    ("lost", Reach::Lost),
];

impl Collector for Report {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let mut labels =
            vec![("wired", self.wired.device.clone()), ("wireless", self.wireless.device.clone())];
        labels.extend(self.station.map(|station| ("policy", station.policy.name().to_owned())));
        put(encoder, "basestation", "Settings", &Info::new(labels))?;
        let help = "Seconds since the start";
        put(encoder, "basestation_uptime_seconds", help, &ConstGauge::new(self.seconds))?;
        let sides = [("wired", counters(&self.wired)), ("wireless", counters(&self.wireless))];
        put_counters(encoder, "", "side", sides)?;
        self.station.map_or(Ok(()), |station| put_status(encoder, &station))
    }
}

fn put_status(encoder: &mut DescriptorEncoder<'_>, status: &Status) -> fmt::Result {
    for (name, value) in counters(&status.counters) {
        let help = format!("`{name}` of ctl status");
        put(encoder, &format!("basestation_{name}"), &help, &ConstCounter::new(value))?;
    }
    let help = "Flows evicted from the full table";
    put(encoder, "basestation_evicted", help, &ConstCounter::new(status.evicted))?;

    let flows =
        [("proven", status.flows), ("unproven", status.unproven), ("frozen", status.frozen)];
    let flows = flows.map(|(state, count)| (state, ConstGauge::new(count as u64)));
    put_by(encoder, "basestation_flows", "Flows in the table", "state", flows)?;
    let is_so = |is_so: bool| ConstGauge::new(u64::from(is_so));
    let reaches = REACHES.map(|(name, reach)| (name, is_so(status.reach == reach)));
    let help = "1 for the state of the mobile";
    put_by(encoder, "basestation_reach", help, "reach", reaches)?;
    for (name, help, value) in [
        ("connected", "Whether the mobile is in reach", is_so(status.connected)),
        ("fading", "Whether the mobile will soon be out of reach", is_so(status.fading)),
        (
            "memory_bytes",
            "Memory of the flows, including copies of packets",
            ConstGauge::new(status.memory as u64),
        ),
        ("cached_bytes", "Bytes of packets in the cache", ConstGauge::new(status.cached as u64)),
        (
            "waiting_packets",
            "Packets held until the mobile returns",
            ConstGauge::new(status.held as u64),
        ),
        ("waiting_bytes", "Bytes of held packets", ConstGauge::new(status.held_bytes as u64)),
    ] {
        put(encoder, &format!("basestation_{name}"), help, &value)?;
    }
    let power = ConstGauge::new(status.received_power);
    let help = "Power received from the mobile";
    put(encoder, "basestation_received_power_watts", help, &power)?;

    let queued = by_way(status.queued.map(|count| ConstGauge::new(count as u64)));
    let help = "Packets queued for the radio or in transmission";
    put_by(encoder, "basestation_queued_packets", help, "way", queued)?;
    put_counters(encoder, "radio_", "way", by_way(status.radio.each_ref().map(counters)))?;
    put_counters(encoder, "air_", "way", by_way(status.air.each_ref().map(counters)))?;
    let seconds = status.air.map(|air| ConstCounter::new(air.air_time.as_secs_f64()));
    let help = "Air time, including interframe spaces and ACK frames";
    put_by(encoder, "basestation_air_time_seconds", help, "way", by_way(seconds))
}

/// What a status has for the two ways over the radio.
fn by_way<T>([to, from]: [T; 2]) -> [(&'static str, T); 2] {
    [("to_mobile", to), ("from_mobile", from)]
}

/// The counters of two alike, by a label.
fn put_counters(
    encoder: &mut DescriptorEncoder<'_>,
    prefix: &str,
    by: &str,
    both: [(&'static str, Vec<(String, u64)>); 2],
) -> fmt::Result {
    let [(first, one), (second, other)] = both;
    for ((name, one), (_, other)) in one.into_iter().zip(other) {
        let (name, help) =
            (format!("basestation_{prefix}{name}"), format!("`{name}` of ctl status"));
        let values = [(first, ConstCounter::new(one)), (second, ConstCounter::new(other))];
        put_by(encoder, &name, &help, by, values)?;
    }
    Ok(())
}

/// The numbers of what only counts, by their names; times are no numbers.
fn counters(counted: &impl Serialize) -> Vec<(String, u64)> {
    let Ok(Value::Object(fields)) = serde_json::to_value(counted) else { return Vec::new() };
    let number = |(name, value): (String, Value)| Some((name, value.as_u64()?));
    fields.into_iter().filter_map(number).filter(|(name, _)| !name.ends_with("_ns")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use airtcp_basestation::{Policy, Station, StationConfig};
    use airtcp_types::Instant;

    use super::*;
    use crate::metrics::text;
    use crate::station::report::SideReport;

    fn side(device: &str, packets: u64) -> SideReport {
        let mut side = SideReport::default();
        (side.device, side.received_packets) = (device.to_owned(), packets);
        side
    }

    fn report(policy: Policy) -> Report {
        let config = StationConfig { policy, ..StationConfig::default() };
        let station = Station::new(&config).unwrap().status(Instant::from_millis(1_500));
        let (wired, wireless) = (side("tun0", 3), side("tun1", 4));
        Report { seconds: 1.5, wired, wireless, station: Some(station) }
    }

    #[test]
    fn every_figure_of_a_status_is_scraped_by_its_name() {
        let mut report = report(Policy::TcpEcn);
        let status = report.station.as_mut().unwrap();
        (status.flows, status.unproven, status.held, status.memory) = (5, 6, 7, 8);
        status.counters.marked = 9;
        (status.radio[1].forwarded, status.air[0].tries) = (10, 11);
        status.air[0].air_time = std::time::Duration::from_millis(250);
        let names: Vec<_> = [
            counters(&status.counters),
            counters(&status.radio[0]),
            counters(&status.air[0]),
            counters(&report.wired),
        ]
        .concat();
        let text = text(report).unwrap();
        for line in [
            "airtcp_basestation_info{wired=\"tun0\",wireless=\"tun1\",policy=\"tcp-ecn\"} 1",
            "airtcp_basestation_uptime_seconds 1.5",
            "# TYPE airtcp_basestation_received_packets counter",
            "airtcp_basestation_received_packets_total{side=\"wired\"} 3",
            "airtcp_basestation_received_packets_total{side=\"wireless\"} 4",
            "# TYPE airtcp_basestation_flows gauge",
            "airtcp_basestation_flows{state=\"proven\"} 5",
            "airtcp_basestation_flows{state=\"unproven\"} 6",
            "airtcp_basestation_reach{reach=\"there\"} 1",
            "airtcp_basestation_reach{reach=\"gone\"} 0",
            "airtcp_basestation_waiting_packets 7",
            "airtcp_basestation_memory_bytes 8",
            "airtcp_basestation_marked_total 9",
            "airtcp_basestation_radio_forwarded_total{way=\"from_mobile\"} 10",
            "airtcp_basestation_air_tries_total{way=\"to_mobile\"} 11",
            "airtcp_basestation_air_time_seconds_total{way=\"to_mobile\"} 0.25",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        for (name, _) in names {
            assert!(text.contains(&format!("_{name}_total")), "{name}: {text}");
        }
        // No name is two metrics'.
        let types: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let families = types.iter().filter_map(|line| line.split(' ').next());
        assert_eq!(families.collect::<BTreeSet<_>>().len(), types.len(), "{text}");
    }

    #[test]
    fn a_bridge_has_its_sides_alone() {
        let text = text(Report { station: None, ..report(Policy::Plain) }).unwrap();
        assert!(
            text.contains("airtcp_basestation_sent_errors_total{side=\"wired\"} 0\n"),
            "{text}"
        );
        assert!(!text.contains("policy") && !text.contains("flows"), "{text}");
    }
}
