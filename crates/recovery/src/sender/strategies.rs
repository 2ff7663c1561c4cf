//! The strategies in use, each called with the current view.

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

/// A detection, judges and a control, made as their combination says.
#[derive(Debug)]
pub(super) struct Strategies {
    combination: Combination,
    /// What the peer granted; what is put in their place may need no more.
    granted: WireNeeds,
    detection: Box<dyn LossDetection>,
    judges: Vec<Box<dyn LossJudge>>,
    control: Box<dyn CongestionControl>,
}

impl Strategies {
    /// Those of `wanted`, or their fallbacks where the peer did not grant what they need.
    pub(super) fn new(wanted: &Combination, granted: WireNeeds, params: ControlParams) -> Self {
        let combination = wanted.granted(granted);
        let Parts { detection, judges, control } = make(&combination, params);
        Self { combination, granted, detection, judges, control }
    }

    /// Puts others in their place.
    ///
    /// # Errors
    /// `combination` needs what the peer did not grant. Then nothing changes.
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

    /// Whether the detection goes by SACK.
    pub(super) fn uses_sack(&self) -> bool {
        uses_sack(&self.combination)
    }

    /// The tasks of the sender that the control has taken over.
    pub(super) fn taken_over(&self) -> TakesOver {
        self.combination.control().entry().takes_over
    }

    /// Whether the peer reported to a judge the loss that `repair` repairs.
    pub(super) fn was_reported(&self, repair: &Transmission) -> bool {
        self.judges.iter().any(|judge| judge.was_reported(repair))
    }

    /// What the retransmission time-out is to be above SRTT, where a judge has a say.
    pub(super) fn rto_variances(&self) -> Option<u32> {
        self.judges.iter().find_map(|judge| judge.rto_variances())
    }

    /// The share of transmissions that are lost at random, as far as a judge has measured it.
    pub(super) fn random_share(&self) -> f64 {
        self.judges.iter().map(|judge| judge.random_share()).fold(0.0, f64::max)
    }

    /// Whether a judge would measure that share if less were in flight.
    pub(super) fn want_low_load(&self) -> bool {
        self.judges.iter().any(|judge| judge.wants_low_load())
    }

    /// What the first judge that knows anything hands on.
    pub(super) fn learned(&self) -> Option<RandomLosses> {
        self.judges.iter().find_map(|judge| judge.learned())
    }

    /// Makes them anew, with what is known of the path.
    pub(super) fn restart(&mut self, params: ControlParams, losses: Option<&RandomLosses>) {
        let Parts { detection, mut judges, control } = make(&self.combination, params);
        losses.iter().for_each(|known| judges.iter_mut().for_each(|judge| judge.inherit(known)));
        (self.detection, self.judges, self.control) = (detection, judges, control);
    }

    pub(super) fn view<'a>(&self, core: &'a Core, now: Instant) -> View<'a> {
        core.view(now, &*self.control)
    }

    /// The judges hear an ACK.
    pub(super) fn judge_ack(&mut self, core: &Core, ack: &AckView<'_>, raised: &mut Raised) {
        for judge in &mut self.judges {
            judge.on_ack(ack, &core.view(ack.now, &*self.control), raised);
        }
    }

    /// The judges hear a special ACK.
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

    /// The ruling of the first judge that has an opinion.
    pub(super) fn rule(
        &mut self,
        core: &Core,
        now: Instant,
        (finding, lost): (&Finding, &Transmission),
        again: bool,
    ) -> Option<Ruling> {
        let mut view = core.view(now, &*self.control);
        // What left before the last reduction is of its event of losses, also where the clock has
        // ended that recovery.
        view.in_recovery |= core.recovery.answers(lost.tx);
        self.judges.iter_mut().find_map(|judge| judge.rule(finding, lost, &view, again))
    }

    pub(super) fn detect(&mut self, core: &Core, ack: &AckView<'_>, findings: &mut Findings) {
        self.detection.on_ack(ack, &core.view(ack.now, &*self.control), findings);
    }

    /// The detection works its deadline.
    pub(super) fn detect_by_time(&mut self, core: &Core, now: Instant, findings: &mut Findings) {
        self.detection.on_timer(&core.view(now, &*self.control), findings);
    }

    pub(super) fn on_sent(&mut self, sent: &Transmission) {
        self.detection.on_sent(sent);
    }

    pub(super) fn on_sent_together(&mut self, sent: &Run) {
        self.detection.on_sent_together(sent);
    }

    /// What is to be sent again next.
    pub(super) fn pick(&self, core: &Core, now: Instant, new_data: bool) -> Option<Repair> {
        self.detection.pick(&self.view(core, now), new_data)
    }

    /// How long a recovery that begins now lasts.
    pub(super) fn recovery_end(&self, core: &Core, now: Instant) -> RecoveryEnd {
        self.detection.recovery_end(&self.view(core, now))
    }

    /// The retransmission timer ran out.
    pub(super) fn on_timeout(&mut self, core: &Core, now: Instant) {
        self.on_repeat(core, now);
        let view = core.view(now, &*self.control);
        self.judges.iter_mut().for_each(|judge| judge.on_timeout(&view));
    }

    /// What is outstanding is to be sent again, and no time-out said so.
    pub(super) fn on_repeat(&mut self, core: &Core, now: Instant) {
        self.detection.on_timeout(&core.view(now, &*self.control));
    }

    /// What was judged lost and not yet sent again is in flight, and no recovery is on.
    pub(super) fn on_undo(&mut self, core: &Core, now: Instant) {
        self.detection.on_undo(&core.view(now, &*self.control));
    }

    /// The control hears an ACK.
    pub(super) fn control_ack(&mut self, ack: &AckView<'_>) {
        self.control.on_ack(ack);
    }

    /// The control gets a notice.
    pub(super) fn notify(&mut self, notice: &Notice) {
        self.control.on_notice(notice);
    }

    /// Gives memory back.
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
