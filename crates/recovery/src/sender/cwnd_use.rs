//! Use of the congestion window. A control grows its window only if it was used.

use airtcp_types::{ByteCount, ExtSeq};

/// Where cwnd was last the limit, and the most bytes outstanding in a round trip.
#[derive(Debug)]
pub(super) struct CwndUse {
    /// Data up to here was sent while cwnd or the pacer was the limit.
    limited_to: ExtSeq,
    /// The end of the current round.
    round_end: ExtSeq,
    /// The most bytes outstanding in the round. Not a [`ByteCount`], to keep every connection
    /// small.
    most_out: u32,
}

impl CwndUse {
    pub(super) const fn new(first: ExtSeq) -> Self {
        Self { limited_to: first, round_end: first, most_out: 0 }
    }

    /// Records that cwnd or the pacer holds back the data at `snd_nxt`.
    pub(super) const fn on_limited(&mut self, snd_nxt: ExtSeq) {
        self.limited_to = snd_nxt;
    }

    /// Handles an ACK before it is applied, with `flight_size` bytes outstanding from `snd_una`.
    pub(super) fn on_ack(&mut self, snd_una: ExtSeq, snd_nxt: ExtSeq, flight_size: ByteCount) {
        let out = u32::try_from(flight_size.0).unwrap_or(u32::MAX);
        if snd_una >= self.round_end || out > self.most_out {
            (self.most_out, self.round_end) = (out, snd_nxt);
        }
    }

    /// Returns whether cwnd was the limit when the data above `snd_una` was sent.
    pub(super) fn was_limited(&self, snd_una: ExtSeq) -> bool {
        snd_una < self.limited_to
    }

    pub(super) fn most_out(&self) -> ByteCount {
        ByteCount(self.most_out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_that_of_a_round_trip() {
        let mut used = CwndUse::new(ExtSeq(1));
        let mut most = |una, nxt, out| {
            used.on_ack(ExtSeq(una), ExtSeq(nxt), ByteCount(out));
            used.most_out()
        };
        assert_eq!(most(1, 1_001, 1_000), ByteCount(1_000));
        assert_eq!(most(501, 1_201, 700), ByteCount(1_000));
        assert_eq!(most(601, 1_801, 1_200), ByteCount(1_200));
        // The maximum holds until the data sent when it was measured is acknowledged.
        assert_eq!(most(1_801, 1_901, 100), ByteCount(100));
    }

    #[test]
    fn a_full_window_counts_as_used_until_its_data_is_acknowledged() {
        let mut used = CwndUse::new(ExtSeq(1));
        assert!(!used.was_limited(ExtSeq(1)));
        used.on_limited(ExtSeq(1_001));
        assert!(used.was_limited(ExtSeq(1_000)) && !used.was_limited(ExtSeq(1_001)));
    }
}
