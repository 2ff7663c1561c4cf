//! Summarises the served connections at the end.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airtcp_net::Stack;
use airtcp_recovery::Combination;
use airtcp_stack::Counters;
use airtcp_stack::tcp::Info;
use serde::Serialize;

/// The number of connections that are kept, the latest ones.
const MOST: usize = 1000;

/// A connection that has ended.
#[derive(Debug, Serialize)]
pub(super) struct Connection {
    pub(super) service: &'static str,
    pub(super) local: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) seconds: f64,
    /// The error that ended it.
    pub(super) error: Option<String>,
    /// State at the end, with the field names of `ss -ti`.
    pub(super) info: Option<Info>,
}

/// The connections that have ended. Clones share one list.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    /// The configured combination.
    asked: Arc<Combination>,
    /// Whether the list will be printed.
    is_listed: bool,
    served: Arc<Mutex<Served>>,
}

#[derive(Debug, Default)]
struct Served {
    /// The number of connections that have ended.
    total: u64,
    latest: VecDeque<Connection>,
    /// The number of connections, also open ones, per combination other than the configured one.
    fallbacks: BTreeMap<String, u64>,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// With the names of `nstat`.
    counters: Counters,
    device: Device,
    /// All connections that have ended, listed or not.
    connections_total: u64,
    /// The latest of them, in the order in which they ended.
    connections: Vec<Connection>,
}

/// Packets and bytes of the device, with the names of `ip -s link`.
#[derive(Debug, Serialize)]
struct Device {
    rx_packets: u64,
    rx_bytes: u64,
    rx_errors: u64,
    tx_packets: u64,
    tx_bytes: u64,
    tx_dropped: u64,
    tx_errors: u64,
}

impl Summary {
    pub(super) fn new(asked: Combination, is_listed: bool) -> Self {
        Self { asked: Arc::new(asked), is_listed, served: Arc::default() }
    }

    /// Returns whether connections are listed. Otherwise their state is not needed.
    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Counts a new connection that does not run with the configured combination. Returns the text
    /// of a note for the first one with each other combination.
    pub(super) fn begin(&self, peer: SocketAddr, combination: &Combination) -> Option<String> {
        if *combination == *self.asked {
            return None;
        }
        let name = combination.to_string();
        let news = format!(
            "{peer} does not support the TCP options that {} needs: its connections run with {name}",
            self.asked
        );
        let mut served = self.served();
        let count = served.fallbacks.entry(name).or_default();
        *count += 1;
        (*count == 1).then_some(news)
    }

    fn served(&self) -> MutexGuard<'_, Served> {
        // A panic elsewhere does not damage the list.
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, connection: Connection) {
        let mut served = self.served();
        served.total += 1;
        if !self.is_listed {
            return;
        }
        if served.latest.len() == MOST {
            served.latest.pop_front();
        }
        served.latest.push_back(connection);
    }

    /// Returns the combinations that replaced the configured one because a peer did not grant the
    /// options that it needs, with the number of connections of each.
    pub(super) fn fallbacks(&self) -> BTreeMap<String, u64> {
        self.served().fallbacks.clone()
    }

    /// Returns the report so far, and clears the list of connections.
    pub(super) fn report(&self, stacks: &[Stack]) -> Report {
        let mut served = self.served();
        let device: airtcp_device::Counters = stacks.iter().map(Stack::device_counters).sum();
        Report {
            counters: stacks.iter().map(Stack::counters).sum(),
            device: Device {
                rx_packets: device.rx_packets,
                rx_bytes: device.rx_bytes,
                rx_errors: device.rx_errors,
                tx_packets: device.tx_packets,
                tx_bytes: device.tx_bytes,
                tx_dropped: device.tx_dropped,
                tx_errors: device.tx_errors,
            },
            connections_total: served.total,
            connections: std::mem::take(&mut served.latest).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_are_remembered() {
        let summary = Summary::new(Combination::default(), true);
        for n in 0..MOST + 10 {
            summary.add(Connection {
                service: "echo",
                local: None,
                peer: None,
                seconds: n as f64,
                error: None,
                info: None,
            });
        }
        let served = summary.served();
        assert_eq!((served.total, served.latest.len()), (MOST as u64 + 10, MOST));
        assert_eq!(served.latest[0].seconds, 10.0);
    }

    #[test]
    fn a_fallback_combination_is_reported_once_per_peer() {
        let named = |name: &str| name.parse::<Combination>().unwrap();
        let summary = Summary::new(named("le:echo/cubic/hack"), false);
        let peer = "10.0.0.1:4711".parse().unwrap();
        assert_eq!(summary.begin(peer, &named("le:echo/cubic/hack")), None);
        assert_eq!(
            summary.begin(peer, &named("le/cubic")).unwrap(),
            "10.0.0.1:4711 does not support the TCP options that le:echo/cubic/hack needs: its connections run with le/cubic"
        );
        assert_eq!(summary.clone().begin(peer, &named("le/cubic")), None);
        assert!(summary.begin(peer, &named("newreno/cubic")).is_some());
        let counts = summary.fallbacks().into_iter().collect::<Vec<_>>();
        assert_eq!(counts, [("le/cubic".to_owned(), 2), ("newreno/cubic".to_owned(), 1)]);
    }

    #[test]
    fn counters_have_what_hack_did() {
        let counters = serde_json::to_value(Counters::default()).unwrap();
        for name in ["TcpExtHackAcksSent", "TcpExtHackAcksRecv", "TcpExtHackHdrErrors"] {
            assert_eq!(counters[name], 0, "{counters}");
        }
    }
}
