//! Recovery: the period in which the window is reduced only once.

use airtcp_types::{ExtSeq, Instant, TxNo};

use crate::detection::RecoveryEnd;
use crate::view::Phase;

/// A period in which the window is reduced only once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Recovery {
    /// The recovery point: SND.NXT at the start.
    point: ExtSeq,
    /// The last instant of the recovery, if it ends by time instead of at the recovery point.
    until: Option<Instant>,
    phase: Phase,
    /// Whether the window may grow again from the first ACK that advances SND.UNA.
    opens_early: bool,
}

impl Recovery {
    /// A recovery from losses below `point`; `end` is the detection's choice.
    pub(super) fn of_loss(now: Instant, point: ExtSeq, end: RecoveryEnd) -> Self {
        let (until, phase) = match end {
            RecoveryEnd::After(time) => (Some(now + time), Phase::Open),
            RecoveryEnd::RecoveryPoint | RecoveryEnd::FirstAdvance => (None, Phase::Recovery),
        };
        Self { point, until, phase, opens_early: end == RecoveryEnd::FirstAdvance }
    }

    /// A recovery in which everything below `point` is retransmitted; it ends when that is
    /// acknowledged.
    pub(super) const fn of_repeating(point: ExtSeq) -> Self {
        Self { point, until: None, phase: Phase::Loss, opens_early: false }
    }

    /// A reduction for a mark on data below `point`; no data is missing.
    pub(super) const fn of_mark(point: ExtSeq) -> Self {
        Self { point, until: None, phase: Phase::Cwr, opens_early: false }
    }

    /// Returns whether the time of the recovery is over.
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until < now)
    }

    /// Returns whether the recovery continues when everything below `una` is acknowledged.
    fn lasts(&self, now: Instant, una: ExtSeq) -> bool {
        match (self.until, self.phase) {
            (Some(until), _) => now <= until,
            // As in Linux: until the peer has received CWR, which is sent with the first data after
            // the reduction. ECE on an ACK of earlier data is an old echo.
            (None, Phase::Cwr) => una <= self.point,
            (None, _) => una < self.point,
        }
    }
}

/// The current recovery, if there is one, and the transmissions that the last reduction covers.
#[derive(Debug, Default)]
pub(super) struct RecoveryState {
    current: Option<Recovery>,
    /// The first transmission after the last reduction or time-out, which covers the losses of all
    /// earlier transmissions. An undo restores the value of the previous reduction.
    answered: TxNo,
}

/// The effect of the current recovery on a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// The loss starts a recovery; the window was already reduced for a mark.
    Begins,
    /// The loss belongs to the current recovery.
    Continues,
    /// No recovery covers the loss.
    Nothing,
}

impl RecoveryState {
    pub(super) fn phase(&self) -> Phase {
        self.current.map_or(Phase::Open, |recovery| recovery.phase)
    }

    /// Returns whether there is a recovery, even if its time is over.
    pub(super) const fn is_on(&self) -> bool {
        self.current.is_some()
    }

    /// Returns whether there is a recovery whose time is not over.
    pub(super) fn is_running(&self, now: Instant) -> bool {
        self.current.is_some_and(|recovery| !recovery.is_over(now))
    }

    /// Returns whether there is a recovery whose time is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.current.is_some_and(|recovery| recovery.is_over(now))
    }

    /// Returns whether the last reduction or time-out covers the loss of `tx`.
    pub(super) fn answers(&self, tx: TxNo) -> bool {
        tx < self.answered
    }

    /// Returns the value that an undo of the next reduction restores.
    pub(super) const fn answered(&self) -> TxNo {
        self.answered
    }

    /// Returns the recovery that a time-out interrupts; `None` if that is itself one of a time-out.
    pub(super) fn interrupted(&self) -> Option<Recovery> {
        self.current.filter(|recovery| recovery.phase != Phase::Loss)
    }

    /// Returns the effect of the current recovery on a loss at `lost`. If the window was reduced
    /// for a mark in the same window of data, `next` replaces the current recovery.
    pub(super) fn on_loss(&mut self, now: Instant, lost: ExtSeq, next: Recovery) -> Answer {
        match &mut self.current {
            Some(before) if before.phase == Phase::Cwr && before.point > lost => {
                *before = next;
                Answer::Begins
            }
            Some(before) if before.phase != Phase::Cwr && !before.is_over(now) => Answer::Continues,
            _ => Answer::Nothing,
        }
    }

    /// Returns whether the last reduction covers the mark echoed by an ACK of `una`; `oldest` is
    /// the oldest transmission on the board. A recovery that ends by time may be over before the
    /// peer has received anything sent after the reduction, so the transmissions count as well.
    pub(super) fn answers_mark(&self, now: Instant, una: ExtSeq, oldest: TxNo) -> bool {
        let is_old_mark = |before: Recovery| before.phase == Phase::Cwr && before.point < una;
        let goes_on = |before: Recovery| !before.is_over(now) && !is_old_mark(before);
        self.answers(oldest) || self.current.is_some_and(goes_on)
    }

    /// Starts a recovery; `next` is the first transmission after the reduction. Returns whether it
    /// replaces another recovery.
    pub(super) fn begin(&mut self, recovery: Recovery, next: TxNo) -> bool {
        self.answered = next;
        self.current.replace(recovery).is_some()
    }

    /// Starts the retransmission of everything below `point`, without a reduction.
    pub(super) fn repeat(&mut self, point: ExtSeq) {
        if self.phase() != Phase::Loss {
            self.current = Some(Recovery::of_repeating(point));
        }
    }

    /// Restores the state before the last reduction: `before` and `answered`.
    pub(super) fn restore(
        &mut self,
        now: Instant,
        una: ExtSeq,
        before: Option<Recovery>,
        answered: TxNo,
    ) {
        self.current = before.filter(|recovery| recovery.lasts(now, una));
        self.answered = answered;
    }

    /// Processes an ACK of `ack`; `advances` is whether it advances SND.UNA, and `is_all_acked`
    /// whether nothing is outstanding after it. Returns whether it ends the recovery.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: ExtSeq,
        advances: bool,
        is_all_acked: bool,
    ) -> bool {
        let Some(recovery) = &mut self.current else { return false };
        // With nothing outstanding, no old echoes can follow.
        let marked_and_done = recovery.phase == Phase::Cwr && is_all_acked;
        if marked_and_done || !recovery.lasts(now, ack) {
            return true;
        }
        if recovery.opens_early && recovery.phase == Phase::Recovery && advances {
            recovery.phase = Phase::Open;
        }
        false
    }

    /// Ends the recovery.
    pub(super) fn finish(&mut self) {
        self.current = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testkit::{ms, seq};

    /// A recovery from losses below segment 10, which started at 100 ms.
    fn after(end: RecoveryEnd) -> RecoveryState {
        let mut state = RecoveryState::default();
        assert!(!state.begin(Recovery::of_loss(ms(100), seq(10), end), TxNo(20)));
        state
    }

    fn marked() -> RecoveryState {
        let mut state = RecoveryState::default();
        state.begin(Recovery::of_mark(seq(10)), TxNo(20));
        state
    }

    #[test]
    fn a_recovery_ends_at_its_point_and_covers_earlier_transmissions() {
        let mut state = after(RecoveryEnd::RecoveryPoint);
        assert_eq!((state.phase(), state.is_running(ms(9_000))), (Phase::Recovery, true));
        assert!(!state.on_ack(ms(200), seq(9), true, false));
        assert_eq!(state.phase(), Phase::Recovery);
        assert!(state.on_ack(ms(200), seq(10), true, false));
        state.finish();
        assert_eq!((state.phase(), state.is_on()), (Phase::Open, false));
        assert!(state.answers(TxNo(19)) && !state.answers(TxNo(20)));
    }

    #[test]
    fn a_detection_may_end_a_recovery_at_the_first_advance_or_by_time() {
        let mut early = after(RecoveryEnd::FirstAdvance);
        assert!(!early.on_ack(ms(200), seq(0), false, false));
        assert_eq!(early.phase(), Phase::Recovery);
        assert!(!early.on_ack(ms(200), seq(1), true, false));
        assert_eq!((early.phase(), early.is_running(ms(200))), (Phase::Open, true));
        let mut timed = after(RecoveryEnd::After(Duration::from_millis(50)));
        assert!(timed.is_running(ms(150)) && !timed.is_over(ms(150)));
        assert!(!timed.is_running(ms(151)) && timed.is_over(ms(151)) && timed.is_on());
        assert!(!timed.on_ack(ms(150), seq(10), true, false), "no ACK ends it before");
        assert!(timed.on_ack(ms(151), seq(0), false, false));
    }

    #[test]
    fn a_loss_reduces_once_and_not_where_a_mark_has_in_the_same_window() {
        let next = Recovery::of_loss(ms(200), seq(30), RecoveryEnd::RecoveryPoint);
        let on_loss = |mut state: RecoveryState, lost| {
            let answer = state.on_loss(ms(200), seq(lost), next);
            (answer, state)
        };
        assert_eq!(on_loss(RecoveryState::default(), 5).0, Answer::Nothing);
        assert_eq!(on_loss(after(RecoveryEnd::RecoveryPoint), 5).0, Answer::Continues);
        let over = after(RecoveryEnd::After(Duration::from_millis(50)));
        assert_eq!(on_loss(over, 5).0, Answer::Nothing);
        assert_eq!(on_loss(marked(), 10).0, Answer::Nothing);
        let (answer, state) = on_loss(marked(), 9);
        assert_eq!((answer, state.phase()), (Answer::Begins, Phase::Recovery));
        assert!(state.answers(TxNo(19)) && !state.answers(TxNo(20)), "it is no new reduction");
    }

    #[test]
    fn a_mark_reduces_once_in_a_round_trip() {
        let unanswered = |state: &RecoveryState, una, oldest| {
            !state.answers_mark(ms(200), seq(una), TxNo(oldest))
        };
        assert!(unanswered(&RecoveryState::default(), 5, 0));
        let mut state = marked();
        assert!(!unanswered(&state, 5, 3) && !unanswered(&state, 10, 20));
        assert!(unanswered(&state, 11, 20), "it marks what left after the reduction");
        assert!(!state.on_ack(ms(200), seq(10), true, false), "the echo may still be an old one");
        assert!(state.on_ack(ms(200), seq(10), true, true));
        state.finish();
        assert!(!unanswered(&state, 10, 19) && unanswered(&state, 10, 20));
    }

    #[test]
    fn an_undo_restores_the_recovery_that_a_time_out_interrupted_if_it_lasts() {
        let mut state = after(RecoveryEnd::RecoveryPoint);
        let (before, answered) = (state.interrupted(), state.answered());
        assert!(state.begin(Recovery::of_repeating(seq(30)), TxNo(40)), "in place of another");
        assert_eq!((state.phase(), state.interrupted()), (Phase::Loss, None));
        state.repeat(seq(50));
        assert!(state.on_ack(ms(200), seq(30), true, false), "the time-out's point stays");
        state.restore(ms(200), seq(5), before, answered);
        assert_eq!((state.phase(), state.answered()), (Phase::Recovery, TxNo(20)));
        state.restore(ms(200), seq(10), before, answered);
        assert_eq!(state.phase(), Phase::Open);
        state.repeat(seq(50));
        assert_eq!(state.phase(), Phase::Loss);
        assert!(!state.on_ack(ms(200), seq(49), true, false));
    }
}
