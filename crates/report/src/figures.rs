//! Formatting of numbers.

use serde::Deserialize;

/// A mean with the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Default, Debug, Deserialize)]
pub(crate) struct Interval {
    pub(crate) mean: f64,
    #[serde(default)]
    pub(crate) half_width: Option<f64>,
    #[serde(default)]
    n: u64,
}

impl Interval {
    /// Formats the interval multiplied by `factor`, such as `1.46 ± 0.12`; empty without
    /// measurements.
    pub(crate) fn shown(&self, factor: f64, decimals: usize) -> String {
        if self.n == 0 {
            return String::new();
        }
        let mean = self.mean * factor;
        match self.half_width.filter(|_| self.n > 1) {
            Some(half) => format!("{mean:.decimals$} ± {:.decimals$}", half * factor),
            None => format!("{mean:.decimals$}"),
        }
    }
}

/// Formats an optional interval.
pub(crate) fn shown(interval: Option<&Interval>, factor: f64, decimals: usize) -> String {
    interval.map_or(String::new(), |interval| interval.shown(factor, decimals))
}

/// Converts a value to integer millionths; values beyond the range of integers saturate.
pub(crate) fn micros(value: f64) -> i64 {
    (value * 1e6).round() as i64
}

/// Converts a count for a point.
pub(crate) fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
