//! Reading of a log.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airtcp_types::{Event, EventKind, ExtSeq, Fate, FlowId, NodeId, SeqRange, TxNo};
use serde::Deserialize;

use crate::{NodeInfo, TraceError};

use super::RECORD_SEPARATOR;
use super::data::*;
use super::header::Header;
use super::words::word;

/// The maximum length of a line, far above the longest packet in hexadecimal.
const MAX_LINE: u64 = 1 << 20;

/// Returns the events of a log, one by one.
#[derive(Debug)]
pub(crate) struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    line: u64,
    text: Vec<u8>,
    cut: bool,
    /// The acknowledgements in the last record, in reverse order.
    acknowledged: Vec<(NodeId, Event)>,
    pub(crate) title: String,
    pub(crate) nodes: Vec<NodeInfo>,
    /// The time of [`Instant::ZERO`](airtcp_types::Instant::ZERO), since the Unix epoch.
    pub(crate) origin: Duration,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(TraceError::file(path))?;
        let mut reader = Self {
            file: BufReader::with_capacity(1 << 16, file),
            path: path.to_owned(),
            line: 0,
            text: Vec::new(),
            cut: false,
            acknowledged: Vec::new(),
            title: String::new(),
            nodes: Vec::new(),
            origin: Duration::ZERO,
        };
        if !reader.next_line()? {
            reader.line = 1;
            return Err(reader.wrong(if reader.cut { "cut short" } else { "the file is empty" }));
        }
        let header = parse::<Header>(&reader.text).and_then(Header::take);
        (reader.title, reader.nodes, reader.origin) =
            header.map_err(|reason| reader.wrong(reason))?;
        Ok(reader)
    }

    /// Returns the next event with its node; `None` at the end of the file, and at a truncated last
    /// line.
    pub(crate) fn next(&mut self) -> Result<Option<(NodeId, Event)>, TraceError> {
        if let Some(next) = self.acknowledged.pop() {
            return Ok(Some(next));
        }
        if !self.next_line()? {
            return Ok(None);
        }
        let read = event(&self.text, &self.nodes, &mut self.acknowledged);
        read.map(Some).map_err(|reason| self.wrong(reason))
    }

    /// Returns the number of the last line if the file ends within it, because its writer was
    /// killed.
    pub(crate) fn cut(&self) -> Option<u64> {
        self.cut.then_some(self.line)
    }

    fn wrong(&self, reason: impl Into<String>) -> TraceError {
        TraceError::Line { path: self.path.clone(), line: self.line, reason: reason.into() }
    }

    /// Reads a record without its separator and newline; `false` at the end of the file.
    fn next_line(&mut self) -> Result<bool, TraceError> {
        self.text.clear();
        let mut limited = (&mut self.file).take(MAX_LINE);
        let read = limited.read_until(b'\n', &mut self.text);
        if read.map_err(TraceError::file(&self.path))? == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.text.pop() != Some(b'\n') {
            if self.text.len() as u64 >= MAX_LINE - 1 {
                return Err(self.wrong("a line too long"));
            }
            self.cut = true;
            return Ok(false);
        }
        if self.text.first() != Some(&RECORD_SEPARATOR) {
            return Err(self.wrong("a record starts with the byte 0x1E (RFC 7464)"));
        }
        self.text.remove(0);
        Ok(true)
    }
}

/// Parses JSON; errors contain the column, because the line number is that of the file.
fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        // The separator before the text is in the first column.
        format!("{message} (column {})", error.column() + 1)
    })
}

/// Parses the event of a record; the events of its acknowledgements are added to `acknowledged`.
fn event(
    text: &[u8],
    nodes: &[NodeInfo],
    acknowledged: &mut Vec<(NodeId, Event)>,
) -> Result<(NodeId, Event), String> {
    let record: RawRecord<'_> = parse(text)?;
    let node = nodes.iter().position(|node| node.name == record.node);
    let node = node.ok_or_else(|| format!("no node is called {:?}", record.node))?;
    let flow = record.group_id.as_deref().map(flow).transpose()?;
    let data = record.data.get().as_bytes();
    let mut frames = Vec::new();
    let kind = kind(&record.name, data, &mut frames)
        .map_err(|reason| format!("{}: {reason}", record.name))?;
    let (node, at) = (NodeId(node as u32), record.time.instant()?);
    for [first, last] in frames.iter().flat_map(|frame| &frame.acked_ranges).rev() {
        let kind = EventKind::Acknowledged { first: TxNo(*first), last: TxNo(*last) };
        acknowledged.push((node, Event { at, flow, kind }));
    }
    Ok((node, Event { at, flow, kind }))
}

fn flow(group: &str) -> Result<FlowId, String> {
    let ends = group.split_once('-').and_then(|(local, remote)| {
        Some(FlowId { local: local.parse().ok()?, remote: remote.parse().ok()? })
    });
    ends.ok_or_else(|| format!("{group:?} is no flow such as 10.0.0.1:40000-10.0.0.2:5001"))
}

fn range(seq: u64, len: u64) -> SeqRange {
    SeqRange::new(ExtSeq(seq), ExtSeq(seq) + len)
}

fn kind(name: &str, data: &[u8], acks: &mut Vec<AckFrame>) -> Result<EventKind, String> {
    Ok(match name {
        STATE => {
            let State { old, new } = parse(data)?;
            EventKind::State { from: word(&old)?, to: word(&new)? }
        }
        SENT => {
            let Sent { header, seq, len, rule, pipe, cwnd, rwnd, .. } = parse(data)?;
            let (tx, range) = (TxNo(header.packet_number), range(seq, len));
            EventKind::Sent { tx, range, rule, pipe, cwnd, rwnd }
        }
        RECEIVED => {
            let Received { seq, len, ack, wnd, frames, .. } = parse(data)?;
            *acks = frames;
            EventKind::Received { range: range(seq, len), ack: ExtSeq(ack), window: wnd }
        }
        LOST => {
            let Lost { header, seq, len, trigger } = parse(data)?;
            let (tx, range) = (TxNo(header.packet_number), range(seq, len));
            EventKind::Lost { tx, range, cause: word(&trigger)? }
        }
        METRICS if parse::<Metrics<'_>>(data)?.srtt.is_some() => {
            let Rtt { latest_rtt, srtt, min_rtt, .. } = parse(data)?;
            let (sample, srtt, min) =
                (latest_rtt.duration()?, srtt.duration()?, min_rtt.duration()?);
            EventKind::Rtt { sample, srtt, min }
        }
        METRICS => {
            let Window { cwnd, ssthresh, pipe, pacing_rate, bandwidth_estimate, .. } = parse(data)?;
            let bandwidth = bandwidth_estimate;
            EventKind::Window { cwnd, ssthresh, pipe, pacing_rate, bandwidth }
        }
        TIMER => EventKind::Timeout { backoff: parse::<Timer>(data)?.backoff },
        CONGESTION_STATE => {
            let CongestionState { new, trigger } = parse(data)?;
            match new.as_str() {
                REDUCED => EventKind::Reduced { cause: word(&trigger)? },
                UNDONE => EventKind::Undo,
                other => return Err(format!("no such congestion state: {other:?}")),
            }
        }
        DROPPED | MARKED | MADE | DUPLICATED | HELD | FROZEN => {
            let Handled { trigger, raw } = parse(data)?;
            let cause = || word(trigger.as_deref().ok_or("trigger is missing")?);
            let fate = match name {
                DROPPED => Fate::Dropped { cause: cause()? },
                MARKED => Fate::Marked { cause: cause()? },
                MADE => Fate::Made { cause: cause()? },
                HELD => Fate::Held,
                FROZEN => Fate::Frozen,
                _ => Fate::Duplicated,
            };
            EventKind::Packet { fate, packet: raw.packet()? }
        }
        RETRIED => {
            let Retried { pass, raw } = parse(data)?;
            EventKind::Packet { fate: Fate::Retried { pass }, packet: raw.packet()? }
        }
        CORRUPTED => {
            let Corrupted { bits, header_hit, unnoticed, raw } = parse(data)?;
            let fate = Fate::Corrupted { bits, header: header_hit, unnoticed };
            EventKind::Packet { fate, packet: raw.packet()? }
        }
        other => return Err(format!("no event is called {other:?}")),
    })
}
