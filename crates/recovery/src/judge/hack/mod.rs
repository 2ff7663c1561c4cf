//! `hack`: a segment that a special ACK reports as corrupted is retransmitted without reducing the
//! window (HACK 3.3).

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

/// The sender's part of HACK (header checksums).
#[derive(Clone, Debug, Default)]
pub struct Hack {
    /// The transmissions reported as corrupted.
    reported: BTreeSet<TxNo>,
    /// The latest transmission known to be delivered.
    newest: TxNo,
}

/// A segment that was retransmitted this often is left to the time-out. Each retransmission of the
/// oldest segment restarts the timer, and a peer must not be able to keep a connection open
/// forever. If half of the packets are corrupted, this affects one segment in 65,536.
const MOST_REPAIRS: u32 = 16;

impl LossJudge for Hack {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, _: &mut Raised) {
        let oldest = view.board.oldest_tx();
        while self.reported.first().is_some_and(|tx| *tx < oldest) {
            self.reported.pop_first();
        }
        // Retransmitted data may have been acknowledged because an earlier transmission arrived,
        // which says nothing about the latest.
        let arrived = ack.newly.iter().filter(|acked| !earlier_arrived(acked, ack, view));
        let newest = arrived.map(|acked| acked.tx).max();
        self.newest = newest.map_or(self.newest, |newest| newest.max(self.newest));
    }

    /// Attributes the report to the oldest transmission of the segment that is still in flight. If
    /// a time-out has marked all of them lost, the report is attributed to the oldest one not yet
    /// reported, and only recorded, because the time-out may turn out to be spurious.
    ///
    /// Ignores a sequence number at which no segment starts, delivered data, a segment that was
    /// retransmitted `MOST_REPAIRS` times, and a report less than a round trip after the
    /// transmission: a special ACK that the network duplicates must not be a way around cwnd.
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

    /// Keeps further SACK blocks about a reported hole from counting as another loss, until data
    /// sent after the retransmission was delivered.
    ///
    /// Without SACK, three duplicate ACKs cause the unnecessary fast retransmit that the paper
    /// describes (HACK 5.2).
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

/// Returns all transmissions of a segment, the latest first.
fn sendings(board: &Board, latest: Transmission) -> impl Iterator<Item = Transmission> {
    std::iter::successors(Some(latest), |sent| board.get(sent.previous()?))
}

#[cfg(test)]
mod tests;
