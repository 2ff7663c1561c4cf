//! The events of one transfer over time.

use airtcp_trace::figure::{Figure, Point, Style};
use airtcp_types::{
    ByteCount, Event, EventKind, ExtSeq, Instant, NodeId, Observer, RangeSet, SeqRange,
};

use crate::draw;

/// The sender of the file.
const SENDER: NodeId = NodeId(0);

/// The sender's transmissions and received ACKs, and the causes of its time-outs.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    /// The start of the file.
    begin: Option<ExtSeq>,
    /// For each transmission: the time in seconds, the end of its range, and whether it is a
    /// retransmission.
    sent: Vec<(f64, ExtSeq, bool)>,
    /// The time and the value of each increase of the cumulative acknowledgement.
    acked: Vec<(f64, ExtSeq)>,
    una: ExtSeq,
    /// SND.NXT, and its value at the last window reduction.
    highest: ExtSeq,
    recover: ExtSeq,
    /// Data that was retransmitted and is not acknowledged.
    repaired: RangeSet,
    /// Time-outs while waiting for data that had been retransmitted already.
    pub(super) timeouts_of_repairs: u64,
    /// Time-outs in a recovery while waiting for data that had not been retransmitted.
    pub(super) timeouts_of_holes: u64,
}

impl Observer for Trail {
    fn on_event(&mut self, node: NodeId, event: &Event) {
        if node != SENDER {
            return;
        }
        let at = event.at.since(Instant::ZERO).as_secs_f64();
        match event.kind {
            EventKind::Sent { range, rule, .. } => {
                self.begin.get_or_insert(range.start);
                self.sent.push((at, range.end, rule.is_retransmission()));
                self.highest = self.highest.max(range.end);
                if rule.is_retransmission() {
                    self.repaired.insert(range);
                }
            }
            EventKind::Received { ack, .. } if ack > self.una => {
                self.una = ack;
                self.repaired.remove_below(ack);
                self.acked.push((at, ack));
            }
            EventKind::Reduced { .. } => self.recover = self.highest,
            EventKind::Timeout { .. } => {
                let awaited = SeqRange::new(self.una, self.una + ByteCount(1));
                if self.repaired.covers(awaited) {
                    self.timeouts_of_repairs += 1;
                } else if self.una < self.recover {
                    self.timeouts_of_holes += 1;
                }
            }
            _ => {}
        }
    }
}

impl Trail {
    /// Returns the longest time in which the cumulative acknowledgement did not advance, in
    /// seconds.
    pub(super) fn longest_stretch(&self) -> f64 {
        self.acked.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(0.0, f64::max)
    }

    /// Draws the time-sequence graph.
    pub(super) fn graph(&self, title: String) -> Figure {
        let begin = self.begin.unwrap_or_default();
        let kb = |seq: ExtSeq| seq.since(begin).0 as f64 / 1e3;
        let sent = |again| {
            let sent = self.sent.iter().filter(move |(.., is_again)| *is_again == again);
            sent.map(|(at, end, _)| draw::point(*at, kb(*end))).collect()
        };
        let acked = self.acked.iter().map(|(at, ack)| draw::point(*at, kb(*ack))).collect();
        Figure {
            title,
            x: draw::linear("time, s"),
            y: draw::linear("sequence number, KB"),
            series: vec![
                draw::series("acknowledged", Style::Steps, acked),
                draw::series("sent", Style::Marks, sent(false)),
                draw::series("sent again", Style::Marks, sent(true)),
            ],
        }
    }

    /// Returns the acknowledged data in each bin of this many seconds, in kbit/s.
    pub(super) fn throughput(&self, seconds: f64) -> Vec<Point> {
        let mut bins = Vec::new();
        let mut before = self.begin.unwrap_or_default();
        for (at, ack) in &self.acked {
            let bin = (at / seconds) as usize;
            if bin >= bins.len() {
                bins.resize(bin + 1, 0.0);
            }
            bins[bin] += ack.since(before).0 as f64;
            before = *ack;
        }
        let kbit = |bytes: &f64| bytes * 8e-3 / seconds;
        (0u32..).zip(&bins).map(|(n, b)| draw::point(f64::from(n) * seconds, kbit(b))).collect()
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::{SendRule, TxNo};

    use super::*;

    fn show(trail: &mut Trail, millis: u64, kind: EventKind) {
        trail.on_event(SENDER, &Event { at: Instant::from_millis(millis), flow: None, kind });
    }

    fn sent(trail: &mut Trail, millis: u64, end: u64, rule: SendRule) {
        let range = SeqRange::new(ExtSeq(end - 1000), ExtSeq(end));
        let zero = ByteCount::ZERO;
        let kind = EventKind::Sent { tx: TxNo(0), range, rule, pipe: zero, cwnd: zero, rwnd: zero };
        show(trail, millis, kind);
    }

    fn ack(trail: &mut Trail, millis: u64, ack: u64) {
        let (range, ack) = (SeqRange::default(), ExtSeq(ack));
        show(trail, millis, EventKind::Received { range, ack, window: ByteCount::ZERO });
    }

    #[test]
    fn a_time_out_waits_for_a_repair_or_for_data_sent_once() {
        let mut trail = Trail::default();
        for end in [1000, 2000, 3000] {
            sent(&mut trail, 0, end, SendRule::NewData);
        }
        show(&mut trail, 500, EventKind::Timeout { backoff: 0 });
        assert_eq!(trail.timeouts_of_repairs, 0);
        sent(&mut trail, 500, 1000, SendRule::Timeout);
        show(&mut trail, 1500, EventKind::Timeout { backoff: 1 });
        assert_eq!(trail.timeouts_of_repairs, 1);
        ack(&mut trail, 1600, 1000);
        show(&mut trail, 2600, EventKind::Timeout { backoff: 0 });
        assert_eq!(trail.timeouts_of_repairs, 1, "what follows has left once");
        assert_eq!(trail.timeouts_of_holes, 0, "in no recovery");
        show(&mut trail, 2600, EventKind::Reduced { cause: "congestion" });
        ack(&mut trail, 2700, 2000);
        show(&mut trail, 3700, EventKind::Timeout { backoff: 0 });
        ack(&mut trail, 3800, 3000);
        show(&mut trail, 4800, EventKind::Timeout { backoff: 0 });
        assert_eq!((trail.timeouts_of_repairs, trail.timeouts_of_holes), (1, 1));
    }

    #[test]
    fn a_stretch_ends_where_the_acknowledgement_rises() {
        let mut trail = Trail::default();
        sent(&mut trail, 50, 1001, SendRule::NewData);
        for (millis, to) in [(100, 1), (200, 1001), (300, 1001), (1400, 2001), (2100, 5001)] {
            ack(&mut trail, millis, to);
        }
        assert!((trail.longest_stretch() - 1.2).abs() < 1e-9);
        let throughput = trail.throughput(1.0);
        let kbits: Vec<f64> = throughput.iter().map(|point| point.y).collect();
        assert_eq!(kbits, [8.0, 8.0, 24.0]);
        assert_eq!(trail.graph(String::new()).series[0].points.len(), 4);
    }
}
