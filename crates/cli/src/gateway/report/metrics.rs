//! Exports a report to Prometheus.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Carried, CarriedDatagrams, EndStatus, Report};
use crate::gateway::carrier::Peer;
use crate::metrics::{put, put_by};
use crate::serve::put_stacks;

impl Collector for Report {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        put_stacks(encoder, std::slice::from_ref(&self.stack))?;
        let status = self.end.status();
        if let EndStatus::Near(near) = &status {
            put_near(encoder, near.rtt, near.connected, near.spare)?;
        }
        put_carried(encoder, &status.carried())?;
        put_datagrams(encoder, &self.end.datagrams().carried())?;
        put_peers(encoder, &self.way.peers())
    }
}

fn put_datagrams(encoder: &mut DescriptorEncoder<'_>, carried: &CarriedDatagrams) -> fmt::Result {
    let counters = &carried.counters;
    let open = ConstGauge::new(carried.associations as u64);
    put(
        encoder,
        "gateway_associations",
        "UDP sockets of programs whose datagrams are carried",
        &open,
    )?;
    for (name, help, value) in [
        ("gateway_datagrams_sent", "Datagrams sent to the other gateway", counters.sent),
        (
            "gateway_datagrams_received",
            "Datagrams received from the other gateway",
            counters.received,
        ),
        (
            "gateway_datagrams_dropped",
            "Datagrams dropped by this gateway: full queues, rules, unknown names, filtering",
            carried.dropped,
        ),
        (
            "gateway_frames_sent",
            "Frames sent, which carry datagrams and repairs",
            counters.frames_sent,
        ),
        ("gateway_frames_lost", "Frames of the other gateway that the link lost", counters.lost),
        (
            "gateway_frames_recovered",
            "Lost frames of the other gateway that repairs recovered",
            counters.recovered,
        ),
        ("gateway_repairs_sent", "Frames with repairs sent", counters.repairs_sent),
        (
            "gateway_repair_bytes_sent",
            "Bytes of the frames with repairs sent",
            counters.repair_bytes_sent,
        ),
    ] {
        put(encoder, name, help, &ConstCounter::new(value))?;
    }
    Ok(())
}

fn put_near(
    encoder: &mut DescriptorEncoder<'_>,
    rtt: Option<Duration>,
    is_connected: bool,
    spare: usize,
) -> fmt::Result {
    let connected = ConstGauge::new(u64::from(is_connected));
    put(
        encoder,
        "gateway_connected",
        "1 if the far gateway answers, otherwise 0; only at a near gateway",
        &connected,
    )?;
    let help = "Connections to the far gateway opened ahead of programs; only at a near gateway";
    put(encoder, "gateway_spare", help, &ConstGauge::new(spare as u64))?;
    let rtt = rtt.map_or(f64::NAN, |rtt| rtt.as_secs_f64());
    let help = "Round-trip time of the last heartbeat; only at a near gateway";
    put(encoder, "gateway_rtt_seconds", help, &ConstGauge::new(rtt))
}

/// Encodes the counters of connections.
///
/// # Errors
/// The encoder fails.
pub(in crate::gateway) fn put_carried(
    encoder: &mut DescriptorEncoder<'_>,
    carried: &Carried,
) -> fmt::Result {
    put(
        encoder,
        "gateway_open",
        "Connections that are carried now",
        &ConstGauge::new(carried.open as u64),
    )?;
    for (name, help, value) in [
        ("gateway_opened", "Connections carried since the start", carried.opened),
        ("gateway_sent_bytes", "Bytes of connections sent over the link", carried.sent),
        ("gateway_received_bytes", "Bytes of connections received over the link", carried.received),
    ] {
        put(encoder, name, help, &ConstCounter::new(value))?;
    }
    let refused =
        carried.refused.iter().map(|(reason, count)| (*reason, ConstCounter::new(*count)));
    put_by(encoder, "gateway_refused", "Connections refused, by reason", "reason", refused)
}

fn put_peers(encoder: &mut DescriptorEncoder<'_>, peers: &[Peer]) -> fmt::Result {
    use prometheus_client::encoding::EncodeMetric;
    use prometheus_client::metrics::MetricType;

    let mut family = |name, help, kind, value: &dyn Fn(&Peer) -> Option<f64>| {
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for peer in peers {
            let Some(value) = value(peer) else { continue };
            let labels = [("peer", peer.name())];
            let labelled = family.encode_family(&labels)?;
            match kind {
                MetricType::Counter => ConstCounter::new(value).encode(labelled)?,
                _ => ConstGauge::new(value).encode(labelled)?,
            }
        }
        Ok(())
    };
    family(
        "gateway_handshake_age_seconds",
        "Time since the last handshake of WireGuard, by peer",
        MetricType::Gauge,
        &|peer| peer.seconds_since_handshake,
    )?;
    family(
        "gateway_peer_received_bytes",
        "Bytes of the tunnel's datagrams received, without UDP and IP headers, by peer; with the carrier tun, of IP packets",
        MetricType::Counter,
        &|peer| Some(peer.received_bytes as f64),
    )?;
    family(
        "gateway_peer_sent_bytes",
        "Bytes of the tunnel's datagrams sent, without UDP and IP headers, by peer; with the carrier tun, of IP packets",
        MetricType::Counter,
        &|peer| Some(peer.sent_bytes as f64),
    )
}

/// The metrics that gateways export in addition to those of their stacks.
#[cfg(test)]
pub(crate) fn exported() -> String {
    #[derive(Debug)]
    struct Sample;

    impl Collector for Sample {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let encoder = &mut encoder;
            put_near(encoder, None, false, 0)?;
            put_carried(encoder, &Carried::default())?;
            put_datagrams(encoder, &CarriedDatagrams::default())?;
            put_peers(encoder, &[])
        }
    }
    crate::metrics::text(Sample).unwrap()
}
