//! Delivery rate, and the round trips it is counted in (draft-cheng-iccrg-delivery-rate-estimation).

use std::time::Duration;

use crate::transmission::Delivered;
use airtcp_types::{ByteCount, Instant, Rate};

/// What the sampler notes with every transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Snapshot {
    delivered: ByteCount,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
}

/// The rate at which the network delivered, over about one round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Bytes delivered in the interval.
    pub delivered: ByteCount,
    /// The interval: the longer of the time it took to send them and to hear of them.
    pub interval: Duration,
    /// Whether the application, and not the network, may have been what limited them.
    pub app_limited: bool,
}

impl RateSample {
    /// The rate.
    pub fn rate(&self) -> Rate {
        Rate::from_bytes_over(self.delivered, self.interval)
    }
}

/// Counts deliveries and turns them into samples and rounds.
#[derive(Clone, Debug)]
pub(crate) struct RateSampler {
    delivered: ByteCount,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Until so much is delivered, samples are limited by the application.
    app_limited_until: ByteCount,
    round_ends_at: ByteCount,
}

impl RateSampler {
    /// Nothing sent, nothing delivered.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            delivered: ByteCount::ZERO,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: ByteCount::ZERO,
            round_ends_at: ByteCount::ZERO,
        }
    }

    /// A transmission leaves; `idle` says that nothing was in flight before it.
    pub(crate) fn on_send(&mut self, now: Instant, idle: bool) -> Snapshot {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until > ByteCount::ZERO,
        }
    }

    /// The application has nothing to send though the windows would let it.
    pub(crate) fn on_app_limited(&mut self, in_flight: ByteCount) {
        self.app_limited_until = (self.delivered + in_flight).max(ByteCount(1));
    }

    /// Works what an ACK newly delivered. The second value says whether a new round began: whether
    /// something sent after the last round's start was delivered.
    ///
    /// A sample over less than `min_rtt` is compressed ACKs, and none.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        newly: &[Delivered],
        min_rtt: Option<Duration>,
    ) -> (Option<RateSample>, bool) {
        let Some(newest) = newly.iter().max_by_key(|delivered| delivered.tx) else {
            return (None, false);
        };
        self.delivered += newly.iter().map(|delivered| delivered.range.len()).sum();
        self.delivered_at = now;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = ByteCount::ZERO;
        }
        let snapshot = newest.snapshot;
        let round_start = snapshot.delivered >= self.round_ends_at;
        if round_start {
            self.round_ends_at = self.delivered;
        }
        let send_elapsed = newest.sent_at.since(snapshot.first_sent_at);
        let ack_elapsed = now.since(snapshot.delivered_at);
        self.first_sent_at = newest.sent_at;
        let interval = send_elapsed.max(ack_elapsed);
        let compressed = min_rtt.is_some_and(|min| interval < min) || interval.is_zero();
        let sample = (!compressed).then_some(RateSample {
            delivered: self.delivered - snapshot.delivered,
            interval,
            app_limited: snapshot.app_limited,
        });
        (sample, round_start)
    }

    /// Bytes delivered since the connection began.
    pub(crate) const fn delivered(&self) -> ByteCount {
        self.delivered
    }

    /// Whether what is sent now is limited by the application.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until > ByteCount::ZERO
    }
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
