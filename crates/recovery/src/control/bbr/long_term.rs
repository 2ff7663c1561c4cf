//! The long-term bandwidth of a policed path (Linux's `bbr_lt_bw_sampling`).
//!
//! A token-bucket policer lets bursts pass and then drops what exceeds its rate. Two consecutive
//! intervals with many losses and about the same throughput indicate a policer. Their mean
//! throughput is then the bandwidth for 48 rounds.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

/// Rounds of the shortest interval; an interval is abandoned after four times as many.
const SHORTEST: u8 = 4;
/// The lost bytes per delivered byte from which an interval may be policed: 50 / 256.
const LOSSY: f64 = 50.0 / 256.0;
/// Two intervals agree if their rates differ by at most this share, or by `SAME_RATE`.
const SAME_SHARE: f64 = 1.0 / 8.0;
const SAME_RATE: Rate = Rate::from_bits_per_sec(4_000);
/// Rounds for which the rate of a policer is used.
const USE: u8 = 48;
const SHORTEST_TIME: Duration = Duration::from_millis(1);

/// The counts of the connection after an ACK or a time-out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// When the last delivery was reported.
    pub(super) at: Instant,
    pub(super) delivered: ByteCount,
    /// Bytes lost to congestion.
    pub(super) lost: ByteCount,
}

/// The report of the last ACK or time-out.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) losses: bool,
    pub(super) app_limited: bool,
    pub(super) round_start: bool,
}

/// The estimator of a policer's rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm {
    /// The rate of the last interval; zero without one.
    bw: Rate,
    in_use: bool,
    sampling: bool,
    /// The rounds of this interval, or since the rate is used.
    rounds: u8,
    /// The totals at the start of the interval.
    start: Totals,
}

impl LongTerm {
    /// Returns the rate of a policer, while it is used.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.in_use.then_some(self.bw)
    }

    /// Discards all state.
    pub(super) fn reset(&mut self, totals: Totals) {
        *self = Self { start: totals, ..Self::default() };
    }

    /// Counts a round in which the rate is used; returns whether it was the last one.
    pub(super) fn end_of_use(&mut self, totals: Totals) -> bool {
        self.rounds += 1;
        let over = self.rounds >= USE;
        if over {
            self.reset(totals);
        }
        over
    }

    /// Processes an ACK or a time-out while the rate is not used.
    pub(super) fn sample(&mut self, totals: Totals, news: News) {
        if !self.sampling {
            // Start at the first loss: by then, the tokens that a policer had saved are used up.
            if !news.losses {
                return;
            }
            self.begin(totals);
            self.sampling = true;
        }
        if news.app_limited {
            self.reset(totals);
            return;
        }
        self.rounds += u8::from(news.round_start);
        if self.rounds < SHORTEST {
            return;
        }
        if self.rounds > 4 * SHORTEST {
            self.reset(totals);
            return;
        }
        // An interval ends with a loss, when the policer has no tokens left.
        let delivered = totals.delivered - self.start.delivered;
        let lost = totals.lost - self.start.lost;
        let time = totals.at.since(self.start.at);
        let lossy = lost.0 as f64 >= LOSSY * delivered.0 as f64;
        if news.losses && delivered > ByteCount::ZERO && lossy && time >= SHORTEST_TIME {
            self.end_interval(totals, Rate::from_bytes_over(delivered, time));
        }
    }

    fn begin(&mut self, totals: Totals) {
        (self.start, self.rounds) = (totals, 0);
    }

    fn end_interval(&mut self, totals: Totals, bw: Rate) {
        let difference = bw.bits_per_sec().abs_diff(self.bw.bits_per_sec());
        let near = self.bw.scale(SAME_SHARE).max(SAME_RATE).bits_per_sec();
        if self.bw > Rate::ZERO && difference <= near {
            let sum = u128::from(bw.bits_per_sec()) + u128::from(self.bw.bits_per_sec());
            self.bw = Rate::from_bits_per_sec((sum / 2) as u64);
            (self.in_use, self.rounds) = (true, 0);
        } else {
            self.bw = bw;
            self.begin(totals);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(100);

    /// Rounds that report the given `delivered` and `lost` kilobytes at their end.
    fn pass(long_term: &mut LongTerm, totals: &mut Totals, rounds: &[(u64, u64)]) {
        for (delivered, lost) in rounds {
            totals.at += ROUND;
            totals.delivered += ByteCount(delivered * 1_000);
            totals.lost += ByteCount(lost * 1_000);
            let news = News { losses: *lost > 0, app_limited: false, round_start: true };
            if long_term.rate().is_none() {
                long_term.sample(*totals, news);
            }
        }
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_show_a_policer() {
        let (mut long_term, mut totals) = (LongTerm::default(), Totals::default());
        // The first of the four rounds of the first interval ends with the first loss.
        pass(&mut long_term, &mut totals, &[(100, 30); 4]);
        assert_eq!(long_term.rate(), None);
        pass(&mut long_term, &mut totals, &[(110, 30); 4]);
        // 1 MB/s and 1.1 MB/s.
        assert_eq!(long_term.rate(), Some(Rate::from_bits_per_sec(8_400_000)));
    }

    #[test]
    fn intervals_of_different_rates_show_none() {
        let (mut long_term, mut totals) = (LongTerm::default(), Totals::default());
        pass(&mut long_term, &mut totals, &[(100, 30); 4]);
        pass(&mut long_term, &mut totals, &[(120, 30); 4]);
        assert_eq!(long_term.rate(), None);
    }

    #[test]
    fn a_loss_of_less_than_a_fifth_shows_none() {
        let (mut long_term, mut totals) = (LongTerm::default(), Totals::default());
        pass(&mut long_term, &mut totals, &[(100, 15); 100]);
        assert_eq!(long_term.rate(), None);
    }

    #[test]
    fn an_application_limit_restarts_the_interval() {
        let (mut long_term, mut totals) = (LongTerm::default(), Totals::default());
        pass(&mut long_term, &mut totals, &[(100, 30); 7]);
        let news = News { losses: false, app_limited: true, round_start: false };
        long_term.sample(totals, news);
        pass(&mut long_term, &mut totals, &[(100, 30); 7]);
        assert_eq!(long_term.rate(), None);
        pass(&mut long_term, &mut totals, &[(100, 30); 1]);
        assert!(long_term.rate().is_some());
    }

    #[test]
    fn the_rate_is_used_for_48_rounds() {
        let (mut long_term, mut totals) = (LongTerm::default(), Totals::default());
        pass(&mut long_term, &mut totals, &[(100, 30); 8]);
        assert!((1..48).all(|_| !long_term.end_of_use(totals)));
        assert!(long_term.rate().is_some() && long_term.end_of_use(totals));
        assert_eq!(long_term.rate(), None);
    }
}
