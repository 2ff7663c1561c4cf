//! `hack`: what a special ACK tells to have been corrupted is repaired and leaves the window alone
//! (HACK 3.3).

use airtcp_types::{ExtSeq, RangeSet, TxNo};

use super::{Cause, LossJudge, Raised, Ruling, When};
use crate::board::TxState;
use crate::detection::Finding;
use crate::registry::{Entry, WireNeeds, no_parameter};
use crate::view::{AckView, View};

pub(crate) const HACK: Entry<dyn LossJudge> = Entry {
    name: "hack",
    parameter: "",
    example: None,
    summary: "segments whose header survived are told apart from lost ones, and repaired at no cost",
    source: "Balan et al. 2002",
    needs: WireNeeds { hack: true, ..WireNeeds::NONE },
    fallback: None,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Hack::default()) as _),
};

const CORRUPTED: Ruling =
    Ruling { repair: When::Now, reduce: When::Never, cause: Cause::Corruption };

/// Header checksums: the sender's side.
#[derive(Clone, Debug, Default)]
pub struct Hack {
    /// Bytes of which a transmission was told to have been corrupted.
    notified: RangeSet,
    /// The latest transmission known to have arrived.
    newest: TxNo,
}

impl LossJudge for Hack {
    fn on_ack(&mut self, ack: &AckView<'_>, _: &View<'_>, _: &mut Raised) {
        self.notified.remove_below(ack.ack);
        let newest = ack.newly.iter().map(|told| told.tx).max();
        self.newest = newest.map_or(self.newest, |newest| newest.max(self.newest));
    }

    /// The oldest transmission of the segment that is still held to be in flight is the one.
    ///
    /// Not believed: a number at which no segment starts; data that has arrived; and word that comes
    /// sooner than a round trip after the latest transmission, since a special ACK that the network
    /// sends twice must not open a way round cwnd.
    fn on_special_ack(&mut self, seq: ExtSeq, view: &View<'_>, out: &mut Raised) {
        let board = view.board;
        let starts_here = board.at(seq).filter(|sent| sent.range.start == seq);
        let Some(latest) = starts_here.filter(|sent| sent.state != TxState::Sacked) else { return };
        if view.rtt.min().is_some_and(|min| view.now.since(latest.sent_at) < min) {
            return;
        }
        let mut corrupted = None;
        let mut next = Some(latest);
        while let Some(sent) = next {
            if sent.state == TxState::InFlight {
                corrupted = Some(sent.tx);
            }
            next = sent.previous().and_then(|tx| board.get(tx));
        }
        if let Some(tx) = corrupted {
            self.notified.insert(latest.range);
            out.loss(tx, CORRUPTED);
        }
    }

    /// SACK blocks go on telling of the hole. What they tell is no other loss, as long as nothing
    /// that was sent after the repair has arrived.
    ///
    /// Without SACK three duplicate ACKs cause the needless fast retransmit that the paper admits
    /// (HACK 5.2).
    fn rule(&mut self, finding: &Finding, view: &View<'_>, _: bool) -> Option<Ruling> {
        let board = view.board;
        let range = board.get(finding.tx)?.range;
        if !view.sack || !self.notified.covers(range) {
            return None;
        }
        let latest = board.at(range.start)?;
        let lost_again =
            latest.tx == finding.tx && latest.state == TxState::InFlight && self.newest > latest.tx;
        (!lost_again).then_some(Ruling { repair: When::Never, ..CORRUPTED })
    }
}

#[cfg(test)]
#[path = "hack_tests.rs"]
mod tests;
