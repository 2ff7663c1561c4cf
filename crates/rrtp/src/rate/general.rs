//! Rules for a path shared by several flows: linear increase, multiplicative decrease, before
//! losses occur (thesis 3.4.1).

use std::time::Duration;

use super::{DRAINING, EpochView, RATIO_HIGH, RATIO_LOW, RateControl};
use crate::gaps::{EPOCH, SHORTEST};

/// The first decrease; each consecutive one is twice the previous one.
pub(super) const BETA: f64 = 0.05;
/// SendRate_max in terms of the highest receive rate of the last epochs.
pub(super) const HEADROOM: f64 = 1.25;
/// SendRate_min in terms of the receive rate of the last epoch.
pub(super) const LEAST_SHARE: f64 = 0.7;
/// The initial rate of an unseeded flow, in terms of the capacity of the link.
pub(super) const START: f64 = 0.25;
/// Alpha: the increase in a second, in terms of the capacity of the link. It is the same for all
/// flows of a link, whatever their rates: together with proportional decreases, that makes their
/// rates converge (Chiu and Jain 1989).
const ALPHA: f64 = 0.005;
/// The time without congestion, in seconds, after which alpha has doubled. It grows with the square
/// of the time, so that a rate given up by others is found in seconds. It is a time because that is
/// the same for all flows, whereas their epochs differ.
const QUIET: f64 = 4.0;
/// The longest interval of feedback in terms of an epoch and a round trip; longer ones contain a
/// pause.
const PAUSED: u32 = 3;

impl RateControl {
    /// `full`: the sender used its rate.
    pub(super) fn general(&mut self, epoch: &EpochView, full: bool) {
        let ratio = epoch.ratio();
        if ratio > RATIO_HIGH || (epoch.congested && ratio > DRAINING) {
            if self.slow_start.is_some() {
                // The flow met other flows: the receive rate is its share.
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
            // The thesis increases the rate only below 0.95, but on an idle path the ratio is
            // always 1.
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

    /// Returns the capacity of the link: the median of the last three trains. Packets of other
    /// flows within a train make it too slow.
    fn link(&self) -> f64 {
        let mut trains = self.trains;
        trains.sort_by(f64::total_cmp);
        trains[1].max(self.rate)
    }
}
