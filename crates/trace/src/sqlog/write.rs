//! Writing of a log.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use airtcp_types::{Event, EventKind, Fate, FlowId, NodeId, Packet};
use serde::Serialize;

use crate::{NodeInfo, TraceError};

use super::RECORD_SEPARATOR;
use super::data::*;
use super::header::Header;

/// Writes events to a file as they happen.
#[derive(Debug)]
pub(crate) struct Writer {
    file: BufWriter<File>,
    path: std::path::PathBuf,
    nodes: Vec<String>,
    /// Events after a segment whose acknowledgements are not complete, in the order of time.
    held: VecDeque<Held>,
}

/// An event that has not been written yet.
#[derive(Debug)]
struct Held {
    node: NodeId,
    event: Event,
    acked_ranges: Vec<[u64; 2]>,
    /// Whether further acknowledgements may follow: until the next other event of its node.
    waits: bool,
}

/// The maximum number of held events: nodes with their own threads report in between each other.
const MOST_HELD: usize = 64;

impl Writer {
    pub(crate) fn create(
        path: &Path,
        title: &str,
        nodes: &[NodeInfo],
        origin: Duration,
    ) -> Result<Self, TraceError> {
        let file = File::create(path).map_err(TraceError::file(path))?;
        let file = BufWriter::with_capacity(1 << 16, file);
        let names = nodes.iter().map(|node| node.name.clone()).collect();
        let mut writer = Self { file, path: path.to_owned(), nodes: names, held: VecDeque::new() };
        writer.record(&Header::new(title, nodes, origin))?;
        // With its header on disk, a truncated trace can be read.
        writer.file.flush().map_err(TraceError::file(path))?;
        Ok(writer)
    }

    pub(crate) fn event(&mut self, node: NodeId, event: &Event) -> Result<(), TraceError> {
        let held = self.held.iter_mut().rfind(|held| held.waits && held.node == node);
        if let EventKind::Acknowledged { first, last } = event.kind {
            // Without its segment, which had to be written, the acknowledgement has no record.
            if let Some(held) = held.filter(|held| held.event.flow == event.flow) {
                held.acked_ranges.push([first.0, last.0]);
            }
            return Ok(());
        }
        if let Some(held) = held {
            held.waits = false;
        }
        let waits = matches!(event.kind, EventKind::Received { .. });
        if self.held.is_empty() && !waits {
            return self.write(node, event, Vec::new());
        }
        let event = event.clone();
        self.held.push_back(Held { node, event, acked_ranges: Vec::new(), waits });
        self.write_held(|held, count| !held.waits || count > MOST_HELD)
    }

    /// Writes the held events from the first on, as long as they are due.
    fn write_held(&mut self, is_due: impl Fn(&Held, usize) -> bool) -> Result<(), TraceError> {
        while self.held.front().is_some_and(|held| is_due(held, self.held.len())) {
            let Some(Held { node, event, acked_ranges, .. }) = self.held.pop_front() else { break };
            self.write(node, &event, acked_ranges)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        node: NodeId,
        event: &Event,
        acked_ranges: Vec<[u64; 2]>,
    ) -> Result<(), TraceError> {
        match &event.kind {
            EventKind::State { from, to } => {
                self.put(node, event, STATE, State { old: from.to_string(), new: to.to_string() })
            }
            &EventKind::Sent { tx, range, rule, pipe, cwnd, rwnd } => {
                let header = PacketHeader { packet_number: tx.0 };
                let (seq, len) = (range.start.0, range.len().0);
                let (raw, bytes_in_flight, congestion_window) =
                    (Some(Length { length: len }), pipe, cwnd);
                self.put(
                    node,
                    event,
                    SENT,
                    Sent {
                        header,
                        raw,
                        seq,
                        len,
                        rule,
                        bytes_in_flight,
                        pipe,
                        congestion_window,
                        cwnd,
                        rwnd,
                    },
                )
            }
            &EventKind::Received { range, ack, window } => {
                let (seq, len) = (range.start.0, range.len().0);
                let frame = (!acked_ranges.is_empty())
                    .then(|| AckFrame { frame_type: ACK.to_owned(), acked_ranges });
                let received = Received {
                    header: Unnumbered {},
                    raw: Some(Length { length: len }),
                    seq,
                    len,
                    ack: ack.0,
                    wnd: window,
                    frames: frame.into_iter().collect(),
                };
                self.put(node, event, RECEIVED, received)
            }
            &EventKind::Lost { tx, range, cause } => {
                let header = PacketHeader { packet_number: tx.0 };
                let (seq, len) = (range.start.0, range.len().0);
                self.put(node, event, LOST, Lost { header, seq, len, trigger: cause.to_owned() })
            }
            &EventKind::Window { cwnd, ssthresh, pipe, pacing_rate, bandwidth } => {
                let window = Window {
                    congestion_window: cwnd,
                    cwnd,
                    ssthresh,
                    bytes_in_flight: pipe,
                    pipe,
                    pacing_rate,
                    bandwidth_estimate: bandwidth,
                };
                self.put(node, event, METRICS, window)
            }
            &EventKind::Rtt { sample, srtt, min } => {
                let (latest_rtt, srtt, min_rtt) = (sample.into(), srtt.into(), min.into());
                let rtt = Rtt { latest_rtt, smoothed_rtt: Some(srtt), srtt, min_rtt };
                self.put(node, event, METRICS, rtt)
            }
            &EventKind::Timeout { backoff } => {
                let (timer_type, event_type) = ("rto".to_owned(), "expired".to_owned());
                self.put(node, event, TIMER, Timer { timer_type, event_type, backoff })
            }
            EventKind::Reduced { cause } => {
                let (new, trigger) = (REDUCED.to_owned(), cause.to_string());
                self.put(node, event, CONGESTION_STATE, CongestionState { new, trigger })
            }
            EventKind::Undo => {
                let (new, trigger) = (UNDONE.to_owned(), "spurious".to_owned());
                self.put(node, event, CONGESTION_STATE, CongestionState { new, trigger })
            }
            EventKind::Packet { fate, packet } => self.fate(node, event, *fate, packet),
            other => Err(TraceError::UnknownEvent(format!("{other:?}"))),
        }
    }

    fn fate(
        &mut self,
        node: NodeId,
        event: &Event,
        fate: Fate,
        packet: &Packet,
    ) -> Result<(), TraceError> {
        let raw = Raw::new(packet);
        let cause = |cause: &str| Some(cause.to_owned());
        match fate {
            Fate::Dropped { cause: why } => {
                self.put(node, event, DROPPED, Handled { trigger: cause(why), raw })
            }
            Fate::Marked { cause: why } => {
                self.put(node, event, MARKED, Handled { trigger: cause(why), raw })
            }
            Fate::Made { cause: why } => {
                self.put(node, event, MADE, Handled { trigger: cause(why), raw })
            }
            Fate::Duplicated => self.put(node, event, DUPLICATED, Handled { trigger: None, raw }),
            Fate::Held => self.put(node, event, HELD, Handled { trigger: None, raw }),
            Fate::Frozen => self.put(node, event, FROZEN, Handled { trigger: None, raw }),
            Fate::Retried { pass } => self.put(node, event, RETRIED, Retried { pass, raw }),
            Fate::Corrupted { bits, header, unnoticed } => self.put(
                node,
                event,
                CORRUPTED,
                Corrupted { bits, header_hit: header, unnoticed, raw },
            ),
            other => Err(TraceError::UnknownEvent(format!("{other:?}"))),
        }
    }

    fn put<D: Serialize>(
        &mut self,
        node: NodeId,
        event: &Event,
        name: &'static str,
        data: D,
    ) -> Result<(), TraceError> {
        let index = node.0 as usize;
        let node = self.nodes.get(index).ok_or(TraceError::UnknownNode(node.0))?.clone();
        let group_id = event.flow.map(|flow| Cow::Owned(group_id(flow)));
        let (time, name) = (event.at.into(), Cow::Borrowed(name));
        self.record(&Record { time, name, node: Cow::Owned(node), group_id, data })
    }

    fn record<R: Serialize>(&mut self, record: &R) -> Result<(), TraceError> {
        let mut write = || {
            self.file.write_all(&[RECORD_SEPARATOR])?;
            serde_json::to_writer(&mut self.file, record).map_err(io::Error::from)?;
            self.file.write_all(b"\n")
        };
        write().map_err(TraceError::file(&self.path))
    }

    pub(crate) fn finish(mut self) -> Result<(), TraceError> {
        self.write_held(|_, _| true)?;
        self.file.flush().map_err(TraceError::file(&self.path))
    }
}

/// Formats the flow from the point of view of the reporting node: its own address first.
fn group_id(flow: FlowId) -> String {
    format!("{}-{}", flow.local, flow.remote)
}
