//! `reno`: three duplicate ACKs, and a recovery that ends with the first new ACK (RFC 5681).

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

/// The duplicate ACKs since SND.UNA last advanced, and their credit.
///
/// RFC 5681 adds a segment to cwnd for each duplicate ACK. Here it is subtracted from the pipe
/// instead, because the segment that caused the duplicate ACK has left the network.
#[derive(Debug, Default)]
pub(super) struct DupAcks {
    count: u32,
    credit: ByteCount,
    /// After a time-out, duplicate ACKs up to here are caused by retransmissions of data that had
    /// arrived (RFC 6582 section 4.1).
    going_back_to: Option<ExtSeq>,
    /// Transmissions with smaller numbers were sent before counting started.
    begun_at: TxNo,
}

impl DupAcks {
    /// Starts counting, possibly during a recovery.
    pub(super) fn begin(board: &Board) -> Self {
        Self { begun_at: board.next_tx(), ..Self::default() }
    }

    /// Returns whether `first` was retransmitted before counting started: further duplicate ACKs
    /// may still report the loss that it repairs.
    pub(super) fn is_repaired(&self, first: &Transmission) -> bool {
        first.resent > 0 && first.tx < self.begun_at
    }

    /// Counts a duplicate ACK; returns the number so far.
    ///
    /// The credit is limited to the data in flight. RFC 5681 section 3.2 permits this limit,
    /// against receivers that send false duplicate ACKs.
    pub(super) fn count_one(&mut self, view: &View<'_>) -> u32 {
        self.count = self.count.saturating_add(1);
        self.credit = (self.credit + view.smss).min(self.unacknowledged(view.board));
        self.count
    }

    /// Returns whether duplicate ACKs carry no information, because of a time-out.
    pub(super) const fn are_echoes(&self) -> bool {
        self.going_back_to.is_some()
    }

    /// Handles an advance of SND.UNA to `ack`.
    pub(super) fn on_advance(&mut self, ack: ExtSeq) {
        self.going_back_to = self.going_back_to.filter(|point| ack <= *point);
    }

    /// Handles the expiry of the retransmission timer: all outstanding data is retransmitted in
    /// order.
    pub(super) fn on_timeout(&mut self, snd_nxt: ExtSeq) {
        *self = Self { going_back_to: Some(snd_nxt), ..Self::default() };
    }

    /// Handles a partial ACK: removes the credit of the data that it covers beyond the hole.
    pub(super) fn on_partial_ack(&mut self, acked: ByteCount, smss: ByteCount) {
        self.count = 0;
        self.credit -= acked - smss;
    }

    pub(super) fn clear(&mut self) {
        (self.count, self.credit) = (0, ByteCount::ZERO);
    }

    /// Returns the bytes in flight minus the credit.
    pub(super) fn pipe(&self, board: &Board) -> ByteCount {
        self.unacknowledged(board) - self.credit
    }

    /// Returns the bytes in flight for a detection that ignores SACK: SACKed data counts, because
    /// its duplicate ACK has already given credit. After a time-out, data sent before it is not in
    /// flight, whether it arrived or not.
    fn unacknowledged(&self, board: &Board) -> ByteCount {
        let sacked = if self.are_echoes() { ByteCount::ZERO } else { board.sacked() };
        board.in_flight() + sacked
    }
}

/// Fast retransmit on the third duplicate ACK. If several segments of a window are lost, each needs
/// three duplicate ACKs of its own.
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
