//! `hack`: what a special ACK tells to have been corrupted is repaired and leaves the window alone
//! (HACK 3.3).

use std::collections::BTreeSet;

use airtcp_types::{ExtSeq, TxNo};

use super::{Cause, LossJudge, Raised, Ruling, When};
use crate::board::Board;
use crate::detection::{Finding, earlier_arrived};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::{Transmission, TxState};
use crate::view::{AckView, View};

pub(crate) const HACK: Entry<dyn LossJudge> = Entry {
    name: "hack",
    parameter: "",
    example: None,
    summary: "retransmits corrupted segments with an intact header without reducing the window",
    source: "Balan et al. 2002",
    needs: WireNeeds { hack: true, ..WireNeeds::NONE },
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Hack::default()) as _),
};

const CORRUPTED: Ruling =
    Ruling { repair: When::Now, reduce: When::Never, cause: Cause::Corruption };

/// Header checksums: the sender's side.
#[derive(Clone, Debug, Default)]
pub struct Hack {
    /// The transmissions that the peer reported as corrupted.
    reported: BTreeSet<TxNo>,
    /// The latest transmission known to have arrived.
    newest: TxNo,
}

/// A segment that was sent again so often is left to the time-out: each repair of the oldest one
/// restarts the timer, and a peer must not hold a connection for ever. Where half of the packets
/// are corrupted, one segment in 65,536 comes to it.
const MOST_REPAIRS: u32 = 16;

impl LossJudge for Hack {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, _: &mut Raised) {
        let oldest = view.board.oldest_tx();
        while self.reported.first().is_some_and(|tx| *tx < oldest) {
            self.reported.pop_first();
        }
        // What was sent again may be acknowledged for an earlier transmission: it says nothing
        // about the latest.
        let arrived = ack.newly.iter().filter(|acked| !earlier_arrived(acked, ack, view));
        let newest = arrived.map(|acked| acked.tx).max();
        self.newest = newest.map_or(self.newest, |newest| newest.max(self.newest));
    }

    /// The oldest transmission of the segment that is still held to be in flight is the one. Where
    /// a time-out has given up all of them, it is the oldest that was not reported: remembered,
    /// since the time-out may have been spurious and taken back.
    ///
    /// Not believed: a number at which no segment starts; data that has arrived; a segment that was
    /// sent again so often that only the time-out is to bound it; and, of any transmission, word
    /// that comes sooner than a round trip after it, since a special ACK that the network sends
    /// twice must not open a way round cwnd.
    fn on_special_ack(&mut self, seq: ExtSeq, view: &View<'_>, out: &mut Raised) {
        let board = view.board;
        let starts_here = board.at(seq).filter(|sent| sent.range.start == seq);
        let is_believed =
            |sent: &Transmission| sent.state != TxState::Sacked && sent.resent < MOST_REPAIRS;
        let Some(latest) = starts_here.filter(is_believed) else { return };
        let min_rtt = view.rtt.min().unwrap_or_default();
        let old_enough = |sent: &Transmission| view.now.since(sent.sent_at) >= min_rtt;
        let unreported = |sent: &Transmission| !self.reported.contains(&sent.tx);
        let in_flight = |sent: &Transmission| sent.state == TxState::InFlight;
        let candidates = || sendings(board, latest).filter(old_enough);
        let flying = candidates().filter(in_flight).last();
        let given_up = candidates().filter(unreported).last();
        if let Some(corrupted) = flying.or(given_up) {
            self.reported.insert(corrupted.tx);
        }
        if let Some(corrupted) = flying {
            out.loss(corrupted.tx, CORRUPTED);
        }
    }

    /// SACK blocks go on telling of the hole. What they tell is no other loss, as long as nothing
    /// that was sent after the repair has arrived.
    ///
    /// Without SACK three duplicate ACKs cause the needless fast retransmit that the paper admits
    /// (HACK 5.2).
    fn rule(
        &mut self,
        _: &Finding,
        lost: &Transmission,
        view: &View<'_>,
        _: bool,
    ) -> Option<Ruling> {
        if !view.sack || self.reported.is_empty() {
            return None;
        }
        let board = view.board;
        let latest = board.at(lost.range.start)?;
        let reported = sendings(board, latest).find(|sent| self.reported.contains(&sent.tx))?;
        if lost.tx <= reported.tx {
            return Some(CORRUPTED);
        }
        let lost_again =
            latest.tx == lost.tx && latest.state == TxState::InFlight && self.newest > latest.tx;
        (!lost_again).then_some(Ruling { repair: When::Never, ..CORRUPTED })
    }

    fn was_reported(&self, repair: &Transmission) -> bool {
        repair.previous().is_some_and(|tx| self.reported.contains(&tx))
    }
}

/// All transmissions of a segment, the latest first.
fn sendings(board: &Board, latest: Transmission) -> impl Iterator<Item = Transmission> {
    std::iter::successors(Some(latest), |sent| board.get(sent.previous()?))
}

#[cfg(test)]
mod tests;
