//! Other strategies in the midst of a connection.

use airtcp_types::{ByteCount, Instant};

use super::{Sender, control_params};
use crate::combination::{Combination, CombinationError, Parts};
use crate::control::Notice;

impl Sender {
    /// Puts the strategies of `combination` in the place of those in use. The board, the round-trip
    /// time and the windows stay; what the old ones knew besides is forgotten, and an episode that
    /// is on is over.
    ///
    /// # Errors
    /// It needs what was not negotiated when the connection began. Then nothing changes.
    pub fn set_combination(
        &mut self,
        now: Instant,
        combination: &Combination,
    ) -> Result<(), CombinationError> {
        if let Some(missing) = combination.needs().missing(self.granted) {
            let combination = combination.to_string();
            return Err(CombinationError::NotGranted { combination, missing });
        }
        let (cwnd, ssthresh) = (self.control.window(), self.control.state().ssthresh);
        let smss = self.core.smss;
        let params = control_params(&self.profile, self.pace, smss, self.profile.initial_window);
        let Parts { detection, control, judges } = combination.make(&params);
        (self.detection, self.control, self.judges) = (detection, control, judges);
        self.combination = combination.clone();
        self.core.sack = combination.recovery().entry().needs.sack;
        self.core.episode = None;
        self.core.deferred.clear();
        (self.undo, self.prr, self.probe) = (None, None, None);
        self.probes =
            self.profile.tail_loss_probe && self.core.sack && self.detection.wants_probes();
        let variances = self.judges.iter().find_map(|judge| judge.rto_variances());
        self.core.rtt.set_variances(variances);
        self.control.on_notice(now, ByteCount::ZERO, &Notice::TakeOver { cwnd, ssthresh });
        let view = self.core.view(now, &*self.control);
        self.detection.on_undo(&view);
        self.restart_rto(now);
        self.schedule_probe(now);
        self.update_pacing();
        self.tell_window();
        Ok(())
    }
}
