//! Response to ECN marks (RFC 3168 section 6.1.2): the peer echoes that a packet arrived with CE.

use airtcp_types::{ExtSeq, Instant, SeqNumber};

use super::Sender;
use super::recovery::Recovery;
use crate::judge::Cause;

/// The round trips in which a control that answers marks itself heard of one: the peer expects CWR
/// all the same. Every connection has it, and is to be small.
#[derive(Debug, Default)]
pub(super) struct MarkAnswers {
    /// SND.NXT when the last of them began.
    point: Option<SeqNumber>,
}

impl MarkAnswers {
    /// An ACK up to `una` echoes a mark; gives whether that begins such a round trip.
    fn on_echo(&mut self, una: ExtSeq, snd_nxt: ExtSeq) -> bool {
        let begins = self.point.is_none_or(|point| una.wire() > point);
        if begins {
            self.point = Some(snd_nxt.wire());
        }
        begins
    }
}

impl Sender {
    /// One reduction for all that is outstanding, and none where a loss, or an earlier mark, has
    /// brought one. An ACK up to `una` that ends a reduction for a mark is of what left after it.
    pub(super) fn on_mark_echoed(&mut self, now: Instant, una: ExtSeq) {
        if self.strategies.taken_over().marks {
            self.reduced |= self.mark_answers.on_echo(una, self.core.board.snd_nxt());
            return;
        }
        // No repair was needless: what is to show a reduction spurious shows nothing of one for a
        // mark.
        self.undo.stop();
        if !self.core.recovery.answers_mark(now, una, self.core.board.oldest_tx()) {
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
        let mut answers = MarkAnswers::default();
        let mut begins = |una, nxt| answers.on_echo(ExtSeq(una), ExtSeq(nxt));
        assert_eq!(
            [begins(1, 1_001), begins(501, 1_501), begins(1_001, 2_001)],
            [true, false, false]
        );
        assert_eq!(
            [begins(1_002, 2_001), begins(2_001, 3_001), begins(2_002, 3_001)],
            [true, false, true]
        );
    }
}
