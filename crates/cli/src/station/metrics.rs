//! Exports a report to Prometheus, with the names of `status`.

use std::fmt;

use airtcp_basestation::station::{MobileStatus, Origin, Reach, Status, UNNAMED};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use serde::Serialize;
use serde_json::Value;

use super::handoff::HandoffReport;
use super::report::Report;
#[cfg(test)]
use super::report::SideReport;
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
        put(encoder, "basestation", "Settings, as labels", &Info::new(labels))?;
        let help = "Seconds since the start";
        put(encoder, "basestation_uptime_seconds", help, &ConstGauge::new(self.seconds))?;
        let sides = [("wired", counters(&self.wired)), ("wireless", counters(&self.wireless))];
        put_counters(encoder, "", "side", sides)?;
        self.station.map_or(Ok(()), |station| put_status(encoder, &station))?;
        self.handoff.as_ref().map_or(Ok(()), |handoff| put_handoff(encoder, handoff))?;
        if self.mobiles.is_empty() { Ok(()) } else { put_mobiles(encoder, &self.mobiles) }
    }
}

fn put_status(encoder: &mut DescriptorEncoder<'_>, status: &Status) -> fmt::Result {
    for (name, value) in counters(&status.counters) {
        put(encoder, &format!("basestation_{name}"), help_of(&name), &ConstCounter::new(value))?;
    }
    let help = "Flows evicted from the full table";
    put(encoder, "basestation_evicted", help, &ConstCounter::new(status.evicted))?;
    let help = "Packets from an unknown address for which heard has no place";
    put(encoder, "basestation_mobile_full", help, &ConstCounter::new(status.mobile_full))?;

    let flows =
        [("proven", status.flows), ("unproven", status.unproven), ("frozen", status.frozen)];
    let flows = flows.map(|(state, count)| (state, ConstGauge::new(count as u64)));
    put_by(encoder, "basestation_flows", "Flows in the table, by state", "state", flows)?;
    let is_so = |is_so: bool| ConstGauge::new(u64::from(is_so));
    let reaches = REACHES.map(|(name, reach)| (name, is_so(status.reach == reach)));
    let help = "1 for the current state of the mobile, by reach";
    put_by(encoder, "basestation_reach", help, "reach", reaches)?;
    for (name, help, value) in [
        ("connected", "1 if the mobile is in reach, otherwise 0", is_so(status.connected)),
        ("fading", "1 if the mobile will soon be out of reach, otherwise 0", is_so(status.fading)),
        (
            "memory_bytes",
            "Memory of the flows, including copies of packets",
            ConstGauge::new(status.memory as u64),
        ),
        (
            "cached_bytes",
            "Bytes of packets in the cache, or of delayed ACKs",
            ConstGauge::new(status.cached as u64),
        ),
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
    let help = "Packets queued for the radio or in transmission, by way";
    put_by(encoder, "basestation_queued_packets", help, "way", queued)?;
    put_counters(encoder, "radio_", "way", by_way(status.radio.each_ref().map(counters)))?;
    put_counters(encoder, "air_", "way", by_way(status.air.each_ref().map(counters)))?;
    let seconds = status.air.map(|air| ConstCounter::new(air.air_time.as_secs_f64()));
    let help = "Air time, including interframe spaces and ACK frames, by way";
    put_by(encoder, "basestation_air_time_seconds", help, "way", by_way(seconds))
}

fn put_handoff(encoder: &mut DescriptorEncoder<'_>, handoff: &HandoffReport) -> fmt::Result {
    for (name, value) in counters(&handoff.moves) {
        let name = format!("handoff_{name}");
        put(encoder, &format!("basestation_{name}"), help_of(&name), &ConstCounter::new(value))?;
    }
    let visitors = ConstGauge::new(handoff.visitors as u64);
    let help = "Mobiles that are registered through the station";
    put(encoder, "basestation_handoff_visitors", help, &visitors)
}

/// A figure of a mobile.
type Count = fn(&MobileStatus) -> u64;
/// A figure of a mobile for one direction: 0 is that to the mobile.
type CountByWay = fn(&MobileStatus, usize) -> u64;

/// The mobiles that are exported together: one with a name, or all without one, so that the number
/// of labels is that of the configuration.
struct Group<'a> {
    label: &'a str,
    mobiles: Vec<&'a MobileStatus>,
}

impl Group<'_> {
    fn sum(&self, of: impl Fn(&MobileStatus) -> u64) -> u64 {
        self.mobiles.iter().map(|mobile| of(mobile)).sum()
    }
}

fn put_mobiles(encoder: &mut DescriptorEncoder<'_>, mobiles: &[MobileStatus]) -> fmt::Result {
    let (named, others): (Vec<_>, Vec<_>) =
        mobiles.iter().partition(|mobile| mobile.origin == Origin::Named);
    let mut groups: Vec<_> = named
        .into_iter()
        .map(|mobile| Group { label: &mobile.name, mobiles: vec![mobile] })
        .collect();
    groups.push(Group { label: UNNAMED, mobiles: others });

    let reaches = groups.iter().flat_map(|group| {
        REACHES.map(|(name, reach)| {
            let count = group.sum(|mobile| u64::from(mobile.reach == reach));
            (vec![("mobile", group.label), ("reach", name)], ConstGauge::new(count))
        })
    });
    let help = "Mobiles in this state, by mobile and reach";
    put_each(encoder, "reach", help, reaches)?;
    let states: [(&str, Count); 3] = [
        ("proven", |mobile| mobile.flows as u64),
        ("unproven", |mobile| mobile.unproven as u64),
        ("frozen", |mobile| mobile.frozen as u64),
    ];
    let flows = groups.iter().flat_map(|group| {
        states.map(|(state, count)| {
            let count = group.sum(count);
            (vec![("mobile", group.label), ("state", state)], ConstGauge::new(count))
        })
    });
    put_each(encoder, "flows", "Flows of the mobile, by mobile and state", flows)?;

    let gauges: [(&str, &str, Count); 2] = [
        ("waiting_packets", "Packets held until the mobile returns, by mobile", |one| {
            one.held as u64
        }),
        ("waiting_bytes", "Bytes of held packets, by mobile", |one| one.held_bytes as u64),
    ];
    for (name, help, value) in gauges {
        let values = groups.iter().map(|group| {
            let value = group.sum(value);
            (vec![("mobile", group.label)], ConstGauge::new(value))
        });
        put_each(encoder, name, help, values)?;
    }
    let counters: [(&str, &str, Count); 4] = [
        ("departures", "Times that the mobile came out of reach, by mobile", |one| one.departures),
        ("queue_dropped", "Packets dropped by the full queue of the mobile, by mobile", |one| {
            one.queue_dropped
        }),
        ("held_dropped", "Packets dropped while the mobile was out of reach, by mobile", |one| {
            one.counters.held_dropped
        }),
        ("let_go", "Flows released because the mobile stayed away, by mobile", |one| {
            one.counters.let_go
        }),
    ];
    for (name, help, value) in counters {
        let values = groups
            .iter()
            .map(|group| (vec![("mobile", group.label)], ConstCounter::new(group.sum(value))));
        put_each(encoder, name, help, values)?;
    }
    put_mobiles_by_way(encoder, &groups)
}

fn put_mobiles_by_way(encoder: &mut DescriptorEncoder<'_>, groups: &[Group<'_>]) -> fmt::Result {
    let by_both = |value: CountByWay| {
        groups.iter().flat_map(move |group| {
            by_way([0, 1]).map(|(way, at)| {
                let value = group.sum(|mobile| value(mobile, at));
                (vec![("mobile", group.label), ("way", way)], value)
            })
        })
    };
    let queued = by_both(|mobile, way| mobile.queued[way] as u64);
    let help = "Packets queued for the radio or in transmission, by mobile and way";
    let queued = queued.map(|(labels, count)| (labels, ConstGauge::new(count)));
    put_each(encoder, "queued_packets", help, queued)?;
    let counters: [(&str, &str, CountByWay); 3] = [
        ("packets", "Packets that crossed the radio, by mobile and way", |one, way| {
            one.traffic[way].packets
        }),
        ("bytes", "Bytes that crossed the radio, by mobile and way", |one, way| {
            one.traffic[way].bytes
        }),
        ("air_tries", "Frames sent, each try counted, by mobile and way", |one, way| {
            one.air[way].tries
        }),
    ];
    for (name, help, value) in counters {
        let values = by_both(value).map(|(labels, count)| (labels, ConstCounter::new(count)));
        put_each(encoder, name, help, values)?;
    }
    let seconds = groups.iter().flat_map(|group| {
        by_way([0, 1]).map(|(way, at)| {
            let times = group.mobiles.iter().map(|mobile| mobile.air[at].air_time.as_secs_f64());
            let labels = vec![("mobile", group.label), ("way", way)];
            (labels, ConstCounter::new(times.sum::<f64>()))
        })
    });
    put_each(encoder, "air_time_seconds", "Air time of the mobile, by mobile and way", seconds)
}

/// Encodes a metric of the mobiles for each list of labels.
fn put_each<'a, M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metrics: impl IntoIterator<Item = (Vec<(&'static str, &'a str)>, M)>,
) -> fmt::Result {
    let name = format!("basestation_mobile_{name}");
    let mut family = encoder.encode_descriptor(&name, help, None, M::TYPE)?;
    for (labels, metric) in metrics {
        metric.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Returns the description of a counter of the status, by its name with the prefix of its part.
fn help_of(name: &str) -> &'static str {
    let known = HELPS.iter().find(|(known, _)| *known == name);
    known.map_or("A counter of ctl status", |(_, help)| *help)
}

const HELPS: [(&str, &str); 64] = [
    ("received_packets", "Packets received from the device, by side"),
    ("received_bytes", "Bytes received from the device, by side"),
    (
        "dropped_not_ip",
        "Packets dropped by a bridge because they do not begin with an IP header, by side",
    ),
    ("sent_packets", "Packets sent to the device, by side"),
    ("sent_bytes", "Bytes sent to the device, by side"),
    ("sent_dropped_full", "Packets dropped because the device was full for too long, by side"),
    ("sent_dropped_link_down", "Packets dropped because the link of the device was down, by side"),
    ("sent_errors", "Packets that the kernel refused, by side"),
    ("not_ip", "Packets dropped because they do not begin with an IP header"),
    ("marked", "Segments marked for the mobile"),
    ("hidden", "Duplicate ACKs dropped because the radio or the cache repairs the loss"),
    ("delayed", "Duplicate ACKs delayed by delayed-dupack"),
    ("sent_again", "Segments retransmitted from the cache of snoop"),
    ("frozen", "ACKs of the mobile whose window was closed"),
    ("made", "ACKs generated by the station, to close and open windows"),
    ("held", "Packets held while the mobile was out of reach, since the start"),
    ("held_again", "Held packets dropped because an older copy was held"),
    ("probes", "Probes and keep-alives that arrived while the mobile was out of reach"),
    ("held_dropped", "Packets dropped because the pool was full or the mobile stayed away"),
    ("let_go", "Flows released because the mobile stayed away for longer than absence"),
    (
        "out_of_window_data",
        "Segments with sequence numbers outside the receiver's window (RFC 9293 section 3.10.7.4)",
    ),
    (
        "out_of_window_acks",
        "Segments that acknowledge data that was not sent, or nothing (RFC 5961 section 5)",
    ),
    ("out_of_window_syns", "SYNs on an established flow (RFC 5961 section 4)"),
    (
        "out_of_window_rsts",
        "RSTs without the number that the receiver expects (RFC 5961 section 3)",
    ),
    (
        "spoofed_sources",
        "Packets of the wireless side dropped because their source is not in mobiles",
    ),
    (
        "link_local_sources",
        "Packets of the wireless side dropped because of a link-local or unspecified source",
    ),
    ("missed_events", "Events for a trace that found no room"),
    ("handoff_arrivals", "Mobiles that came: their first registration, or one after a move"),
    ("handoff_departures", "Mobiles that left for another station"),
    ("handoff_completed", "Departures whose flows and packets the new station has acknowledged"),
    ("handoff_failed", "Departures whose items were not acknowledged within 7 s, and dropped"),
    (
        "handoff_discarded",
        "Mobiles that left for a place that is no peer: their flows were dropped",
    ),
    ("handoff_ignored", "Registrations that moved no flow: too many mobiles, or an old epoch"),
    ("handoff_taken_over", "Arrivals that got everything that the old station had kept"),
    ("handoff_timed_out", "Arrivals that did not wait for the end of what the old station sent"),
    (
        "handoff_adopted",
        "Arrivals whose old station did not answer: flows are adopted from traffic",
    ),
    ("handoff_flows_sent", "Flow records sent to other stations"),
    ("handoff_flows_received", "Flow records received from other stations"),
    ("handoff_refused", "Flow records and packets of other stations that are not of the mobile"),
    ("handoff_repeated", "Items sent again to other stations"),
    ("handoff_duplicates", "Items received again from other stations"),
    ("handoff_followed", "Packets sent after a mobile that had left"),
    (
        "handoff_dropped_full",
        "Packets of mobiles on the move that were dropped because there was no room",
    ),
    ("handoff_unauthenticated", "Messages of other stations without a valid authenticator"),
    ("handoff_malformed", "Messages of other stations that have the wrong form"),
    ("handoff_stale", "Messages of other stations that belong to another move"),
    ("radio_received", "Packets that entered the radio, by way"),
    ("radio_forwarded", "Packets that the radio delivered, by way"),
    ("radio_forwarded_bytes", "Bytes that the radio delivered, by way"),
    ("radio_policed", "Packets dropped by a policer, by way"),
    ("radio_queue_dropped", "Packets dropped by the queue of the radio, by way"),
    ("radio_marked", "Packets that the queue of the radio marked with CE, by way"),
    ("radio_channel_lost", "Packets lost after all tries of the radio, by way"),
    ("radio_disconnected", "Packets lost because the mobile was out of reach, by way"),
    ("radio_corrupted", "Packets with flipped bits, by way"),
    ("radio_corrupted_header", "Packets with flipped bits in the IP or transport header, by way"),
    ("radio_corrupted_unnoticed", "Corrupted packets whose checksums still hold, by way"),
    ("radio_duplicated", "Packets that were delivered twice, by way"),
    ("radio_reordered", "Packets that arrived after a packet that was sent later, by way"),
    ("radio_overflowed", "Packets dropped because too many were in flight, by way"),
    ("air_tries", "Frames sent, each try counted, by way"),
    ("air_collisions", "Tries in which both ends sent at once, by way"),
    ("air_passed_again", "Frames passed to the MAC once more after it had given up, by way"),
    ("air_duplicates", "Frames received again because their link ACK was lost, by way"),
];

/// Labels the values of both directions over the radio.
fn by_way<T>([to, from]: [T; 2]) -> [(&'static str, T); 2] {
    [("to_mobile", to), ("from_mobile", from)]
}

/// Encodes the counters of two similar parts, distinguished by the label `by`.
fn put_counters(
    encoder: &mut DescriptorEncoder<'_>,
    prefix: &str,
    by: &str,
    both: [(&'static str, Vec<(String, u64)>); 2],
) -> fmt::Result {
    let [(first, one), (second, other)] = both;
    for ((name, one), (_, other)) in one.into_iter().zip(other) {
        let name = format!("{prefix}{name}");
        let values = [(first, ConstCounter::new(one)), (second, ConstCounter::new(other))];
        put_by(encoder, &format!("basestation_{name}"), help_of(&name), by, values)?;
    }
    Ok(())
}

/// Returns the counters of a part by name, without times.
fn counters(counted: &impl Serialize) -> Vec<(String, u64)> {
    let Ok(Value::Object(fields)) = serde_json::to_value(counted) else { return Vec::new() };
    let number = |(name, value): (String, Value)| Some((name, value.as_u64()?));
    fields.into_iter().filter_map(number).filter(|(name, _)| !name.ends_with("_ns")).collect()
}

/// Returns the metrics of a base station and of a bridge.
#[cfg(test)]
pub(crate) fn exported() -> [String; 2] {
    let config = airtcp_basestation::StationConfig {
        policy: airtcp_basestation::Policy::TcpEcn,
        ..Default::default()
    };
    let config = airtcp_basestation::StationConfig { heard: 1, ..config };
    let station = airtcp_basestation::Station::new(&config).unwrap();
    let mobiles = station.mobiles(airtcp_types::Instant::ZERO);
    let mut station = station.status(airtcp_types::Instant::ZERO);
    // This counter is exported only if it is not 0.
    station.radio[0].policed = 1;
    [Some(station), None].map(|station| {
        let handoff = station.is_some().then(HandoffReport::default);
        let dropped_not_ip = station.is_none().then_some(0);
        let side = || {
            let mut side = SideReport::default();
            side.dropped_not_ip = dropped_not_ip;
            side
        };
        let mobiles = if station.is_some() { mobiles.clone() } else { Vec::new() };
        let (wired, wireless) = (side(), side());
        let mobiles_left_out = 0;
        let report =
            Report { seconds: 0.0, wired, wireless, station, handoff, mobiles, mobiles_left_out };
        crate::metrics::text(report).unwrap()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use airtcp_basestation::{Policy, Station, StationConfig};
    use airtcp_types::Instant;

    use super::*;
    use crate::metrics::text;

    fn side(device: &str, packets: u64) -> SideReport {
        let mut side = SideReport::default();
        (side.device, side.received_packets) = (device.to_owned(), packets);
        side
    }

    fn report(policy: Policy) -> Report {
        let config = StationConfig { policy, ..StationConfig::default() };
        let station = Station::new(&config).unwrap().status(Instant::from_millis(1_500));
        let (wired, wireless) = (side("tun0", 3), side("tun1", 4));
        let (mobiles, mobiles_left_out) = (Vec::new(), 0);
        let (station, handoff) = (Some(station), None);
        Report { seconds: 1.5, wired, wireless, station, handoff, mobiles, mobiles_left_out }
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
        // Metric names are unique.
        let types: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let families = types.iter().filter_map(|line| line.split(' ').next());
        assert_eq!(families.collect::<BTreeSet<_>>().len(), types.len(), "{text}");
    }

    #[test]
    fn a_mobile_with_a_name_has_its_own_label_and_the_others_share_one() {
        let mobile = serde_json::json!({"name": "m1", "addresses": ["192.0.2.7"]});
        let mobile = vec![serde_json::from_value(mobile).unwrap()];
        let config = StationConfig { mobile, heard: 2, ..StationConfig::default() };
        let mobiles = Station::new(&config).unwrap().mobiles(Instant::ZERO);
        let heard = MobileStatus { origin: Origin::Heard, ..mobiles[1].clone() };
        let mut mobiles = [mobiles, vec![heard]].concat();
        mobiles[0].traffic[0].packets = 7;
        (mobiles[1].held, mobiles[2].held) = (2, 3);
        let text = text(Report { mobiles, ..report(Policy::Plain) }).unwrap();
        for line in [
            "airtcp_basestation_mobile_packets_total{mobile=\"m1\",way=\"to_mobile\"} 7",
            "airtcp_basestation_mobile_reach{mobile=\"m1\",reach=\"there\"} 1",
            "airtcp_basestation_mobile_reach{mobile=\"others\",reach=\"there\"} 2",
            "airtcp_basestation_mobile_waiting_packets{mobile=\"others\"} 5",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
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
