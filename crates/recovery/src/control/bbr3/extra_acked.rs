//! The degree of aggregation on the path (draft-ietf-ccwg-bbr, "BBR.extra_acked").

use airtcp_types::{ByteCount, Instant, Rate};

/// BBR.ExtraAckedFilterLen, in rounds.
const FILTER_LEN: u64 = 10;
/// The same before the pipe was first full.
const STARTUP_FILTER_LEN: u64 = 1;

/// The bytes acknowledged at once in excess of what the bandwidth explains.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtraAcked {
    /// BBR.extra_acked_interval_start.
    interval_start: Instant,
    /// BBR.extra_acked_delivered.
    delivered: ByteCount,
    filter: WindowedMax,
}

/// The fields of an ACK that matter here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Instant,
    /// RS.newly_acked.
    pub(super) bytes: ByteCount,
    /// BBR.bw.
    pub(super) bw: Rate,
    pub(super) cwnd: ByteCount,
    pub(super) round: u64,
    pub(super) full_bw_reached: bool,
}

impl ExtraAcked {
    pub(super) const fn new(now: Instant) -> Self {
        Self { interval_start: now, delivered: ByteCount::ZERO, filter: WindowedMax::new() }
    }

    /// BBR.extra_acked.
    pub(super) const fn get(&self) -> ByteCount {
        self.filter.get()
    }

    /// Restarts after an idle time, which does not count.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.interval_start = now;
    }

    /// UpdateACKAggregation.
    pub(super) fn on_ack(&mut self, ack: &Acked) {
        let mut expected = ack.bw.bytes_in(ack.now.since(self.interval_start));
        if self.delivered <= expected {
            // ACKs arrive no faster than expected: start a new interval.
            self.delivered = ByteCount::ZERO;
            self.interval_start = ack.now;
            expected = ByteCount::ZERO;
        }
        self.delivered += ack.bytes;
        let extra = (self.delivered - expected).min(ack.cwnd);
        let len = if ack.full_bw_reached { FILTER_LEN } else { STARTUP_FILTER_LEN };
        self.filter.update(ack.round, extra, len);
    }
}

/// The largest value of the last rounds: the best three, each later than the previous one, as in
/// Kathleen Nichols' filter.
#[derive(Clone, Copy, Debug)]
struct WindowedMax([(u64, ByteCount); 3]);

impl WindowedMax {
    const fn new() -> Self {
        Self([(0, ByteCount::ZERO); 3])
    }

    const fn get(&self) -> ByteCount {
        self.0[0].1
    }

    /// Adds the value of a round, and removes those that are `len` or more rounds old.
    fn update(&mut self, round: u64, value: ByteCount, len: u64) {
        let new = (round, value);
        let is_old = |(at, _): (u64, ByteCount)| round.saturating_sub(at) >= len;
        let best = &mut self.0;
        if value >= best[0].1 || is_old(best[2]) {
            *best = [new; 3];
            return;
        }
        if value >= best[1].1 {
            (best[1], best[2]) = (new, new);
        } else if value >= best[2].1 {
            best[2] = new;
        }
        if is_old(best[0]) {
            *best = [best[1], best[2], new];
            if is_old(best[0]) {
                *best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && round.saturating_sub(best[1].0) > len / 4 {
            // The second best is as old as the best: keep a later one for when the best leaves the
            // window.
            (best[1], best[2]) = (new, new);
        } else if best[2].0 == best[1].0 && round.saturating_sub(best[2].0) > len / 2 {
            best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_filter_gives_about_the_largest_of_its_window() {
        let mut filter = WindowedMax::new();
        let values = [50, 90, 30, 80, 20, 10, 70, 5, 60, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        for (round, value) in (0..).zip(values) {
            filter.update(round, ByteCount(value), 10);
            let window = &values[(round as usize + 1).saturating_sub(10)..=round as usize];
            // It may discard a value that is not the largest, but never keeps a value too long.
            assert!(window.contains(&filter.get().0), "{filter:?} after {window:?}");
            if round < 11 {
                assert_eq!(filter.get().0, *window.iter().max().unwrap(), "in round {round}");
            }
        }
        filter.update(50, ByteCount::ZERO, 10);
        assert_eq!(filter.get(), ByteCount::ZERO);
    }

    #[test]
    fn with_one_round_only_the_present_one_counts() {
        let mut filter = WindowedMax::new();
        filter.update(1, ByteCount(9), 1);
        filter.update(1, ByteCount(7), 1);
        assert_eq!(filter.get(), ByteCount(9));
        filter.update(2, ByteCount(3), 1);
        assert_eq!(filter.get(), ByteCount(3));
    }

    /// A million bytes per second for a second, acknowledged every `gap` milliseconds.
    fn aggregated(gap: u64) -> ByteCount {
        let mut extra = ExtraAcked::new(Instant::ZERO);
        for at in (gap..=1_000).step_by(gap as usize) {
            extra.on_ack(&Acked {
                now: Instant::ZERO + Duration::from_millis(at),
                bytes: ByteCount(gap * 1_000),
                bw: Rate::from_bits_per_sec(8_000_000),
                cwnd: ByteCount(100_000),
                round: at / 100,
                full_bw_reached: true,
            });
        }
        extra.get()
    }

    #[test]
    fn extra_acked_is_the_data_of_one_ack() {
        for gap in [1, 10, 50] {
            assert_eq!(aggregated(gap), ByteCount(gap * 1_000));
        }
        assert_eq!(aggregated(500), ByteCount(100_000), "no more than the window");
    }
}
