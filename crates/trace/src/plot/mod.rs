//! Time-sequence graphs of the flows of a trace, in tcptrace's conventions.
//!
//! [`read`] takes what a [`Recorder`](crate::Recorder) wrote, or any pcap or pcapng file, and lists
//! its flows; [`Trace::svg`] and [`Trace::xpl`] draw one, from its sender's point of view: its data
//! as it left, the ACKs as they came in. A file is read twice to draw it and never held in memory,
//! however long it is.
//!
//! A flow is one direction of a connection that carried data. Where a capture has several
//! interfaces, a flow is drawn from the one that its first packet was seen at, which in our traces
//! is the sender's own.

mod flows;
mod follower;
mod inputs;
mod labels;
mod layout;
mod picture;
mod raster;
mod series;
mod xpl;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use crate::TraceError;

use flows::FlowTable;
use follower::Follower;
pub use follower::{Kind, Mark};
pub use inputs::Cut;
use inputs::{Inputs, Item};
use picture::{Extent, Picture};
use xpl::Xplot;

/// One direction of a connection, which carried data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Who sent the data.
    pub sender: SocketAddr,
    /// Who received it.
    pub receiver: SocketAddr,
    /// How many connections of the same ends came before it.
    pub before: u32,
    /// Payload sent, whatever was sent again too.
    pub bytes: ByteCount,
    /// Packets of the sender.
    pub packets: u64,
    /// When the first packet of either end was seen.
    pub first: Instant,
    /// When the last packet of either end was seen.
    pub last: Instant,
    /// Its place in the flow table.
    index: usize,
}

impl Flow {
    /// What files of this flow are called: `10.0.0.1_40000-10.0.0.2_5001`.
    pub fn file_name(&self) -> String {
        let end = |address: SocketAddr| {
            // Colons are not for file names everywhere.
            format!("{}_{}", address.ip().to_string().replace(':', "."), address.port())
        };
        let name = format!("{}-{}", end(self.sender), end(self.receiver));
        if self.before == 0 { name } else { format!("{name}-{}", self.before + 1) }
    }
}

/// Which part of the time to draw. Times count from the trace's origin, or the capture's first
/// packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// From here on; from the flow's first packet if not given.
    pub from: Option<Duration>,
    /// Up to here; to the flow's last packet if not given.
    pub to: Option<Duration>,
}

/// A trace whose flows are known.
#[derive(Debug)]
pub struct Trace {
    inputs: Inputs,
    flows: Vec<Flow>,
    cuts: Vec<Cut>,
}

/// Reads a trace and lists its flows: an `events.sqlog`, the directory it is in, or a pcap or
/// pcapng file.
///
/// # Errors
///
/// [`TraceError::File`] if a file cannot be read, [`TraceError::Line`] and [`TraceError::Capture`]
/// with the place of what is wrong in it, [`TraceError::NoPackets`] for a log without its capture.
/// What ends in the middle of its last record is read up to there: [`Trace::cuts`]. A trace without
/// data has no flows; that is an error when one is drawn.
pub fn read(path: &Path) -> Result<Trace, TraceError> {
    let inputs = Inputs::find(path)?;
    let mut table = FlowTable::default();
    let cuts = inputs.walk(|item| {
        if let Item::Packet { at, seen, segment, fate: None } = item {
            table.on_packet(at, seen, segment);
        }
    })?;
    Ok(Trace { inputs, flows: table.into_flows(), cuts })
}

impl Trace {
    /// Its flows, the one with the most bytes first.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Its files that end in the middle of a record.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// What was recorded, in one line; empty for a capture.
    pub fn title(&self) -> &str {
        self.inputs.title()
    }

    /// Shows everything that is drawn of some flows, in the order of time, to `sink`: the flow's
    /// number, when, and what.
    ///
    /// `numbers` are places in [`flows`](Self::flows), counted from one.
    ///
    /// # Errors
    ///
    /// [`TraceError::NoFlow`], [`TraceError::NoSuchFlow`], and those of [`read`].
    pub fn marks(
        &self,
        numbers: &[usize],
        mut sink: impl FnMut(usize, Instant, &Mark),
    ) -> Result<(), TraceError> {
        let flows: Vec<&Flow> =
            numbers.iter().map(|&number| self.flow(number)).collect::<Result<_, _>>()?;
        let by_index: BTreeMap<usize, usize> =
            flows.iter().zip(numbers).map(|(flow, &number)| (flow.index, number)).collect();
        self.draw(&flows, |index, at, mark| {
            if let Some(&number) = by_index.get(&index) {
                sink(number, at, mark);
            }
        })
    }

    /// Draws the time-sequence graph of a flow as an SVG, with the windows and the RTT below it.
    ///
    /// `number` is its place in [`flows`](Self::flows), counted from one.
    ///
    /// # Errors
    ///
    /// [`TraceError::NoFlow`], [`TraceError::NoSuchFlow`], [`TraceError::Window`], and those of
    /// [`read`].
    pub fn svg(&self, number: usize, window: Window) -> Result<String, TraceError> {
        let flow = self.flow(number)?;
        let mut pictures = self.pictures(&[flow], window)?;
        self.draw(&[flow], |flow, at, mark| {
            if let Some(picture) = pictures.get_mut(&flow) {
                picture.mark(at, mark);
            }
        })?;
        Ok(pictures.remove(&flow.index).map(|picture| picture.to_svg()).unwrap_or_default())
    }

    /// Writes the time-sequence graph of a flow for xplot.
    ///
    /// # Errors
    ///
    /// As [`svg`](Self::svg); what `to` cannot take is told as an error of the file `path`.
    pub fn xpl(&self, number: usize, path: &Path) -> Result<(), TraceError> {
        let flow = self.flow(number)?;
        let mut plot = self.xplot(flow, path)?;
        self.draw(&[flow], |_, at, mark| plot.mark(at, mark))?;
        plot.finish().map_err(TraceError::file(path))
    }

    /// Draws the first `most` flows into `dir`, both ways, and gives the files' names.
    pub(crate) fn draw_all(&self, dir: &Path, most: usize) -> Result<Vec<PathBuf>, TraceError> {
        let flows: Vec<&Flow> = self.flows.iter().take(most).collect();
        let mut pictures = self.pictures(&flows, Window::default())?;
        let mut plots = BTreeMap::new();
        for flow in &flows {
            let path = dir.join(format!("{}_tsg.xpl", flow.file_name()));
            plots.insert(flow.index, self.xplot(flow, &path)?);
        }
        self.draw(&flows, |flow, at, mark| {
            if let Some(plot) = plots.get_mut(&flow) {
                plot.mark(at, mark);
            }
            if let Some(picture) = pictures.get_mut(&flow) {
                picture.mark(at, mark);
            }
        })?;
        let mut files = Vec::new();
        for flow in &flows {
            let path = dir.join(format!("{}_tsg.xpl", flow.file_name()));
            if let Some(plot) = plots.remove(&flow.index) {
                plot.finish().map_err(TraceError::file(&path))?;
                files.push(path);
            }
            let path = dir.join(format!("{}.svg", flow.file_name()));
            if let Some(picture) = pictures.remove(&flow.index) {
                std::fs::write(&path, picture.to_svg()).map_err(TraceError::file(&path))?;
                files.push(path);
            }
        }
        Ok(files)
    }

    fn flow(&self, number: usize) -> Result<&Flow, TraceError> {
        let count = self.flows.len();
        if count == 0 {
            return Err(TraceError::NoFlow(self.inputs.path().to_owned()));
        }
        let flow = number.checked_sub(1).and_then(|index| self.flows.get(index));
        flow.ok_or(TraceError::NoSuchFlow { number, count })
    }

    fn xplot(&self, flow: &Flow, path: &Path) -> Result<Xplot<BufWriter<File>>, TraceError> {
        let file = File::create(path).map_err(TraceError::file(path))?;
        let mut plot = Xplot::new(BufWriter::new(file), self.inputs.origin());
        plot.header(flow.sender, flow.receiver);
        Ok(plot)
    }

    /// Empty pictures, each as large as what is to be drawn in it.
    fn pictures(
        &self,
        flows: &[&Flow],
        window: Window,
    ) -> Result<BTreeMap<usize, Picture>, TraceError> {
        let mut extents = BTreeMap::new();
        for flow in flows {
            let from = window.from.map_or(flow.first, |from| Instant::ZERO + from);
            let to = window.to.map_or(flow.last, |to| Instant::ZERO + to);
            let is_empty = from > to || (from == to && window != Window::default());
            if is_empty || from > flow.last || to < flow.first {
                let [from, to, first, last] =
                    [from, to, flow.first, flow.last].map(Instant::as_secs_f64);
                return Err(TraceError::Window { from, to, first, last });
            }
            extents.insert(flow.index, Extent::new(from, to));
        }
        self.draw(flows, |flow, at, mark| {
            if let Some(extent) = extents.get_mut(&flow) {
                extent.mark(at, mark);
            }
        })?;
        let title = |flow: &Flow| {
            let title = self.inputs.title();
            let separator = if title.is_empty() { "" } else { "  " };
            format!("{} to {}{separator}{title}", flow.sender, flow.receiver)
        };
        let picture = |flow: &&Flow| {
            let extent = extents.remove(&flow.index)?;
            Some((flow.index, Picture::new(title(flow), extent)))
        };
        Ok(flows.iter().filter_map(picture).collect())
    }

    /// Goes through the trace and shows each mark of `flows` to `sink`.
    fn draw(
        &self,
        flows: &[&Flow],
        mut sink: impl FnMut(usize, Instant, &Mark),
    ) -> Result<(), TraceError> {
        let mut table = FlowTable::default();
        let mut followers: BTreeMap<usize, Follower> =
            flows.iter().map(|flow| (flow.index, Follower::default())).collect();
        self.inputs.walk(|item| match item {
            Item::Packet { at, seen, segment, fate: None } => {
                let roles = table.on_packet(at, seen, segment);
                // The ACK first: what it lets leave comes after it.
                if let Some(index) = roles.acknowledges
                    && let Some(follower) = followers.get_mut(&index)
                {
                    follower.on_ack(at, segment, &mut |mark| sink(index, at, &mark));
                }
                if let Some(index) = roles.sends
                    && let Some(follower) = followers.get_mut(&index)
                {
                    follower.on_sent(at, segment, &mut |mark| sink(index, at, &mark));
                }
            }
            Item::Packet { at, segment, fate: Some(fate), .. } => {
                if let Some(index) = table.current(segment.from, segment.to)
                    && let Some(follower) = followers.get(&index)
                {
                    follower.on_fate(fate, segment, &mut |mark| sink(index, at, &mark));
                }
            }
            Item::Event(event) => {
                if let Some(flow) = event.flow
                    && let Some(index) = table.current(flow.local, flow.remote)
                    && let Some(follower) = followers.get_mut(&index)
                {
                    follower.on_event(&event.kind, &mut |mark| sink(index, event.at, &mark));
                }
            }
        })?;
        Ok(())
    }
}

/// Writes text where an error is remembered rather than returned each time.
struct Sink<W> {
    to: W,
    error: Option<std::io::Error>,
}

impl<W: Write> Sink<W> {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if self.error.is_none() {
            let written = self.to.write_fmt(line).and_then(|()| self.to.write_all(b"\n"));
            self.error = written.err();
        }
    }
}
