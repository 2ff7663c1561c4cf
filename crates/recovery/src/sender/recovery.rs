//! The time in which the window is reduced only once.

use airtcp_types::{ExtSeq, Instant};

use crate::view::Phase;

/// The time in which the window is reduced only once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// SND.NXT when it began.
    pub(super) point: ExtSeq,
    /// The last instant at which it is on, where it ends by the clock instead.
    pub(super) until: Option<Instant>,
    pub(super) phase: Phase,
    /// Whether the window may grow again from the first ACK that advances.
    pub(super) opens_early: bool,
}

impl Recovery {
    /// Everything below `point` is sent again, and it ends when that is acknowledged.
    pub(super) const fn of_repeating(point: ExtSeq) -> Self {
        Self { point, until: None, phase: Phase::Loss, opens_early: false }
    }

    /// Nothing is missing, and the window was reduced for a mark in what lies below `point`.
    pub(super) const fn of_mark(point: ExtSeq) -> Self {
        Self { point, until: None, phase: Phase::Cwr, opens_early: false }
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the clock has ended it.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until < now)
    }

    /// Whether it is for a mark in what left before `seq` did.
    pub(super) fn is_of_mark_before(&self, seq: ExtSeq) -> bool {
        self.phase == Phase::Cwr && self.point < seq
    }

    /// Whether it goes on with everything below `una` acknowledged.
    pub(super) fn lasts(&self, now: Instant, una: ExtSeq) -> bool {
        match (self.until, self.phase) {
            (Some(until), _) => now <= until,
            // As Linux: until the peer has something from after the reduction, which told it of that. ECE on what came
            // before is an old echo.
            (None, Phase::Cwr) => una <= self.point,
            (None, _) => una < self.point,
        }
    }
}
