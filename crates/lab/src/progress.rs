//! Measures the progress of a sender outside of time-outs.

use std::time::Duration;

use airtcp_types::{ByteCount, Event, EventKind, ExtSeq, Instant, NodeId, Observer};

/// Watches one sender, and stops the clock during its time-outs.
///
/// The clock stops at the last ACK that advanced SND.UNA before the timer expired, so the whole
/// wait for the timer is excluded. The clock runs again when everything sent before the time-out is
/// acknowledged. Data that is acknowledged in between is not counted either.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    sender: NodeId,
    /// The start of the measurement.
    from: Instant,
    una: ExtSeq,
    moved: Instant,
    sent: ExtSeq,
    /// The sequence number whose ACK restarts the clock.
    held_until: Option<ExtSeq>,
    /// The time measured by the clock.
    pub(crate) time: Duration,
    /// The bytes acknowledged in `time`.
    pub(crate) bytes: ByteCount,
}

impl Progress {
    pub(crate) fn new(sender: NodeId, from: Duration) -> Self {
        Self {
            sender,
            from: Instant::ZERO + from,
            una: ExtSeq::default(),
            moved: Instant::ZERO,
            sent: ExtSeq::default(),
            held_until: None,
            time: Duration::ZERO,
            bytes: ByteCount::ZERO,
        }
    }

    /// Returns the goodput, payload in bit/s.
    pub(crate) fn goodput(&self) -> f64 {
        self.bytes.0 as f64 * 8.0 / self.time.as_secs_f64()
    }

    fn on_ack(&mut self, at: Instant, ack: ExtSeq) {
        if let Some(until) = self.held_until {
            if ack >= until {
                self.held_until = None;
            }
        } else if self.moved >= self.from {
            self.time += at.since(self.moved);
            self.bytes += ack.since(self.una);
        }
        (self.una, self.moved) = (ack, at);
    }
}

impl Observer for Progress {
    fn on_event(&mut self, node: NodeId, event: &Event) {
        if node != self.sender {
            return;
        }
        match event.kind {
            EventKind::Sent { range, .. } => self.sent = self.sent.max(range.end),
            EventKind::Received { ack, .. } if ack > self.una => self.on_ack(event.at, ack),
            EventKind::Timeout { .. } => self.held_until = Some(self.sent),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::{SendRule, SeqRange, TxNo};

    use super::*;

    const SENDER: NodeId = NodeId(0);

    fn show(progress: &mut Progress, millis: u64, kind: EventKind) {
        let event = Event { at: Instant::from_millis(millis), flow: None, kind };
        progress.on_event(SENDER, &event);
    }

    fn ack(progress: &mut Progress, millis: u64, ack: u64) {
        let (range, ack) = (SeqRange::default(), ExtSeq(ack));
        show(progress, millis, EventKind::Received { range, ack, window: ByteCount::ZERO });
    }

    fn sent(progress: &mut Progress, millis: u64, end: u64) {
        let sent = EventKind::Sent {
            tx: TxNo(0),
            range: SeqRange::new(ExtSeq(end - 10), ExtSeq(end)),
            rule: SendRule::NewData,
            pipe: ByteCount::ZERO,
            cwnd: ByteCount::ZERO,
            rwnd: ByteCount::ZERO,
        };
        show(progress, millis, sent);
    }

    #[test]
    fn the_clock_stands_from_the_last_ack_until_all_that_was_sent_is_acknowledged() {
        let mut progress = Progress::new(SENDER, Duration::from_millis(100));
        // Before the start of the measurement, and up to the first ACK after it.
        ack(&mut progress, 50, 100);
        ack(&mut progress, 110, 200);
        assert_eq!(progress.bytes, ByteCount(0));
        ack(&mut progress, 130, 230);
        assert_eq!((progress.time, progress.bytes), (Duration::from_millis(20), ByteCount(30)));
        assert_eq!(progress.goodput(), 12_000.0);
        // A duplicate ACK does not advance SND.UNA.
        sent(&mut progress, 135, 500);
        ack(&mut progress, 140, 230);
        show(&mut progress, 330, EventKind::Timeout { backoff: 0 });
        sent(&mut progress, 330, 240);
        ack(&mut progress, 350, 400);
        ack(&mut progress, 360, 500);
        assert_eq!((progress.time, progress.bytes), (Duration::from_millis(20), ByteCount(30)));
        ack(&mut progress, 370, 505);
        assert_eq!((progress.time, progress.bytes), (Duration::from_millis(30), ByteCount(35)));
    }

    #[test]
    fn other_nodes_do_not_count() {
        let mut progress = Progress::new(NodeId(1), Duration::ZERO);
        ack(&mut progress, 10, 100);
        ack(&mut progress, 20, 200);
        assert_eq!(progress.time, Duration::ZERO);
    }
}
