//! Answers to marks (RFC 3168 section 6.1.2): the peer echoes that a packet came with CE.

use airtcp_types::Instant;

use super::Sender;
use super::losses::Episode;
use crate::judge::Cause;
use crate::view::Phase;

impl Sender {
    /// One reduction for all that is outstanding, and none where a loss, or an earlier mark, has brought one.
    pub(super) fn on_mark_echoed(&mut self, now: Instant) {
        if self.core.episode.as_ref().is_some_and(|episode| !episode.is_over(now)) {
            return;
        }
        let episode = Episode::of_mark(self.core.board.snd_nxt());
        self.begin_reduction(now, Cause::Congestion, episode);
        // No repair was needless: what is to show a reduction spurious shows nothing of this one.
        self.undo = None;
    }

    /// A loss is found while the window is reduced for a mark: it is repaired as any other, and the window is reduced no
    /// second time. Gives whether it was so.
    pub(super) fn recover_within_reduction(&mut self, now: Instant) -> bool {
        let marked = self.core.phase() == Phase::Cwr;
        if marked {
            self.core.episode = Some(self.episode_of_loss(now));
        }
        marked
    }
}
