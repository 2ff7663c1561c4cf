//! Several flows on the path: linear increase, multiplicative decrease, before anything is lost (thesis 3.4.1).

use super::{DRAINING, EpochView, RATIO_HIGH, RATIO_LOW, RateControl};

/// The first decrease; it doubles with each one that follows.
pub(super) const BETA: f64 = 0.05;
/// SendRate_max: this times the highest receive rate seen in the last epochs.
pub(super) const HEADROOM: f64 = 1.25;
/// SendRate_min: this times the receive rate of the last epoch.
pub(super) const LEAST_SHARE: f64 = 0.7;
/// Alpha, the first step: so many packets per round-trip time more, in each round-trip time and epoch.
const ALPHA: f64 = 0.125;
/// Alpha doubles with each step that no congestion follows, up to this share of the rate.
const LARGEST_STEP: f64 = 0.125;
/// Or to this many times itself, for a flow that is so slow that this is more.
const LARGEST_SLOW: f64 = 2.0;

impl RateControl {
    /// `full`: the sender used its rate.
    pub(super) fn general(&mut self, epoch: &EpochView, full: bool) {
        let ratio = epoch.ratio();
        if ratio > RATIO_HIGH || (epoch.congested && ratio > DRAINING) {
            self.decrease();
        } else if !epoch.congested {
            self.beta = BETA;
            if ratio < RATIO_LOW {
                self.steady = 0;
            } else {
                self.on_steady(epoch.send_rate);
            }
            // The thesis grows below 0.95 only; on an idle path the ratio is 1 whatever is sent.
            if full {
                self.increase(epoch);
            }
        }
    }

    pub(super) fn decrease(&mut self) {
        (self.slow_start, self.quiet, self.steady) = (None, 0, 0);
        let (least, most) = self.bounds();
        self.rate = (self.rate * (1.0 - self.beta).max(0.5)).min(most).max(least);
        self.beta = (self.beta * 2.0).min(0.5);
    }

    fn increase(&mut self, epoch: &EpochView) {
        if let Some(until) = self.slow_start {
            self.rate = (self.rate * 2.0).min(until);
            if self.rate >= until {
                self.slow_start = None;
            }
            return;
        }
        let trip = epoch.rtt.as_secs_f64().max(1e-6);
        self.alpha = ALPHA * epoch.packet / trip;
        // A slow flow's epochs are longer: it gains as much in a second as a fast one.
        let since = self.applied.map_or(trip, |before| epoch.at.since(before).as_secs_f64());
        let step = self.alpha * (since / trip).max(1.0) * f64::from(1u32 << self.quiet.min(20));
        self.quiet += 1;
        let largest = (self.rate * LARGEST_STEP).max(self.alpha * LARGEST_SLOW);
        let (_, most) = self.bounds();
        self.rate = (self.rate + step.min(largest)).min(most).max(self.rate);
    }
}
