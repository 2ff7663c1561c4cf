//! Distributions of durations.

use std::collections::BTreeMap;

use crate::series::{Look, Series};

/// A histogram of values in microseconds, rounded down to three digits, so that the memory is
/// bounded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Distribution {
    counts: BTreeMap<i64, u64>,
    total: u64,
}

/// The maximum number of points of a series.
const MOST: usize = 800;

impl Distribution {
    pub(crate) fn add(&mut self, micros: i64) {
        let step = 10_i64.pow(micros.max(1).ilog10().saturating_sub(2));
        *self.counts.entry(micros / step * step).or_default() += 1;
        self.total += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the cumulative distribution, in units of 1/10,000.
    pub(crate) fn series(&self) -> Series {
        let mut series = Series::new(Look::Step, MOST);
        let mut below = 0_u64;
        if let Some((&first, _)) = self.counts.first_key_value() {
            series.point(first, 0);
        }
        for (&value, &count) in &self.counts {
            below += count;
            series.point(value, (below as f64 / self.total as f64 * 1e4).round() as i64);
        }
        series
    }

    /// Returns the value in microseconds that a fraction `share` of all values does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Option<i64> {
        let rank = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        self.counts.iter().find_map(|(&value, &count)| {
            below += count;
            (below >= rank).then_some(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_three_digits_and_memory_a_limit() {
        let mut all = Distribution::default();
        assert_eq!(all.quantile(0.5), None);
        for value in 1..=1_000_000 {
            all.add(value);
        }
        assert_eq!(all.quantile(0.5), Some(500_000));
        assert_eq!(all.quantile(0.99), Some(990_000));
        assert!(all.counts.len() < 5_000, "{}", all.counts.len());
        for value in [0, -5, i64::MAX, i64::MIN] {
            all.add(value);
        }
        assert_eq!(all.quantile(1.0), Some(9_220_000_000_000_000_000));
    }
}
