//! Queue length and utilization over time.

use airtcp_types::Instant;

/// The mean queue length and the utilization of one direction up to an instant.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Occupancy {
    /// The queue's length in packets, averaged over time. The frame on the wire is not in the
    /// queue.
    pub mean: f64,
    /// The greatest length that lasted: what passes the queue in no time never stood in it.
    pub max: usize,
    /// The share of time in which a frame was on the wire, its overhead on the air included; on a
    /// trace, in which one waited for its opportunity. Zero on a link without a rate.
    pub busy: f64,
}

/// The integral of a queue's length over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge {
    /// Packets times nanoseconds, up to `since`.
    area: u128,
    since: Instant,
    max: usize,
}

impl Gauge {
    /// The length was this up to `now`.
    pub(crate) fn lasted(&mut self, now: Instant, length: usize) {
        if now > self.since {
            let nanos = now.as_nanos() - self.since.as_nanos();
            self.area += u128::from(nanos) * length as u128;
            self.max = self.max.max(length);
            self.since = now;
        }
    }

    /// Mean and maximum from the origin to what was last told.
    pub(crate) fn mean_and_max(&self) -> (f64, usize) {
        (ratio(self.area as f64, self.since.as_nanos() as f64), self.max)
    }
}

/// Zero where there is no time at all.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
