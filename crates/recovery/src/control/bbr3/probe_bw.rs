//! ProbeBW (draft-ietf-ccwg-bbr, "ProbeBW Algorithm Details").

use airtcp_types::Instant;

use super::Machine;
use super::congestion::{NO_BOUND, ShortTerm};
use super::cycle::AckPhase;
use super::sample::Sample;
use super::state::State;

impl Machine {
    /// StartProbeBW_DOWN.
    pub(super) fn start_probe_bw_down(&mut self, now: Instant) {
        self.congestion.reset();
        self.cycle.start_wait(now);
        self.rounds.restart(self.delivered);
        self.state = State::ProbeBwDown;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.congestion.short_term = ShortTerm::UNBOUNDED;
        self.cycle.start_refill();
        self.rounds.restart(self.delivered);
        self.state = State::ProbeBwRefill;
    }

    /// StartProbeBW_UP.
    fn start_probe_bw_up(&mut self, sample: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart(sample.total_delivered);
        self.full_bw.reset(sample.delivery_rate);
        self.state = State::ProbeBwUp;
        self.cycle.raise_slope(self.cwnd, self.smss);
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, sample: &Sample) {
        if !self.full_bw.reached || self.adapt_long_term_model(sample) {
            return;
        }
        let state = self.state;
        match state {
            State::ProbeBwDown | State::ProbeBwCruise => {
                if self.is_time_to_probe_bw(sample) {
                    self.start_probe_bw_refill();
                } else if state == State::ProbeBwDown && self.is_time_to_cruise(sample) {
                    self.state = State::ProbeBwCruise;
                }
            }
            State::ProbeBwRefill if self.rounds.start() => {
                self.cycle.is_bw_probe_sample = true;
                self.start_probe_bw_up(sample);
            }
            State::ProbeBwUp if self.is_time_to_go_down(sample) => {
                self.cycle.prev_probe_too_high = false;
                self.start_probe_bw_down(sample.now);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW.
    fn is_time_to_probe_bw(&self, sample: &Sample) -> bool {
        // "Time Scale for Bandwidth Probing": T_reno counts segments.
        let segments = self.target_inflight().0 / self.smss.0;
        self.cycle.is_time_to_probe(sample.now, segments)
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        let with_headroom = self.cycle.inflight_with_headroom(self.smss, self.min_pipe_cwnd());
        sample.inflight <= with_headroom && sample.inflight <= self.inflight(self.max_bw.get(), 1.0)
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        let longterm = self.cycle.inflight_longterm;
        // "Precautionary Bandwidth Probing": Deceleration.
        if self.cycle.prev_probe_too_high && sample.inflight >= longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if sample.is_cwnd_limited && self.cwnd >= longterm {
            // inflight_longterm limits the bandwidth.
            self.full_bw.reset(sample.delivery_rate);
            return false;
        }
        self.full_bw.now
    }

    /// AdaptLongTermModel: returns whether it changed the state.
    fn adapt_long_term_model(&mut self, sample: &Sample) -> bool {
        if self.rounds.start() {
            let phase = self.cycle.ack_phase;
            match phase {
                AckPhase::ProbeStarting => self.cycle.ack_phase = AckPhase::ProbeFeedback,
                AckPhase::ProbeStopping if self.stop_probe_feedback(sample) => return true,
                _ => {}
            }
        }
        if self.cycle.is_bw_probe_sample && self.is_marking_high(sample) {
            // As for losses in `on_lost`. No sign can show a mark to be spurious.
            self.undo = None;
            let before = self.state;
            self.handle_inflight_too_high(sample.now, sample.tx_in_flight, sample.is_app_limited);
            return self.state != before;
        }
        if self.is_loss_too_high(sample.lost, sample.tx_in_flight)
            || self.is_marking_high(sample)
            || self.cycle.inflight_longterm == NO_BOUND
        {
            return false;
        }
        self.cycle.inflight_longterm = self.cycle.inflight_longterm.max(sample.tx_in_flight);
        if self.state == State::ProbeBwUp {
            self.probe_inflight_longterm_upward(sample);
        }
        false
    }

    /// Handles the end of the round of ACKs that cover a probe; returns whether the next probe
    /// starts at once.
    fn stop_probe_feedback(&mut self, sample: &Sample) -> bool {
        self.cycle.is_bw_probe_sample = false;
        self.cycle.ack_phase = AckPhase::Init;
        if !self.state.is_in_probe_bw() {
            return false;
        }
        if !sample.is_app_limited {
            self.max_bw.advance();
        }
        // "Precautionary Bandwidth Probing": Acceleration.
        let again = self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high;
        if again {
            self.start_probe_bw_refill();
        }
        again
    }

    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&mut self, sample: &Sample) {
        if !sample.is_cwnd_limited || self.cwnd < self.cycle.inflight_longterm {
            return;
        }
        self.cycle.grow_longterm(sample.newly_acked, self.smss);
        if self.rounds.start() {
            self.cycle.raise_slope(self.cwnd, self.smss);
        }
    }
}
