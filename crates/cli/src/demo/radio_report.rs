//! Prints and draws the results of `airtcp demo --radio`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_testbed::Arrivals;
use airtcp_trace::figure::{Axis, Figure, Point, Scale, Series, Style};
use serde::Serialize;

use super::radio::{BACK, LEAD, WIRE};
use crate::args::DemoArgs;
use crate::table::{fitting, table, wrapped};

/// Sizes of the payload and the packet of a full segment with timestamps and of an ACK, in bytes,
/// and segments per ACK.
const SEGMENT: (usize, usize, usize, u32) = (1_448, 1_500, 52, 2);

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    radio: String,
    arq: &'static str,
    /// The link between the fixed host and the base station.
    wire: &'static str,
    /// The maximum goodput that the radio's air time allows, in bit/s.
    bound: u64,
    /// The time before the outage, and after it.
    seconds: f64,
    away: f64,
    #[serde(rename = "policies")]
    pub(super) rows: Vec<Row>,
    pub(super) picture: PathBuf,
}

/// The results of a policy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) policy: &'static str,
    pub(super) sender: String,
    /// Payload in bit/s, before the outage.
    pub(super) goodput: u64,
    /// By the sender, in segments.
    pub(super) retransmissions: u64,
    /// By the sender.
    pub(super) timeouts: u64,
    /// Packets that all tries of the radio lost.
    pub(super) lost: u64,
    /// Packets lost during the outage.
    pub(super) lost_while_gone: u64,
    /// Packets dropped at the radio's full queue.
    pub(super) queue_dropped: u64,
    /// Packets overtaken by another one on the radio.
    pub(super) reordered: u64,
    /// Seconds from the end of the outage until nine tenths of the former rate.
    pub(super) back_after: Option<f64>,
    /// Segments that the base station marked.
    pub(super) marked: u64,
    /// Duplicate ACKs that it suppressed.
    pub(super) hidden: u64,
    /// Segments that it retransmitted from its cache.
    pub(super) sent_again: u64,
    /// ACKs whose window it closed.
    pub(super) frozen: u64,
    /// ACKs that it generated.
    pub(super) made: u64,
    /// Packets that it held.
    pub(super) held: u64,
    /// Probes that it answered.
    pub(super) probes: u64,
    /// 99 % of the packets between the hosts were at most this late, in seconds.
    pub(super) lateness: f64,
}

impl Report {
    /// Creates a report without rows.
    pub(super) fn new(args: &DemoArgs) -> Self {
        let radio = args.radio_spec();
        let (payload, packet, ack, per_ack) = SEGMENT;
        Self {
            radio: radio.to_string(),
            arq: args.arq.name(),
            wire: WIRE,
            bound: radio.bound_with(args.arq, payload, packet, ack, per_ack).bits_per_sec(),
            seconds: args.phase().as_secs_f64(),
            away: args.away.as_secs_f64(),
            rows: Vec::new(),
            picture: PathBuf::new(),
        }
    }

    /// Draws the bytes received over time, with a curve per policy. Vertical lines mark start and
    /// end of the outage.
    pub(super) fn figure<'a>(
        &self,
        curves: impl Iterator<Item = (&'static str, &'a Arrivals)>,
        warm_up: Duration,
    ) -> Figure {
        let point = |x, y| Point { x, y, low: None, high: None };
        let line =
            |name: &str, points| Series { name: name.to_owned(), points, style: Style::Line };
        let axis =
            |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear, range: None };
        let begin = warm_up.as_secs_f64();
        let mut series: Vec<_> = curves
            .map(|(name, arrivals)| {
                let looks = arrivals.looks().iter().step_by(5);
                let point =
                    looks.map(|(at, bytes)| point(begin + at.as_secs_f64(), bytes.0 as f64 / 1e6));
                line(name, point.collect())
            })
            .collect();
        let most = series.iter().flat_map(|s| &s.points).map(|p| p.y).fold(0.0, f64::max);
        let gone = begin + self.seconds + LEAD.as_secs_f64();
        for (name, at) in [("mobile leaves", gone), ("mobile returns", gone + self.away)] {
            series.push(line(name, vec![point(at, 0.0), point(at, most)]));
        }
        Figure {
            title: format!("{}, {}", self.radio_words(), self.arq),
            x: axis("time, s"),
            y: axis("received data, MB (more is better)"),
            series,
        }
    }

    /// Returns the description of the radio without the words that all radios have.
    fn radio_words(&self) -> &str {
        self.radio.split_once("error ").map_or(&self.radio, |(start, _)| &self.radio[start.len()..])
    }
}

/// The report as a table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "policy",
            "goodput\nMbit/s",
            "of\nbound",
            "sent\nagain",
            "time-\nouts",
            "lost",
            "over-\ntaken",
            "back\nafter",
            "marked",
            "hidden",
            "held",
            "frozen",
        ];
        let cells = |row: &Row| {
            let share = row.goodput as f64 / self.bound.max(1) as f64;
            [
                row.policy.to_owned(),
                format!("{:.2}", row.goodput as f64 / 1e6),
                format!("{:.0} %", share * 100.0),
                row.retransmissions.to_string(),
                row.timeouts.to_string(),
                row.lost.to_string(),
                row.reordered.to_string(),
                row.back_after.map_or_else(|| "-".to_owned(), |time| format!("{time:.1} s")),
                row.marked.to_string(),
                row.hidden.to_string(),
                row.held.to_string(),
                row.frozen.to_string(),
            ]
        };
        let (table, ()) = fitting((), &[], |()| table(header, 1, self.rows.iter().map(cells)));
        let sender = self.rows.first().map_or("kernel", |row| &row.sender);
        writeln!(
            f,
            "A {sender} sender, a base station, and a mobile out of reach for {} s",
            self.away
        )?;
        writeln!(f, "{}", wrapped(&format!("wire:  {}", self.wire), 7))?;
        writeln!(f, "{}", wrapped(&format!("radio: {}, arq {}", self.radio, self.arq), 7))?;
        writeln!(f, "{table}")?;
        let notes = [
            format!(
                "goodput: of the {} s before it leaves, without slow start; of bound: of {:.2} Mbit/s, the capacity of the \
                 radio with an ACK for every second segment (more with fewer ACKs)",
                self.seconds,
                self.bound as f64 / 1e6
            ),
            "sent again: segments; sent again, time-outs: of the sender (Linux counts none while its window is closed); lost, overtaken: packets on the radio while the mobile was in reach".to_owned(),
            format!("back after: time from the mobile's return to {BACK} % of the former goodput over half a second, \
                     which includes the packets that the station held; -: not reached"),
            "marked: segments after a hole; hidden: duplicate ACKs; held: packets for the mobile while it was out of reach; frozen: ACKs with the window closed"
                .to_owned(),
            "one run each: no ranking".to_owned(),
        ];
        for note in notes {
            writeln!(f, "{}", wrapped(&note, 2))?;
        }
        write!(f, "picture: {}", self.picture.display())
    }
}
