//! A token-bucket policer.

use airtcp_types::{ByteCount, Instant};

use crate::spec::PoliceSpec;

/// Tokens per byte. A token is a billionth of a bit: a rate of 1 bit/s adds one each nanosecond,
/// without rounding.
const PER_BYTE: u128 = 8 * 1_000_000_000;

/// A token bucket: it fills at the rate up to the burst, and each packet takes a token for each
/// billionth of a bit.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    spec: PoliceSpec,
    tokens: u128,
    /// When tokens were last added.
    filled_at: Instant,
}

impl Policer {
    /// Creates a full bucket.
    pub(crate) fn new(spec: PoliceSpec) -> Self {
        Self { spec, tokens: capacity(spec.burst), filled_at: Instant::ZERO }
    }

    /// Whether a packet of this size conforms. A packet that does not takes no tokens.
    pub(crate) fn passes(&mut self, now: Instant, size: ByteCount) -> bool {
        let gained =
            now.since(self.filled_at).as_nanos() * u128::from(self.spec.rate.bits_per_sec());
        self.tokens = (self.tokens + gained).min(capacity(self.spec.burst));
        self.filled_at = now;
        let left = self.tokens.checked_sub(capacity(size));
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

/// The number of tokens for this number of bytes.
fn capacity(bytes: ByteCount) -> u128 {
    u128::from(bytes.0) * PER_BYTE
}

#[cfg(test)]
mod tests {
    use airtcp_types::Rate;

    use super::*;

    #[test]
    fn tokens_come_without_rounding_and_never_overflow_the_bucket() {
        let (rate, burst) = (Rate::from_bits_per_sec(7), ByteCount(2));
        let mut policer = Policer::new(PoliceSpec { rate, burst });
        let mut passes =
            |nanos: u64, size| policer.passes(Instant::from_nanos(nanos), ByteCount(size));
        assert!(!passes(0, 3), "more than the bucket holds");
        assert!(passes(0, 2), "the bucket is full at the start");
        // 8 bits at 7 bit/s take 8/7 s, rounded up to a nanosecond; failed attempts take no tokens.
        for nanos in (0..1_142_857_142).step_by(7_919) {
            assert!(!passes(nanos, 1));
        }
        assert!(!passes(1_142_857_142, 1) && passes(1_142_857_143, 1));
        assert!(passes(u64::MAX, 2) && !passes(u64::MAX, 1), "no more than the burst is kept");
    }

    #[test]
    fn the_largest_rate_and_the_longest_time_do_not_overflow() {
        let (rate, burst) = (Rate::from_bits_per_sec(u64::MAX), ByteCount(1 << 30));
        let mut policer = Policer::new(PoliceSpec { rate, burst });
        assert!(policer.passes(Instant::MAX, burst) && !policer.passes(Instant::MAX, ByteCount(1)));
    }
}
