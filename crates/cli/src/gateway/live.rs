//! What a gateway does, for the live page: its carrier stack, and what it carries.

use std::collections::BTreeMap;

use airtcp_gateway::datagram::DatagramCounters;
use airtcp_tunnel::PeerStatus;

use super::report::{DatagramsStatus, EndStatus, Report};
use crate::live::{Chart, Snapshot, of_stacks};
use crate::output;

/// The most peers that are listed.
const MOST_PEERS: usize = 20;

/// Of connections, at either end.
struct Carried {
    open: usize,
    opened: u64,
    sent: u64,
    received: u64,
    refused: BTreeMap<&'static str, u64>,
}

impl Report {
    /// How it stands now.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut snapshot = of_stacks(std::slice::from_ref(&self.stack));
        let of_stack = std::mem::take(&mut snapshot.figures);
        let (carried, rtt) = match self.end.status() {
            EndStatus::Near(near) => {
                let state = match (near.connected, near.reason) {
                    (true, _) => "answers".to_owned(),
                    (false, reason) => reason.unwrap_or_else(|| "is not heard yet".to_owned()),
                };
                let since = near.since.as_secs();
                snapshot.figure("Far gateway", format!("{} {state}, for {since} s", near.far));
                snapshot.figure("Connections opened ahead", near.spare);
                let (open, opened, refused) = (near.open, near.opened, near.refused);
                let carried =
                    Carried { open, opened, sent: near.sent, received: near.received, refused };
                (carried, Some(near.rtt))
            }
            EndStatus::Far(far) => {
                snapshot.figure("Near gateways", far.nears);
                snapshot.figure("Connections without a destination yet", far.pending);
                let (open, opened, refused) = (far.open, far.opened, far.refused);
                let carried =
                    Carried { open, opened, sent: far.sent, received: far.received, refused };
                (carried, None)
            }
        };
        let mut charts = carried.show(&mut snapshot);
        if let Some(rtt) = rtt {
            let rtt = rtt.map_or(f64::NAN, |rtt| rtt.as_secs_f64() * 1e3);
            charts.push(Chart::gauges("Round trip of the heartbeat", "ms", [("last", rtt)]));
        }
        charts.extend(match self.end.datagrams() {
            DatagramsStatus::Near(near) => {
                show_datagrams(&mut snapshot, near.associations, &near.counters, near.dropped)
            }
            DatagramsStatus::Far(far) => {
                let refused = [far.not_allowed, far.unresolved, far.unsendable, far.filtered];
                let dropped = far.dropped + refused.iter().sum::<u64>();
                show_datagrams(&mut snapshot, far.associations, &far.counters, dropped)
            }
        });
        charts.append(&mut snapshot.charts);
        snapshot.charts = charts;
        show_peers(&mut snapshot, &self.tunnel.peers());
        snapshot.figures.extend(of_stack);
        snapshot
    }
}

impl Carried {
    fn show(&self, snapshot: &mut Snapshot) -> Vec<Chart> {
        let refused: Vec<String> = self
            .refused
            .iter()
            .map(|(reason, count)| format!("{} {count}", reason.replace('_', " ")))
            .collect();
        snapshot.figure("Carried so far", self.opened);
        snapshot.figure(
            "Refused",
            if refused.is_empty() { "none".to_owned() } else { refused.join(", ") },
        );
        let all: u64 = self.refused.values().sum();
        vec![
            Chart::rates("Data of programs", [("received", self.received), ("sent", self.sent)]),
            Chart::gauges("Connections of programs", "", [("open", self.open as f64)]),
            Chart::counters(
                "Connections of programs, carried and refused",
                "1/s",
                [("carried", self.opened as f64), ("refused", all as f64)],
            ),
        ]
    }
}

fn show_datagrams(
    snapshot: &mut Snapshot,
    associations: usize,
    counters: &DatagramCounters,
    dropped: u64,
) -> Option<Chart> {
    // Most gateways carry none.
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
        ("dropped", dropped + counters.dropped_full),
    ];
    let series = series.map(|(name, count)| (name, count as f64));
    Some(Chart::counters("Datagrams", "1/s", series))
}

fn show_peers(snapshot: &mut Snapshot, peers: &[PeerStatus]) {
    for peer in peers.iter().take(MOST_PEERS) {
        let handshake = peer.last_handshake.map(|age| format!("handshake {} s ago", age.as_secs()));
        let handshake = handshake.unwrap_or_else(|| "no handshake yet".to_owned());
        let at = peer.endpoint.map_or("an unknown address".to_owned(), |at| at.to_string());
        let (sent, received) = (output::bytes(peer.tx_bytes), output::bytes(peer.rx_bytes));
        let key: String = peer.public_key.to_string().chars().take(8).collect();
        let text = format!("at {at}: {handshake}; {sent} sent, {received} received");
        snapshot.figure(format!("Peer {key}…"), text);
    }
    if peers.len() > MOST_PEERS {
        snapshot.figure("Further peers", peers.len() - MOST_PEERS);
    }
}
