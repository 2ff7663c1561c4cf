//! Rules for a dedicated wireless link at the end: the rate is that of the link (thesis 3.4.2).

use super::{EpochView, RATIO_HIGH, RATIO_LOW, RateControl};

/// The rate while a queue drains, in terms of the rate of the link.
const DRAIN: f64 = 0.9;
/// The ratio of the fastest to the slowest of three trains up to which they agree.
const AGREE: f64 = 1.2;

impl RateControl {
    pub(super) fn last_hop(&mut self, epoch: &EpochView, full: bool) {
        let ratio = epoch.ratio();
        if ratio > RATIO_HIGH || (epoch.congested && ratio > RATIO_LOW) {
            // The bandwidth changed: rate / r is the receive rate. A rate equal to it would keep
            // the queue.
            let share = if epoch.congested { DRAIN } else { 1.0 };
            (self.bottleneck, self.slow_start) =
                (epoch.congested.then_some(epoch.receive_rate), None);
            self.rate = epoch.receive_rate * share;
            self.steady = 0;
        } else if epoch.congested {
            // The queue drains.
        } else if let Some(bottleneck) = self.bottleneck.take() {
            self.rate = bottleneck;
        } else if let Some(until) = self.slow_start.filter(|_| full) {
            self.rate = (self.rate * 2.0).min(until);
            self.slow_start = Some(until).filter(|until| self.rate < *until);
        } else if ratio < RATIO_LOW && full {
            (self.rate, self.steady) = (self.rate / ratio, 0);
        } else {
            self.on_steady(epoch.send_rate);
        }
    }

    /// A faster link shows in the rate of trains, because there is no additive probing.
    pub(super) fn on_trains(&mut self) {
        let least = self.trains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.trains.iter().copied().fold(0.0, f64::max);
        let idle = self.bottleneck.is_none() && self.resume.is_none() && self.slow_start.is_none();
        if idle && least > RATIO_HIGH * self.rate && most < AGREE * least {
            self.rate = least;
        }
    }
}
