//! The minimum RTT, and when to measure it again (draft-ietf-ccwg-bbr, "ProbeRTT").

use std::time::Duration;

use airtcp_types::Instant;

/// BBR.MinRTTFilterLen.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// The interval grows to this many RTTs, if that is longer. A ProbeRTT takes two to three round
/// trips at about half of the rate: with 40, that costs 3 % of a long path.
const PROBE_RTT_ROUNDS: u32 = 40;
/// ProbeRTT is this many times as frequent while a judge requests a low load.
const LOW_LOAD: u32 = 5;
/// The longest interval: an RTT that was measured with a full queue must not persist for minutes.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// The smallest RTT of ten seconds or two intervals, and that of the time since the last ProbeRTT.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// BBR.min_rtt and BBR.min_rtt_stamp.
    min_rtt: Option<Duration>,
    min_rtt_stamp: Instant,
    /// BBR.probe_rtt_min_delay and BBR.probe_rtt_min_stamp.
    probe_rtt_min_delay: Option<Duration>,
    probe_rtt_min_stamp: Instant,
    /// BBR.probe_rtt_expired.
    probe_rtt_expired: bool,
    /// The current interval between two ProbeRTTs.
    interval: Duration,
}

impl MinRtt {
    /// `handshake` is the RTT of the handshake, if it was measured.
    pub(super) const fn new(now: Instant, handshake: Option<Duration>) -> Self {
        Self {
            min_rtt: handshake,
            min_rtt_stamp: now,
            probe_rtt_min_delay: handshake,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
            interval: PROBE_RTT_INTERVAL,
        }
    }

    /// BBR.min_rtt; `None` before the first sample.
    pub(super) const fn get(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Returns whether a ProbeRTT was due at the last ACK.
    pub(super) const fn is_probe_due(&self) -> bool {
        self.probe_rtt_expired
    }

    /// Returns the time of [`PROBE_RTT_ROUNDS`] round trips.
    fn long_path(&self) -> Duration {
        self.min_rtt.unwrap_or_default() * PROBE_RTT_ROUNDS
    }

    /// Returns the time from a ProbeRTT to one that a judge requests.
    pub(super) fn low_load_interval(&self) -> Duration {
        (self.long_path() / LOW_LOAD).clamp(PROBE_RTT_INTERVAL / LOW_LOAD, self.interval)
    }

    /// UpdateMinRTT: processes an ACK and its sample, if there is one.
    pub(super) fn on_ack(&mut self, now: Instant, rtt: Option<Duration>) {
        let longest = self.long_path().min(LONGEST_INTERVAL);
        self.interval = self.interval.min(longest).max(PROBE_RTT_INTERVAL);
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + self.interval;
        if let Some(rtt) = rtt
            && (self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|min| rtt < min))
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = now;
        }
        let Some(probe) = self.probe_rtt_min_delay else { return };
        let min_rtt_expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN.max(self.interval * 2);
        if min_rtt_expired || self.min_rtt.is_none_or(|min| probe < min) {
            self.min_rtt = Some(probe);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// Handles the end of a ProbeRTT: the next one is due after a whole interval, which doubles.
    /// The next ACK limits the interval.
    pub(super) fn schedule_next_probe(&mut self, now: Instant) {
        self.probe_rtt_min_stamp = now;
        self.interval *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn ack(min_rtt: &mut MinRtt, at: u64, rtt: u64) -> (Option<Duration>, bool) {
        min_rtt.on_ack(Instant::from_millis(at), Some(ms(rtt)));
        (min_rtt.get(), min_rtt.is_probe_due())
    }

    #[test]
    fn the_smallest_sample_counts_and_puts_the_probe_off() {
        let mut min_rtt = MinRtt::new(Instant::ZERO, None);
        assert_eq!(min_rtt.get(), None);
        assert_eq!(ack(&mut min_rtt, 100, 30), (Some(ms(30)), false));
        assert_eq!(ack(&mut min_rtt, 4_000, 40), (Some(ms(30)), false));
        assert_eq!(ack(&mut min_rtt, 5_000, 20), (Some(ms(20)), false));
        assert_eq!(ack(&mut min_rtt, 10_000, 21), (Some(ms(20)), false));
        assert_eq!(ack(&mut min_rtt, 10_001, 21), (Some(ms(20)), true));
    }

    #[test]
    fn a_longer_path_is_believed_after_ten_seconds_and_a_probe() {
        let mut min_rtt = MinRtt::new(Instant::ZERO, Some(ms(10)));
        assert_eq!(ack(&mut min_rtt, 5_001, 50), (Some(ms(10)), true));
        // In ProbeRTT the queue drains.
        assert_eq!(ack(&mut min_rtt, 5_100, 40), (Some(ms(10)), false));
        min_rtt.schedule_next_probe(Instant::from_millis(5_300));
        assert_eq!(ack(&mut min_rtt, 10_000, 45), (Some(ms(10)), false));
        assert_eq!(ack(&mut min_rtt, 10_001, 45), (Some(ms(40)), false));
    }

    #[test]
    fn a_low_load_may_come_once_a_second_or_every_eight_round_trips() {
        let interval = |rtt| MinRtt::new(Instant::ZERO, Some(ms(rtt))).low_load_interval();
        assert_eq!(interval(20), ms(1_000));
        assert_eq!(interval(300), ms(2_400));
        // A ProbeRTT is due by then anyway.
        assert_eq!(interval(840), ms(5_000));
        assert_eq!(interval(10_000), ms(5_000));
    }

    #[test]
    fn probes_of_a_long_path_become_rarer_and_a_longer_one_is_believed_later() {
        let mut min_rtt = MinRtt::new(Instant::ZERO, Some(ms(400)));
        // The times at which a probe was due, checked every 100 ms, with the RTT of a full queue.
        let mut due = Vec::new();
        for at in (100..=80_000).step_by(100) {
            if ack(&mut min_rtt, at, 500).1 {
                due.push(at);
                assert_eq!(ack(&mut min_rtt, at, 400), (Some(ms(400)), false));
                min_rtt.schedule_next_probe(Instant::from_millis(at));
            }
        }
        let gaps: Vec<u64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(due[0], 5_100);
        assert_eq!(gaps, [10_100, 16_100, 16_100, 16_100, 16_100], "40 round trips are 16 s");
        // 600 ms from now on: accepted 32 s after the last 400 ms.
        let last = *due.last().unwrap();
        let mut believed = None;
        for at in (last..last + 60_000).step_by(100) {
            let (rtt, probe) = ack(&mut min_rtt, at, 600);
            if probe {
                min_rtt.schedule_next_probe(Instant::from_millis(at));
            }
            if rtt == Some(ms(600)) {
                believed = believed.or(Some(at - last));
            }
        }
        assert_eq!(believed, Some(32_100));
    }

    #[test]
    fn the_probe_is_due_without_a_sample() {
        let mut min_rtt = MinRtt::new(Instant::ZERO, Some(ms(10)));
        min_rtt.on_ack(Instant::from_millis(20_000), None);
        assert_eq!((min_rtt.get(), min_rtt.is_probe_due()), (Some(ms(10)), true));
    }
}
