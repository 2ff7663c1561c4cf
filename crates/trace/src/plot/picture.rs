//! Collects the marks of a picture in bounded memory.

use airtcp_types::Instant;

use super::follower::{Kind, Mark};
use super::labels::Labels;
use super::layout::{self, COLUMNS, ROWS};
use super::raster::Raster;
use super::series::Series;

/// The maximum number of segments with arrowheads; more arrowheads would only blacken the bars.
const MOST_ARROWS: usize = 1_500;

/// The range of time and sequence numbers of a picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) from: Instant,
    pub(super) to: Instant,
    /// The lowest and the highest sequence number.
    seq: Option<(u64, u64)>,
    /// The highest right edge of the window.
    edge: u64,
}

impl Extent {
    pub(super) fn new(from: Instant, to: Instant) -> Self {
        Self { from, to, seq: None, edge: 0 }
    }

    pub(super) fn mark(&mut self, at: Instant, mark: &Mark) {
        if at < self.from || at > self.to {
            return;
        }
        match *mark {
            Mark::Data { from, to, .. } | Mark::Sack { from, to, .. } => self.include(from, to),
            Mark::Ack { from, to, .. } => self.include(from, to),
            Mark::Syn { seq, .. } | Mark::Fin { seq, .. } => self.include(seq, seq + 1),
            Mark::Edge { to, .. } => self.edge = self.edge.max(to),
            _ => {}
        }
    }

    fn include(&mut self, from: u64, to: u64) {
        let (low, high) = self.seq.unwrap_or((from, to));
        self.seq = Some((low.min(from), high.max(to)));
    }

    /// Returns the range of sequence numbers of the panel: everything sent, and the window if it is
    /// not far above.
    pub(super) fn seq_range(&self) -> (f64, f64) {
        let (low, high) = self.seq.unwrap_or((0, 1));
        let span = (high - low).max(1) as f64;
        let (low, high) = (low as f64, high as f64);
        let edge = self.edge as f64;
        let top = if edge > high && edge < high + span * 0.5 { edge } else { high };
        ((low - span * 0.03).max(0.0), top + span * 0.06)
    }
}

/// A picture while marks are collected.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) title: String,
    pub(super) extent: Extent,
    pub(super) new: Raster,
    pub(super) again: Raster,
    pub(super) sacked: Raster,
    /// Column, row and whether the arrow points up; the second list is for retransmissions.
    pub(super) arrows: [Vec<(usize, usize, bool)>; 2],
    pub(super) ack: Series,
    pub(super) edge: Series,
    pub(super) duplicates: Labels,
    pub(super) retransmitted: Labels,
    pub(super) out_of_order: Labels,
    pub(super) zero_window: Labels,
    pub(super) dropped: Labels,
    pub(super) timeouts: Labels,
    /// SYN, FIN and RST, with their texts.
    pub(super) ends: Vec<(usize, usize, &'static str)>,
    pub(super) cwnd: Series,
    pub(super) ssthresh: Series,
    /// The bytes in flight, from events, or from the packets if there are no events.
    pub(super) pipe: Series,
    pub(super) outstanding: Series,
    pub(super) rtt: Series,
    pub(super) srtt: Series,
    pub(super) round_trips: Series,
    pub(super) segments: u64,
    highest: u64,
    isn: Option<u32>,
}

enum Place {
    Before,
    Column(usize),
    After,
}

impl Picture {
    pub(super) fn new(title: String, extent: Extent) -> Self {
        let raster = Raster::new(COLUMNS, ROWS);
        let series = Series::new(COLUMNS);
        Self {
            title,
            extent,
            new: raster.clone(),
            again: raster.clone(),
            sacked: raster,
            arrows: [Vec::new(), Vec::new()],
            ack: series.clone(),
            edge: series.clone(),
            duplicates: Labels::default(),
            retransmitted: Labels::default(),
            out_of_order: Labels::default(),
            zero_window: Labels::default(),
            dropped: Labels::default(),
            timeouts: Labels::default(),
            ends: Vec::new(),
            cwnd: series.clone(),
            ssthresh: series.clone(),
            pipe: series.clone(),
            outstanding: series.clone(),
            rtt: series.clone(),
            srtt: series.clone(),
            round_trips: series,
            segments: 0,
            highest: 0,
            isn: None,
        }
    }

    /// Whether bars are merged because there are too many segments to distinguish.
    pub(super) fn is_dense(&self) -> bool {
        self.segments > MOST_ARROWS as u64
    }

    pub(super) fn isn(&self) -> u32 {
        self.isn.unwrap_or(0)
    }

    fn place(&self, at: Instant) -> Place {
        let Extent { from, to, .. } = self.extent;
        if at < from {
            return Place::Before;
        }
        if at > to {
            return Place::After;
        }
        let share = at.since(from).as_nanos() as f64 / (to.since(from).as_nanos() as f64).max(1.0);
        Place::Column(((share * COLUMNS as f64) as usize).min(COLUMNS - 1))
    }

    fn row(&self, seq: u64) -> usize {
        let (low, high) = self.extent.seq_range();
        let share = (seq as f64 - low) / (high - low);
        ((share * ROWS as f64) as usize).min(ROWS - 1)
    }

    pub(super) fn mark(&mut self, at: Instant, mark: &Mark) {
        match (self.place(at), mark) {
            (_, Mark::Isn(isn)) => self.isn = Some(*isn),
            (Place::Before, mark) => self.hold(mark),
            (Place::Column(column), mark) => self.put(column, mark),
            (Place::After, _) => {}
        }
    }

    /// Sets the value of a line at the start of the picture.
    fn hold(&mut self, mark: &Mark) {
        match *mark {
            Mark::Data { to, .. } => self.highest = self.highest.max(to),
            Mark::Ack { to, .. } => self.ack.hold(to as f64),
            Mark::Edge { to, .. } => self.edge.hold(to as f64),
            Mark::Cwnd(value) => self.cwnd.hold(value as f64),
            Mark::Ssthresh(value) => self.ssthresh.hold(value as f64),
            Mark::Pipe(value) => self.pipe.hold(value as f64),
            Mark::Outstanding(value) => self.outstanding.hold(value as f64),
            Mark::Rtt { srtt, .. } => self.srtt.hold(srtt.as_secs_f64() * 1e3),
            _ => {}
        }
    }

    fn put(&mut self, column: usize, mark: &Mark) {
        match *mark {
            Mark::Data { from, to, kind, .. } => {
                self.segments += 1;
                self.highest = self.highest.max(to);
                let (low, high) = (self.row(from), self.row(to));
                let again = kind == Kind::Retransmitted;
                let raster = if again { &mut self.again } else { &mut self.new };
                raster.cover(column, low, high);
                let arrows = &mut self.arrows[usize::from(again)];
                if arrows.len() < 2 * MOST_ARROWS {
                    arrows.extend([(column, low, false), (column, high, true)]);
                }
                match kind {
                    Kind::New => {}
                    Kind::Retransmitted => self.retransmitted.add(column, high),
                    Kind::OutOfOrder => self.out_of_order.add(column, high),
                }
            }
            Mark::Syn { seq, again } => {
                self.end(column, seq + 1, if again { "R SYN" } else { "SYN" });
            }
            Mark::Fin { seq, again } => {
                self.end(column, seq + 1, if again { "R FIN" } else { "FIN" });
            }
            Mark::Reset { seq } => self.end(column, seq, "RST"),
            Mark::Ack { from, to, .. } => {
                if from == to {
                    let row = self.row(to);
                    self.duplicates.add(column, row);
                }
                self.ack.add(column, to as f64);
            }
            Mark::Edge { to, .. } => self.edge.add(column, to as f64),
            Mark::ZeroWindow { seq } => {
                let row = self.row(seq);
                self.zero_window.add(column, row);
            }
            Mark::Sack { from, to, .. } => {
                let (low, high) = (self.row(from), self.row(to));
                self.sacked.cover(column, low, high);
            }
            Mark::Dropped { from, to } => {
                let row = self.row(from + (to - from) / 2);
                self.dropped.add(column, row);
            }
            Mark::Timeout => {
                let row = self.row(self.highest);
                self.timeouts.add(column, row);
            }
            Mark::Outstanding(value) => self.outstanding.add(column, value as f64),
            Mark::RoundTrip(time) => self.round_trips.add(column, time.as_secs_f64() * 1e3),
            Mark::Cwnd(value) => self.cwnd.add(column, value as f64),
            Mark::Ssthresh(value) => self.ssthresh.add(column, value as f64),
            Mark::Pipe(value) => self.pipe.add(column, value as f64),
            Mark::Rtt { sample, srtt } => {
                self.rtt.add(column, sample.as_secs_f64() * 1e3);
                self.srtt.add(column, srtt.as_secs_f64() * 1e3);
            }
            Mark::Isn(_) => {}
        }
    }

    fn end(&mut self, column: usize, seq: u64, word: &'static str) {
        const MOST: usize = 50;
        if self.ends.len() < MOST {
            let row = self.row(seq);
            self.ends.push((column, row, word));
        }
    }

    pub(super) fn to_svg(&self) -> String {
        layout::to_svg(self)
    }
}
