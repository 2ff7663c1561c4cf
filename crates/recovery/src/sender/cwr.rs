//! Response to ECN marks (RFC 3168 section 6.1.2): the peer echoes that a packet arrived with CE.

use airtcp_types::{ExtSeq, Instant, SeqNumber};

use super::Sender;
use super::recovery::Recovery;
use crate::judge::Cause;

/// The round trips in which a control that responds to marks itself received one; the peer expects
/// CWR for each. A [`SeqNumber`] keeps every connection small.
#[derive(Debug, Default)]
pub(super) struct MarkAnswers {
    /// SND.NXT at the start of the last such round trip.
    point: Option<SeqNumber>,
}

impl MarkAnswers {
    /// Handles an ACK up to `una` that echoes a mark; returns whether it starts such a round trip.
    fn on_echo(&mut self, una: ExtSeq, snd_nxt: ExtSeq) -> bool {
        let begins = self.point.is_none_or(|point| una.wire() > point);
        if begins {
            self.point = Some(snd_nxt.wire());
        }
        begins
    }
}

impl Sender {
    /// Reduces the window once for all outstanding data, unless a loss or an earlier mark has
    /// reduced it for that data. An ACK above the point of an earlier mark's reduction echoes a
    /// mark of data sent after that reduction.
    pub(super) fn on_mark_echoed(&mut self, now: Instant, una: ExtSeq) {
        if self.strategies.taken_over().marks {
            self.reduced |= self.mark_answers.on_echo(una, self.core.board.snd_nxt());
            return;
        }
        // The signs of a spurious reduction concern losses; they say nothing of a reduction for a
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
