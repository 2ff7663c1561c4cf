//! The send rate (thesis 3.4), by the rules of the two kinds of network.
//!
//! Once in an epoch the receiver reports the gaps between packets, as sent and as received. A rule
//! is applied only to an epoch that was sent completely at the current rate: with older packets, it
//! would correct the same error again and again. Rates are in bits per second of IP packets.

mod general;
mod last_hop;

use std::time::Duration;

use airtcp_types::Instant;

use crate::config::NetworkKind;

/// The ratios of send rate to receive rate between which the path carries what is sent.
const RATIO_HIGH: f64 = 1.05;
const RATIO_LOW: f64 = 0.95;
/// The ratio below which a queue drains fast enough without a further reduction.
const DRAINING: f64 = 0.98;
/// The share of the carried rate to which the rate returns after a reduction.
const RECOVERY: f64 = 0.85;
/// The share of an epoch lost to congestion above which congestion is severe, and slow start
/// follows.
pub(crate) const SEVERE: f64 = 0.3;
/// The relative change of the rate above which it is announced to the receiver.
const ANNOUNCED: f64 = 0.02;
/// The number of receive rates that `peak` covers: from this number to twice as many.
const REMEMBERED: u32 = 32;

/// An epoch reported by the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochView {
    /// The time of the report.
    pub(crate) at: Instant,
    /// The rates at which the packets of the epoch were sent and received.
    pub(crate) send_rate: f64,
    pub(crate) receive_rate: f64,
    /// A queue was present during the whole epoch.
    pub(crate) congested: bool,
    /// The share of the epoch that was lost to congestion.
    pub(crate) congestive: f64,
    /// The whole epoch was sent at the current rate.
    pub(crate) fresh: bool,
    pub(crate) rtt: Duration,
    /// The length of a full packet in bits.
    pub(crate) packet: f64,
}

impl EpochView {
    fn ratio(&self) -> f64 {
        self.send_rate / self.receive_rate
    }
}

/// The rate control of a connection.
#[derive(Clone, Debug)]
pub(crate) struct RateControl {
    kind: NetworkKind,
    cap: f64,
    rate: f64,
    /// Whether the rate is neither seeded nor measured yet.
    guessed: bool,
    /// The share by which the next step decreases the rate.
    beta: f64,
    /// The time of growth since the last congestion.
    quiet: Duration,
    /// The number of consecutive epochs that the path carried at an unchanged rate.
    steady: u32,
    steady_mean: f64,
    characteristic: Option<f64>,
    /// The highest receive rates of the previous and the current period, and the number of rates in
    /// the current one.
    peak: [f64; 2],
    peak_count: u32,
    rate_min: f64,
    /// The target of slow start, which doubles the rate.
    slow_start: Option<f64>,
    /// The rate after the epoch that follows a reduction.
    resume: Option<f64>,
    /// The rates of the last three trains.
    trains: [f64; 3],
    /// The rate of the link when the draining of a queue started.
    bottleneck: Option<f64>,
    /// The rate for which the receiver was asked to restart its averages.
    announced: f64,
    /// The time of the last epoch to which a rule was applied.
    applied: Option<Instant>,
    /// The last additive increase.
    alpha: f64,
}

impl RateControl {
    /// `seed` is the rate of the profile, `guess` the initial rate without it.
    pub(crate) fn new(kind: NetworkKind, cap: f64, seed: Option<f64>, guess: f64) -> Self {
        let cap = cap.max(1.0);
        let rate = seed.unwrap_or(guess).max(1.0).min(cap);
        Self {
            kind,
            cap,
            rate,
            guessed: seed.is_none(),
            beta: general::BETA,
            quiet: Duration::ZERO,
            steady: 0,
            steady_mean: 0.0,
            characteristic: seed,
            peak: [0.0; 2],
            peak_count: 0,
            rate_min: 0.0,
            slow_start: None,
            resume: None,
            trains: [0.0; 3],
            bottleneck: None,
            announced: rate,
            applied: None,
            alpha: 0.0,
        }
    }

    pub(crate) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the time that `bits` take.
    pub(crate) fn gap(&self, bits: f64) -> Duration {
        Duration::from_secs_f64(bits / self.rate)
    }

    /// Whether the rate is neither seeded nor measured yet.
    pub(crate) const fn is_guessed(&self) -> bool {
        self.guessed
    }

    pub(crate) const fn characteristic(&self) -> Option<f64> {
        self.characteristic
    }

    /// Returns SendRate_min and SendRate_max; the latter is the cap until a receive rate is known.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        let peak = self.peak[0].max(self.peak[1]);
        let most = if peak > 0.0 {
            (peak * general::HEADROOM + self.alpha).min(self.cap)
        } else {
            self.cap
        };
        (self.rate_min.min(most), most)
    }

    /// Whether the next packet is the first at a new rate, for which the receiver restarts its
    /// averages.
    pub(crate) fn take_restart(&mut self) -> bool {
        let new = (self.rate - self.announced).abs() > ANNOUNCED * self.announced;
        if new {
            self.announced = self.rate;
        }
        new
    }

    /// Replaces the kind, and the rate by `seed` if there is one.
    pub(crate) fn reconfigure(&mut self, kind: NetworkKind, seed: Option<f64>) {
        *self = match seed {
            Some(_) => {
                Self { announced: self.announced, ..Self::new(kind, self.cap, seed, self.rate) }
            }
            None => Self { kind, bottleneck: None, ..self.clone() },
        };
    }

    /// Handles the rate measured by a train; `packet` is the length of a full packet in bits.
    pub(crate) fn on_train(&mut self, rate: f64, packet: f64) {
        if self.guessed {
            self.guessed = false;
            match self.kind {
                NetworkKind::General => {
                    // The capacity of the link is not the share that is free for one more flow.
                    (self.rate, self.slow_start) =
                        (rate * general::START, Some(rate.min(self.cap)));
                }
                NetworkKind::WirelessLastHop => self.rate = rate,
            }
            self.limit(packet);
        }
        self.trains = [self.trains[1], self.trains[2], rate];
        if self.kind == NetworkKind::WirelessLastHop {
            self.on_trains();
            self.limit(packet);
        }
    }

    /// Handles the failure of all trains: the rate grows from the guess.
    pub(crate) fn give_up_probing(&mut self) {
        self.guessed = false;
        self.slow_start = Some(self.cap);
    }

    pub(crate) fn on_epoch(&mut self, epoch: &EpochView) {
        if !epoch.fresh || epoch.receive_rate <= 0.0 || epoch.send_rate <= 0.0 {
            return;
        }
        // A sender that did not use its rate learns nothing about a higher one.
        let full = epoch.send_rate > 0.8 * self.rate;
        if full || epoch.receive_rate > self.peak[1] {
            self.remember(epoch.receive_rate);
        }
        self.rate_min = general::LEAST_SHARE * epoch.receive_rate;
        if let Some(resume) = self.resume.take() {
            if epoch.congestive > SEVERE {
                self.slow_start = Some(resume);
                self.rate /= 2.0;
            } else {
                self.rate = self.rate.max(resume);
            }
        } else {
            match self.kind {
                NetworkKind::General => self.general(epoch, full),
                NetworkKind::WirelessLastHop => self.last_hop(epoch, full),
            }
        }
        self.applied = Some(epoch.at);
        self.limit(epoch.packet);
    }

    /// Handles congestive losses: halves the rate like Reno, and after an epoch returns to most of
    /// the rate that the path carried.
    pub(crate) fn on_congestive_losses(&mut self, packet: f64) {
        let carried = self.peak[1].max(self.characteristic.unwrap_or(0.0)).min(self.rate);
        let carried = if carried > 0.0 { carried } else { self.rate };
        self.resume = Some(carried * RECOVERY);
        (self.slow_start, self.quiet, self.steady) = (None, Duration::ZERO, 0);
        self.rate_min /= 2.0;
        self.rate = (self.rate / 2.0).max(self.rate_min);
        self.limit(packet);
    }

    /// Handles the first report after a stall.
    pub(crate) fn on_stall_over(&mut self, packet: f64) {
        self.slow_start = Some(self.rate.max(self.characteristic.unwrap_or(0.0)) * RECOVERY);
        (self.resume, self.quiet, self.steady) = (None, Duration::ZERO, 0);
        self.rate_min /= 2.0;
        self.rate /= 8.0;
        self.limit(packet);
    }

    fn remember(&mut self, rate: f64) {
        self.peak_count += 1;
        if self.peak_count > REMEMBERED {
            (self.peak, self.peak_count) = ([self.peak[1], 0.0], 1);
        }
        self.peak[1] = self.peak[1].max(rate);
    }

    /// Limits the rate to the cap, and to at least one packet a second.
    pub(crate) fn limit(&mut self, packet: f64) {
        self.rate = self.rate.min(self.cap).max(packet.min(self.cap)).max(1.0);
    }

    /// Handles an epoch carried at an unchanged rate: from the second one on, their mean is the
    /// characteristic rate (thesis 3.4.1).
    fn on_steady(&mut self, rate: f64) {
        self.steady += 1;
        self.steady_mean += (rate - self.steady_mean) / f64::from(self.steady.min(8));
        if self.steady >= 2 {
            self.characteristic = Some(self.steady_mean);
        }
    }
}

#[cfg(test)]
mod tests;
