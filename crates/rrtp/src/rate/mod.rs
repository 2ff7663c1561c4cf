//! Sending rate (thesis 3.4), by the rules of the two kinds of network.
//!
//! The receiver tells once per epoch how far apart packets left and how far apart they came. A rule
//! is applied only to an epoch that was sent wholly at the rate it is to change: whoever judges
//! older packets corrects the same fault again and again. Rates are in bits per second of IP
//! packets.

mod general;
mod last_hop;

use std::time::Duration;

use airtcp_types::Instant;

use crate::config::NetworkKind;

/// Between these the path takes what is sent.
const RATIO_HIGH: f64 = 1.05;
const RATIO_LOW: f64 = 0.95;
/// A queue that drains at least this fast needs no further reduction.
const DRAINING: f64 = 0.98;
/// After congestion the rate goes back at once to this share of what the path carried.
const RECOVERY: f64 = 0.85;
/// Where more of an epoch was lost to congestion, it is severe, and what follows is slow start.
pub(crate) const SEVERE: f64 = 0.3;
/// A new rate is announced to the receiver where it differs by more than this share.
const ANNOUNCED: f64 = 0.02;
/// Receive rates that `peak` remembers, half of them at least.
const REMEMBERED: u32 = 32;

/// An epoch that the receiver reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochView {
    /// When it was reported.
    pub(crate) at: Instant,
    /// Rates of the packets of the epoch, as they left and as they came.
    pub(crate) send_rate: f64,
    pub(crate) receive_rate: f64,
    /// Packets waited in a queue all the time.
    pub(crate) congested: bool,
    /// The share of the epoch that was lost to congestion.
    pub(crate) congestive: f64,
    /// All of it was sent at the present rate.
    pub(crate) fresh: bool,
    pub(crate) rtt: Duration,
    /// A full packet, in bits.
    pub(crate) packet: f64,
}

impl EpochView {
    fn ratio(&self) -> f64 {
        self.send_rate / self.receive_rate
    }
}

/// The rate of a connection.
#[derive(Clone, Debug)]
pub(crate) struct RateControl {
    kind: NetworkKind,
    cap: f64,
    rate: f64,
    /// Without a seed, until the first train has been measured.
    guessed: bool,
    /// The decrease of the next step.
    beta: f64,
    /// How long it has grown without congestion.
    quiet: Duration,
    /// Epochs at an unchanged rate that the path took, one after the other.
    steady: u32,
    steady_mean: f64,
    characteristic: Option<f64>,
    /// The highest receive rates, of the turn before and of this one, and how many this one has.
    peak: [f64; 2],
    peak_count: u32,
    rate_min: f64,
    /// Doubling, up to this.
    slow_start: Option<f64>,
    /// Where a reduction ends, after one epoch.
    resume: Option<f64>,
    /// The last three trains.
    trains: [f64; 3],
    /// What the link carried when a queue began to be drained.
    bottleneck: Option<f64>,
    /// The rate that the receiver was told to average anew for.
    announced: f64,
    /// When the last epoch was reported that a rule was applied to.
    applied: Option<Instant>,
    /// The last step of growth.
    alpha: f64,
}

impl RateControl {
    /// `seed` is the rate to begin with, `guess` what stands in for it.
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

    /// How long so many bits take.
    pub(crate) fn gap(&self, bits: f64) -> Duration {
        Duration::from_secs_f64(bits / self.rate)
    }

    /// Whether the rate is still neither seeded nor measured.
    pub(crate) const fn is_guessed(&self) -> bool {
        self.guessed
    }

    pub(crate) const fn characteristic(&self) -> Option<f64> {
        self.characteristic
    }

    /// SendRate_min and SendRate_max; the latter is the cap until a receive rate is known.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        let peak = self.peak[0].max(self.peak[1]);
        let most = if peak > 0.0 {
            (peak * general::HEADROOM + self.alpha).min(self.cap)
        } else {
            self.cap
        };
        (self.rate_min.min(most), most)
    }

    /// Whether the next packet is the first at a rate that the averages are to begin anew for.
    pub(crate) fn take_restart(&mut self) -> bool {
        let new = (self.rate - self.announced).abs() > ANNOUNCED * self.announced;
        if new {
            self.announced = self.rate;
        }
        new
    }

    /// The user says how fast the path is.
    pub(crate) fn reconfigure(&mut self, kind: NetworkKind, seed: Option<f64>) {
        *self = match seed {
            Some(_) => {
                Self { announced: self.announced, ..Self::new(kind, self.cap, seed, self.rate) }
            }
            None => Self { kind, bottleneck: None, ..self.clone() },
        };
    }

    /// A train of packets came at this rate; `packet` is a full one, in bits.
    pub(crate) fn on_train(&mut self, rate: f64, packet: f64) {
        if self.guessed {
            self.guessed = false;
            match self.kind {
                NetworkKind::General => {
                    // What the link carries is not what is left of it for one more flow.
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

    /// No train could be measured: the rate is what it was guessed to be, and grows from there.
    pub(crate) fn give_up_probing(&mut self) {
        self.guessed = false;
        self.slow_start = Some(self.cap);
    }

    pub(crate) fn on_epoch(&mut self, epoch: &EpochView) {
        if !epoch.fresh || epoch.receive_rate <= 0.0 || epoch.send_rate <= 0.0 {
            return;
        }
        // A sender that did not use its rate learns nothing of a higher one.
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

    /// Losses were judged congestive: like Reno, half, and back to most of what the path carried
    /// after an epoch.
    pub(crate) fn on_congestive_losses(&mut self, packet: f64) {
        let carried = self.peak[1].max(self.characteristic.unwrap_or(0.0)).min(self.rate);
        let carried = if carried > 0.0 { carried } else { self.rate };
        self.resume = Some(carried * RECOVERY);
        (self.slow_start, self.quiet, self.steady) = (None, Duration::ZERO, 0);
        self.rate_min /= 2.0;
        self.rate = (self.rate / 2.0).max(self.rate_min);
        self.limit(packet);
    }

    /// Nothing was heard for a while, and now something is.
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

    /// Never above the cap, and never below a packet a second.
    pub(crate) fn limit(&mut self, packet: f64) {
        self.rate = self.rate.min(self.cap).max(packet.min(self.cap)).max(1.0);
    }

    /// Another epoch at this rate: from the second one on it is the characteristic rate (thesis
    /// 3.4.1).
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
