//! Spreads transmissions over time.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

/// A sender that wakes late may make up for so much time at once.
const SLACK: Duration = Duration::from_millis(1);

/// Lets bytes leave at a rate, in bursts of up to a millisecond's worth.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    rate: Option<Rate>,
    /// When the bytes sent so far have had their time.
    next: Instant,
}

impl Pacer {
    /// Sets the rate; `None` paces nothing.
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate.filter(|rate| rate.bytes_per_sec() > 0);
    }

    /// The rate.
    pub(crate) const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// When the next transmission may leave, if that is later than `now`.
    pub(crate) fn blocked_until(&self, now: Instant) -> Option<Instant> {
        self.rate?;
        (self.next > now).then_some(self.next)
    }

    /// `bytes` leave now.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: ByteCount) {
        if let Some(rate) = self.rate {
            self.next = self.next.max(now - SLACK) + rate.time_for(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_its_rate_and_forgives_a_millisecond() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(Rate::from_bits_per_sec(8_000_000)));
        let mut now = Instant::from_millis(50);
        let mut sent = 0;
        while now < Instant::from_millis(1050) {
            match pacer.blocked_until(now) {
                // Every wake-up is a little late.
                Some(next) => now = next + Duration::from_micros(300),
                None => {
                    pacer.on_sent(now, ByteCount(1000));
                    sent += 1000;
                }
            }
        }
        // 1 MB/s for one second, and the first burst.
        assert!((1_000_000..=1_002_000).contains(&sent), "{sent} bytes in a second");
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::ZERO, ByteCount(1 << 40));
        assert_eq!(pacer.blocked_until(Instant::ZERO), None);
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(Rate::from_bits_per_sec(8_000)));
        pacer.on_sent(Instant::ZERO, ByteCount(1000));
        let later = Instant::from_millis(60_000);
        assert_eq!(pacer.blocked_until(later), None);
        pacer.on_sent(later, ByteCount(1000));
        assert!(pacer.blocked_until(later).is_some());
    }
}
