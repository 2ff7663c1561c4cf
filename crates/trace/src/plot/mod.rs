//! Time-sequence graphs of the flows of a trace, in tcptrace's conventions.
//!
//! [`read`] opens a trace of a [`Recorder`](crate::Recorder), or any pcap or pcapng file, and lists
//! its flows. [`Trace::svg`] and [`Trace::xpl`] draw a flow from its sender's point of view: data
//! when it left, ACKs when they arrived. To draw a flow, the file is read twice; it is never held
//! in memory.
//!
//! A flow is one direction of a connection that carried data. In a capture with several interfaces,
//! a flow is drawn from the interface at which its first packet was seen, in airtcp's traces that
//! of the sender.

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

/// A flow: one direction of a connection that carried data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The sender of the data.
    pub sender: SocketAddr,
    /// The receiver of the data.
    pub receiver: SocketAddr,
    /// The number of earlier connections between the same ends.
    pub before: u32,
    /// Payload sent, including retransmissions.
    pub bytes: ByteCount,
    /// The number of packets of the sender.
    pub packets: u64,
    /// The time of the first packet of either end.
    pub first: Instant,
    /// The time of the last packet of either end.
    pub last: Instant,
    /// The index in the flow table.
    index: usize,
}

impl Flow {
    /// Returns the name for files of this flow, such as `10.0.0.1_40000-10.0.0.2_5001`.
    pub fn file_name(&self) -> String {
        let end = |address: SocketAddr| {
            // Some file systems do not allow colons.
            format!("{}_{}", address.ip().to_string().replace(':', "."), address.port())
        };
        let name = format!("{}-{}", end(self.sender), end(self.receiver));
        if self.before == 0 { name } else { format!("{name}-{}", self.before + 1) }
    }
}

/// The interval to draw. Times are relative to the trace's origin, or to the capture's first
/// packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// The start; `None` for the flow's first packet.
    pub from: Option<Duration>,
    /// The end; `None` for the flow's last packet.
    pub to: Option<Duration>,
}

/// A trace with its list of flows.
#[derive(Debug)]
pub struct Trace {
    inputs: Inputs,
    flows: Vec<Flow>,
    cuts: Vec<Cut>,
}

/// Opens a trace and lists its flows. `path` is an `events.sqlog`, its directory, or a pcap or
/// pcapng file.
///
/// # Errors
///
/// [`TraceError::File`] if a file cannot be read, [`TraceError::Line`] and [`TraceError::Capture`]
/// for invalid content, [`TraceError::NoPackets`] for a log without its capture. A file that ends
/// within a record is read up to that record: see [`Trace::cuts`]. A trace without data has no
/// flows; only drawing one is an error.
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
    /// Returns the flows, the one with the most bytes first.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Returns the files that end within a record.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Returns the title of the recording in one line; empty for a capture.
    pub fn title(&self) -> &str {
        self.inputs.title()
    }

    /// Passes all marks of some flows to `sink`, in the order of time: the flow's number, the time,
    /// and the mark.
    ///
    /// `numbers` are indices in [`flows`](Self::flows), starting from one.
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
    /// `number` is its index in [`flows`](Self::flows), starting from one.
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

    /// Writes the time-sequence graph of a flow to a file for xplot.
    ///
    /// # Errors
    ///
    /// As for [`svg`](Self::svg), and [`TraceError::File`] if `path` cannot be written.
    pub fn xpl(&self, number: usize, path: &Path) -> Result<(), TraceError> {
        let flow = self.flow(number)?;
        let mut plot = self.xplot(flow, path)?;
        self.draw(&[flow], |_, at, mark| plot.mark(at, mark))?;
        plot.finish().map_err(TraceError::file(path))
    }

    /// Draws the first `most` flows into `dir`, as xplot files and SVGs; returns the paths of the
    /// files.
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

    /// Creates empty pictures, each with the extent of its marks.
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

    /// Reads the trace and passes each mark of `flows` to `sink`.
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
                // The ACK first, because the data that it releases follows it.
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

/// A writer that stores the first error, instead of returning errors.
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
