//! `reno`: three duplicate ACKs, and a recovery that ends with the first new one (RFC 5681).

use airtcp_types::{ByteCount, ExtSeq, TxNo};

use super::{Findings, LossDetection, RecoveryEnd};
use crate::board::Board;
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::Transmission;
use crate::view::{AckView, Phase, View};

pub(crate) const RENO: Entry<dyn LossDetection> = Entry {
    name: "reno",
    parameter: "",
    example: None,
    summary: "fast retransmit after three duplicate ACKs; recovery ends with the first new ACK",
    source: "RFC 5681",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Reno::default()) as _),
};

/// The duplicate ACKs since SND.UNA last advanced, and the credit they give.
///
/// What RFC 5681 adds to cwnd for each duplicate ACK is taken from the pipe here instead: the
/// segment that caused it is no longer in the network.
#[derive(Debug, Default)]
pub(super) struct DupAcks {
    count: u32,
    credit: ByteCount,
    /// After a time-out, duplicate ACKs up to here are echoes of going back (RFC 6582 section 4.1).
    going_back_to: Option<ExtSeq>,
    /// Transmissions with smaller numbers left before the counting began.
    begun_at: TxNo,
}

impl DupAcks {
    /// Counts from here on, perhaps in the midst of a recovery.
    pub(super) fn begin(board: &Board) -> Self {
        Self { begun_at: board.next_tx(), ..Self::default() }
    }

    /// Whether `first` is a repair from before the counting began: the duplicate ACKs that go on
    /// may tell of the loss that it repairs.
    pub(super) fn is_repaired(&self, first: &Transmission) -> bool {
        first.resent > 0 && first.tx < self.begun_at
    }

    /// Counts one, and gives how many there are now.
    ///
    /// The credit is never more than what is in flight: RFC 5681 section 3.2 allows that limit
    /// against receivers that make duplicate ACKs up.
    pub(super) fn count_one(&mut self, view: &View<'_>) -> u32 {
        self.count = self.count.saturating_add(1);
        self.credit = (self.credit + view.smss).min(self.unacknowledged(view.board));
        self.count
    }

    /// Whether duplicate ACKs tell nothing, because of a time-out.
    pub(super) const fn are_echoes(&self) -> bool {
        self.going_back_to.is_some()
    }

    /// SND.UNA advanced to `ack`.
    pub(super) fn on_advance(&mut self, ack: ExtSeq) {
        self.going_back_to = self.going_back_to.filter(|point| ack <= *point);
    }

    /// The retransmission timer ran out: everything outstanding is sent again, from the first on.
    pub(super) fn on_timeout(&mut self, snd_nxt: ExtSeq) {
        *self = Self { going_back_to: Some(snd_nxt), ..Self::default() };
    }

    /// SND.UNA advanced by a partial ACK: what it covers beyond the hole had given credit.
    pub(super) fn on_partial_ack(&mut self, acked: ByteCount, smss: ByteCount) {
        self.count = 0;
        self.credit -= acked - smss;
    }

    pub(super) fn clear(&mut self) {
        (self.count, self.credit) = (0, ByteCount::ZERO);
    }

    /// Bytes in flight less the credit.
    pub(super) fn pipe(&self, board: &Board) -> ByteCount {
        self.unacknowledged(board) - self.credit
    }

    /// Bytes in flight for a detector without eyes for SACK: what a block tells to have arrived,
    /// its duplicate ACK has given credit for already. Going back, what was sent before the
    /// time-out is not in flight, arrived or not.
    fn unacknowledged(&self, board: &Board) -> ByteCount {
        let sacked = if self.are_echoes() { ByteCount::ZERO } else { board.sacked() };
        board.in_flight() + sacked
    }
}

/// Fast retransmit on the third duplicate ACK. Of several losses in a window each needs three
/// duplicate ACKs of its own.
#[derive(Debug, Default)]
pub struct Reno {
    dup_acks: DupAcks,
}

impl LossDetection for Reno {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        if ack.acked > ByteCount::ZERO {
            self.dup_acks.clear();
            self.dup_acks.on_advance(ack.ack);
        }
        if !ack.duplicate || view.phase == Phase::Loss || self.dup_acks.are_echoes() {
            return;
        }
        let Some(first) = view.board.first() else { return };
        match self.dup_acks.count_one(view) {
            _ if self.dup_acks.is_repaired(&first) => {}
            count if count == view.dup_thresh => out.lost_immediate(first.tx),
            1 => out.suspect(first.tx),
            _ => {}
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.dup_acks.on_timeout(view.board.snd_nxt());
    }

    fn on_undo(&mut self, view: &View<'_>) {
        self.dup_acks = DupAcks::begin(view.board);
    }

    fn pipe(&self, board: &Board) -> ByteCount {
        self.dup_acks.pipe(board)
    }

    fn recovery_end(&self, _: &View<'_>) -> RecoveryEnd {
        RecoveryEnd::FirstAdvance
    }
}
