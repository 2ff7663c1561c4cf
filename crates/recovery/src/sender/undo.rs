//! Taking back a reduction that was spurious.
//!
//! Two signs: the ACK of a retransmission carries a time stamp from before it left, so that the
//! original had arrived (Eifel detection, RFC 3522); or the receiver reports every retransmission
//! of the episode as a duplicate (DSACK, RFC 2883 and RFC 3708). The response is RFC 4015's.

use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant};

use super::Sender;
use crate::control::Notice;
use crate::view::AckView;

/// What would show the last reduction to be spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// SND.NXT when it was made.
    point: ExtSeq,
    /// When the first retransmission since left, until the ACK that decides by time stamp.
    first_retransmission: Option<Instant>,
    retransmissions: u64,
    duplicates: u64,
}

impl Sender {
    pub(super) fn watch_for_spurious(&mut self, point: ExtSeq) {
        let watch = Undo { point, first_retransmission: None, retransmissions: 0, duplicates: 0 };
        self.undo = self.profile.undo.then_some(watch);
    }

    pub(super) fn on_retransmission(&mut self, now: Instant) {
        if let Some(undo) = &mut self.undo {
            if undo.retransmissions == 0 {
                undo.first_retransmission = Some(now);
            }
            undo.retransmissions += 1;
        }
    }

    pub(super) fn undo_if_spurious(&mut self, now: Instant, ack: &AckView<'_>) {
        let Some(undo) = self.undo.as_mut().filter(|undo| undo.retransmissions > 0) else { return };
        if ack.dsack.is_some_and(|dsack| dsack.start < undo.point) {
            undo.duplicates += 1;
        }
        let mut spurious = undo.duplicates >= undo.retransmissions;
        if ack.acked > ByteCount::ZERO
            && let Some(echo) = ack.echo
            && let Some(first) = undo.first_retransmission.take()
        {
            // RFC 3522 section 3.2 step 5. Time stamps tick in milliseconds: within the same one
            // nothing can be told.
            spurious |= echo < Instant::from_millis(first.as_millis());
        }
        if spurious {
            self.take_back(now);
        }
    }

    fn take_back(&mut self, now: Instant) {
        self.undo = None;
        self.core.episode = None;
        self.immediate = None;
        self.core.board.revive_lost();
        self.core.rtt.end_backoff();
        self.stats.undos += 1;
        let pipe = self.pipe();
        self.control.on_notice(now, pipe, &Notice::Undo);
        self.restart_rto(now);
        self.tell(|| EventKind::Undo);
    }
}
