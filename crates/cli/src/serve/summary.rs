//! What was served, for the end.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use airtcp_stack::tcp::Info;
use airtcp_stack::{Counters, Stack};
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
#[derive(Clone, Debug, Default)]
pub(super) struct Summary(Arc<Mutex<Ended>>);

#[derive(Debug, Default)]
struct Ended {
    total: u64,
    latest: VecDeque<Connection>,
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
    pub(super) fn add(&self, connection: Connection) {
        // A panic elsewhere leaves the list as good as it was.
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.total += 1;
        if ended.latest.len() == MOST {
            ended.latest.pop_front();
        }
        ended.latest.push_back(connection);
    }

    /// What ran in place of the combination `asked` for, where a peer did not grant what that needs, and on how many
    /// of the latest connections.
    pub(super) fn fallbacks(&self, asked: &str) -> BTreeMap<String, u64> {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fallbacks = BTreeMap::new();
        for info in ended.latest.iter().filter_map(|connection| connection.info.as_ref()) {
            // Before it is established, a connection has no sender.
            if !info.combination.is_empty() && info.combination != asked {
                *fallbacks.entry(info.combination.clone()).or_default() += 1;
            }
        }
        fallbacks
    }

    /// Everything so far. The list starts again from there.
    pub(super) fn report(&self, stack: &Stack) -> Report {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let device = stack.device_counters();
        Report {
            counters: stack.counters(),
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
        let summary = Summary::default();
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
        let ended = summary.0.lock().unwrap();
        assert_eq!((ended.total, ended.latest.len()), (MOST as u64 + 10, MOST));
        assert_eq!(ended.latest[0].seconds, 10.0);
    }

    #[test]
    fn counters_have_what_hack_did() {
        let counters = serde_json::to_value(Counters::default()).unwrap();
        for name in ["TcpExtHackAcksSent", "TcpExtHackAcksRecv", "TcpExtHackHdrErrors"] {
            assert_eq!(counters[name], 0, "{counters}");
        }
    }
}
