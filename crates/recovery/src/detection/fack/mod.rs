//! `fack`: during a recovery, everything below the highest SACKed byte is lost (Mathis and Mahdavi,
//! 1996).

use airtcp_types::{ByteCount, ExtSeq, SeqRange};

use super::{Findings, LossDetection};
use crate::board::Board;
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::TxState;
use crate::view::{AckView, Phase, View};

pub(crate) const FACK: Entry<dyn LossDetection> = Entry {
    name: "fack",
    parameter: "",
    example: None,
    summary: "all data below the highest SACKed byte is lost once that byte is three segments above SND.UNA",
    source: "Mathis, Mahdavi 1996",
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: Some("newreno"),
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Fack::default()) as _),
};

/// Forward acknowledgement.
///
/// With everything below snd.fack marked lost, the bytes in flight are the paper's awnd: snd.nxt -
/// snd.fack + retran_data. A lost retransmission waits for the retransmission timer.
#[derive(Debug, Default)]
pub struct Fack {
    dup_acks: u32,
    /// The recovery point.
    recovering_to: Option<ExtSeq>,
    /// Segments below were checked for loss.
    checked_to: ExtSeq,
    /// After an undo: SACKs of data below are no evidence of loss, because they were misleading.
    evidence_from: ExtSeq,
}

impl Fack {
    /// Returns snd.fack, the end of the highest data that the receiver is known to have.
    fn forward_most(&self, board: &Board) -> ExtSeq {
        let highest = board.sacked_ranges().last().map(|range| range.end);
        highest.filter(|end| *end > self.evidence_from).unwrap_or(board.snd_una())
    }

    fn report(&mut self, view: &View<'_>, out: &mut Findings) {
        let board = view.board;
        let fack = self.forward_most(board);
        let above = fack.since(board.snd_una().max(self.evidence_from));
        let thresh = view.dup_thresh;
        let triggered = above > view.smss * u64::from(thresh) || self.dup_acks >= thresh;
        if self.recovering_to.is_none() && triggered {
            self.recovering_to = Some(board.snd_nxt());
            self.checked_to = board.snd_una();
        }
        if self.recovering_to.is_none() || fack <= self.checked_to {
            return;
        }
        let from = self.checked_to.max(board.snd_una());
        for segment in board.starting_in(SeqRange::new(from, fack)) {
            if segment.state == TxState::InFlight && segment.resent == 0 {
                out.lost(segment.tx);
            }
        }
        self.checked_to = fack;
    }
}

impl LossDetection for Fack {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        if ack.acked > ByteCount::ZERO {
            self.dup_acks = 0;
            self.recovering_to = self.recovering_to.filter(|point| ack.ack < *point);
        }
        if view.phase == Phase::Loss {
            return;
        }
        let sacks_new = ack.newly.iter().any(|delivered| !delivered.cumulative);
        if sacks_new && ack.acked == ByteCount::ZERO {
            self.dup_acks = self.dup_acks.saturating_add(1);
            if self.dup_acks == 1 && self.recovering_to.is_none() {
                view.board.first().into_iter().for_each(|first| out.suspect(first.tx));
            }
        }
        self.report(view, out);
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.dup_acks = 0;
        self.recovering_to = None;
        self.checked_to = view.board.snd_nxt();
    }

    fn on_undo(&mut self, view: &View<'_>) {
        let misled_by = view.board.sacked_ranges().last().map(|range| range.end);
        *self = Self { evidence_from: misled_by.unwrap_or_default(), ..Self::default() };
    }
}

#[cfg(test)]
mod tests;
