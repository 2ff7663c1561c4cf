//! What the demo shows: a line while it runs, a table or JSON at the end.

use std::fmt;
use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airtcp_types::ByteCount;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use tokio::task::JoinHandle;

use super::file::Sample;
use super::network::Network;
use crate::output;
use crate::table::rate;

/// All results.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// `tun` or `memory`.
    device: &'static str,
    /// Why it is not `tun`.
    reason: Option<String>,
    bytes: u64,
    sha256: String,
    /// One for each way of the file.
    #[serde(rename = "transfers")]
    pub(super) rows: Vec<Row>,
}

/// One way of the file.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) direction: String,
    pub(super) ip: &'static str,
    /// The sender's.
    pub(super) strategy: String,
    /// That arrived.
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) bits_per_second: u64,
    /// The sender's, in segments.
    pub(super) retransmissions: Option<u64>,
    pub(super) rtt_ms: Option<f64>,
    /// Of what arrived.
    pub(super) sha256: String,
    /// What arrived is what was sent.
    pub(super) intact: bool,
}

impl Report {
    /// Without rows yet.
    pub(super) fn new(network: &Network<'_>, sample: &Sample, reason: Option<String>) -> Self {
        Self {
            device: if network.has_kernel() { "tun" } else { "memory" },
            reason,
            bytes: sample.size().0,
            sha256: sample.sha256().to_owned(),
            rows: Vec::new(),
        }
    }
}

/// As a table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header([
            "direction",
            "IP",
            "strategy",
            "bytes",
            "s",
            "throughput",
            "retrans",
            "RTT ms",
            "SHA-256",
        ]);
        for row in &self.rows {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            table.add_row([
                row.direction.clone(),
                row.ip.to_owned(),
                row.strategy.clone(),
                row.bytes.to_string(),
                format!("{:.2}", row.seconds),
                rate(row.bits_per_second as f64, 1),
                or_dash(row.retransmissions.map(|n| n.to_string())),
                or_dash(row.rtt_ms.map(|rtt| format!("{rtt:.2}"))),
                if row.intact { "equal" } else { "DIFFERENT" }.to_owned(),
            ]);
        }
        for column in 3..8 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let over = if self.device == "tun" {
            "between the Linux kernel and airtcp over a TUN device"
        } else {
            "between two airtcp stacks over a device in memory (no TUN here)"
        };
        writeln!(f, "A file of {} {over}", output::bytes(self.bytes))?;
        writeln!(f, "SHA-256 {}", self.sha256)?;
        write!(f, "{table}")
    }
}

/// A line on stderr that follows a transfer; on a terminal it moves. It ends when it is dropped.
pub(super) struct Progress {
    arrived: Arc<AtomicU64>,
    ticking: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the line of a transfer of `size` bytes.
    pub(super) fn start(title: &str, size: ByteCount) -> Self {
        let arrived = Arc::new(AtomicU64::new(0));
        if !stderr().is_terminal() {
            output::note(title);
            return Self { arrived, ticking: None };
        }
        let (title, counter) = (title.to_owned(), Arc::clone(&arrived));
        let ticking = tokio::spawn(async move {
            loop {
                let share = 100 * counter.load(Ordering::Relaxed) / size.0.max(1);
                let _ = write!(stderr(), "\r{title}: {share} % ");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        Self { arrived, ticking: Some(ticking) }
    }

    /// What counts the bytes that arrived.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.arrived)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(ticking) = &self.ticking {
            ticking.abort();
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_way() {
        let row = |intact| Row {
            direction: "kernel client -> our server".to_owned(),
            ip: "IPv6",
            strategy: "kernel bbr".to_owned(),
            bytes: 1024,
            seconds: 0.5,
            bits_per_second: 16_384,
            retransmissions: None,
            rtt_ms: Some(0.25),
            sha256: String::new(),
            intact,
        };
        let report = Report {
            device: "tun",
            reason: None,
            bytes: 1024,
            sha256: "ab".to_owned(),
            rows: vec![row(true), row(false)],
        };
        let text = report.to_string();
        assert!(text.starts_with("A file of 1 KiB between the Linux kernel"), "{text}");
        assert!(text.contains("16.4 kbit/s") && text.contains("0.25"), "{text}");
        assert_eq!(text.matches("equal").count(), 1);
        assert_eq!(text.matches("DIFFERENT").count(), 1);
    }
}
