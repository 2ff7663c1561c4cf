//! The "full pipe" estimator (draft-ietf-ccwg-bbr, "Exiting Acceleration Based on Bandwidth
//! Plateau").

use airtcp_types::Rate;

/// A rate that is this much larger in a round shows that the pipe was not full.
const GROWTH: f64 = 1.25;
/// This many rounds without such growth show that it is full.
const ROUNDS: u8 = 3;

/// Detects a plateau of the delivery rate while the sender accelerates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBw {
    /// BBR.full_bw: the rate from which growth is measured.
    baseline: Rate,
    /// BBR.full_bw_count.
    count: u8,
    /// BBR.full_bw_now: whether the pipe was full since the last reset.
    pub(super) now: bool,
    /// BBR.full_bw_reached: whether the pipe was ever full.
    pub(super) reached: bool,
}

impl FullBw {
    /// ResetFullBW: starts again, from `baseline`.
    pub(super) fn reset(&mut self, baseline: Rate) {
        (self.baseline, self.count, self.now) = (baseline, 0, false);
    }

    /// CheckFullBWReached: processes the sample of an ACK that started a round.
    pub(super) fn on_round(&mut self, rate: Rate, app_limited: bool) {
        // A sample without a rate comes from compressed ACKs, and shows no plateau.
        if self.now || app_limited || rate == Rate::ZERO {
            return;
        }
        if rate >= self.baseline.scale(GROWTH) {
            self.reset(rate);
            return;
        }
        self.count += 1;
        self.now = self.count >= ROUNDS;
        self.reached |= self.now;
    }

    /// Records that losses show the pipe to be full.
    pub(super) fn set(&mut self) {
        (self.now, self.reached) = (true, true);
    }

    /// Records that the pipe was not full, because those losses were spurious.
    pub(super) fn unset(&mut self) {
        self.reached = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mbit(mbit: u64) -> Rate {
        Rate::from_bits_per_sec(mbit * 1_000_000)
    }

    #[test]
    fn three_rounds_without_growth_are_a_plateau() {
        let mut full_bw = FullBw::default();
        for rate in [1, 2, 4, 8, 9, 9, 10, 10, 10] {
            assert!(!full_bw.now, "at {rate}");
            full_bw.on_round(mbit(rate), false);
        }
        // 9 is growth of less than a quarter over 8; 10 is exactly a quarter.
        assert!(!full_bw.now);
        full_bw.on_round(mbit(12), false);
        assert!(full_bw.now && full_bw.reached);
        full_bw.reset(mbit(12));
        assert!(!full_bw.now && full_bw.reached);
    }

    #[test]
    fn rounds_without_evidence_do_not_count() {
        let mut full_bw = FullBw::default();
        full_bw.on_round(mbit(8), false);
        for _ in 0..10 {
            full_bw.on_round(mbit(1), true);
            full_bw.on_round(Rate::ZERO, false);
        }
        assert!(!full_bw.now);
    }
}
