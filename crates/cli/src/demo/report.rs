//! Reports the demo: progress while it runs, a table or JSON at the end.

use std::fmt;
use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airtcp_types::ByteCount;
use serde::Serialize;
use tokio::task::JoinHandle;

use super::file::Sample;
use super::network::Network;
use crate::table::{fitting, rate_unit, table};
use crate::{global, output};

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// `tun` or `memory`.
    device: &'static str,
    /// The reason if it is not `tun`.
    reason: Option<String>,
    bytes: u64,
    sha256: String,
    /// One row per transfer.
    #[serde(rename = "transfers")]
    pub(super) rows: Vec<Row>,
}

/// The results of a transfer.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) direction: String,
    pub(super) ip: &'static str,
    /// Of the sender.
    pub(super) strategy: String,
    /// Received bytes.
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) bits_per_second: u64,
    /// By the sender, in segments.
    pub(super) retransmissions: Option<u64>,
    pub(super) rtt_ms: Option<f64>,
    /// Of the received data.
    pub(super) sha256: String,
    /// Whether the received data is the sent data.
    pub(super) intact: bool,
}

impl Report {
    /// Creates a report without rows.
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

/// The report as a table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fastest = self.rows.iter().map(|row| row.bits_per_second as f64).fold(0.0, f64::max);
        let (factor, unit) = rate_unit(fastest);
        let header = ["direction", "IP", "strategy", "s", unit, "sent\nagain", "RTT\nms"];
        let cells = |row: &Row| {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let differs = if row.intact { "" } else { " DIFFERENT" };
            [
                format!("{}{differs}", row.direction),
                row.ip.to_owned(),
                row.strategy.clone(),
                format!("{:.2}", row.seconds),
                format!("{:.1}", row.bits_per_second as f64 * factor),
                or_dash(row.retransmissions.map(|n| n.to_string())),
                or_dash(row.rtt_ms.map(|rtt| format!("{rtt:.2}"))),
            ]
        };
        let (table, ()) = fitting((), &[], |()| table(header, 3, self.rows.iter().map(cells)));
        let over = if self.device == "tun" {
            "between the Linux kernel and airtcp over a TUN device"
        } else {
            "between two airtcp stacks over a device in memory (no TUN here)"
        };
        writeln!(f, "A file of {} {over}", output::bytes(self.bytes))?;
        writeln!(f, "SHA-256 {}\n{table}", self.sha256)?;
        match self.rows.iter().filter(|row| !row.intact).count() {
            0 => write!(f, "The SHA-256 of every received file matches"),
            differ => write!(f, "DIFFERENT: {differ} of {} files", self.rows.len()),
        }
    }
}

/// The progress of a transfer on stderr: a changing line on a terminal, otherwise only its title.
/// It is removed when it is dropped.
pub(super) struct Progress {
    arrived: Arc<AtomicU64>,
    ticking: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the line of a transfer of `size` bytes.
    pub(super) fn start(title: &str, size: ByteCount) -> Self {
        let arrived = Arc::new(AtomicU64::new(0));
        if global::is_quiet() || !stderr().is_terminal() {
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

    /// Returns the counter of received bytes.
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
        assert!(
            text.contains("kbit/s") && text.contains(" 16.4 ") && text.contains("0.25"),
            "{text}"
        );
        assert!(
            text.contains("our server DIFFERENT") && text.contains("DIFFERENT: 1 of 2"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let intact = Report { rows: vec![row(true)], ..report };
        assert!(intact.to_string().ends_with("every received file matches"), "{intact}");
    }
}
