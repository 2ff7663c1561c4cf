//! Writing a log.

use std::borrow::Cow;
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

/// Writes events to a file, as they happen.
#[derive(Debug)]
pub(crate) struct Writer {
    file: BufWriter<File>,
    path: std::path::PathBuf,
    nodes: Vec<String>,
    arrived: Option<Arrived>,
}

/// A segment whose record waits for the events that follow: what it acknowledges.
#[derive(Debug)]
struct Arrived {
    node: NodeId,
    event: Event,
    acked_ranges: Vec<[u64; 2]>,
}

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
        let mut writer = Self { file, path: path.to_owned(), nodes: names, arrived: None };
        writer.record(&Header::new(title, nodes, origin))?;
        // A trace that is cut short can be read if it has its header.
        writer.file.flush().map_err(TraceError::file(path))?;
        Ok(writer)
    }

    pub(crate) fn event(&mut self, node: NodeId, event: &Event) -> Result<(), TraceError> {
        if let (EventKind::Acknowledged { first, last }, Some(arrived)) =
            (&event.kind, &mut self.arrived)
            && (arrived.node, arrived.event.flow) == (node, event.flow)
        {
            arrived.acked_ranges.push([first.0, last.0]);
            return Ok(());
        }
        self.arrived()?;
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
            EventKind::Received { .. } => {
                let (event, acked_ranges) = (event.clone(), Vec::new());
                self.arrived = Some(Arrived { node, event, acked_ranges });
                Ok(())
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

    /// Writes the record of the segment that arrived last.
    fn arrived(&mut self) -> Result<(), TraceError> {
        let Some(Arrived { node, event, acked_ranges }) = self.arrived.take() else {
            return Ok(());
        };
        let EventKind::Received { range, ack, window } = event.kind else { return Ok(()) };
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
        self.put(node, &event, RECEIVED, received)
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
        self.arrived()?;
        self.file.flush().map_err(TraceError::file(&self.path))
    }
}

/// The flow, as the node that reports sees it: its own end first.
fn group_id(flow: FlowId) -> String {
    format!("{}-{}", flow.local, flow.remote)
}
