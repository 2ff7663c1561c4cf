//! Means with confidence intervals.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with its 95 % confidence interval.
///
/// ```
/// use airtcp_sim::Interval;
///
/// let interval = Interval::of(&[9.0, 10.0, 11.0]);
/// assert_eq!((interval.mean, interval.sd), (10.0, 1.0));
/// // Student's t for two degrees of freedom is 4.303.
/// assert!((interval.half_width.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-3);
/// assert_eq!(Interval::of(&[9.0]).half_width, None, "one value says nothing of the spread");
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Interval {
    /// The mean; zero without values.
    pub mean: f64,
    /// The half-width of the interval; `None` for fewer than two values.
    pub half_width: Option<f64>,
    /// The sample standard deviation; zero for fewer than two values.
    pub sd: f64,
    /// The number of values.
    pub n: u64,
}

impl Interval {
    /// Calculates the interval of values that are assumed to be independent and normally
    /// distributed.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        if n == 0 {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Self { mean, half_width: None, sd: 0.0, n: 1 };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = (n - 1) as f64;
        let sd = (squares / freedom).sqrt();
        let student = StudentsT::new(0.0, 1.0, freedom).ok();
        let half_width = student.map(|t| t.inverse_cdf(0.975) * sd / (n as f64).sqrt());
        Self { mean, half_width, sd, n: n as u64 }
    }

    /// Returns the lower and the upper bound; both are the mean if there is no interval.
    pub fn bounds(&self) -> (f64, f64) {
        let half = self.half_width.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::rng::Stream;

    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (n, t) in [(2, 12.706), (5, 2.776), (10, 2.262), (30, 2.045), (1_000, 1.962)] {
            // As many ones as minus ones, and a zero if the number is odd.
            let values: Vec<f64> = (0..n)
                .map(|i| if n % 2 == 1 && i == 0 { 0.0 } else { [1.0, -1.0][i % 2] })
                .collect();
            let interval = Interval::of(&values);
            let found = interval.half_width.unwrap() * (n as f64).sqrt() / interval.sd;
            assert!((found - t).abs() < 6e-4, "{n}: {found}");
            assert_eq!((interval.mean, interval.n), (0.0, n as u64));
        }
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_mean() {
        let mut stream = Stream::new(5, 0);
        let trials = 4_000;
        let hits = (0..trials).filter(|_| {
            // The sum of twelve uniform numbers is approximately normal, with mean 6.
            let mut value = || (0..12).map(|_| stream.next_f64()).sum::<f64>();
            let values: Vec<f64> = (0..8).map(|_| value()).collect();
            let (low, high) = Interval::of(&values).bounds();
            (low..high).contains(&6.0)
        });
        let share = hits.count() as f64 / f64::from(trials);
        // Three standard errors of a share of 0.95.
        assert!((share - 0.95).abs() < 3.0 * (0.95 * 0.05 / f64::from(trials)).sqrt(), "{share}");
    }

    #[test]
    fn no_values_and_equal_values_are_no_trouble() {
        assert_eq!(Interval::of(&[]), Interval::default());
        let same = Interval::of(&[4.0; 3]);
        assert_eq!((same.mean, same.half_width, same.bounds()), (4.0, Some(0.0), (4.0, 4.0)));
    }
}
