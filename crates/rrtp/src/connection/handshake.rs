//! SYN, SYN-ECHO, START, START-ECHO (thesis 3.2), from the client's side: a server keeps nothing before the START.

use std::time::Duration;

use airtcp_recovery::RttEstimator;
use airtcp_types::Instant;

use crate::cookie;
use crate::wire::{Body, Cookie, Params};

/// The first SYN is repeated after this, where no round-trip time is seeded.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LEAST_RETRY: Duration = Duration::from_millis(100);
const MOST_RETRY: Duration = Duration::from_secs(2);

/// A handshake that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Handshake {
    /// The cookie, and when it came; SYNs are sent until then.
    cookie: Option<(Cookie, Instant)>,
    attempts: u8,
    retry_at: Instant,
    deadline: Instant,
}

impl Handshake {
    pub(super) fn new(now: Instant, timeout: Duration) -> Self {
        Self { cookie: None, attempts: 0, retry_at: now, deadline: now + timeout }
    }

    /// Gives the round-trip time of the SYN, if this is the first answer to one.
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

    /// Whether a START-ECHO can come.
    pub(super) const fn is_start_sent(&self) -> bool {
        self.cookie.is_some()
    }

    /// The packet that is due.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        rtt: &RttEstimator,
        params: Params,
    ) -> Option<Body<'static>> {
        if self.retry_at > now {
            return None;
        }
        // Another cookie before this one expires.
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
