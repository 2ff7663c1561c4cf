//! The largest value of a number of rounds, as in Linux's `lib/win_minmax.c`.

use airtcp_types::Rate;

/// A value and the round in which it was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Sample {
    round: u32,
    value: Rate,
}

/// The largest value of the window, the largest since that one, and the largest since the second.
///
/// Three samples bound the error: when the largest one leaves the window, a later one replaces it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter([Sample; 3]);

impl MaxFilter {
    /// Returns the largest value; [`Rate::ZERO`] before the first.
    pub(super) const fn get(&self) -> Rate {
        self.0[0].value
    }

    /// Adds a value of `round`; the window is `window` rounds.
    pub(super) fn update(&mut self, window: u32, round: u32, value: Rate) {
        let sample = Sample { round, value };
        let age = |of: &Sample| round.wrapping_sub(of.round);
        if value >= self.0[0].value || age(&self.0[2]) > window {
            self.0 = [sample; 3];
            return;
        }
        if value >= self.0[1].value {
            self.0 = [self.0[0], sample, sample];
        } else if value >= self.0[2].value {
            self.0[2] = sample;
        }
        self.age_out(window, sample, age);
    }

    /// Removes values that have left the window, and spreads the samples over a window without new
    /// maxima.
    fn age_out(&mut self, window: u32, sample: Sample, age: impl Fn(&Sample) -> u32) {
        let [best, second, third] = self.0;
        if age(&best) > window {
            self.0 = [second, third, sample];
            if age(&self.0[0]) > window {
                self.0 = [third, sample, sample];
            }
        } else if second.round == best.round && age(&best) > window / 4 {
            self.0 = [best, sample, sample];
        } else if third.round == second.round && age(&best) > window / 2 {
            self.0 = [best, second, sample];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(values: &[u64]) -> MaxFilter {
        let mut filter = MaxFilter::default();
        for (round, value) in (0..).zip(values) {
            filter.update(10, round, Rate::from_bits_per_sec(*value));
        }
        filter
    }

    #[test]
    fn the_largest_value_counts_for_the_window_and_no_longer() {
        let mut values = vec![100];
        values.resize(11, 50);
        assert_eq!(filled(&values).get().bits_per_sec(), 100);
        values.push(50);
        assert_eq!(filled(&values).get().bits_per_sec(), 50);
    }

    #[test]
    fn the_next_best_takes_the_place_of_the_best() {
        // The second is in a later quarter, the third in a later half.
        let mut values = vec![100, 10, 10, 90, 10, 10, 80];
        for (rounds, best) in [(11, 100), (12, 90), (14, 90), (15, 80), (17, 80), (18, 10)] {
            values.resize(rounds, 10);
            assert_eq!(filled(&values).get().bits_per_sec(), best, "after {rounds}");
        }
    }

    #[test]
    fn after_a_window_without_a_value_the_next_one_counts() {
        let mut filter = filled(&[100, 90]);
        filter.update(10, 40, Rate::from_bits_per_sec(20));
        assert_eq!(filter.get().bits_per_sec(), 20);
    }

    #[test]
    fn the_filter_is_at_least_the_maximum_of_the_newest_quarter() {
        let values: Vec<u64> = (0..200).map(|n| n * 7_919 % 101).collect();
        for end in 1..=values.len() {
            let newest = values[end.saturating_sub(3)..end].iter().max();
            let window = values[end.saturating_sub(11)..end].iter().max();
            let got = filled(&values[..end]).get().bits_per_sec();
            assert!(Some(&got) >= newest && Some(&got) <= window, "{got} after {end}");
        }
    }
}
