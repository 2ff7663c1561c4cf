//! The links, and what goes over them.

use std::time::Duration;

/// A link; the server is at port 0.
#[derive(Debug)]
pub(crate) struct LinkCase {
    pub(crate) name: &'static str,
    /// To the client, and from it.
    pub(crate) down: &'static str,
    pub(crate) up: &'static str,
    /// What RRTP is told, where it is told: the link's own numbers.
    pub(crate) rate: u64,
    pub(crate) rtt_ms: u64,
    pub(crate) loss: f64,
    /// What goes over it.
    pub(crate) sizes: &'static [Size],
}

/// The thesis's CDMA and satellite (Table 4.3), with queues that are chosen; `edge` is the link of
/// that name; EVDO is chosen. Packets are lost both ways.
pub(crate) const LINKS: [LinkCase; 5] = [
    LinkCase {
        name: "cdma",
        down: "rate 144kbit delay 75ms limit 50 loss 1%",
        up: "rate 144kbit delay 75ms limit 50 loss 1%",
        rate: 144_000,
        rtt_ms: 150,
        loss: 0.01,
        sizes: ALL,
    },
    LinkCase {
        name: "evdo",
        down: "rate 1mbit delay 75ms limit 50 loss 0.5%",
        up: "rate 1mbit delay 75ms limit 50 loss 0.5%",
        rate: 1_000_000,
        rtt_ms: 150,
        loss: 0.005,
        sizes: ALL,
    },
    LinkCase {
        name: "edge",
        down: "rate 240kbit delay 400ms limit 20",
        up: "rate 200kbit delay 440ms limit 20",
        rate: 240_000,
        rtt_ms: 840,
        loss: 0.0,
        sizes: ALL,
    },
    LinkCase {
        name: "satellite",
        down: "rate 20kbit delay 300ms limit 50 loss 1%",
        up: "rate 20kbit delay 300ms limit 50 loss 1%",
        rate: 20_000,
        rtt_ms: 600,
        loss: 0.01,
        sizes: ALL,
    },
    LinkCase {
        name: "lossy",
        down: "rate 100mbit delay 1ms limit 100 loss 2%",
        up: "rate 100mbit delay 1ms limit 100",
        rate: 100_000_000,
        rtt_ms: 2,
        loss: 0.02,
        sizes: LARGE,
    },
];

/// A file.
#[derive(Debug)]
pub(crate) struct Size {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
}

const ALL: &[Size] = &[
    Size { name: "100kB", bytes: 100_000 },
    Size { name: "1MB", bytes: 1_000_000 },
    Size { name: "10MB", bytes: 10_000_000 },
];
const LARGE: &[Size] = &[Size { name: "1GiB", bytes: 1 << 30 }];

impl LinkCase {
    /// How long the bytes alone take at the link's rate.
    pub(crate) fn ideal(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.rate as f64)
    }
}
