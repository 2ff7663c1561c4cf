//! Incremental summaries.

use crate::Summary;

/// The state for a [`Summary`], without storing the values (Welford's method).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Running {
    count: u64,
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Running {
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
        let first = self.count == 1;
        self.min = if first { value } else { self.min.min(value) };
        self.max = if first { value } else { self.max.max(value) };
    }

    pub(crate) fn summary(&self) -> Summary {
        let sd = match self.count {
            0 | 1 => 0.0,
            n => (self.squares / (n - 1) as f64).sqrt(),
        };
        Summary { count: self.count, mean: self.mean, min: self.min, max: self.max, sd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_follows_the_formulas() {
        let mut running = Running::default();
        assert_eq!(running.summary(), Summary::default());
        for value in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            running.add(value);
        }
        let Summary { count, mean, min, max, sd } = running.summary();
        assert_eq!((count, mean, min, max), (8, 5.0, 2.0, 9.0));
        assert!((sd - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }
}
