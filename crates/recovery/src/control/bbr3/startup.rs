//! Startup and Drain (draft-ietf-ccwg-bbr, "Startup" and "Drain").

use super::Machine;
use super::sample::Sample;
use super::state::State;

/// BBRStartupFullLossCnt.
const FULL_LOSS_COUNT: u32 = 6;
/// "Drain": its longest duration in round trips.
const DRAIN_ROUNDS: u64 = 3;

impl Machine {
    /// EnterStartup.
    pub(super) const fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// EnterDrain.
    fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.rounds.count();
    }

    /// CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        if self.state != State::Startup {
            return;
        }
        if !self.full_bw.reached && self.is_loss_high_in_startup(sample) {
            if !self.is_marking_high(sample) {
                self.undo_to(State::Startup);
            }
            self.full_bw.set();
            let bdp = self.bdp_multiple(self.bw, 1.0);
            self.cycle.inflight_longterm = bdp.max(self.congestion.inflight_latest());
        }
        if self.full_bw.reached {
            self.enter_drain();
        }
    }

    // draft-ietf-ccwg-bbr, "Exiting Startup Based on Packet Loss": CheckStartupHighLoss.
    fn is_loss_high_in_startup(&self, sample: &Sample) -> bool {
        if !self.has_selective_acks {
            return self.recovery.is_fast() && self.congestion.is_loss_in_round();
        }
        // A loss round starts with its first loss, which also starts fast recovery. At the end of
        // the loss round, the connection has been in recovery for a full round trip.
        self.congestion.loss_round_start()
            && (self.is_marking_high(sample)
                || (self.congestion.lost_ranges() >= FULL_LOSS_COUNT
                    && self.is_loss_too_high(sample.lost, sample.tx_in_flight)))
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        if self.state == State::Drain
            && (sample.inflight <= self.inflight(self.bw, 1.0)
                || self.rounds.count() >= self.drain_start_round + DRAIN_ROUNDS)
        {
            // EnterProbeBW
            self.start_probe_bw_down(sample.now);
        }
    }
}
