//! Follows a flow at its sender, and generates its marks.

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant, RangeSet, SeqRange};

use crate::segment::Segment;

/// The maximum number of segments whose RTT is measured at a time.
const MAX_TIMED: usize = 4_096;
/// The maximum number of ranges of sent data. With more holes, the lowest is treated as sent.
const MAX_RANGES: usize = 1_024;
/// The maximum window scale (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;

/// How a segment relates to those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// All of it is above the data sent before.
    New,
    /// Some of it was sent before.
    Retransmitted,
    /// It was not sent before, but data above it was.
    OutOfOrder,
}

/// A mark to draw. Sequence numbers are relative to the initial one; ranges exclude `to`.
#[derive(Clone, PartialEq, Debug)]
pub enum Mark {
    /// A segment with data.
    Data {
        /// The sequence number of its first byte.
        from: u64,
        /// The sequence number after its last byte.
        to: u64,
        /// The relation to the earlier segments.
        kind: Kind,
        /// Whether PSH is set.
        push: bool,
    },
    /// A SYN.
    Syn {
        /// Its sequence number.
        seq: u64,
        /// Whether it is a retransmission.
        again: bool,
    },
    /// A FIN.
    Fin {
        /// Its sequence number.
        seq: u64,
        /// Whether it is a retransmission.
        again: bool,
    },
    /// A RST.
    Reset {
        /// Its sequence number.
        seq: u64,
    },
    /// An ACK: the cumulative ACK was `from` since `since`, and is now `to`.
    Ack {
        /// The time of the previous ACK.
        since: Instant,
        /// The previous cumulative ACK.
        from: u64,
        /// The new cumulative ACK.
        to: u64,
    },
    /// The right edge of the receiver's window at an ACK.
    Edge {
        /// The time of the previous ACK.
        since: Instant,
        /// The previous edge.
        from: u64,
        /// The new edge.
        to: u64,
    },
    /// The receiver closed its window.
    ZeroWindow {
        /// The window's right edge.
        seq: u64,
    },
    /// A SACK block.
    Sack {
        /// Its first sequence number.
        from: u64,
        /// The sequence number after its last.
        to: u64,
        /// Its position in the option, starting from one.
        place: usize,
        /// The number of blocks in the option.
        count: usize,
    },
    /// A segment of the flow that a link dropped.
    Dropped {
        /// Its first sequence number.
        from: u64,
        /// The sequence number after its last.
        to: u64,
    },
    /// Bytes sent and not yet acknowledged, derived from the packets.
    Outstanding(u64),
    /// A round-trip time, derived from the packets.
    RoundTrip(Duration),
    /// The sender's congestion window in bytes, from an event.
    Cwnd(u64),
    /// The sender's slow-start threshold in bytes, from an event.
    Ssthresh(u64),
    /// The sender's bytes in flight, from an event.
    Pipe(u64),
    /// A round-trip time measured by the sender, from an event.
    Rtt {
        /// The sample.
        sample: Duration,
        /// The smoothed round-trip time after the sample.
        srtt: Duration,
    },
    /// The sender's retransmission timer expired, from an event.
    Timeout,
    /// The initial sequence number on the wire: the first mark of a flow.
    Isn(u32),
}

/// The state of a flow.
#[derive(Debug, Default)]
pub(super) struct Follower {
    started: Option<Started>,
    /// The window scale in the receiver's SYN.
    receiver_shift: Option<u8>,
    /// Whether the sender's SYN has the option too; otherwise windows are not scaled.
    sender_scales: Option<bool>,
    sent: RangeSet,
    nxt: ExtSeq,
    acked: Option<Acked>,
    timed: VecDeque<Timed>,
}

#[derive(Clone, Copy, Debug)]
struct Started {
    isn: ExtSeq,
}

#[derive(Clone, Copy, Debug)]
struct Acked {
    at: Instant,
    ack: ExtSeq,
    /// `None` while the window scale is not known.
    edge: Option<ExtSeq>,
}

#[derive(Clone, Copy, Debug)]
struct Timed {
    end: ExtSeq,
    at: Instant,
    /// Whether it was sent only once (Karn's algorithm).
    once: bool,
}

impl Follower {
    fn start(&mut self, first: airtcp_types::SeqNumber, out: &mut impl FnMut(Mark)) -> Started {
        *self.started.get_or_insert_with(|| {
            let isn = ExtSeq::starting_at(first);
            self.nxt = isn;
            out(Mark::Isn(first.0));
            Started { isn }
        })
    }

    /// Processes a segment that the flow's sender sends.
    pub(super) fn on_sent(&mut self, at: Instant, segment: &Segment, out: &mut impl FnMut(Mark)) {
        let isn = self.start(segment.seq, out).isn;
        let seq = self.nxt.nearest(segment.seq);
        let relative = |seq: ExtSeq| seq.since(isn).0;
        if segment.syn {
            self.sender_scales = Some(segment.options.window_scale.is_some());
        }
        if segment.rst {
            out(Mark::Reset { seq: relative(seq) });
            return;
        }
        let data = seq + u64::from(segment.syn);
        let fin = data + u64::from(segment.len);
        let end = fin + u64::from(segment.fin);
        let range = SeqRange::new(seq, end);
        if range.is_empty() {
            return;
        }
        let kind = self.remember(range);
        let again = kind == Kind::Retransmitted;
        if segment.syn {
            out(Mark::Syn { seq: relative(seq), again });
        }
        if segment.len > 0 {
            let (from, to) = (relative(data), relative(fin));
            out(Mark::Data { from, to, kind, push: segment.psh });
        }
        if segment.fin {
            out(Mark::Fin { seq: relative(fin), again });
        }
        self.nxt = self.nxt.max(end);
        if again {
            // Karn's algorithm: the ACK of a retransmitted segment is ambiguous.
            self.timed.iter_mut().filter(|timed| timed.end > seq).for_each(|old| old.once = false);
        } else if self.timed.len() < MAX_TIMED {
            self.timed.push_back(Timed { end, at, once: true });
        }
        self.report_outstanding(out);
    }

    fn remember(&mut self, range: SeqRange) -> Kind {
        let (mut fresh, below) = (0, range.start < self.nxt);
        self.sent.insert_with(range, |part| fresh += part.len().0);
        if self.sent.len() > MAX_RANGES {
            let second = self.sent.iter().nth(1).map_or(range.end, |range| range.end);
            self.sent.insert(SeqRange::new(ExtSeq(0), second));
        }
        match below {
            false => Kind::New,
            true if fresh == range.len().0 => Kind::OutOfOrder,
            true => Kind::Retransmitted,
        }
    }

    fn report_outstanding(&self, out: &mut impl FnMut(Mark)) {
        if let Some(Acked { ack, .. }) = self.acked {
            out(Mark::Outstanding(self.nxt.since(ack).0));
        }
    }

    /// Processes a segment of the receiver that arrives at the sender.
    pub(super) fn on_ack(&mut self, at: Instant, segment: &Segment, out: &mut impl FnMut(Mark)) {
        if segment.syn {
            self.receiver_shift = Some(segment.options.window_scale.unwrap_or(0).min(MAX_SHIFT));
        }
        let (Some(wire), false) = (segment.ack, segment.rst) else { return };
        let isn = self.start(wire, out).isn;
        let relative = |seq: ExtSeq| seq.since(isn).0;
        let ack = self.nxt.nearest(wire);
        let edge = self.window(segment).map(|window| ack + window);
        if let Some(Acked { at: since, ack: old, edge: old_edge }) = self.acked {
            // The line never falls: an older ACK draws a duplicate.
            let (from, to) = (relative(old), relative(ack.max(old)));
            out(Mark::Ack { since, from, to });
            if let (Some(old), Some(new)) = (old_edge, edge) {
                out(Mark::Edge { since, from: relative(old), to: relative(new) });
            }
        }
        if let Some(edge) = edge.filter(|_| segment.window == 0) {
            out(Mark::ZeroWindow { seq: relative(edge) });
        }
        let blocks = segment.options.sack.as_slice();
        for (place, &(start, end)) in blocks.iter().enumerate() {
            let (start, end) = (ack.nearest(start), ack.nearest(end));
            if start < end {
                let (from, to) = (relative(start), relative(end));
                out(Mark::Sack { from, to, place: place + 1, count: blocks.len() });
            }
        }
        let mut measured = None;
        while let Some(timed) = self.timed.front().filter(|timed| timed.end <= ack) {
            measured = timed.once.then(|| at.since(timed.at));
            self.timed.pop_front();
        }
        if let Some(sample) = measured {
            out(Mark::RoundTrip(sample));
        }
        let ack = self.acked.map_or(ack, |old| ack.max(old.ack));
        self.acked = Some(Acked { at, ack, edge });
        self.report_outstanding(out);
    }

    /// Returns the window that a segment advertises, if its scale is known.
    fn window(&self, segment: &Segment) -> Option<u64> {
        let window = u64::from(segment.window);
        // RFC 7323 section 2.2: the window of a SYN is not scaled.
        if segment.syn {
            return Some(window);
        }
        let shift = if self.sender_scales? { self.receiver_shift? } else { 0 };
        Some(window << shift)
    }

    /// Processes the fate of a segment of the sender.
    pub(super) fn on_fate(&self, fate: &str, segment: &Segment, out: &mut impl FnMut(Mark)) {
        let Some(Started { isn }) = self.started else { return };
        let len = u64::from(segment.len) + u64::from(segment.syn) + u64::from(segment.fin);
        if len > 0 && fate.starts_with("dropped") {
            let from = self.nxt.nearest(segment.seq).since(isn).0;
            out(Mark::Dropped { from, to: from + len });
        }
    }

    /// Processes an event of the sender.
    pub(super) fn on_event(&self, kind: &EventKind, out: &mut impl FnMut(Mark)) {
        match *kind {
            EventKind::Sent { range, pipe, cwnd, .. } => {
                out(Mark::Cwnd(cwnd.0));
                out(Mark::Pipe((pipe + range.len()).0));
            }
            EventKind::Window { cwnd, ssthresh, pipe, .. } => {
                out(Mark::Cwnd(cwnd.0));
                if let Some(ssthresh) = ssthresh.filter(|&ssthresh| ssthresh < ByteCount::MAX) {
                    out(Mark::Ssthresh(ssthresh.0));
                }
                out(Mark::Pipe(pipe.0));
            }
            EventKind::Rtt { sample, srtt, .. } => out(Mark::Rtt { sample, srtt }),
            EventKind::Timeout { .. } => out(Mark::Timeout),
            _ => {}
        }
    }
}
