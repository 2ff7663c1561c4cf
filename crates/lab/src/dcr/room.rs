//! Measures how long the receiver's window limits a sender.

use std::time::Duration;

use airtcp_types::{ByteCount, Event, EventKind, ExtSeq, Instant, NodeId, Observer};

/// Watches the only sender of a scenario. The sender is limited while the receiver's window has no
/// room for a segment and the congestion window has.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// The start of the measurement.
    from: Instant,
    sender: Option<NodeId>,
    /// The right edge of the receiver's window.
    edge: ExtSeq,
    sent: ExtSeq,
    cwnd: ByteCount,
    pipe: ByteCount,
    /// The longest segment sent.
    segment: ByteCount,
    is_held: bool,
    last: Instant,
    held: Duration,
}

impl Room {
    pub(super) fn new(from: Duration) -> Self {
        Self {
            from: Instant::ZERO + from,
            sender: None,
            edge: ExtSeq::default(),
            sent: ExtSeq::default(),
            cwnd: ByteCount::ZERO,
            pipe: ByteCount::ZERO,
            segment: ByteCount::ZERO,
            is_held: false,
            last: Instant::ZERO,
            held: Duration::ZERO,
        }
    }

    /// Returns the share of the measured time, up to the last event, in which the sender was
    /// limited.
    pub(super) fn share(&self) -> f64 {
        if self.last <= self.from {
            return 0.0;
        }
        self.held.as_secs_f64() / self.last.since(self.from).as_secs_f64()
    }
}

impl Observer for Room {
    fn on_event(&mut self, node: NodeId, event: &Event) {
        // The receiver does not send data.
        if self.sender.is_none() && matches!(event.kind, EventKind::Sent { .. }) {
            self.sender = Some(node);
        }
        if self.sender != Some(node) {
            return;
        }
        let since = self.last.max(self.from);
        if self.is_held && event.at > since {
            self.held += event.at.since(since);
        }
        self.last = event.at;
        match event.kind {
            EventKind::Sent { range, pipe, cwnd, .. } => {
                self.sent = self.sent.max(range.end);
                self.segment = self.segment.max(range.len());
                (self.cwnd, self.pipe) = (cwnd, pipe + range.len());
            }
            EventKind::Received { ack, window, .. } => self.edge = self.edge.max(ack + window),
            EventKind::Window { cwnd, pipe, .. } => (self.cwnd, self.pipe) = (cwnd, pipe),
            _ => {}
        }
        let is_full = self.sent + self.segment > self.edge;
        self.is_held = is_full && self.pipe + self.segment <= self.cwnd;
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::{SendRule, SeqRange, TxNo};

    use super::*;

    fn at(ms: u64, kind: EventKind) -> Event {
        Event { at: Instant::ZERO + Duration::from_millis(ms), flow: None, kind }
    }

    fn sent(begin: u64, pipe: u64, cwnd: u64) -> EventKind {
        let begin = ExtSeq::default() + ByteCount(begin);
        EventKind::Sent {
            tx: TxNo(0),
            range: SeqRange::new(begin, begin + ByteCount(1_000)),
            rule: SendRule::NewData,
            pipe: ByteCount(pipe),
            cwnd: ByteCount(cwnd),
            rwnd: ByteCount(2_000),
        }
    }

    fn acked(ack: u64) -> EventKind {
        let ack = ExtSeq::default() + ByteCount(ack);
        EventKind::Received { range: SeqRange::new(ack, ack), ack, window: ByteCount(2_000) }
    }

    #[test]
    fn it_is_held_where_only_the_receivers_window_is_full() {
        let (sender, receiver) = (NodeId(1), NodeId(2));
        let mut room = Room::new(Duration::from_millis(200));
        let mut report = |node, ms, kind| room.on_event(node, &at(ms, kind));
        report(sender, 0, sent(0, 0, 3_000));
        report(sender, 0, acked(0));
        report(sender, 100, sent(1_000, 1_000, 3_000));
        report(receiver, 250, acked(0));
        // Limited since 100 ms; the measurement starts at 200 ms.
        report(sender, 300, acked(1_000));
        // Both windows are full, so the receiver's window is not the limit.
        report(sender, 300, sent(2_000, 1_000, 2_000));
        report(sender, 600, acked(3_000));
        assert_eq!(room.share(), 0.25);
    }
}
