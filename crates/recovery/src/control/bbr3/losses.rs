//! Losses, marks, recovery and its undo (draft-ietf-ccwg-bbr, "Updating the Model Upon Packet
//! Loss", "Modulating cwnd in Loss Recovery" and "Updating the Model Upon Detecting a Spurious Loss
//! Recovery").

use airtcp_types::{ByteCount, Instant, Rate};

use super::Machine;
use super::congestion::{BETA, ShortTerm};
use super::sample::Sample;
use super::state::State;
use crate::control::Loss;
use crate::judge::Cause;
use crate::view::AckView;

/// BBR.LossThresh.
const LOSS_THRESH: f64 = 0.02;

/// The sender's response to losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecoveryMode {
    None,
    /// A loss was reported; the recovery starts at the same instant.
    Begins(Instant),
    Fast,
    Timeout,
}

impl RecoveryMode {
    /// InLossRecovery.
    pub(super) const fn is_on(self) -> bool {
        matches!(self, Self::Fast | Self::Timeout)
    }

    pub(super) const fn is_fast(self) -> bool {
        matches!(self, Self::Fast)
    }
}

/// The state to restore if the losses were spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    /// BBR.undo_state.
    state: Option<State>,
    /// BBR.undo_bw_shortterm and BBR.undo_inflight_shortterm.
    short_term: ShortTerm,
    /// BBR.undo_inflight_longterm.
    inflight_longterm: ByteCount,
}

/// InflightAtLoss: returns the bytes in flight at which the losses exceeded the threshold, possibly
/// in the middle of `size` bytes that were sent together.
fn inflight_at_loss(size: ByteCount, tx_in_flight: ByteCount, lost: ByteCount) -> ByteCount {
    let inflight_prev = tx_in_flight - size;
    let lost_prev = lost - size;
    // Zero if the losses had exceeded the threshold before.
    let allowed = inflight_prev.scale(LOSS_THRESH) - lost_prev;
    inflight_prev + allowed.scale((1.0 - LOSS_THRESH).recip())
}

impl Machine {
    /// IsInflightTooHigh, for losses: `lost` bytes since a packet was sent that made the bytes in
    /// flight `tx_in_flight`.
    pub(super) fn is_loss_too_high(&self, lost: ByteCount, tx_in_flight: ByteCount) -> bool {
        lost > tx_in_flight.scale(LOSS_THRESH) || (lost.0 > 0 && !self.has_selective_acks)
    }

    /// The same for marks.
    pub(super) fn is_marking_high(&self, sample: &Sample) -> bool {
        self.congestion.marked() > sample.tx_in_flight.scale(LOSS_THRESH)
    }

    /// Counts marks as losses. No sign can show a mark to be spurious, so no state is saved.
    pub(super) fn note_marks(&mut self, ack: &AckView<'_>) {
        if ack.ece {
            self.congestion.note(self.delivered);
            self.congestion.note_marked(ack.marked);
            if let Some(undo) = &mut self.undo {
                // An undo of losses must not revert the reductions for marks.
                undo.short_term = ShortTerm { bw: Rate::ZERO, inflight: ByteCount::ZERO };
            }
        }
    }

    /// HandleLostPacket.
    pub(super) fn on_lost(&mut self, now: Instant, loss: &Loss) {
        if !loss.cause.is_congestion() {
            return;
        }
        let begins = match self.recovery {
            RecoveryMode::None => true,
            RecoveryMode::Begins(at) => at != now,
            RecoveryMode::Fast => loss.cause == Cause::Timeout,
            RecoveryMode::Timeout => false,
        };
        if begins {
            self.save_state_upon_loss();
            self.recovery = RecoveryMode::Begins(now);
        }
        // NoteLoss
        self.congestion.note(self.delivered);
        self.congestion.note_lost_range(loss.start, loss.bytes);
        let Loss { bytes, tx_in_flight, lost_since_sent, .. } = *loss;
        if self.cycle.is_bw_probe_sample && self.is_loss_too_high(lost_since_sent, tx_in_flight) {
            let inflight = inflight_at_loss(bytes, tx_in_flight, lost_since_sent);
            let app_limited = loss.app_limited || self.probe_rtt.limits(loss.prior_delivered);
            self.handle_inflight_too_high(now, inflight, app_limited);
        }
    }

    /// HandleInflightTooHigh.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        now: Instant,
        tx_in_flight: ByteCount,
        app_limited: bool,
    ) {
        self.cycle.prev_probe_too_high = true;
        // Only react once per probe.
        self.cycle.is_bw_probe_sample = false;
        if !app_limited {
            let least = self.target_inflight().scale(BETA);
            self.cycle.inflight_longterm = tx_in_flight.max(least);
        }
        if self.state == State::ProbeBwUp {
            self.undo_to(State::ProbeBwUp);
            self.start_probe_bw_down(now);
        }
    }

    /// OnEnterFastRecovery.
    pub(super) fn on_enter_fast_recovery(&mut self, cause: Cause) {
        if !cause.is_congestion() || cause == Cause::Mark {
            // A later undo would concern this reduction, not an older one.
            self.undo = None;
            return;
        }
        if self.recovery == RecoveryMode::None {
            self.save_state_upon_loss();
        }
        self.recovery = RecoveryMode::Fast;
    }

    /// OnEnterRTO. Only the first of several consecutive time-outs saves the state.
    pub(super) fn on_enter_rto(&mut self, inflight: ByteCount, first: bool) {
        if first && !matches!(self.recovery, RecoveryMode::Begins(_)) {
            self.save_state_upon_loss();
        }
        self.recovery = RecoveryMode::Timeout;
        self.cwnd = inflight + self.smss;
    }

    pub(super) fn on_exit_recovery(&mut self) {
        if self.recovery.is_on() {
            self.restore_cwnd();
        }
        self.recovery = RecoveryMode::None;
    }

    /// SaveStateUponLoss.
    fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Some(Saved {
            state: None,
            short_term: self.congestion.short_term,
            inflight_longterm: self.cycle.inflight_longterm,
        });
    }

    /// Records that losses end `state`, to which an undo returns.
    pub(super) const fn undo_to(&mut self, state: State) {
        if let Some(undo) = &mut self.undo {
            undo.state = Some(state);
        }
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        let was_on = self.recovery != RecoveryMode::None;
        self.recovery = RecoveryMode::None;
        let Some(undo) = self.undo.take() else {
            // Marks have changed the model since: it stays, but the recovery is over.
            if was_on {
                self.restore_cwnd();
            }
            return;
        };
        self.congestion.forget_losses();
        self.full_bw.reset(Rate::ZERO);
        let short_term = &mut self.congestion.short_term;
        *short_term = short_term.max(undo.short_term);
        let longterm = &mut self.cycle.inflight_longterm;
        *longterm = (*longterm).max(undo.inflight_longterm);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw.unset();
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::ProbeBwUp)
                if self.state != State::ProbeBwUp && self.state != State::ProbeRtt =>
            {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
        self.restore_cwnd();
    }
}
