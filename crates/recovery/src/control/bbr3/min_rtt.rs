//! The estimated minimum round-trip time, and when to measure it anew (draft-ietf-ccwg-bbr,
//! "ProbeRTT").

use std::time::Duration;

use airtcp_types::Instant;

/// BBR.MinRTTFilterLen.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// The smallest round-trip time of ten seconds, and of the time since the last ProbeRTT.
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
}

impl MinRtt {
    /// With the round-trip time of the handshake, where it was measured.
    pub(super) const fn new(now: Instant, handshake: Option<Duration>) -> Self {
        Self {
            min_rtt: handshake,
            min_rtt_stamp: now,
            probe_rtt_min_delay: handshake,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
        }
    }

    /// BBR.min_rtt; `None` before the first sample.
    pub(super) const fn get(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Whether the time for a ProbeRTT had come with the last ACK.
    pub(super) const fn is_probe_due(&self) -> bool {
        self.probe_rtt_expired
    }

    /// UpdateMinRTT: works an ACK and its sample, if it has one.
    pub(super) fn on_ack(&mut self, now: Instant, rtt: Option<Duration>) {
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|min| rtt < min))
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = now;
        }
        let Some(probe) = self.probe_rtt_min_delay else { return };
        let min_rtt_expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if min_rtt_expired || self.min_rtt.is_none_or(|min| probe < min) {
            self.min_rtt = Some(probe);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// A ProbeRTT is over: the next one is due after a whole interval.
    pub(super) const fn schedule_next_probe(&mut self, now: Instant) {
        self.probe_rtt_min_stamp = now;
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
    fn without_a_sample_time_goes_on() {
        let mut min_rtt = MinRtt::new(Instant::ZERO, Some(ms(10)));
        min_rtt.on_ack(Instant::from_millis(20_000), None);
        assert_eq!((min_rtt.get(), min_rtt.is_probe_due()), (Some(ms(10)), true));
    }
}
