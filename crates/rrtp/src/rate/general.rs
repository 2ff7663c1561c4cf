//! Several flows on the path: linear increase, multiplicative decrease, before anything is lost
//! (thesis 3.4.1).

use std::time::Duration;

use super::{DRAINING, EpochView, RATIO_HIGH, RATIO_LOW, RateControl};
use crate::gaps::{EPOCH, SHORTEST};

/// The first decrease; it doubles with each one that follows.
pub(super) const BETA: f64 = 0.05;
/// SendRate_max: this times the highest receive rate seen in the last epochs.
pub(super) const HEADROOM: f64 = 1.25;
/// SendRate_min: this times the receive rate of the last epoch.
pub(super) const LEAST_SHARE: f64 = 0.7;
/// Of what the link carries, a flow that knows nothing begins with so much.
pub(super) const START: f64 = 0.25;
/// Alpha: so much of what the link carries is gained in a second. It is the same for all flows of a
/// link, however fast each is: with decreases in proportion to the rate that is what makes them
/// equal (Chiu and Jain 1989).
const ALPHA: f64 = 0.005;
/// Without congestion for this long alpha is doubled, and grows with the square of the time: rate
/// that others have left is found in seconds. A time, as it is the same for all flows, where their
/// epochs are not.
const QUIET: f64 = 4.0;
/// Feedback that takes more than this many times as long as an epoch and a round trip came after a
/// pause.
const PAUSED: u32 = 3;

impl RateControl {
    /// `full`: the sender used its rate.
    pub(super) fn general(&mut self, epoch: &EpochView, full: bool) {
        let ratio = epoch.ratio();
        if ratio > RATIO_HIGH || (epoch.congested && ratio > DRAINING) {
            if self.slow_start.is_some() {
                // It met others: this is what they leave.
                self.rate = self.rate.min(epoch.receive_rate);
            }
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
        (self.slow_start, self.quiet, self.steady) = (None, Duration::ZERO, 0);
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
        let gap = SHORTEST.max(Duration::from_secs_f64(epoch.packet / epoch.send_rate));
        let longest = (gap * EPOCH + epoch.rtt) * PAUSED;
        let since = self.applied.map_or(epoch.rtt, |before| epoch.at.since(before)).min(longest);
        let grown = 1.0 + (self.quiet.as_secs_f64() / QUIET).powi(2);
        self.quiet += since;
        self.alpha = (ALPHA * grown * self.link() * since.as_secs_f64()).min(self.rate);
        let (_, most) = self.bounds();
        self.rate = (self.rate + self.alpha).min(most).max(self.rate);
    }

    /// What the link carries: the middle one of the last three trains. Others' packets between its
    /// own make a train too slow.
    fn link(&self) -> f64 {
        let mut trains = self.trains;
        trains.sort_by(f64::total_cmp);
        trains[1].max(self.rate)
    }
}
