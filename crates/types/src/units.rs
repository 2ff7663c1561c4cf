//! Sizes and rates.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::time::Duration;

/// A number of bytes. Arithmetic saturates.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// The largest count.
    pub const MAX: Self = Self(u64::MAX);

    /// `kib` times 1024 bytes.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1024))
    }

    /// `mib` times 1024 * 1024 bytes.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1024 * 1024))
    }

    /// The count as an index or a length; `usize::MAX` if it does not fit.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The count times `factor`, rounded down. Zero if the product is negative or NaN.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }

    /// Half of the count, rounded up. Rounding up keeps a window of whole segments from ending a
    /// byte below a whole segment after repeated halving, where the last segment would not fit.
    pub const fn half(self) -> Self {
        Self(self.0.div_ceil(2))
    }
}

impl From<usize> for ByteCount {
    fn from(bytes: usize) -> Self {
        Self(bytes as u64)
    }
}

impl Add for ByteCount {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for ByteCount {
    type Output = Self;

    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl SubAssign for ByteCount {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Mul<u64> for ByteCount {
    type Output = Self;

    fn mul(self, rhs: u64) -> Self {
        Self(self.0.saturating_mul(rhs))
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A data rate, in bits per second.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Rate(u64);

impl Rate {
    /// The zero rate: no data flows.
    pub const ZERO: Self = Self(0);

    /// The rate of `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }

    /// The rate of `bytes` in `interval`; [`Rate::ZERO`] if the interval is empty.
    pub fn from_bytes_over(bytes: ByteCount, interval: Duration) -> Self {
        if interval.is_zero() {
            return Self::ZERO;
        }
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000 / interval.as_nanos();
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Bytes per second, rounded down.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// The time that `bytes` take at this rate; [`Duration::MAX`] at rate zero.
    pub fn time_for(self, bytes: ByteCount) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // The bits of a packet times 10^9 fit in 64 bits, whose division is several times faster.
        if let Some(bit_nanos) = bytes.0.checked_mul(8_000_000_000) {
            return Duration::from_nanos(bit_nanos / self.0);
        }
        let nanos = u128::from(bytes.0) * 8_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The number of bytes in `interval`, rounded down.
    pub fn bytes_in(self, interval: Duration) -> ByteCount {
        let bytes = u128::from(self.0) * interval.as_nanos() / 8 / 1_000_000_000;
        ByteCount(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The rate times `factor`. Zero if the product is negative or NaN.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

/// Formats the rate as `ss` does, such as `8.5Mbps`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{}bps", self.0),
            1_000..1_000_000 => write!(f, "{:.1}Kbps", bits / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1}Mbps", bits / 1e6),
            _ => write!(f, "{:.2}Gbps", bits / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_saturate() {
        assert_eq!(ByteCount(3) - ByteCount(5), ByteCount::ZERO);
        assert_eq!(ByteCount::MAX + ByteCount(1), ByteCount::MAX);
        assert_eq!(ByteCount(10).scale(-1.0), ByteCount::ZERO);
        assert_eq!(ByteCount(10).scale(f64::NAN), ByteCount::ZERO);
    }

    #[test]
    fn whole_segments_are_still_whole_after_many_halvings() {
        const SMSS: u64 = 1_448;
        let mut window = ByteCount(10 * SMSS);
        for _ in 0..40 {
            window = window.half() + ByteCount(6 * SMSS);
        }
        // With halving and growth by six segments, the window approaches twelve from below: twelve
        // fit.
        assert_eq!(window.0 / SMSS, 12);
    }

    #[test]
    fn a_rate_and_a_time_give_bytes_and_back() {
        let rate = Rate::from_bits_per_sec(8_000_000);
        assert_eq!(rate.bytes_in(Duration::from_millis(5)), ByteCount(5_000));
        assert_eq!(rate.time_for(ByteCount(5_000)), Duration::from_millis(5));
        // Too large for 64 bits in bit-nanoseconds.
        assert_eq!(rate.time_for(ByteCount(3_000_000_000)), Duration::from_secs(3_000));
        assert_eq!(
            Rate::from_bits_per_sec(1).time_for(ByteCount::MAX),
            Duration::from_nanos(u64::MAX)
        );
        assert_eq!(Rate::from_bytes_over(ByteCount(5_000), Duration::from_millis(5)), rate);
    }

    #[test]
    fn nothing_divides_by_zero() {
        assert_eq!(Rate::from_bytes_over(ByteCount(1), Duration::ZERO), Rate::ZERO);
        assert_eq!(Rate::ZERO.time_for(ByteCount(1)), Duration::MAX);
    }

    #[test]
    fn rates_are_shown_as_ss_shows_them() {
        assert_eq!(Rate::from_bits_per_sec(8_500_000).to_string(), "8.5Mbps");
        assert_eq!(Rate::from_bits_per_sec(999).to_string(), "999bps");
    }
}
