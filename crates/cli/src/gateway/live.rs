//! The live page of a gateway: its carrier stack, and the traffic that it carries.

use super::carrier::Peer;
use super::report::{Carried, CarriedDatagrams, EndStatus, Report};
use crate::live::{Chart, Snapshot, of_stacks};
use crate::output;

/// The most peers shown.
const MOST_PEERS: usize = 20;

impl Report {
    /// Returns the current figures and charts.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut snapshot = of_stacks(std::slice::from_ref(&self.stack));
        let of_stack = std::mem::take(&mut snapshot.figures);
        let status = self.end.status();
        match &status {
            EndStatus::Near(near) => {
                let state = match (near.connected, &near.reason) {
                    (true, _) => "answers",
                    (false, reason) => reason.as_deref().unwrap_or("is not heard yet"),
                };
                let since = near.since.as_secs();
                snapshot.figure("Far gateway", format!("{} {state}, for {since} s", near.far));
                snapshot.figure("Connections opened ahead", near.spare);
            }
            EndStatus::Far(far) => {
                snapshot.figure("Near gateways", far.nears);
                snapshot.figure("Connections without a destination yet", far.pending);
            }
        }
        let mut charts = show_carried(&mut snapshot, &status.carried());
        if let EndStatus::Near(near) = &status {
            let rtt = near.rtt.map_or(f64::NAN, |rtt| rtt.as_secs_f64() * 1e3);
            charts.push(Chart::gauges("Round trip of the heartbeat", "ms", [("last", rtt)]));
        }
        charts.extend(show_datagrams(&mut snapshot, &self.end.datagrams().carried()));
        charts.append(&mut snapshot.charts);
        snapshot.charts = charts;
        show_peers(&mut snapshot, &self.way.peers());
        snapshot.figures.extend(of_stack);
        snapshot
    }
}

fn show_carried(snapshot: &mut Snapshot, carried: &Carried) -> Vec<Chart> {
    let Carried { open, opened, sent, received, refused } = carried;
    let reasons: Vec<String> = refused
        .iter()
        .map(|(reason, count)| format!("{} {count}", reason.replace('_', " ")))
        .collect();
    snapshot.figure("Carried so far", opened);
    snapshot
        .figure("Refused", if reasons.is_empty() { "none".to_owned() } else { reasons.join(", ") });
    let all: u64 = refused.values().sum();
    vec![
        Chart::rates("Data of programs", [("received", *received), ("sent", *sent)]),
        Chart::gauges("Connections of programs", "", [("open", *open as f64)]),
        Chart::counters(
            "Connections of programs, carried and refused",
            "1/s",
            [("carried", *opened as f64), ("refused", all as f64)],
        ),
    ]
}

fn show_datagrams(snapshot: &mut Snapshot, carried: &CarriedDatagrams) -> Option<Chart> {
    let CarriedDatagrams { associations, counters, dropped } = carried;
    // Most gateways carry no datagrams.
    if counters.sent + counters.received == 0 {
        return None;
    }
    snapshot.figure("UDP sockets of programs", associations);
    let series = [
        ("sent", counters.sent),
        ("received", counters.received),
        ("lost by the link", counters.lost),
        ("recovered", counters.recovered),
        ("repairs sent", counters.repairs_sent),
        ("dropped", *dropped),
    ];
    let series = series.map(|(name, count)| (name, count as f64));
    Some(Chart::counters("Datagrams", "1/s", series))
}

fn show_peers(snapshot: &mut Snapshot, peers: &[Peer]) {
    for peer in peers.iter().take(MOST_PEERS) {
        let (sent, received) = (output::bytes(peer.sent_bytes), output::bytes(peer.received_bytes));
        let text = format!("{}; {sent} sent, {received} received", peer.state());
        snapshot.figure(format!("Peer {}", peer.short_name()), text);
    }
    if peers.len() > MOST_PEERS {
        snapshot.figure("Further peers", peers.len() - MOST_PEERS);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use airtcp_gateway::datagram::{NearDatagrams, NearDatagramsConfig};
    use airtcp_gateway::{Near, NearConfig};
    use airtcp_tunnel::{PeerConfig, PrivateKey, TunnelConfig};

    use super::*;
    use crate::gateway::carrier::{self, Carrier};
    use crate::gateway::report::End;

    #[tokio::test]
    async fn a_near_gateway_shows_what_it_carries_and_its_peer_before_its_stack() {
        let far: SocketAddr = "10.77.0.1:7077".parse().unwrap();
        let key = PrivateKey::generate().public_key();
        let peer = PeerConfig { allowed_ips: vec![far.ip().into()], ..PeerConfig::new(key) };
        let private_key = PrivateKey::generate();
        let config = TunnelConfig { private_key, peers: vec![peer], mtu: 1420 };
        let socket = carrier::bind(0).await.unwrap();
        let carrier = Carrier::in_tunnel(socket, config, "10.77.0.2/24".parse().unwrap(), None);
        let carrier = carrier.unwrap();
        let stack = carrier.stack().clone();
        let near = Near::start(stack.clone(), NearConfig::new(far));
        let datagrams = NearDatagrams::start(&stack, far, NearDatagramsConfig::default()).unwrap();
        let snapshot = Report::new(&carrier, End::Near(near, datagrams)).snapshot();
        let titles: Vec<_> = snapshot.charts.iter().map(|chart| chart.title).collect();
        let expected = [
            "Data of programs",
            "Connections of programs",
            "Connections of programs, carried and refused",
            "Round trip of the heartbeat",
            "Throughput",
        ];
        assert_eq!(titles[..5], expected);
        let figure = |name: &str| {
            let found = snapshot.figures.iter().find(|(of, _)| of.starts_with(name));
            found.unwrap_or_else(|| panic!("{name}: {:?}", snapshot.figures)).1.as_str()
        };
        assert!(figure("Far gateway").starts_with("10.77.0.1:7077 "), "{}", figure("Far gateway"));
        assert_eq!((figure("Carried so far"), figure("Refused")), ("0", "none"));
        let peer = figure(&format!("Peer {}", &key.to_string()[..8]));
        assert!(peer.starts_with("at an unknown address: no handshake yet; "), "{peer}");
        assert!(snapshot.table.is_some());
        carrier.thread.join();
    }
}
