//! The estimated maximum bandwidth (draft-ietf-ccwg-bbr, "BBR.max_bw: Estimated Maximum
//! Bandwidth").

use airtcp_types::Rate;

/// The largest delivery rate of this ProbeBW cycle and the previous one (BBR.MaxBwFilterLen).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBw {
    current: Rate,
    previous: Rate,
}

impl MaxBw {
    /// Returns BBR.max_bw; zero before the first sample.
    pub(super) fn get(&self) -> Rate {
        self.current.max(self.previous)
    }

    /// UpdateMaxBw: processes a sample; `app_limited` is whether the application may have limited
    /// it.
    pub(super) fn on_sample(&mut self, rate: Rate, app_limited: bool) {
        // "BBR.max_bw and Application-limited Delivery Rate Samples": such a sample counts only if
        // it shows that the estimate is too low.
        if !app_limited || rate >= self.get() {
            self.current = self.current.max(rate);
        }
    }

    /// AdvanceMaxBwFilter: ends a cycle. A cycle without a sample does not change the estimate.
    pub(super) fn advance(&mut self) {
        if self.current > Rate::ZERO {
            (self.previous, self.current) = (self.current, Rate::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mbit(mbit: u64) -> Rate {
        Rate::from_bits_per_sec(mbit * 1_000_000)
    }

    #[test]
    fn a_sample_counts_for_two_cycles() {
        let mut max_bw = MaxBw::default();
        max_bw.on_sample(mbit(100), false);
        max_bw.on_sample(mbit(90), false);
        assert_eq!(max_bw.get(), mbit(100));
        max_bw.advance();
        max_bw.on_sample(mbit(10), false);
        assert_eq!(max_bw.get(), mbit(100));
        max_bw.advance();
        assert_eq!(max_bw.get(), mbit(10));
        max_bw.advance();
        assert_eq!(max_bw.get(), mbit(10), "a cycle without samples shows nothing");
    }

    #[test]
    fn a_sample_that_the_application_limited_counts_only_if_it_is_larger() {
        let mut max_bw = MaxBw::default();
        max_bw.on_sample(mbit(5), true);
        assert_eq!(max_bw.get(), mbit(5));
        max_bw.advance();
        max_bw.on_sample(mbit(4), true);
        max_bw.advance();
        assert_eq!(max_bw.get(), mbit(5));
        max_bw.on_sample(mbit(6), true);
        assert_eq!(max_bw.get(), mbit(6));
    }
}
