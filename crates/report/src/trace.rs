//! Traces and captures: time-sequence graphs, windows, round-trip times and goodput of each flow.

use std::path::{Path, PathBuf};

use airtcp_trace::plot::{self, Flow, Kind, Mark, Trace};
use airtcp_types::Instant;

use crate::ReportError;
use crate::command::quoted;
use crate::distribution::Distribution;
use crate::figures::whole;
use crate::page::{Axis, Block, Chart, Section, Table, color};
use crate::series::{Drawn, Look, Series};

/// The maximum number of flows with charts; the others are only in the table.
const MOST_FLOWS: usize = 20;
/// The maximum number of flows in the table.
const MOST_ROWS: usize = 200;
/// The number of flows whose charts are open at first.
const OPEN: usize = 2;
/// The maximum number of points of a flow's goodput.
const BINS: u64 = 200;

/// A trace whose flows have been listed.
pub(crate) struct Opened {
    path: PathBuf,
    trace: Trace,
}

/// Opens a trace and lists its flows.
///
/// # Errors
/// The trace cannot be read or is invalid; the error contains the position.
pub(crate) fn open(path: &Path) -> Result<Opened, ReportError> {
    Ok(Opened { path: path.to_owned(), trace: plot::read(path)? })
}

/// The weight of a flow in units of one series; segments need the most points.
const SHARES: usize = 20;

impl Opened {
    fn drawn(&self) -> usize {
        self.trace.flows().len().min(MOST_FLOWS)
    }

    /// Returns the share of the trace in the points of the page, in series of `most` points.
    pub(crate) fn weight(&self) -> usize {
        self.drawn() * SHARES
    }

    /// Whether a file is a picture of a flow that `--trace` wrote: the charts replace it.
    pub(crate) fn has_picture(&self, path: &Path) -> bool {
        let is_of = |flow: &Flow| {
            path.file_stem().is_some_and(|stem| stem.to_str() == Some(&flow.file_name()))
        };
        path.parent() == Some(&self.path) && self.trace.flows().iter().any(is_of)
    }

    /// Creates the section of the trace. A series has at most `most` points, the series of segments
    /// several times as many.
    ///
    /// # Errors
    /// The trace cannot be read, or has changed.
    pub(crate) fn section(&self, most: usize, group: &str) -> Result<Section, ReportError> {
        let flows = &self.trace.flows()[..self.drawn()];
        let mut gathered: Vec<Gathered> =
            flows.iter().map(|flow| Gathered::new(flow, most)).collect();
        let numbers: Vec<usize> = (1..=flows.len()).collect();
        if !flows.is_empty() {
            self.trace.marks(&numbers, |number, at, mark| gathered[number - 1].mark(at, mark))?;
        }
        let mut blocks = Vec::new();
        if !self.trace.title().is_empty() {
            blocks.push(Block::Text(format!("{}.", self.trace.title())));
        }
        blocks.extend(self.trace.cuts().iter().map(|cut| Block::Text(format!("{cut}."))));
        let path = self.path.display();
        let title = format!("Trace: {path}");
        if flows.is_empty() {
            blocks.push(Block::Text("No TCP connection with data in it.".to_owned()));
            return Ok(Section { title, blocks });
        }
        blocks.push(Block::Table(self.table(&gathered)));
        let all = self.trace.flows().len();
        if all > flows.len() {
            blocks.push(Block::Text(format!(
                "Charts of the {} flows with the most bytes of {all}. The table ends at {MOST_ROWS} flows.",
                flows.len()
            )));
        }
        let name = |number: usize| format!("{} {}", number + 1, flows[number].sender);
        let overlay = |title: &str, y: Axis, of: &dyn Fn(&Gathered) -> Option<Series>| {
            let series = gathered
                .iter()
                .enumerate()
                .filter_map(|(number, flow)| Some(of(flow)?.named(name(number), color(number))));
            let series: Vec<Drawn> = series.collect();
            (series.len() > 1).then(|| chart(title, group, Axis::TIME, y, 260, series))
        };
        let goodput = Axis { label: "goodput", ..Axis::RATE };
        blocks.extend(overlay("Goodput of all flows", goodput, &|flow| flow.goodput()));
        blocks.extend(self.distributions(&gathered, &name));
        for (number, (flow, gathered)) in flows.iter().zip(gathered).enumerate() {
            blocks.push(Block::Fold {
                title: format!("Flow {}: {} to {}", number + 1, flow.sender, flow.receiver),
                is_open: number < OPEN,
                // All times of a trace have the same origin, so the charts of all its flows zoom
                // together.
                blocks: gathered.blocks(group),
            });
        }
        blocks.push(Block::Text("A part of a flow with every segment:".to_owned()));
        blocks.push(Block::Code(format!(
            "airtcp plot {} --flow 1 --from 0 --to 1 -o detail.svg",
            quoted(&path.to_string())
        )));
        Ok(Section { title, blocks })
    }

    fn table(&self, gathered: &[Gathered]) -> Table {
        let mut table = Table::new([
            "flow",
            "sender",
            "receiver",
            "bytes",
            "packets",
            "retransmitted",
            "dropped",
            "time-outs",
            "start, s",
            "duration, s",
            "goodput, Mbit/s",
            "median RTT, ms",
            "99 % RTT, ms",
        ]);
        for (index, flow) in self.trace.flows().iter().take(MOST_ROWS).enumerate() {
            let drawn = gathered.get(index);
            let count =
                |of: fn(&Gathered) -> u64| drawn.map_or(String::new(), |flow| of(flow).to_string());
            let duration = flow.last.since(flow.first).as_secs_f64();
            let goodput = drawn.filter(|_| duration > 0.0).map_or(String::new(), |drawn| {
                format!("{:.3}", drawn.acked as f64 * 8e-6 / duration)
            });
            let rtt = |share: f64| {
                let rtt = drawn.and_then(|drawn| drawn.rtts().quantile(share));
                rtt.map_or(String::new(), |rtt| format!("{:.1}", rtt as f64 * 1e-3))
            };
            table.rows.push(vec![
                (index + 1).to_string(),
                flow.sender.to_string(),
                flow.receiver.to_string(),
                flow.bytes.0.to_string(),
                flow.packets.to_string(),
                count(|flow| flow.retransmitted),
                count(|flow| flow.dropped),
                count(|flow| flow.timeouts),
                format!("{:.3}", flow.first.as_secs_f64()),
                format!("{duration:.3}"),
                goodput,
                rtt(0.5),
                rtt(0.99),
            ]);
        }
        table
    }

    fn distributions(&self, gathered: &[Gathered], name: &dyn Fn(usize) -> String) -> Vec<Block> {
        let rtts = gathered.iter().enumerate().filter(|(_, flow)| !flow.rtts().is_empty());
        let rtts: Vec<Drawn> = rtts
            .map(|(number, flow)| flow.rtts().series().named(name(number), color(number)))
            .collect();
        let mut blocks = Vec::new();
        if !rtts.is_empty() {
            let x = Axis { zero: false, ..Axis::RTT };
            blocks.push(chart("Distribution of round-trip times", "", x, Axis::SHARE, 260, rtts));
        }
        if self.trace.flows().len() > 2 {
            let mut times = Distribution::default();
            for flow in self.trace.flows() {
                times.add(micros(flow.last) - micros(flow.first));
            }
            let x = Axis { label: "duration", unit: "s", scale: 1e-6, zero: false };
            let y = Axis { label: "share of flows", ..Axis::SHARE };
            let series = vec![times.series().named("all flows", color(0))];
            blocks.push(chart("Distribution of the durations of flows", "", x, y, 260, series));
        }
        blocks
    }
}

fn chart(title: &str, group: &str, x: Axis, y: Axis, height: u32, series: Vec<Drawn>) -> Block {
    Block::Chart(Chart { title: title.to_owned(), group: group.to_owned(), x, y, height, series })
}

fn micros(at: Instant) -> i64 {
    whole(at.as_nanos() / 1_000)
}

/// The collected data of a flow.
struct Gathered {
    first: i64,
    /// The width of a goodput bin in microseconds.
    width: i64,
    bins: Vec<u64>,
    data: Series,
    again: Series,
    ack: Series,
    edge: Series,
    sacked: Series,
    lost: Series,
    expired: Series,
    cwnd: Series,
    ssthresh: Series,
    pipe: Series,
    outstanding: Series,
    rtt: Series,
    srtt: Series,
    round_trips: Series,
    samples: Distribution,
    trips: Distribution,
    highest: i64,
    acked: u64,
    retransmitted: u64,
    dropped: u64,
    timeouts: u64,
}

impl Gathered {
    fn new(flow: &Flow, most: usize) -> Self {
        let first = micros(flow.first);
        // At least 10 ms.
        let span = (micros(flow.last) - first).max(1) as u64;
        let width = (span / BINS + 1).max(10_000);
        Self {
            first,
            width: whole(width),
            bins: vec![0; usize::try_from(span / width + 1).unwrap_or(1)],
            data: Series::new(Look::Bars, 5 * most),
            again: Series::new(Look::Bars, most),
            ack: Series::new(Look::Step, 3 * most),
            edge: Series::new(Look::Step, most),
            sacked: Series::new(Look::Bars, most),
            lost: Series::new(Look::Crosses, most),
            expired: Series::new(Look::Dots, most),
            cwnd: Series::new(Look::Step, most),
            ssthresh: Series::new(Look::Step, most),
            pipe: Series::new(Look::Step, most),
            outstanding: Series::new(Look::Step, most),
            rtt: Series::new(Look::Dots, 2 * most),
            srtt: Series::new(Look::Line, most),
            round_trips: Series::new(Look::Dots, 2 * most),
            samples: Distribution::default(),
            trips: Distribution::default(),
            highest: 0,
            acked: 0,
            retransmitted: 0,
            dropped: 0,
            timeouts: 0,
        }
    }

    fn mark(&mut self, at: Instant, mark: &Mark) {
        let x = micros(at);
        match *mark {
            Mark::Data { from, to, kind, .. } => {
                let (low, high) = (whole(from), whole(to));
                self.highest = self.highest.max(high);
                if kind == Kind::Retransmitted {
                    self.retransmitted += 1;
                    self.again.bar(x, low, high);
                } else {
                    self.data.bar(x, low, high);
                }
            }
            Mark::Ack { from, to, .. } => {
                self.ack.change(x, whole(to));
                let bytes = to.saturating_sub(from);
                self.acked += bytes;
                let bin = usize::try_from((x - self.first) / self.width).unwrap_or(0);
                if let Some(bin) = self.bins.get_mut(bin) {
                    *bin += bytes;
                }
            }
            Mark::Edge { to, .. } => self.edge.change(x, whole(to)),
            Mark::Sack { from, to, .. } => self.sacked.bar(x, whole(from), whole(to)),
            Mark::Dropped { from, to } => {
                self.dropped += 1;
                self.lost.bar(x, whole(from), whole(to));
            }
            Mark::Timeout => {
                self.timeouts += 1;
                self.expired.point(x, self.highest);
            }
            Mark::Cwnd(value) => self.cwnd.change(x, whole(value)),
            Mark::Ssthresh(value) => self.ssthresh.change(x, whole(value)),
            Mark::Pipe(value) => self.pipe.change(x, whole(value)),
            Mark::Outstanding(value) => self.outstanding.change(x, whole(value)),
            Mark::Rtt { sample, srtt } => {
                let [sample, srtt] =
                    [sample, srtt].map(|of| i64::try_from(of.as_micros()).unwrap_or(i64::MAX));
                self.rtt.point(x, sample);
                self.srtt.point(x, srtt);
                self.samples.add(sample);
            }
            Mark::RoundTrip(trip) => {
                let trip = i64::try_from(trip.as_micros()).unwrap_or(i64::MAX);
                self.round_trips.point(x, trip);
                self.trips.add(trip);
            }
            Mark::Syn { .. }
            | Mark::Fin { .. }
            | Mark::Reset { .. }
            | Mark::ZeroWindow { .. }
            | Mark::Isn(_) => {}
        }
    }

    /// The distribution of RTTs: those of the sender's events, or else those of the packets.
    fn rtts(&self) -> &Distribution {
        if self.samples.is_empty() { &self.trips } else { &self.samples }
    }

    /// Returns the acknowledged bytes of each bin, in bit/s.
    fn goodput(&self) -> Option<Series> {
        let mut series = Series::new(Look::Line, self.bins.len());
        let mut middle = self.first + self.width / 2;
        for bytes in &self.bins {
            let rate = *bytes as f64 * 8e6 / self.width as f64;
            series.point(middle, rate.round() as i64);
            middle += self.width;
        }
        (self.acked > 0).then_some(series)
    }

    fn blocks(self, group: &str) -> Vec<Block> {
        let goodput = self.goodput();
        let (has_windows, is_measured) = (!self.cwnd.is_empty(), !self.rtt.is_empty());
        let named = |all: Vec<(Series, &str, &str)>| -> Vec<Drawn> {
            let all = all.into_iter().filter(|(series, ..)| !series.is_empty());
            all.map(|(series, name, color)| series.named(name, color)).collect()
        };
        let sequence = named(vec![
            (self.edge, "receive window", "edge"),
            (self.data, "segments", "data"),
            (self.ack, "cumulative ACK", "ack"),
            (self.sacked, "SACK blocks", "sack"),
            (self.again, "retransmissions", "again"),
            (self.lost, "dropped by the link", "drop"),
            (self.expired, "time-outs", "c1"),
        ]);
        let windows = named(match has_windows {
            true => vec![
                (self.cwnd, "cwnd", "c0"),
                (self.ssthresh, "ssthresh", "c1"),
                (self.pipe, "pipe", "c2"),
            ],
            false => vec![(self.outstanding, "bytes outstanding", "c2")],
        });
        let rtt = named(match is_measured {
            true => vec![(self.rtt, "samples", "c5"), (self.srtt, "SRTT", "c1")],
            false => vec![(self.round_trips, "round trips of the capture", "c5")],
        });
        let goodput = named(goodput.map(|series| (series, "goodput", "c0")).into_iter().collect());
        let seq = Axis { label: "sequence number", zero: false, ..Axis::BYTES };
        let all = [
            ("Time-sequence graph", seq, 420, sequence),
            ("Windows", Axis::BYTES, 240, windows),
            ("Round-trip time", Axis::RTT, 240, rtt),
            ("Goodput", Axis { label: "goodput", ..Axis::RATE }, 200, goodput),
        ];
        let all = all.into_iter().filter(|(.., series)| !series.is_empty());
        all.map(|(title, y, height, series)| chart(title, group, Axis::TIME, y, height, series))
            .collect()
    }
}
