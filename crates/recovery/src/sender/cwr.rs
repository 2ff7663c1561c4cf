//! Answers to marks (RFC 3168 section 6.1.2): the peer echoes that a packet came with CE.

use airtcp_types::{ExtSeq, Instant};

use super::Sender;
use super::losses::Episode;
use crate::judge::Cause;

impl Sender {
    /// One reduction for all that is outstanding, and none where a loss, or an earlier mark, has brought one. An ACK up to
    /// `una` that ends a reduction for a mark is of what left after it.
    pub(super) fn on_mark_echoed(&mut self, now: Instant, una: ExtSeq) {
        if self.taken_over().marks {
            // The peer expects CWR all the same.
            if una.wire() > self.mark_point || self.mark_answers == 0 {
                self.mark_point = self.core.board.snd_nxt().wire();
                self.mark_answers = self.mark_answers.wrapping_add(1).max(1);
            }
            return;
        }
        // No repair was needless: what is to show a reduction spurious shows nothing of one for a mark.
        self.undo = None;
        let goes_on = |episode: &Episode| !episode.is_over(now) && !episode.is_of_mark_before(una);
        if !self.core.episode.as_ref().is_some_and(goes_on) {
            let episode = Episode::of_mark(self.core.board.snd_nxt());
            self.begin_reduction(now, Cause::Mark, episode);
        }
    }
}
