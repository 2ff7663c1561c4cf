//! Reports the counters of a link, as a table or as a line of JSON.

use std::fmt;
use std::time::Duration;

use airtcp_device::{Device, Tun};
use airtcp_link::{Counters, Link, LinkSpec, Way};
use airtcp_net::{Driver, Lateness};
use airtcp_types::{ByteCount, Rate};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::table::rate_unit;

/// All counters at a point in time.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Since the start of the link.
    seconds: f64,
    /// From a to b.
    forth: Direction,
    /// From b to a.
    back: Direction,
    lateness: Percentiles,
    /// The whole histogram, for the table at the end.
    #[serde(skip)]
    histogram: Option<Lateness>,
}

#[derive(Debug, Serialize)]
struct Direction {
    from: String,
    to: String,
    spec: String,
    #[serde(flatten)]
    link: Counters,
    /// Packets that are now in the queue.
    queued: usize,
    queued_bytes: ByteCount,
    /// The rate of IP packets, from the first to the last one that left.
    bits_per_second: u64,
    /// Packets dropped behind the link, because the device was full for too long.
    device_full: u64,
    /// Packets dropped behind the link, because the device was down.
    device_down: u64,
    /// Packets dropped behind the link, because the device refused them.
    device_refused: u64,
}

/// How late packets left, in microseconds.
#[derive(Debug, Serialize)]
struct Percentiles {
    packets: u64,
    p50_us: f64,
    p90_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
}

impl Report {
    pub(super) fn new(driver: &Driver<Link, Tun>, [forth, back]: [&LinkSpec; 2]) -> Self {
        let lateness = driver.lateness();
        let us = |late: Duration| late.as_nanos() as f64 / 1e3;
        let percent = |percent| us(lateness.percentile(percent));
        Self {
            seconds: driver.clock().now().as_secs_f64(),
            forth: Direction::new(driver, Way::Forth, forth),
            back: Direction::new(driver, Way::Back, back),
            lateness: Percentiles {
                packets: lateness.packets(),
                p50_us: percent(50.0),
                p90_us: percent(90.0),
                p99_us: percent(99.0),
                p999_us: percent(99.9),
                max_us: us(lateness.max()),
            },
            histogram: Some(lateness.clone()),
        }
    }

    /// Removes the histogram.
    pub(super) fn without_histogram(self) -> Self {
        Self { histogram: None, ..self }
    }
}

impl Direction {
    fn new(driver: &Driver<Link, Tun>, way: Way, spec: &LinkSpec) -> Self {
        let (from, to) = if way == Way::Forth { (0, 1) } else { (1, 0) };
        let link = *driver.node().counters(way);
        let (queued, queued_bytes) = driver.node().queued(way);
        let device = driver.device(to).counters();
        let span = driver.span(to).map_or(Duration::ZERO, |(first, last)| last.since(first));
        Self {
            from: driver.device(from).name().to_owned(),
            to: driver.device(to).name().to_owned(),
            spec: spec.to_string(),
            link,
            queued,
            queued_bytes,
            bits_per_second: Rate::from_bytes_over(ByteCount(device.tx_bytes), span).bits_per_sec(),
            device_full: driver.dropped(to),
            device_down: device.tx_dropped,
            device_refused: device.tx_errors,
        }
    }

    /// Returns names and values, in the order in which a packet passes them.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let Counters {
            received,
            policed,
            forwarded,
            forwarded_bytes,
            queue_dropped,
            marked,
            channel_lost,
            disconnected,
            corrupted,
            corrupted_header,
            corrupted_unnoticed,
            duplicated,
            reordered,
            overflowed,
        } = self.link;
        let (factor, unit) = rate_unit(self.bits_per_second as f64);
        let rate = match self.bits_per_second {
            0 => "0".to_owned(),
            rate => format!("{:.1} {unit}", rate as f64 * factor),
        };
        let counts = [
            ("received", received),
            ("policed", policed),
            ("queue dropped", queue_dropped),
            ("marked CE", marked),
            ("in the queue now", self.queued as u64),
            ("bytes in the queue now", self.queued_bytes.0),
            ("lost in the channel", channel_lost),
            ("lost while down", disconnected),
            ("corrupted", corrupted),
            ("  in a header", corrupted_header),
            ("  unnoticed by checksums", corrupted_unnoticed),
            ("duplicated", duplicated),
            ("delay line full", overflowed),
            ("forwarded", forwarded),
            ("  out of order", reordered),
            ("  bytes", forwarded_bytes.0),
            ("device full", self.device_full),
            ("device down", self.device_down),
            ("device refused", self.device_refused),
        ];
        let mut rows: Vec<_> =
            counts.into_iter().map(|(name, count)| (name, count.to_string())).collect();
        rows.push(("mean rate, first to last packet", rate));
        rows
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        let head = |way: &Direction| format!("{} -> {}", way.from, way.to);
        for way in [&self.forth, &self.back] {
            writeln!(f, "{}: {}", head(way), way.spec)?;
        }
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header([
            format!("{:.1} s", self.seconds),
            head(&self.forth),
            head(&self.back),
        ]);
        for ((name, forth), (_, back)) in self.forth.rows().into_iter().zip(self.back.rows()) {
            if forth == "0" && back == "0" {
                continue;
            }
            table.add_row([name.to_owned(), forth, back]);
        }
        for column in 1..3 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let Percentiles { packets, p50_us, p90_us, p99_us, p999_us, max_us } = self.lateness;
        writeln!(f, "{table}")?;
        write!(
            f,
            "lateness of {packets} packets (how late the emulator was; high on a busy machine): median {p50_us:.0} us, \
             90 % {p90_us:.0} us, 99 % {p99_us:.0} us, 99.9 % {p999_us:.0} us, most {max_us:.0} us"
        )?;
        match &self.histogram {
            Some(histogram) if packets > 0 => write!(f, "\n{histogram}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_what_was_counted_and_the_histogram_only_where_it_is_wanted() {
        let direction = |from: &str, to: &str, received| Direction {
            from: from.to_owned(),
            to: to.to_owned(),
            spec: "delay 5ms".to_owned(),
            link: Counters { received, forwarded: received, ..Counters::default() },
            queued: 0,
            queued_bytes: ByteCount(0),
            bits_per_second: 240_700,
            device_full: 0,
            device_down: 0,
            device_refused: 0,
        };
        let report = Report {
            seconds: 1.0,
            forth: direction("tun0", "tun1", 3),
            back: direction("tun1", "tun0", 0),
            lateness: Percentiles {
                packets: 1,
                p50_us: 10.0,
                p90_us: 10.0,
                p99_us: 10.0,
                p999_us: 10.0,
                max_us: 10.0,
            },
            histogram: Some(Lateness::default()),
        };
        let whole = report.to_string();
        assert!(whole.contains("received") && whole.contains("forwarded"), "{whole}");
        assert!(
            whole.contains("mean rate, first to last packet") && whole.contains("240.7 kbit/s"),
            "{whole}"
        );
        assert!(whole.contains("how late the emulator was"), "{whole}");
        assert!(!whole.contains("duplicated") && whole.contains("late up to"), "{whole}");
        let short = report.without_histogram().to_string();
        assert!(whole.starts_with(&short) && !short.contains("late up to"), "{short}");
        assert!(short.lines().count() <= 12, "{short}");
    }
}
