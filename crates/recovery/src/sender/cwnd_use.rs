//! Utilization of the congestion window. A control grows only while its window is used.

use airtcp_types::{ByteCount, ExtSeq};

/// Where cwnd was last the limit, and the most that was outstanding in a round trip.
#[derive(Debug)]
pub(super) struct CwndUse {
    /// Data up to here was sent while cwnd, or the pacer, was the limit.
    limited_to: ExtSeq,
    /// Where this round ends.
    round_end: ExtSeq,
    /// The most that was outstanding in it (bytes). Every connection has it, and is to be small.
    most_out: u32,
}

impl CwndUse {
    pub(super) const fn new(first: ExtSeq) -> Self {
        Self { limited_to: first, round_end: first, most_out: 0 }
    }

    /// cwnd, or the pacer, keeps the data at `snd_nxt` back.
    pub(super) const fn on_limited(&mut self, snd_nxt: ExtSeq) {
        self.limited_to = snd_nxt;
    }

    /// An ACK is about to be worked, with `flight_size` outstanding from `snd_una` on.
    pub(super) fn on_ack(&mut self, snd_una: ExtSeq, snd_nxt: ExtSeq, flight_size: ByteCount) {
        let out = u32::try_from(flight_size.0).unwrap_or(u32::MAX);
        if snd_una >= self.round_end || out > self.most_out {
            (self.most_out, self.round_end) = (out, snd_nxt);
        }
    }

    /// Whether cwnd was the limit of what an ACK above `snd_una` tells of.
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
        // Until what was sent when it was measured is acknowledged.
        assert_eq!(most(1_801, 1_901, 100), ByteCount(100));
    }

    #[test]
    fn what_left_before_the_window_was_full_fills_it_until_it_is_acknowledged() {
        let mut used = CwndUse::new(ExtSeq(1));
        assert!(!used.was_limited(ExtSeq(1)));
        used.on_limited(ExtSeq(1_001));
        assert!(used.was_limited(ExtSeq(1_000)) && !used.was_limited(ExtSeq(1_001)));
    }
}
