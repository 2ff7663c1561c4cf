//! Keep-alive (RFC 9293 section 3.8.4, RFC 1122 section 4.2.3.6).

use std::time::Duration;

use airtcp_types::Instant;

/// The minimum of both intervals, as in Linux.
const LEAST: Duration = Duration::from_secs(1);

/// Keep-alive settings. The default is Linux's.
///
/// Every acceptable segment (RFC 9293 section 3.10.7.4) shows that the peer is alive; segments that
/// an attacker can guess do not. The peer is probed only while no sent data is unacknowledged and
/// no window is probed: otherwise the time-outs detect that it is gone. With a
/// [`user_timeout`](crate::tcp::TcpConfig::user_timeout) the connection ends when the peer has been
/// silent for that long, regardless of `probes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// The idle time before the first probe; at least one second.
    pub idle: Duration,
    /// The interval between probes; at least one second.
    pub interval: Duration,
    /// The number of unanswered probes after which the connection times out; at least one.
    pub probes: u8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(2 * 60 * 60),
            interval: Duration::from_secs(75),
            probes: 9,
        }
    }
}

/// The state of keep-alive. Its deadline counts only while nothing else could show that the peer is
/// gone.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Watch {
    settings: KeepAlive,
    heard_at: Instant,
    /// The time of the next probe, or of the end of the connection.
    at: Instant,
    unanswered: u8,
    /// Whether a probe is due.
    due: bool,
}

impl Watch {
    /// Creates the state as if a segment had just arrived.
    pub(in crate::tcp) fn new(now: Instant, settings: KeepAlive) -> Self {
        let settings = KeepAlive {
            idle: settings.idle.max(LEAST),
            interval: settings.interval.max(LEAST),
            probes: settings.probes.max(1),
        };
        Self { settings, heard_at: now, at: now + settings.idle, unanswered: 0, due: false }
    }

    /// The settings, limited to their ranges.
    pub(in crate::tcp) const fn settings(&self) -> KeepAlive {
        self.settings
    }

    /// Records that a segment from the peer has arrived.
    pub(in crate::tcp) fn on_received(&mut self, now: Instant) {
        *self = Self::new(now, self.settings);
    }

    /// The time of the next probe, or of the end of the connection.
    pub(in crate::tcp) const fn deadline(&self) -> Instant {
        self.at
    }

    /// Handles the deadline: makes a probe due, or detects that the peer is gone. Returns whether
    /// it is gone; `user_timeout` replaces the number of probes.
    pub(in crate::tcp) fn on_timeout(
        &mut self,
        now: Instant,
        user_timeout: Option<Duration>,
    ) -> bool {
        if self.at > now {
            return false;
        }
        // The same rule as in Linux.
        let gone = self.unanswered > 0
            && match user_timeout {
                Some(limit) => self.heard_at + limit <= now,
                None => self.unanswered >= self.settings.probes,
            };
        if !gone {
            self.unanswered = self.unanswered.saturating_add(1);
            self.at = now + self.settings.interval;
            self.due = true;
        }
        gone
    }

    /// The number of consecutive unanswered probes.
    pub(in crate::tcp) const fn unanswered(&self) -> u8 {
        self.unanswered
    }

    /// Whether a probe is due; clears it.
    pub(in crate::tcp) fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn watch(probes: u8) -> Watch {
        let settings = KeepAlive { idle: SECOND * 10, interval: SECOND * 3, probes };
        Watch::new(Instant::ZERO, settings)
    }

    /// Runs deadlines until the peer is gone; returns the time of each, in seconds.
    fn until_gone(watch: &mut Watch, user_timeout: Option<Duration>) -> Vec<u64> {
        let mut times = Vec::new();
        loop {
            let at = watch.deadline();
            times.push(at.as_millis() / 1000);
            if watch.on_timeout(at, user_timeout) {
                return times;
            }
            assert!(watch.take_probe() && !watch.take_probe());
        }
    }

    #[test]
    fn the_peer_is_gone_an_interval_after_the_last_probe() {
        let mut watch = watch(2);
        assert_eq!(until_gone(&mut watch, None), [10, 13, 16]);
        assert_eq!(watch.unanswered(), 2);
    }

    #[test]
    fn a_user_timeout_takes_the_place_of_the_number_but_one_probe_leaves() {
        assert_eq!(until_gone(&mut watch(1), Some(SECOND * 18)), [10, 13, 16, 19]);
        assert_eq!(until_gone(&mut watch(9), Some(SECOND)), [10, 13]);
    }

    #[test]
    fn a_segment_of_the_peer_restarts_keep_alive_without_a_probe() {
        let mut watch = watch(2);
        assert!(!watch.on_timeout(watch.deadline(), None));
        watch.on_received(Instant::ZERO + SECOND * 11);
        assert!(!watch.take_probe());
        assert_eq!((watch.unanswered(), watch.deadline()), (0, Instant::ZERO + SECOND * 21));
    }

    #[test]
    fn nothing_happens_before_the_deadline() {
        let mut watch = watch(1);
        assert!(!watch.on_timeout(Instant::ZERO + SECOND * 9, Some(SECOND)));
        assert!(!watch.take_probe());
        assert_eq!((watch.unanswered(), watch.deadline()), (0, Instant::ZERO + SECOND * 10));
    }

    #[test]
    fn no_pause_is_shorter_than_a_second_and_one_probe_leaves_at_least() {
        let none = KeepAlive { idle: Duration::ZERO, interval: Duration::ZERO, probes: 0 };
        let least = KeepAlive { idle: SECOND, interval: SECOND, probes: 1 };
        assert_eq!(Watch::new(Instant::ZERO, none).settings(), least);
    }
}
