//! What was served, for the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airtcp_net::Stack;
use airtcp_stack::Counters;
use airtcp_stack::tcp::Info;
use serde::Serialize;

/// How many connections are remembered, the latest ones.
const MOST: usize = 1000;

/// One connection that ended.
#[derive(Debug, Serialize)]
pub(super) struct Connection {
    pub(super) service: &'static str,
    pub(super) local: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) seconds: f64,
    /// How it broke, if it did.
    pub(super) error: Option<String>,
    /// How it stood at its end, in the words of `ss -ti`.
    pub(super) info: Option<Info>,
}

/// The connections that ended. Clones share one list.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    /// The combination that connections shall run with.
    asked: Arc<str>,
    ended: Arc<Mutex<Ended>>,
}

#[derive(Debug, Default)]
struct Ended {
    total: u64,
    latest: VecDeque<Connection>,
    /// The combinations in place of the one asked for that were told of.
    told: BTreeSet<String>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// By `nstat`'s names.
    counters: Counters,
    device: Device,
    /// All that ended, listed or not.
    connections_total: u64,
    /// The latest of them, in the order in which they ended.
    connections: Vec<Connection>,
}

/// What went through the device, by the names of `ip -s link`.
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
    pub(super) fn new(asked: &str) -> Self {
        Self { asked: asked.into(), ended: Arc::default() }
    }

    /// What to tell of a new connection that runs with another combination than was asked for, at the first of
    /// them.
    pub(super) fn news(&self, peer: SocketAddr, combination: &str) -> Option<String> {
        // Before it is established, a connection has no sender.
        let is_other = !combination.is_empty() && *combination != *self.asked;
        let is_new = is_other && self.ended().told.insert(combination.to_owned());
        is_new.then(|| {
            let asked = &self.asked;
            format!(
                "{peer} does not grant what {asked} needs: its connections run with {combination}"
            )
        })
    }

    fn ended(&self) -> MutexGuard<'_, Ended> {
        // A panic elsewhere leaves the list as good as it was.
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, connection: Connection) {
        let mut ended = self.ended();
        ended.total += 1;
        if ended.latest.len() == MOST {
            ended.latest.pop_front();
        }
        ended.latest.push_back(connection);
    }

    /// What ran in place of the combination asked for, where a peer did not grant what that needs, and on how many
    /// of the latest connections.
    pub(super) fn fallbacks(&self) -> BTreeMap<String, u64> {
        let ended = self.ended();
        let mut fallbacks = BTreeMap::new();
        for info in ended.latest.iter().filter_map(|connection| connection.info.as_ref()) {
            // Before it is established, a connection has no sender.
            if !info.combination.is_empty() && *info.combination != *self.asked {
                *fallbacks.entry(info.combination.clone()).or_default() += 1;
            }
        }
        fallbacks
    }

    /// Everything so far. The list starts again from there.
    pub(super) fn report(&self, stacks: &[Stack]) -> Report {
        let mut ended = self.ended();
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
            connections_total: ended.total,
            connections: std::mem::take(&mut ended.latest).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_are_remembered() {
        let summary = Summary::new("rack/cubic");
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
        let ended = summary.ended();
        assert_eq!((ended.total, ended.latest.len()), (MOST as u64 + 10, MOST));
        assert_eq!(ended.latest[0].seconds, 10.0);
    }

    #[test]
    fn another_combination_is_told_of_once() {
        let summary = Summary::new("le:echo/cubic/hack");
        let peer = "10.0.0.1:4711".parse().unwrap();
        assert_eq!(summary.news(peer, "le:echo/cubic/hack"), None);
        assert_eq!(
            summary.news(peer, "le/cubic").unwrap(),
            "10.0.0.1:4711 does not grant what le:echo/cubic/hack needs: its connections run with le/cubic"
        );
        assert_eq!(summary.clone().news(peer, "le/cubic"), None);
        assert!(summary.news(peer, "newreno/cubic").is_some());
    }

    #[test]
    fn counters_have_what_hack_did() {
        let counters = serde_json::to_value(Counters::default()).unwrap();
        for name in ["TcpExtHackAcksSent", "TcpExtHackAcksRecv", "TcpExtHackHdrErrors"] {
            assert_eq!(counters[name], 0, "{counters}");
        }
    }
}
