//! `le`: a transmission is lost once three later ones were delivered (LE, Loss resilience).

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, TxNo};

use super::sweep::{Sweep, earlier_arrived};
use super::{Findings, LossDetection, RecoveryEnd};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::TxState;
use crate::view::{AckView, View};

pub(crate) const LE: Entry<dyn LossDetection> = Entry {
    name: "le",
    parameter: "",
    example: None,
    summary: "compares the order of transmissions; detects lost retransmissions; one reduction per loss event",
    source: "Kang, Mo 2012",
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: Some("newreno"),
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Le::default()) as _),
};

pub(crate) const LE_ECHO: Entry<dyn LossDetection> = Entry {
    name: "le:echo",
    summary: "`le` with transmission numbers in a TCP option that the peer echoes",
    needs: WireNeeds { sack: true, txno_echo: true, ..WireNeeds::NONE },
    fallback: Some("le"),
    takes_over: TakesOver::NONE,
    uses_seed: false,
    ..LE
};

/// DupThresh, a constant in the acking process (RFC 5681 section 3.2).
const DUP_THRESH: usize = 3;

/// LE's acking process on the board.
///
/// WAITLIST is the data in flight, in the order sent; RTXLIST is the data marked lost. The dupCnt
/// of an entry is the number of later transmissions that were delivered, so all entries below the
/// third-latest of these have reached DupThresh. Three numbers therefore replace all the counters.
#[derive(Debug, Default)]
pub struct Le {
    /// The latest transmissions known to be delivered, the latest first.
    arrived: [TxNo; DUP_THRESH],
    /// Retransmissions whose original was delivered late, by their first byte. Their DSACK may
    /// arrive when they are no longer on the board. Those too old to matter are removed.
    on_their_way: BTreeMap<ExtSeq, TxNo>,
    sweep: Sweep,
}

impl Le {
    /// Counts `tx` as delivered, once.
    fn count(&mut self, tx: TxNo) {
        if self.arrived.contains(&tx) {
            return;
        }
        if let Some(place) = self.arrived.iter().position(|arrived| *arrived < tx) {
            if let Some(later) = self.arrived.get_mut(place..) {
                later.rotate_right(1);
            }
            if let Some(slot) = self.arrived.get_mut(place) {
                *slot = tx;
            }
        }
    }

    /// LE 4.2: determines which transmissions triggered the ACK from the data that it newly covers.
    /// If a late original was delivered instead of its retransmission, the original counts.
    fn count_arrivals(&mut self, ack: &AckView<'_>, view: &View<'_>) {
        let echoed = ack.echoed_tx.filter(|tx| *tx < view.board.next_tx());
        for acked in ack.newly {
            let not_yet = echoed.is_some_and(|echoed| echoed < acked.tx && acked.resent > 0);
            if not_yet || earlier_arrived(acked, ack, view) {
                acked.previous.into_iter().for_each(|original| self.count(original));
                self.on_their_way.insert(acked.range.start, acked.tx);
            } else {
                acked.transmissions().for_each(|tx| self.count(tx));
            }
        }
        // A DSACK of delivered data: its latest transmission was delivered, too.
        let duplicate = ack.dsack.and_then(|dsack| match view.board.at(dsack.start) {
            None => self.on_their_way.remove(&dsack.start),
            Some(sent) => (sent.state == TxState::Sacked && sent.resent > 0).then_some(sent.tx),
        });
        duplicate.into_iter().for_each(|tx| self.count(tx));
        echoed.into_iter().for_each(|tx| self.count(tx));
    }
}

impl LossDetection for Le {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        self.count_arrivals(ack, view);
        let [latest, .., third] = self.arrived;
        self.on_their_way.retain(|_, tx| *tx > third);
        self.sweep.judge(view.board, latest, out, |sent| sent.tx < third);
    }

    fn on_timeout(&mut self, _: &View<'_>) {}

    fn on_undo(&mut self, view: &View<'_>) {
        // The transmissions delivered before the undo were misleading.
        let on_their_way = std::mem::take(&mut self.on_their_way);
        let sweep = Sweep::from_oldest(view.board);
        *self = Self { on_their_way, sweep, ..Self::default() };
    }

    fn pipe(&self, board: &crate::Board) -> ByteCount {
        // LE 2.2.2: the length of WAITLIST.
        board.in_flight()
    }

    fn recovery_end(&self, view: &View<'_>) -> RecoveryEnd {
        // LE 2.2.3: one reduction per round trip, and no other recovery.
        RecoveryEnd::After(view.rtt.srtt().unwrap_or(Duration::from_secs(1)))
    }
}

#[cfg(test)]
mod tests;
