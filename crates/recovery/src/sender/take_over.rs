//! Replacement of strategies during a connection.

use airtcp_types::Instant;

use super::{Sender, control_params};
use crate::combination::{Combination, CombinationError};
use crate::control::{ControlParams, NoticeKind};

impl Sender {
    /// Replaces the strategies in use by those of `combination`. The board, the RTT estimates, the
    /// windows and the retransmission timer stay, and so does a recovery in progress: its losses do
    /// not reduce the window again. The new judges rule on findings that the old judges deferred.
    /// All other state of the old strategies is discarded.
    ///
    /// # Errors
    /// `combination` needs an option that was not negotiated in the handshake. Nothing changes
    /// then.
    pub fn set_combination(
        &mut self,
        now: Instant,
        combination: &Combination,
    ) -> Result<(), CombinationError> {
        let control = self.strategies.control();
        let (cwnd, ssthresh) = (control.window(), control.state().ssthresh);
        let smss = self.core.smss;
        let params = ControlParams {
            now,
            rtt: self.core.rtt.srtt(),
            seed: self.snd_nxt().0,
            ..control_params(&self.profile, self.pacing, smss, self.profile.initial_window)
        };
        self.strategies.replace(&self.profile.variant_of(combination), params)?;
        self.core.sack = self.strategies.uses_sack();
        let deferred = self.core.deferred.take();
        self.prr = None;
        self.undo.stop();
        let wants_probes = self.strategies.detection().wants_probes();
        self.probes.restart(self.profile.tail_loss_probe && self.core.sack && wants_probes);
        let before = self.core.rtt.rto();
        self.core.rtt.set_variances(self.strategies.rto_variances());
        self.core.rto.change(before, self.core.rtt.rto());
        self.notify(now, NoticeKind::TakeOver { cwnd, ssthresh });
        self.strategies.on_undo(&self.core, now);
        self.judge_again(now, &deferred);
        self.probes.schedule(&self.core, now, true);
        self.update_pacing(now);
        self.report_window();
        Ok(())
    }
}
