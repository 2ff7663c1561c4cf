//! Maps the receiver's epochs to transmissions, and extracts the new counts.

use crate::wire::{Counts, Feedback, expand};

/// An epoch measured by the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Epoch {
    /// The first transmission of the epoch.
    pub(super) since: u64,
    /// The first transmission included in the counts.
    pub(super) first_counted: u64,
    /// The counts since the previous epoch.
    pub(super) counts: Counts,
    /// Whether the whole epoch was sent at the current rate.
    pub(super) fresh: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Epochs {
    /// The first transmission at the current rate.
    rate_start: u64,
    /// The current value of the rate bit in data packets.
    rate_bit: bool,
    /// The counts of the last FEEDBACK, the first transmission included in them, and the end of the
    /// transmissions that it knew of: a repeated FEEDBACK contains no news.
    counts: Counts,
    first_counted: u64,
    reported_end: u64,
}

impl Epochs {
    /// Returns the rate bit of a data packet to send; `restart`: it is the first at a new rate.
    pub(super) const fn on_data_sent(&mut self, transmission: u64, restart: bool) -> bool {
        if restart {
            (self.rate_start, self.rate_bit) = (transmission, !self.rate_bit);
        }
        self.rate_bit
    }

    /// Marks a new rate, which applies from the transmission `next`.
    pub(super) const fn on_rate(&mut self, next: u64) {
        self.rate_start = next;
    }

    /// Handles a FEEDBACK from a receiver that had seen the transmission `newest`; returns whether
    /// it is newer than all before.
    pub(super) const fn on_report(&mut self, newest: u64) -> bool {
        let known = newest + 1;
        if known > self.reported_end {
            self.reported_end = known;
            return true;
        }
        false
    }

    /// Extracts the news of an epoch; `None` if it is implausible.
    pub(super) fn on_feedback(&mut self, next: u64, feedback: &Feedback) -> Option<Epoch> {
        let since = expand(next, feedback.since);
        let first_counted =
            feedback.counts.first_in_full(next, (self.counts.first_counted, self.first_counted));
        let counts = feedback.counts.since(&self.counts)?;
        if since >= self.reported_end || first_counted >= self.reported_end {
            return None;
        }
        (self.counts, self.first_counted) = (feedback.counts, first_counted);
        Some(Epoch { since, first_counted, counts, fresh: since >= self.rate_start })
    }
}

impl Counts {
    /// Returns the full number of the first counted transmission; `next` is the next transmission.
    /// `last` is the previous one, on the wire and in full, which may be older than 32 bits can
    /// express.
    fn first_in_full(&self, next: u64, last: (u32, u64)) -> u64 {
        if self.first_counted == last.0 { last.1 } else { expand(next, self.first_counted) }
    }

    /// Returns the increase since `before`; `None` if a count decreased.
    fn since(&self, before: &Self) -> Option<Self> {
        let before =
            if self.first_counted == before.first_counted { *before } else { Self::default() };
        let grown =
            |now: u32, before: u32| Some(now.wrapping_sub(before)).filter(|by| by >> 31 == 0);
        Some(Self {
            first_counted: self.first_counted,
            congestive: grown(self.congestive, before.congestive)?,
            wireless: grown(self.wireless, before.wireless)?,
            received: grown(self.received, before.received)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_sums_until_a_cut_and_are_never_taken_back() {
        let counts = |first_counted, congestive, wireless, received| Counts {
            first_counted,
            congestive,
            wireless,
            received,
        };
        let before = counts(7, 2, u32::MAX, 10);
        assert_eq!(counts(7, 5, 1, 30).since(&before), Some(counts(7, 3, 2, 20)));
        assert_eq!(counts(9, 5, 1, 30).since(&before), Some(counts(9, 5, 1, 30)));
        assert_eq!(counts(7, 2, u32::MAX, 9).since(&before), None);
        // 0 is the start of the connection, however many transmissions followed; 7 is in this
        // cycle.
        let next = 3 << 30;
        assert_eq!(counts(0, 0, 0, 1).first_in_full(next, (0, 0)), 0);
        assert_eq!(counts(next as u32 - 7, 0, 0, 1).first_in_full(next, (0, 0)), next - 7);
        assert_eq!(counts(7, 0, 0, 1).first_in_full(1 << 32, (9, 9)), (1 << 32) + 7);
    }

    fn feedback(since: u32, first_counted: u32, received: u32) -> Feedback {
        let counts = Counts { first_counted, received, ..Counts::default() };
        Feedback { since, counts, ..Feedback::default() }
    }

    #[test]
    fn an_epoch_is_fresh_from_the_first_transmission_at_the_rate_on() {
        let mut epochs = Epochs::default();
        let bits = [(1, false), (5, true), (6, false)];
        let bits = bits.map(|(sent, restart)| epochs.on_data_sent(sent, restart));
        assert_eq!(bits, [false, true, true]);
        assert!(epochs.on_report(9));
        let mut fresh = |since| {
            let epoch = epochs.on_feedback(10, &feedback(since, 1, since)).unwrap();
            assert_eq!((epoch.since, epoch.first_counted), (since.into(), 1));
            epoch.fresh
        };
        assert!(!fresh(4) && fresh(5));
        epochs.on_rate(10);
        assert!(!epochs.on_feedback(10, &feedback(9, 1, 9)).unwrap().fresh);
    }

    #[test]
    fn a_report_counts_once_and_impossible_ones_are_ignored() {
        let mut epochs = Epochs::default();
        assert!(epochs.on_report(9) && !epochs.on_report(9) && !epochs.on_report(8));
        let received = |epoch: Option<Epoch>| epoch.map(|epoch| epoch.counts.received);
        assert_eq!(received(epochs.on_feedback(20, &feedback(1, 1, 4))), Some(4));
        for wrong in [feedback(10, 1, 9), feedback(1, 10, 9), feedback(1, 1, 3)] {
            assert_eq!(epochs.on_feedback(20, &wrong), None, "{wrong:?}");
        }
        assert_eq!(received(epochs.on_feedback(20, &feedback(9, 1, 9))), Some(5));
    }
}
