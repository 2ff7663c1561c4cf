//! The strategies in use; each is called with the current view.

use airtcp_types::{ExtSeq, Instant};

use super::Core;
use crate::combination::{Combination, CombinationError, Parts};
use crate::control::{CongestionControl, ControlParams, Notice};
use crate::detection::{Finding, Findings, LossDetection, RecoveryEnd, Repair};
use crate::judge::{LossJudge, Raised, Ruling};
use crate::learned::RandomLosses;
use crate::registry::{TakesOver, WireNeeds};
use crate::run::Run;
use crate::transmission::Transmission;
use crate::view::{AckView, View};

/// The detection, judges and control of a combination.
#[derive(Debug)]
pub(super) struct Strategies {
    combination: Combination,
    /// The TCP options that the peer granted. Replacements may need only these.
    granted: WireNeeds,
    detection: Box<dyn LossDetection>,
    judges: Vec<Box<dyn LossJudge>>,
    control: Box<dyn CongestionControl>,
}

impl Strategies {
    /// Creates the strategies of `wanted`, or their fallbacks if the peer did not grant their
    /// needs.
    pub(super) fn new(wanted: &Combination, granted: WireNeeds, params: ControlParams) -> Self {
        let combination = wanted.granted(granted);
        let Parts { detection, judges, control } = make(&combination, params);
        Self { combination, granted, detection, judges, control }
    }

    /// Replaces the strategies.
    ///
    /// # Errors
    /// `combination` needs an option that the peer did not grant. Nothing changes then.
    pub(super) fn replace(
        &mut self,
        combination: &Combination,
        params: ControlParams,
    ) -> Result<(), CombinationError> {
        if let Some(missing) = combination.needs().missing(self.granted) {
            let combination = combination.to_string();
            return Err(CombinationError::NotGranted { combination, missing });
        }
        let Parts { detection, judges, control } = make(combination, params);
        *self = Self {
            combination: combination.clone(),
            granted: self.granted,
            detection,
            judges,
            control,
        };
        Ok(())
    }

    pub(super) const fn combination(&self) -> &Combination {
        &self.combination
    }

    pub(super) fn detection(&self) -> &dyn LossDetection {
        &*self.detection
    }

    pub(super) fn control(&self) -> &dyn CongestionControl {
        &*self.control
    }

    /// Returns whether the detection uses SACK.
    pub(super) fn uses_sack(&self) -> bool {
        uses_sack(&self.combination)
    }

    /// Returns the tasks of the sender that the control takes over.
    pub(super) fn taken_over(&self) -> TakesOver {
        self.combination.control().entry().takes_over
    }

    /// Returns whether a special ACK reported to a judge the loss that `repair` repairs.
    pub(super) fn was_reported(&self, repair: &Transmission) -> bool {
        self.judges.iter().any(|judge| judge.was_reported(repair))
    }

    /// Returns the multiple of RTTVAR in the retransmission time-out, if a judge sets it.
    pub(super) fn rto_variances(&self) -> Option<u32> {
        self.judges.iter().find_map(|judge| judge.rto_variances())
    }

    /// Returns the largest share of random losses that the judges measure.
    pub(super) fn random_share(&self) -> f64 {
        self.judges.iter().map(|judge| judge.random_share()).fold(0.0, f64::max)
    }

    /// Returns whether a judge asks for less data in flight, to measure that share.
    pub(super) fn want_low_load(&self) -> bool {
        self.judges.iter().any(|judge| judge.wants_low_load())
    }

    /// Returns the counts of the first judge that has any.
    pub(super) fn learned(&self) -> Option<RandomLosses> {
        self.judges.iter().find_map(|judge| judge.learned())
    }

    /// Creates the strategies again, with what is known of the path.
    pub(super) fn restart(&mut self, params: ControlParams, losses: Option<&RandomLosses>) {
        let Parts { detection, mut judges, control } = make(&self.combination, params);
        losses.iter().for_each(|known| judges.iter_mut().for_each(|judge| judge.inherit(known)));
        (self.detection, self.judges, self.control) = (detection, judges, control);
    }

    pub(super) fn view<'a>(&self, core: &'a Core, now: Instant) -> View<'a> {
        core.view(now, &*self.control)
    }

    pub(super) fn judge_ack(&mut self, core: &Core, ack: &AckView<'_>, raised: &mut Raised) {
        for judge in &mut self.judges {
            judge.on_ack(ack, &core.view(ack.now, &*self.control), raised);
        }
    }

    pub(super) fn judge_special_ack(
        &mut self,
        core: &Core,
        now: Instant,
        seq: ExtSeq,
        raised: &mut Raised,
    ) {
        for judge in &mut self.judges {
            judge.on_special_ack(seq, &core.view(now, &*self.control), raised);
        }
    }

    /// Returns the ruling of the first judge that makes one.
    pub(super) fn rule(
        &mut self,
        core: &Core,
        now: Instant,
        (finding, lost): (&Finding, &Transmission),
        again: bool,
    ) -> Option<Ruling> {
        let mut view = core.view(now, &*self.control);
        // A transmission sent before the last reduction belongs to that loss event, even if the
        // recovery has ended by time.
        view.in_recovery |= core.recovery.answers(lost.tx);
        self.judges.iter_mut().find_map(|judge| judge.rule(finding, lost, &view, again))
    }

    pub(super) fn detect(&mut self, core: &Core, ack: &AckView<'_>, findings: &mut Findings) {
        self.detection.on_ack(ack, &core.view(ack.now, &*self.control), findings);
    }

    pub(super) fn detect_by_time(&mut self, core: &Core, now: Instant, findings: &mut Findings) {
        self.detection.on_timer(&core.view(now, &*self.control), findings);
    }

    pub(super) fn on_sent(&mut self, sent: &Transmission) {
        self.detection.on_sent(sent);
    }

    pub(super) fn on_sent_together(&mut self, sent: &Run) {
        self.detection.on_sent_together(sent);
    }

    pub(super) fn pick(&self, core: &Core, now: Instant, new_data: bool) -> Option<Repair> {
        self.detection.pick(&self.view(core, now), new_data)
    }

    pub(super) fn recovery_end(&self, core: &Core, now: Instant) -> RecoveryEnd {
        self.detection.recovery_end(&self.view(core, now))
    }

    /// Handles the expiry of the retransmission timer.
    pub(super) fn on_timeout(&mut self, core: &Core, now: Instant) {
        self.on_repeat(core, now);
        let view = core.view(now, &*self.control);
        self.judges.iter_mut().for_each(|judge| judge.on_timeout(&view));
    }

    /// Handles the retransmission of outstanding data without a time-out.
    pub(super) fn on_repeat(&mut self, core: &Core, now: Instant) {
        self.detection.on_timeout(&core.view(now, &*self.control));
    }

    /// Handles an undo: transmissions marked lost and not yet retransmitted are in flight again.
    pub(super) fn on_undo(&mut self, core: &Core, now: Instant) {
        self.detection.on_undo(&core.view(now, &*self.control));
    }

    pub(super) fn control_ack(&mut self, ack: &AckView<'_>) {
        self.control.on_ack(ack);
    }

    pub(super) fn notify(&mut self, notice: &Notice) {
        self.control.on_notice(notice);
    }

    /// Frees memory.
    pub(super) fn shrink(&mut self) {
        self.judges.iter_mut().for_each(|judge| judge.shrink());
    }
}

fn uses_sack(combination: &Combination) -> bool {
    combination.detection().entry().needs.sack
}

fn make(combination: &Combination, params: ControlParams) -> Parts {
    combination.make(&ControlParams { sack: uses_sack(combination), ..params })
}
