//! Parsing and formatting of the values of a description.

use std::fmt;
use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

/// A share of all packets, kept as the percentage in the text so that it is displayed unchanged.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Share {
    percent: f64,
}

impl Share {
    /// No packets.
    pub const NONE: Self = Self { percent: 0.0 };
    /// All packets.
    pub const ALL: Self = Self { percent: 100.0 };

    /// Returns a share of `percent`; `None` unless it is between 0 and 100.
    pub fn from_percent(percent: f64) -> Option<Self> {
        // Adding zero turns a negative zero into a positive one.
        (0.0..=100.0).contains(&percent).then_some(Self { percent: percent + 0.0 })
    }

    /// Returns the share as a probability, `0.0..=1.0`.
    pub const fn probability(self) -> f64 {
        self.percent / 100.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent)
    }
}

/// The longest time in a description: a million seconds. Its nanoseconds are exact as an `f64`.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(1_000_000);
/// The highest rate in a description: ten terabits per second.
pub(crate) const MAX_RATE: u64 = 10_000_000_000_000;
/// The largest size in a description: a gibibyte.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

const TIME_UNITS: [(&str, u64); 4] =
    [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
const RATE_UNITS: [(&str, u64); 4] =
    [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];
// As in tc, a kilobyte has 1024 bytes.
const SIZE_UNITS: [(&str, u64); 3] = [("mb", 1 << 20), ("kb", 1 << 10), ("b", 1)];

/// Parses a non-negative plain number: digits, a point, an exponent.
pub(crate) fn number(word: &str) -> Option<f64> {
    // Rust also parses `inf`, `nan` and a plus sign, which are not accepted here.
    let plain = word.bytes().all(|b| b.is_ascii_digit() || b".eE-".contains(&b));
    let value = plain.then(|| word.parse::<f64>().ok())??;
    (value.is_finite() && value >= 0.0).then_some(value + 0.0)
}

fn with_unit(word: &str, units: &[(&str, u64)], max: u64) -> Option<u64> {
    let split = word.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'))?;
    let (digits, unit) = word.split_at_checked(split)?;
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let value = (number(digits)? * *factor as f64).round();
    (value <= max as f64).then_some(value as u64)
}

fn in_largest_unit(value: u64, units: &[(&str, u64)]) -> String {
    let exact = units.iter().find(|(_, factor)| value != 0 && value.is_multiple_of(*factor));
    let (unit, factor) = exact.copied().unwrap_or((units[0].0, 1));
    format!("{}{unit}", value / factor)
}

/// Parses a share of packets, such as `0.5%`.
pub fn share(word: &str) -> Option<Share> {
    Share::from_percent(number(word.strip_suffix('%')?)?)
}

/// Parses a time with its unit, such as `1.5ms`.
pub fn time(word: &str) -> Option<Duration> {
    with_unit(word, &TIME_UNITS, MAX_TIME.as_nanos() as u64).map(Duration::from_nanos)
}

/// Parses a rate above zero with its unit, such as `10mbit`.
pub fn rate(word: &str) -> Option<Rate> {
    let bits = with_unit(word, &RATE_UNITS, MAX_RATE)?;
    (bits > 0).then(|| Rate::from_bits_per_sec(bits))
}

/// Whether the word is a rate of zero with its unit.
pub(crate) fn is_zero_rate(word: &str) -> bool {
    with_unit(word, &RATE_UNITS, MAX_RATE) == Some(0)
}

pub(crate) fn size(word: &str) -> Option<ByteCount> {
    with_unit(word, &SIZE_UNITS, MAX_BYTES).map(ByteCount)
}

/// Parses a whole number within bounds.
pub(crate) fn whole(word: &str, bounds: std::ops::RangeInclusive<u64>) -> Option<u64> {
    if !word.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    word.parse().ok().filter(|value| bounds.contains(value))
}

/// Formats a time in the largest unit that gives a whole number.
pub fn show_time(time: Duration) -> String {
    in_largest_unit(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), &TIME_UNITS)
}

/// Formats a rate in the largest unit that gives a whole number.
pub fn show_rate(rate: Rate) -> String {
    in_largest_unit(rate.bits_per_sec(), &RATE_UNITS)
}

pub(crate) fn show_size(size: ByteCount) -> String {
    in_largest_unit(size.0, &SIZE_UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_their_units() {
        assert_eq!(time("1.5ms"), Some(Duration::from_micros(1_500)));
        assert_eq!(time("5"), None, "tc takes microseconds; here a unit is asked for");
        assert_eq!(rate("10Mbit"), Some(Rate::from_bits_per_sec(10_000_000)));
        assert_eq!(rate("10mbps"), None, "which tc takes for megabytes");
        assert_eq!(size("64kb"), Some(ByteCount(65_536)));
        assert_eq!(share("0.1%").map(Share::probability), Some(0.001));
        assert_eq!(
            (share("101%"), share("1"), share("-1%"), share("nan%")),
            (None, None, None, None)
        );
        assert_eq!(show_time(Duration::from_micros(1_500)), "1500us");
        assert_eq!(show_time(Duration::ZERO), "0s");
    }
}
