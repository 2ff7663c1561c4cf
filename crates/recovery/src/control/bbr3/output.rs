//! The pacing rate, send quantum and window, computed from the model (draft-ietf-ccwg-bbr,
//! "Updating Control Parameters").

use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

use super::Machine;
use super::congestion::NO_BOUND;
use super::sample::Sample;
use super::state::{PROBE_RTT_CWND_GAIN, STARTUP_PACING_GAIN, State};

/// BBR.PacingMarginPercent: 1.
const PACING_MARGIN: f64 = 0.99;
/// BBR.MinPipeCwnd, in segments.
const MIN_PIPE_SEGMENTS: u64 = 4;
/// InitPacingRate: the RTT before the first sample.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// One byte per second.
const LEAST_RATE: Rate = Rate::from_bits_per_sec(8);
/// SetSendQuantum: the quantum, as time at the pacing rate, and its maximum in bytes.
const QUANTUM: Duration = Duration::from_millis(1);
const LARGEST_QUANTUM: ByteCount = ByteCount(64 * 1024);
/// The largest share of random losses that is compensated for.
const MOST_RANDOM: f64 = 0.3;

impl Machine {
    /// Returns the share of the sent data that arrives, on a link with random losses.
    ///
    /// Not in the draft. The rate and the volume of the model are those of data that arrives; both
    /// are divided by this share, to make up for the losses. It is one if no judge measures a
    /// share, and at least 0.7: sending more does not help on a link that loses more than three in
    /// ten.
    pub(super) const fn share_that_arrives(&self) -> f64 {
        // Limited against negative or undefined shares.
        1.0 - self.random_share.max(0.0).min(MOST_RANDOM)
    }

    /// BBR.bdp for a bandwidth; `None` before the first RTT.
    fn bdp(&self, bw: Rate) -> Option<ByteCount> {
        let min_rtt = self.min_rtt.get()?;
        Some(bw.bytes_in(min_rtt).scale(self.share_that_arrives().recip()))
    }

    /// BDPMultiple.
    pub(super) fn bdp_multiple(&self, bw: Rate, gain: f64) -> ByteCount {
        self.bdp(bw).map_or(self.initial_cwnd, |bdp| bdp.scale(gain))
    }

    /// BBR.MinPipeCwnd.
    pub(super) fn min_pipe_cwnd(&self) -> ByteCount {
        self.smss * MIN_PIPE_SEGMENTS
    }

    /// QuantizationBudget.
    fn quantization_budget(&self, inflight_cap: ByteCount) -> ByteCount {
        // "TCP Offload Budget": three quanta for TCP.
        let offload_budget = self.quantum() * 3;
        let cap = inflight_cap.max(offload_budget).max(self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp { cap + self.smss * 2 } else { cap }
    }

    /// Inflight: returns the bytes in flight at `gain` times the bandwidth-delay product.
    pub(super) fn inflight(&self, bw: Rate, gain: f64) -> ByteCount {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> ByteCount {
        self.bdp_multiple(self.bw, 1.0).min(self.cwnd)
    }

    /// BBR.max_inflight, computed by UpdateMaxInflight.
    fn max_inflight(&self) -> ByteCount {
        let cap = self.bdp_multiple(self.bw, self.state.cwnd_gain()) + self.extra_acked.get();
        self.quantization_budget(cap)
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> ByteCount {
        self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN).max(self.min_pipe_cwnd())
    }

    /// InitPacingRate for the current window, which is the initial one.
    pub(super) fn init_pacing_rate(&mut self, srtt: Option<Duration>) {
        let rtt = srtt.filter(|rtt| !rtt.is_zero()).unwrap_or(NOMINAL_RTT);
        self.pacing_rate = Rate::from_bytes_over(self.cwnd, rtt).scale(STARTUP_PACING_GAIN);
    }

    /// Starts with the rate that the path recently carried, and its product with the RTT in flight.
    /// Neither is less than without it. Startup then measures the path itself.
    pub(super) fn begin_at(&mut self, rate: Rate, rtt: Duration) {
        self.cwnd = self.cwnd.max(rate.bytes_in(rtt));
        self.pacing_rate = self.pacing_rate.max(rate);
    }

    /// SetPacingRateWithGain.
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = self.bw.scale(gain * PACING_MARGIN / self.share_that_arrives());
        // Without a bandwidth there is no rate to slow down to. A rate of zero would turn pacing
        // off.
        let slows_down = self.full_bw.reached && self.bw > Rate::ZERO;
        if slows_down || rate > self.pacing_rate {
            self.pacing_rate = rate.max(LEAST_RATE);
        }
    }

    /// C.send_quantum, computed by SetSendQuantum.
    pub(super) fn quantum(&self) -> ByteCount {
        self.pacing_rate.bytes_in(QUANTUM).min(LARGEST_QUANTUM).max(self.smss * 2)
    }

    // draft-ietf-ccwg-bbr, "cwnd Adjustment Mechanism": SetCwnd.
    pub(super) fn set_cwnd(&mut self, sample: &Sample) {
        let max_inflight = self.max_inflight();
        if self.full_bw.reached {
            self.cwnd = (self.cwnd + sample.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || sample.total_delivered < self.initial_cwnd {
            self.cwnd += sample.newly_acked;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        self.bound_cwnd();
    }

    /// BoundCwndForProbeRTT and BoundCwndForModel.
    pub(super) fn bound_cwnd(&mut self) {
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        // "Bounding cwnd Based on Recent Congestion".
        let floor = self.min_pipe_cwnd();
        let long_term = match self.state {
            State::Startup | State::Drain => NO_BOUND,
            State::ProbeBwCruise | State::ProbeRtt => {
                self.cycle.inflight_with_headroom(self.smss, floor)
            }
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => {
                self.cycle.inflight_longterm
            }
        };
        let cap = long_term.min(self.congestion.short_term.inflight).max(floor);
        self.cwnd = self.cwnd.min(cap);
    }

    /// SaveCwnd.
    pub(super) fn save_cwnd(&mut self) {
        if !self.recovery.is_on() && self.state != State::ProbeRtt {
            self.prior_cwnd = self.cwnd;
        } else {
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        }
    }

    /// RestoreCwnd. The restored window is limited by the current model.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bound_cwnd();
    }
}
