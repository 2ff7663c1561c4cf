//! `cubic`: the window is a cubic function of the time since the last reduction (RFC 9438).

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::reno::Windows;
use super::{CongestionControl, ControlParams, ControlState, Notice, NoticeKind};
use crate::registry::{Entry, TakesOver, WireNeeds};
use crate::view::AckView;

pub(crate) const CUBIC: Entry<dyn CongestionControl> = Entry {
    name: "cubic",
    parameter: "[:rfc]",
    example: Some("rfc"),
    summary: "cubic window growth after a reduction, as in Linux; `rfc` adds the larger alpha of the RFC",
    source: "RFC 9438",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, params| match parameter {
        None => Ok(Box::new(Cubic::new(params, false))),
        Some("rfc") => Ok(Box::new(Cubic::new(params, true))),
        Some(_) => Err("it takes `rfc` or nothing, as in `cubic:rfc`".to_owned()),
    },
};

/// RFC 9438 section 4.6: the multiplicative decrease.
const BETA: f64 = 0.7;
/// RFC 9438 section 5.1: segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438 section 4.3: gives the Reno-friendly window the same average as Reno.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// A congestion-avoidance stage: from a reduction, or the end of slow start, to the next reduction.
#[derive(Clone, Copy, Debug)]
struct Stage {
    start: Instant,
    /// W_max and cwnd_epoch in segments, K in seconds (RFC 9438 section 4.2).
    w_max: f64,
    k: f64,
    /// W_est of the Reno-friendly region, in segments (section 4.3).
    w_est: f64,
    /// The growth that is less than a byte, in segments.
    fraction: f64,
}

/// CUBIC. The interface uses bytes; internally it counts segments, like the RFC.
#[derive(Clone, Debug)]
pub struct Cubic {
    windows: Windows,
    /// Section 4.3: alpha becomes 1 once W_est reaches cwnd_prior. Linux omits this step.
    alpha_steps_up: bool,
    /// W_max, in segments; zero before the first reduction.
    w_max: f64,
    /// cwnd just before the last reduction, in segments.
    cwnd_prior: f64,
    stage: Option<Stage>,
    last_ack: Option<Instant>,
    /// W_max, cwnd_prior and the stage before the last reduction.
    before_reduction: Option<Box<(f64, f64, Option<Stage>)>>,
}

impl Cubic {
    /// Creates a control in slow start; `rfc` enables the larger alpha of the RFC, which Linux
    /// omits.
    pub fn new(params: &ControlParams, rfc: bool) -> Self {
        Self {
            windows: Windows::new(params),
            alpha_steps_up: rfc,
            w_max: 0.0,
            cwnd_prior: 0.0,
            stage: None,
            last_ack: None,
            before_reduction: None,
        }
    }

    fn segments(&self, bytes: ByteCount) -> f64 {
        bytes.0 as f64 / self.windows.smss.0 as f64
    }

    fn begin_stage(&self, now: Instant) -> Stage {
        let cwnd = self.segments(self.windows.cwnd);
        // After slow start without a loss, the plateau is the current window (section 4.8).
        let w_max = self.w_max.max(cwnd);
        // In Rust rather than the system library, so that results are identical on all machines.
        Stage { start: now, w_max, k: libm::cbrt((w_max - cwnd) / C), w_est: cwnd, fraction: 0.0 }
    }

    /// Congestion avoidance, sections 4.2 to 4.5.
    fn avoid(&mut self, now: Instant, arrived: ByteCount, srtt: Duration) {
        let cwnd = self.segments(self.windows.cwnd);
        let arrived = self.segments(arrived);
        let mut stage = self.stage.unwrap_or_else(|| self.begin_stage(now));
        let w_cubic = |t: Duration| {
            let from_k = t.as_secs_f64() - stage.k;
            C * from_k * from_k * from_k + stage.w_max
        };
        let elapsed = now.since(stage.start);

        let steps_up = self.alpha_steps_up && stage.w_est >= self.cwnd_prior;
        let alpha = if steps_up { 1.0 } else { ALPHA };
        let w_est = stage.w_est + alpha * arrived / cwnd;
        let step = if w_cubic(elapsed) < w_est {
            (w_est - cwnd).max(0.0)
        } else {
            let target = w_cubic(elapsed + srtt).clamp(cwnd, 1.5 * cwnd);
            (target - cwnd) / cwnd * arrived
        };
        stage.w_est = w_est;
        let growth = stage.fraction + step;
        let bytes = ByteCount((growth * self.windows.smss.0 as f64) as u64);
        stage.fraction = growth - self.segments(bytes);
        self.windows.cwnd += bytes;
        self.stage = Some(stage);
    }

    /// Changes the segment size, converts the values counted in segments and starts a new stage.
    fn resize(&mut self, smss: ByteCount) {
        let ratio = self.segments(smss).recip();
        self.windows.resize(smss);
        self.w_max *= ratio;
        self.cwnd_prior *= ratio;
        (self.stage, self.before_reduction) = (None, None);
    }

    /// Sections 4.6 and 4.7: computes ssthresh for a reduction, with fast convergence.
    fn reduced(&mut self, flight_size: ByteCount) -> ByteCount {
        let used = self.windows.used(flight_size);
        let cwnd = self.segments(used);
        let before = (self.w_max, self.cwnd_prior, self.stage.take());
        self.before_reduction = Some(Box::new(before));
        self.cwnd_prior = cwnd;
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        used.scale(BETA)
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        self.windows.measure(ack);
        // While a judge defers a response, there are only SACKed bytes (DCR 2.2); with `le` they
        // always count.
        let counts = ack.grows_with_hole && ack.delivered > ByteCount::ZERO;
        if ack.acked == ByteCount::ZERO && !counts {
            return;
        }
        let idle_since = self.last_ack.replace(ack.now);
        if !Windows::may_grow(ack) {
            // Section 5.8: time in which the window was not the limit does not count.
            if let (Some(stage), Some(since)) = (&mut self.stage, idle_since) {
                stage.start += ack.now.since(since);
            }
            return;
        }
        let mut arrived = ack.delivered;
        if self.windows.in_slow_start() {
            arrived = self.windows.slow_start(ack);
        }
        if !self.windows.in_slow_start() && arrived > ByteCount::ZERO {
            self.avoid(ack.now, arrived, ack.srtt);
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { flight_size, .. } => {
                let ssthresh = self.reduced(flight_size);
                self.windows.reduce_to(ssthresh);
            }
            NoticeKind::Timeout { flight_size, first } => {
                let ssthresh = if first { self.reduced(flight_size) } else { self.windows.cwnd };
                // Section 4.8: the next stage starts at its plateau, with K = 0.
                (self.w_max, self.stage) = (0.0, None);
                self.windows.collapse(first, ssthresh);
            }
            NoticeKind::Undo { .. } => {
                self.windows.undo();
                // Section 4.9.
                if let Some(before) = self.before_reduction.take() {
                    (self.w_max, self.cwnd_prior, self.stage) = *before;
                }
            }
            NoticeKind::Idle { time, restart, .. } => {
                if let Some(stage) = &mut self.stage {
                    // Section 5.8: idle time does not count.
                    stage.start += time;
                }
                // The idle time is already counted: the next ACK must not count it again.
                self.last_ack = Some(notice.now);
                if restart {
                    // Slow start from the restart window, then a new stage.
                    self.stage = None;
                    self.windows.restart();
                }
            }
            NoticeKind::Unused => {
                self.windows.give_up_unused();
                self.stage = None;
            }
            NoticeKind::TakeOver { cwnd, ssthresh } => self.windows.take_over(cwnd, ssthresh),
            NoticeKind::SegmentSize(smss) => self.resize(smss),
            NoticeKind::Lost(_) | NoticeKind::RecoveryOver => {}
        }
    }

    fn window(&self) -> ByteCount {
        self.windows.cwnd
    }

    fn state(&self) -> ControlState {
        self.windows.state()
    }
}

#[cfg(test)]
mod tests;
