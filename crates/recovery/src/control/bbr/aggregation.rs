//! ACK aggregation: the bytes acknowledged at once in excess of what the bandwidth explains
//! (Linux's `bbr_update_ack_aggregation`).
//!
//! Wi-Fi, cable modems and receivers with offload send ACKs in batches. Between two batches the
//! sender needs that many more bytes in flight.

use airtcp_types::{ByteCount, Instant, Rate};

/// Rounds in each half of the window: the maximum covers the last 5 to 10 rounds.
const HALF: u8 = 5;

/// The largest excess of the last rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    epoch: Instant,
    /// Bytes acknowledged in the epoch.
    acked: ByteCount,
    /// The maxima of the current half of the window and of the previous one.
    extra: [ByteCount; 2],
    rounds: u8,
}

impl Aggregation {
    pub(super) const fn new(now: Instant) -> Self {
        Self { epoch: now, acked: ByteCount::ZERO, extra: [ByteCount::ZERO; 2], rounds: 0 }
    }

    /// Returns the largest excess, in bytes.
    pub(super) fn extra(&self) -> ByteCount {
        self.extra[0].max(self.extra[1])
    }

    /// Starts a new epoch, because no delivery is expected for the idle time.
    pub(super) const fn restart(&mut self, now: Instant) {
        (self.epoch, self.acked) = (now, ByteCount::ZERO);
    }

    /// Processes an ACK of `acked` bytes. The excess is limited to `cwnd`.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        acked: ByteCount,
        round_start: bool,
        bw: Rate,
        cwnd: ByteCount,
    ) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= HALF {
                (self.extra, self.rounds) = ([ByteCount::ZERO, self.extra[0]], 0);
            }
        }
        let mut expected = bw.bytes_in(now.since(self.epoch));
        if self.acked <= expected {
            self.restart(now);
            expected = ByteCount::ZERO;
        }
        self.acked += acked;
        self.extra[0] = self.extra[0].max((self.acked - expected).min(cwnd));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CWND: ByteCount = ByteCount(100_000);
    /// 1000 bytes per millisecond.
    const BW: Rate = Rate::from_bits_per_sec(8_000_000);

    /// `count` ACKs of `kilobytes` each, one every `millis` milliseconds.
    fn of(kilobytes: u64, millis: u64, count: u64) -> Aggregation {
        let mut aggregation = Aggregation::new(Instant::ZERO);
        for n in 1..=count {
            let now = Instant::from_millis(n * millis);
            aggregation.on_ack(now, ByteCount(kilobytes * 1_000), false, BW, CWND);
        }
        aggregation
    }

    #[test]
    fn the_excess_is_the_data_acknowledged_at_once() {
        assert_eq!(of(1, 1, 100).extra(), ByteCount(1_000));
        assert_eq!(of(20, 20, 10).extra(), ByteCount(20_000));
    }

    #[test]
    fn the_excess_is_limited_to_the_window() {
        assert_eq!(of(200, 200, 3).extra(), CWND);
    }

    #[test]
    fn the_excess_lasts_for_five_to_ten_rounds() {
        let mut aggregation = of(20, 20, 1);
        let mut now = Instant::from_millis(20);
        let mut lasted = 0;
        while aggregation.extra() == ByteCount(20_000) {
            now += std::time::Duration::from_millis(100);
            aggregation.on_ack(now, ByteCount(1_000), true, BW, CWND);
            lasted += 1;
        }
        assert!((5..=10).contains(&lasted), "{lasted} rounds");
    }
}
