//! Delivery rate samples and round trips (draft-ietf-ccwg-bbr, "Delivery Rate Samples").

use std::time::Duration;

use crate::transmission::Delivered;
use airtcp_types::{ByteCount, Instant, Rate};

/// The state of the connection when a transmission was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Snapshot {
    /// P.delivered.
    pub(crate) delivered: ByteCount,
    /// P.lost.
    pub(crate) lost: ByteCount,
    /// P.tx_in_flight; in a run, that of its first transmission.
    pub(crate) tx_in_flight: ByteCount,
    pub(crate) delivered_at: Instant,
    pub(crate) first_sent_at: Instant,
    /// P.is_app_limited.
    pub(crate) app_limited: bool,
}

/// A sample of the delivery rate, over about one round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateSample {
    /// Bytes delivered in the interval (RS.delivered).
    pub delivered: ByteCount,
    /// The longer of the time in which the data was sent and the time in which it was acknowledged.
    /// `None` if it is shorter than the smallest RTT, because the ACKs were compressed.
    pub interval: Option<Duration>,
    /// Whether the application, rather than the network, may have limited the rate
    /// (RS.is_app_limited).
    pub app_limited: bool,
    /// Bytes delivered when the newest acknowledged transmission was sent (RS.prior_delivered).
    pub prior_delivered: ByteCount,
    /// Bytes in flight just after that transmission was sent (RS.tx_in_flight).
    pub tx_in_flight: ByteCount,
    /// Bytes lost to congestion since that transmission was sent (RS.lost). The losses found on
    /// this ACK are included only after detection.
    pub lost: ByteCount,
    /// P.lost of that transmission.
    prior_lost: ByteCount,
}

impl RateSample {
    /// A sample without losses and without a limit by the application.
    pub(crate) const fn new(
        delivered: ByteCount,
        interval: Option<Duration>,
        prior_delivered: ByteCount,
    ) -> Self {
        Self {
            delivered,
            interval,
            app_limited: false,
            prior_delivered,
            tx_in_flight: ByteCount::ZERO,
            lost: ByteCount::ZERO,
            prior_lost: ByteCount::ZERO,
        }
    }

    /// Returns the rate (RS.delivery_rate); `None` without an interval.
    pub fn rate(&self) -> Option<Rate> {
        self.interval.map(|interval| Rate::from_bytes_over(self.delivered, interval))
    }
}

/// Counts deliveries and losses, and computes rate samples and round trips.
#[derive(Clone, Debug)]
pub(crate) struct RateSampler {
    delivered: ByteCount,
    lost: ByteCount,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Until this many bytes are delivered, samples are limited by the application; zero if they
    /// are not.
    app_limited_until: ByteCount,
    round_ends_at: ByteCount,
    /// The last rate, and whether the application limited it.
    last: Option<(Rate, bool)>,
}

impl RateSampler {
    /// The state before anything is sent.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            delivered: ByteCount::ZERO,
            lost: ByteCount::ZERO,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: ByteCount::ZERO,
            round_ends_at: ByteCount::ZERO,
            last: None,
        }
    }

    /// Records a transmission and returns its snapshot. `tx_in_flight` includes it; `idle` is
    /// whether nothing was outstanding before it. As in Linux, lost data is outstanding, so the
    /// time after a time-out is not idle time.
    pub(crate) fn on_send(
        &mut self,
        now: Instant,
        idle: bool,
        tx_in_flight: ByteCount,
    ) -> Snapshot {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            lost: self.lost,
            tx_in_flight,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until > ByteCount::ZERO,
        }
    }

    /// Counts bytes lost to congestion.
    pub(crate) fn on_lost(&mut self, bytes: ByteCount) {
        self.lost += bytes;
    }

    /// Records that the application has no data although the windows permit sending.
    pub(crate) fn on_app_limited(&mut self, in_flight: ByteCount) {
        self.app_limited_until = (self.delivered + in_flight).max(ByteCount(1));
    }

    /// Processes the data that an ACK newly delivers. The second value is whether a new round trip
    /// starts: whether data sent since the start of the last one was delivered.
    ///
    /// A sample over less than `min_rtt` has no interval.
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
        let sample = RateSample {
            delivered: self.delivered - snapshot.delivered,
            interval: (!compressed).then_some(interval),
            app_limited: snapshot.app_limited,
            prior_delivered: snapshot.delivered,
            tx_in_flight: snapshot.tx_in_flight,
            lost: self.lost - snapshot.lost,
            prior_lost: snapshot.lost,
        };
        self.last = sample.rate().map(|rate| (rate, sample.app_limited)).or(self.last);
        (Some(sample), round_start)
    }

    /// Updates the sample of the current ACK with the losses found since.
    pub(crate) fn with_losses(&self, sample: RateSample) -> RateSample {
        RateSample { lost: self.lost - sample.prior_lost, ..sample }
    }

    /// Returns the bytes lost to congestion since the connection started (C.lost).
    pub(crate) const fn lost(&self) -> ByteCount {
        self.lost
    }

    /// Returns the bytes delivered since the connection started (C.delivered).
    pub(crate) const fn delivered(&self) -> ByteCount {
        self.delivered
    }

    /// Returns the last delivery rate, and whether the application limited it.
    pub(crate) const fn last(&self) -> Option<(Rate, bool)> {
        self.last
    }

    /// Returns whether the application limits what is sent now.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until > ByteCount::ZERO
    }
}

#[cfg(test)]
mod tests;
