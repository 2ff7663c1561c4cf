//! Queue length and utilization over time.

use airtcp_types::Instant;

/// The mean queue length and the utilization of one direction up to an instant.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Occupancy {
    /// The mean queue length in packets over time, without the frame in transmission.
    pub mean: f64,
    /// The maximum queue length that lasted for some time: packets that pass the queue in no time
    /// do not count.
    pub max: usize,
    /// The share of time in which a frame was in transmission, including its overhead on the air;
    /// with a trace, in which a frame waited for its opportunity. Zero on a link without a rate.
    pub busy: f64,
}

/// The integral of a queue's length over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge {
    /// Packets times nanoseconds, from the origin to `since`.
    area: u128,
    since: Instant,
    max: usize,
}

impl Gauge {
    /// Adds the time up to `now`, in which the queue had this length.
    pub(crate) fn lasted(&mut self, now: Instant, length: usize) {
        if now > self.since {
            let nanos = now.as_nanos() - self.since.as_nanos();
            self.area += u128::from(nanos) * length as u128;
            self.max = self.max.max(length);
            self.since = now;
        }
    }

    /// Mean and maximum from the origin to the last update.
    pub(crate) fn mean_and_max(&self) -> (f64, usize) {
        (ratio(self.area as f64, self.since.as_nanos() as f64), self.max)
    }
}

/// The ratio of two numbers; zero if `whole` is zero.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
