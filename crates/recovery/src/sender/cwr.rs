//! Response to ECN marks (RFC 3168 section 6.1.2): the peer echoes that a packet arrived with CE.

use airtcp_types::{ExtSeq, Instant, SeqNumber};

use super::Sender;
use super::losses::Recovery;
use crate::judge::Cause;

/// The round trips in which a control that answers marks itself heard of one: the peer expects CWR
/// all the same. Every connection has it, and is to be small.
#[derive(Debug)]
pub(super) struct MarkAnswers {
    /// SND.NXT when the last of them began.
    point: SeqNumber,
    count: u16,
}

impl MarkAnswers {
    pub(super) const fn new(first: ExtSeq) -> Self {
        Self { point: first.wire(), count: 0 }
    }

    /// An ACK up to `una` echoes a mark.
    fn on_echo(&mut self, una: ExtSeq, snd_nxt: ExtSeq) {
        if una.wire() > self.point || self.count == 0 {
            self.point = snd_nxt.wire();
            self.count = self.count.wrapping_add(1).max(1);
        }
    }

    pub(super) const fn count(&self) -> u16 {
        self.count
    }
}

impl Sender {
    /// One reduction for all that is outstanding, and none where a loss, or an earlier mark, has brought one. An ACK up to
    /// `una` that ends a reduction for a mark is of what left after it.
    pub(super) fn on_mark_echoed(&mut self, now: Instant, una: ExtSeq) {
        if self.strategies.taken_over().marks {
            self.mark_answers.on_echo(una, self.core.board.snd_nxt());
            return;
        }
        // No repair was needless: what is to show a reduction spurious shows nothing of one for a mark.
        self.undo.stop();
        let goes_on =
            |recovery: &Recovery| !recovery.is_over(now) && !recovery.is_of_mark_before(una);
        // A recovery that ends by the clock may be over before the peer has received anything sent after the reduction.
        let is_answered = self.core.board.oldest_tx() < self.core.answered;
        if !is_answered && !self.core.recovery.as_ref().is_some_and(goes_on) {
            let recovery = Recovery::of_mark(self.core.board.snd_nxt());
            self.begin_reduction(now, Cause::Mark, recovery);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_answered_once() {
        let mut answers = MarkAnswers::new(ExtSeq(1));
        let mut count = |una, nxt| {
            answers.on_echo(ExtSeq(una), ExtSeq(nxt));
            answers.count()
        };
        assert_eq!([count(1, 1_001), count(501, 1_501), count(1_001, 2_001)], [1, 1, 1]);
        assert_eq!([count(1_002, 2_001), count(2_001, 3_001), count(2_002, 3_001)], [2, 2, 3]);
    }
}
