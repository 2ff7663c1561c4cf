//! The retransmission timer (RFC 6298 section 5).

use std::time::Duration;

use airtcp_types::Instant;

/// The time at which the retransmission timer expires, and the number of expiries. The time-out and
/// its back-off are in the [`RttEstimator`](crate::RttEstimator).
#[derive(Debug, Default)]
pub(super) struct RtoTimer {
    at: Option<Instant>,
    /// Expiries since SND.UNA last advanced. The back-off lasts longer: until the next RTT sample.
    timeouts: u32,
}

impl RtoTimer {
    /// Returns when the timer expires, if it is running.
    pub(super) const fn expires_at(&self) -> Option<Instant> {
        self.at
    }

    pub(super) const fn is_running(&self) -> bool {
        self.at.is_some()
    }

    /// Returns whether the timer has expired.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| at <= now)
    }

    /// Returns the number of expiries since SND.UNA last advanced.
    pub(super) const fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Starts or restarts the timer: it expires after `rto`.
    pub(super) fn restart(&mut self, now: Instant, rto: Duration) {
        self.at = Some(now + rto);
    }

    pub(super) fn stop(&mut self) {
        self.at = None;
    }

    /// Adjusts the running timer to a time-out that changed from `before` to `after`, without a
    /// restart: with repeated restarts it might never expire.
    pub(super) fn change(&mut self, before: Duration, after: Duration) {
        self.at = self.at.map(|at| at - before + after);
    }

    /// Counts an expiry; returns the number of expiries since SND.UNA last advanced.
    pub(super) fn on_timeout(&mut self) -> u32 {
        self.timeouts = self.timeouts.saturating_add(1);
        self.timeouts
    }

    /// Handles an advance of SND.UNA.
    pub(super) fn on_advance(&mut self) {
        self.timeouts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::ms;

    #[test]
    fn the_timer_expires_one_rto_after_its_last_start() {
        let mut timer = RtoTimer::default();
        assert!(!timer.is_running() && !timer.is_due(ms(1_000)));
        timer.restart(ms(10), Duration::from_millis(200));
        timer.restart(ms(50), Duration::from_millis(200));
        assert_eq!(timer.expires_at(), Some(ms(250)));
        assert!(!timer.is_due(ms(249)) && timer.is_due(ms(250)));
        timer.stop();
        assert!(!timer.is_running() && !timer.is_due(ms(250)));
    }

    #[test]
    fn another_time_out_counts_from_the_same_start() {
        let [short, long] = [200, 300].map(Duration::from_millis);
        let mut timer = RtoTimer::default();
        timer.change(short, long);
        assert!(!timer.is_running());
        timer.restart(ms(50), short);
        timer.change(short, long);
        assert_eq!(timer.expires_at(), Some(ms(350)));
        timer.change(long, short);
        assert_eq!(timer.expires_at(), Some(ms(250)));
    }

    #[test]
    fn expiries_are_counted_until_snd_una_advances() {
        let mut timer = RtoTimer::default();
        assert_eq!([timer.on_timeout(), timer.on_timeout(), timer.timeouts()], [1, 2, 2]);
        timer.on_advance();
        assert_eq!([timer.timeouts(), timer.on_timeout()], [0, 1]);
    }
}
