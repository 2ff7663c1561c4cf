//! Lateness of packets.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest lateness that is recorded; longer ones count as this.
const MOST: Duration = Duration::from_secs(60);

/// A histogram of the lateness of packets, that is the time from the due time of a packet to its
/// transmission, with a resolution of 1 %.
///
/// Its text form is a table with rows at powers of two microseconds.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<u64>);

impl Default for Lateness {
    fn default() -> Self {
        let most = u64::try_from(MOST.as_nanos()).unwrap_or(u64::MAX);
        Self(Histogram::new_with_bounds(1, most, 2).expect("the bounds are constants, and right"))
    }
}

impl Lateness {
    pub(crate) fn record(&mut self, late: Duration) {
        self.0.saturating_record(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The number of packets.
    pub fn packets(&self) -> u64 {
        self.0.len()
    }

    /// Returns the percentile `percent` (0 to 100) of the lateness; zero without packets.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_percentile(percent))
    }

    /// The maximum lateness; zero without packets.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: u64 = 50;
        let total = self.packets().max(1);
        write!(f, "{:>12}  {:>7}  packets", "late up to", "share")?;
        for step in self.0.iter_log(1_000, 2.0) {
            let count = step.count_since_last_iteration();
            if count > 0 {
                let micros = (step.value_iterated_to() + 1) / 1_000;
                let share = count as f64 / total as f64 * 100.0;
                let bar = "#".repeat((count * WIDTH / total) as usize);
                write!(f, "\n{micros:>9} us  {share:>5.1} %  {count:<8} {bar}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_the_table() {
        let mut lateness = Lateness::default();
        for micros in [0, 10, 10, 10, 100_000_000] {
            lateness.record(Duration::from_micros(micros));
        }
        assert_eq!(lateness.packets(), 5);
        let median = lateness.percentile(50.0).as_nanos();
        assert!((9_900..10_100).contains(&median), "{median}");
        assert!(lateness.max() >= MOST, "what is later than all counts as the latest");
        let table = lateness.to_string();
        assert!(table.contains("16 us   60.0 %  3 "), "{table}");
        assert_eq!(Lateness::default().max(), Duration::ZERO);
    }
}
