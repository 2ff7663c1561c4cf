//! Segments that were sent together.

use airtcp_types::{ExtSeq, SeqRange, TxNo};

use crate::rate::Snapshot;
use crate::transmission::{Delivered, Transmission};

/// Segments in flight that were sent together, stored as the first transmission and a count.
///
/// Their transmission numbers and their bytes are consecutive, they have the same length and were
/// sent once each.
#[derive(Clone, Debug)]
pub struct Run {
    first: Transmission,
    count: u64,
}

impl Run {
    /// A run of `count` transmissions that starts with `first`, which is new data in flight.
    pub(crate) const fn new(first: Transmission, count: u64) -> Self {
        Self { first, count }
    }

    /// Returns the first transmission.
    pub const fn first(&self) -> &Transmission {
        &self.first
    }

    /// Returns the last transmission.
    pub fn last(&self) -> Transmission {
        self.nth(self.count.saturating_sub(1))
    }

    /// Returns the byte range of the run.
    pub fn range(&self) -> SeqRange {
        let start = self.first.range.start;
        SeqRange::new(start, start + self.first.range.len() * self.count)
    }

    /// Returns the number that follows that of the last transmission.
    pub fn next_tx(&self) -> TxNo {
        TxNo(self.first.tx.0 + self.count)
    }

    /// Returns all transmissions, in the order sent.
    pub fn transmissions(&self) -> impl DoubleEndedIterator<Item = Transmission> {
        (0..self.count).map(|n| self.nth(n))
    }

    /// Returns the transmission that contains `seq`; `seq` must be in the run.
    pub(crate) fn at(&self, seq: ExtSeq) -> Transmission {
        self.nth(self.whole_below(seq))
    }

    /// Returns the transmission numbered `tx`; `tx` must be in the run.
    pub(crate) fn get(&self, tx: TxNo) -> Transmission {
        self.nth(tx.0.saturating_sub(self.first.tx.0))
    }

    /// Appends `later` if it continues this run and differs only in numbers and bytes; returns
    /// whether it did.
    pub(crate) fn extend(&mut self, later: &Self) -> bool {
        let (one, other) = (&self.first, &later.first);
        let follows = self.next_tx() == other.tx
            && self.range().end == other.range.start
            && one.range.len() == other.range.len()
            && one.sent_at == other.sent_at
            && one.rule == other.rule
            && self.nth_snapshot(self.count) == other.snapshot;
        if follows {
            self.count += later.count;
        }
        follows
    }

    /// Removes the transmissions that lie entirely below `ack` and returns their delivery. The run
    /// may be empty afterwards.
    pub(crate) fn acknowledge(&mut self, ack: ExtSeq) -> Option<Delivered> {
        let count = self.whole_below(ack).min(self.count);
        let last = self.nth(count.checked_sub(1)?);
        let mut acked = self.first.delivered(self.first.range, true);
        (acked.tx, acked.range.end, acked.snapshot) = (last.tx, last.range.end, last.snapshot);
        self.first = self.nth(count);
        self.count -= count;
        Some(acked)
    }

    /// Returns whether no transmission is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns how many segments of this length lie entirely below `seq`.
    fn whole_below(&self, seq: ExtSeq) -> u64 {
        seq.since(self.first.range.start).0 / self.first.range.len().0.max(1)
    }

    fn nth(&self, n: u64) -> Transmission {
        let SeqRange { start, end } = self.first.range;
        let skipped = self.first.range.len() * n;
        let range = SeqRange::new(start + skipped, end + skipped);
        let (tx, snapshot) = (TxNo(self.first.tx.0 + n), self.nth_snapshot(n));
        Transmission { tx, range, snapshot, ..self.first }
    }

    /// In flight when the n-th was sent: also the n segments of the run before it.
    fn nth_snapshot(&self, n: u64) -> Snapshot {
        let before = self.first.range.len() * n;
        Snapshot { tx_in_flight: self.first.snapshot.tx_in_flight + before, ..self.first.snapshot }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::{ByteCount, Instant, SendRule};

    use super::*;
    use crate::rate::Snapshot;
    use crate::testkit::{SMSS, segments, seq};
    use crate::transmission::TxState;

    const SMSS_BYTES: ByteCount = ByteCount(SMSS);

    fn run(from: u64, count: u64) -> Run {
        let first = Transmission {
            tx: TxNo(from),
            range: segments(from, from + 1),
            sent_at: Instant::ZERO,
            rule: SendRule::NewData,
            state: TxState::InFlight,
            resent: 0,
            previous: None,
            snapshot: Snapshot { tx_in_flight: SMSS_BYTES * (from + 1), ..Snapshot::default() },
        };
        Run::new(first, count)
    }

    #[test]
    fn each_has_its_number_and_its_bytes() {
        let run = run(3, 4);
        let all: Vec<_> = run.transmissions().map(|t| (t.tx.0, t.range)).collect();
        assert_eq!(all, [3, 4, 5, 6].map(|n| (n, segments(n, n + 1))));
        assert_eq!((run.range(), run.next_tx(), run.last().tx), (segments(3, 7), TxNo(7), TxNo(6)));
        assert_eq!((run.get(TxNo(5)).range, run.at(seq(6) - 1).tx), (segments(5, 6), TxNo(5)));
    }

    #[test]
    fn fully_acknowledged_segments_leave_the_run() {
        let mut run = run(0, 4);
        assert!(run.acknowledge(seq(1) - 1).is_none());
        let acked = run.acknowledge(seq(3) + SMSS / 2).unwrap();
        assert_eq!(acked.transmissions().map(|tx| tx.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((acked.range, acked.size.0, acked.cumulative), (segments(0, 3), SMSS, true));
        assert_eq!((run.first().tx, run.range()), (TxNo(3), segments(3, 4)));
        assert!(run.acknowledge(seq(9)).is_some() && run.is_empty());
        assert!(run.acknowledge(seq(9)).is_none());
    }

    #[test]
    fn equal_transmissions_extend_a_run() {
        let mut one = run(0, 2);
        assert!(one.extend(&run(2, 3)));
        assert_eq!((one.range(), one.next_tx()), (segments(0, 5), TxNo(5)));
        let change = |change: fn(&mut Transmission)| {
            let mut other = run(5, 1);
            change(&mut other.first);
            other
        };
        for other in [
            run(6, 1),
            change(|t| t.range.end = t.range.end - 1),
            change(|t| t.range.start = t.range.start + 1),
            change(|t| t.snapshot.tx_in_flight += ByteCount(1)),
            change(|t| t.sent_at = Instant::from_millis(1)),
            change(|t| t.rule = SendRule::LimitedTransmit),
        ] {
            assert!(!one.extend(&other), "{other:?}");
        }
    }
}
