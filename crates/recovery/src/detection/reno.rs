//! `reno`: three duplicate ACKs, and a recovery that ends with the first new one (RFC 5681).

use airtcp_types::{ByteCount, ExtSeq};

use super::{EpisodeEnd, Findings, LossDetection};
use crate::board::Board;
use crate::view::{AckView, Phase, View};

/// RFC 5681 section 3.2.
pub(super) const DUP_THRESH: u32 = 3;

/// The duplicate ACKs since SND.UNA last advanced, and the credit they give.
///
/// What RFC 5681 adds to cwnd for each duplicate ACK is taken from the pipe here instead: the
/// segment that caused it is no longer in the network.
#[derive(Debug, Default)]
pub(super) struct DupAcks {
    count: u32,
    credit: ByteCount,
}

impl DupAcks {
    /// Counts one, and gives how many there are now.
    ///
    /// The credit is never more than what is in flight: RFC 5681 section 3.2 allows that limit
    /// against receivers that make duplicate ACKs up.
    pub(super) fn count_one(&mut self, view: &View<'_>) -> u32 {
        self.count = self.count.saturating_add(1);
        self.credit = (self.credit + view.smss).min(unacknowledged(view.board));
        self.count
    }

    /// SND.UNA advanced by a partial ACK: what it covers beyond the hole had given credit.
    pub(super) fn on_partial_ack(&mut self, acked: ByteCount, smss: ByteCount) {
        self.count = 0;
        self.credit -= acked - smss;
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes in flight less the credit.
    pub(super) fn pipe(&self, board: &Board) -> ByteCount {
        unacknowledged(board) - self.credit
    }
}

/// Bytes in flight for a detector without eyes for SACK: what a block tells to have arrived, its
/// duplicate ACK has given credit for already.
fn unacknowledged(board: &Board) -> ByteCount {
    board.in_flight() + board.sacked()
}

/// Fast retransmit on the third duplicate ACK. Of several losses in a window each needs three
/// duplicate ACKs of its own.
#[derive(Debug, Default)]
pub struct Reno {
    dup_acks: DupAcks,
    /// After a time-out, duplicate ACKs up to here are echoes of go-back-N (RFC 6582 section 4.1).
    recover: Option<ExtSeq>,
}

impl LossDetection for Reno {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        if ack.acked > ByteCount::ZERO {
            self.dup_acks.clear();
            self.recover = self.recover.filter(|recover| ack.ack <= *recover);
        }
        if !ack.duplicate || view.phase == Phase::Loss || self.recover.is_some() {
            return;
        }
        let Some(first) = view.board.first() else { return };
        match self.dup_acks.count_one(view) {
            1 => out.suspect(first.tx),
            DUP_THRESH => out.lost_immediate(first.tx),
            _ => {}
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.dup_acks.clear();
        self.recover = Some(view.board.snd_nxt());
    }

    fn on_undo(&mut self, _: &View<'_>) {
        *self = Self::default();
    }

    fn pipe(&self, board: &Board) -> ByteCount {
        self.dup_acks.pipe(board)
    }

    fn episode_end(&self, _: &View<'_>) -> EpisodeEnd {
        EpisodeEnd::FirstAdvance
    }
}
