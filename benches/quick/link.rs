//! The links, and the files transferred over them.

use std::time::Duration;

/// A link with the server at port 0.
#[derive(Debug)]
pub(crate) struct LinkCase {
    pub(crate) name: &'static str,
    /// Towards the client; `up` is the other direction.
    pub(crate) down: &'static str,
    pub(crate) up: &'static str,
    /// The link's own numbers, which RRTP gets in its seeded form.
    pub(crate) rate: u64,
    pub(crate) rtt_ms: u64,
    pub(crate) loss: f64,
    /// The files transferred over this link.
    pub(crate) sizes: &'static [Size],
}

/// CDMA and satellite come from Table 4.3 of the thesis, with queues chosen for this benchmark;
/// `edge` is the link of that name; EVDO is chosen. Except on `edge` and `lossy`, packets are lost
/// in both directions.
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

/// A file to transfer.
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
    /// The time that the file's bytes take at the link's rate.
    pub(crate) fn ideal(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.rate as f64)
    }
}
