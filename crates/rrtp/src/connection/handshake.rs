//! SYN, SYN-ECHO, START, START-ECHO (thesis 3.2), the client's side: a server has no state before
//! the START.

use std::time::Duration;

use airtcp_recovery::RttEstimator;
use airtcp_types::Instant;

use crate::cookie;
use crate::wire::{Body, Cookie, Params};

/// The time-out of the first SYN, without a round-trip time from the profile.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LEAST_RETRY: Duration = Duration::from_millis(100);
const MOST_RETRY: Duration = Duration::from_secs(2);

/// A handshake in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Handshake {
    /// The cookie and the time of its arrival; SYNs are sent until then.
    cookie: Option<(Cookie, Instant)>,
    attempts: u8,
    retry_at: Instant,
    deadline: Instant,
}

impl Handshake {
    pub(super) fn new(now: Instant, timeout: Duration) -> Self {
        Self { cookie: None, attempts: 0, retry_at: now, deadline: now + timeout }
    }

    /// Takes the cookie; returns the round-trip time of the SYN, if this is the first response.
    pub(super) fn on_syn_echo(
        &mut self,
        now: Instant,
        cookie: Cookie,
        echo: u32,
    ) -> Option<Duration> {
        if self.cookie.is_some() {
            return None;
        }
        (self.cookie, self.attempts, self.retry_at) = (Some((cookie, now)), 0, now);
        let trip = ((now.as_nanos() / 1_000) as u32).wrapping_sub(echo);
        Some(Duration::from_micros(trip.into()))
    }

    /// Whether a START was sent, so that a START-ECHO is expected.
    pub(super) const fn is_start_sent(&self) -> bool {
        self.cookie.is_some()
    }

    /// Returns the next packet, if it is due.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        rtt: &RttEstimator,
        params: Params,
    ) -> Option<Body<'static>> {
        if self.retry_at > now {
            return None;
        }
        // Requests a new cookie before this one expires.
        if self.cookie.is_some_and(|(_, came)| now.since(came) > cookie::LIFETIME / 2) {
            (self.cookie, self.attempts) = (None, 0);
        }
        let attempt = self.attempts;
        let first = rtt.srtt().map_or(FIRST_RETRY, |_| rtt.rto().max(LEAST_RETRY));
        self.retry_at = now + (first * (1 << attempt.min(6))).min(MOST_RETRY.max(first));
        self.attempts = attempt.saturating_add(1);
        Some(match self.cookie {
            None => Body::Syn { sent: (now.as_nanos() / 1_000) as u32 },
            Some((cookie, _)) => Body::Start { cookie, attempt, params },
        })
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.retry_at.min(self.deadline)
    }

    pub(super) fn is_timed_out(&self, now: Instant) -> bool {
        now >= self.deadline
    }
}

#[cfg(test)]
mod tests {
    use airtcp_recovery::RtoForm;

    use super::*;

    #[test]
    fn a_syn_is_repeated_until_a_cookie_comes_and_a_start_until_the_cookie_is_old() {
        let at = Instant::from_millis;
        let rtt = RttEstimator::new(RtoForm::Linux { floor: Duration::ZERO }, false);
        let params = Params { packet_size: 1_400, window: 100 };
        let cookie = Cookie { made: 7, mac: 8 };
        let mut handshake = Handshake::new(at(0), Duration::from_secs(60));
        let syn = |millis: u32| Some(Body::Syn { sent: millis * 1_000 });
        assert_eq!(handshake.poll(at(0), &rtt, params), syn(0));
        assert_eq!(handshake.poll(at(999), &rtt, params), None);
        assert_eq!(handshake.poll_timeout(), at(1_000));
        assert_eq!(handshake.poll(at(1_000), &rtt, params), syn(1_000));
        assert_eq!(handshake.poll_timeout(), at(3_000), "twice as long");
        assert!(!handshake.is_start_sent());

        let trip = handshake.on_syn_echo(at(1_070), cookie, 1_000_000);
        assert_eq!(trip, Some(Duration::from_millis(70)));
        assert_eq!(handshake.on_syn_echo(at(1_080), cookie, 1_000_000), None, "it came again");
        for attempt in [0, 1] {
            let now = handshake.poll_timeout();
            let start = Body::Start { cookie, attempt, params };
            assert_eq!(handshake.poll(now, &rtt, params), Some(start));
        }
        assert!(handshake.is_start_sent());

        let late = at(1_071) + cookie::LIFETIME / 2;
        assert!(matches!(handshake.poll(late, &rtt, params), Some(Body::Syn { .. })));
        assert!(!handshake.is_start_sent());
        assert!(!handshake.is_timed_out(at(59_999)) && handshake.is_timed_out(at(60_000)));
    }
}
