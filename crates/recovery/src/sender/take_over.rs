//! Other strategies in the midst of a connection.

use airtcp_types::Instant;

use super::{Sender, control_params};
use crate::combination::{Combination, CombinationError, Parts};
use crate::control::{ControlParams, NoticeKind};

impl Sender {
    /// Puts the strategies of `combination` in the place of those in use. The board, the round-trip
    /// time, the windows and the timer stay, and so does an episode that is on: what was lost in it
    /// reduces the window no second time. What judges put off is for the new ones to rule on; what
    /// the old strategies knew besides is forgotten.
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
        let params = ControlParams {
            now,
            sack: combination.detection().entry().needs.sack,
            rtt: self.core.rtt.srtt(),
            seed: self.snd_nxt().0,
            ..control_params(&self.profile, self.pacing, smss, self.profile.initial_window)
        };
        let Parts { detection, control, judges } = combination.make(&params);
        (self.detection, self.control, self.judges) = (detection, control, judges);
        self.combination = combination.clone();
        self.core.sack = combination.detection().entry().needs.sack;
        let put_off = self.core.put_off.take();
        (self.undo, self.prr, self.probe) = (None, None, None);
        self.probes =
            self.profile.tail_loss_probe && self.core.sack && self.detection.wants_probes();
        let variances = self.judges.iter().find_map(|judge| judge.rto_variances());
        // A timer that began anew could be kept from running out for ever.
        let began = self.core.rto_at.map(|at| at - self.core.rtt.rto());
        self.core.rtt.set_variances(variances);
        self.core.rto_at = began.map(|began| began + self.core.rtt.rto());
        self.notify(now, NoticeKind::TakeOver { cwnd, ssthresh });
        let view = self.core.view(now, &*self.control);
        self.detection.on_undo(&view);
        self.judge_anew(now, &put_off);
        self.schedule_probe(now, true);
        self.update_pacing(now);
        self.tell_window();
        Ok(())
    }
}
