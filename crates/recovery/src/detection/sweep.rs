//! What `rack` and `le` have in common: they look at transmissions in the order sent, and what was
//! sent before something that has arrived may be lost.

use airtcp_types::{Instant, TxNo};

use super::Findings;
use crate::board::Board;
use crate::transmission::{Delivered, Transmission, TxState};
use crate::view::{AckView, View};

/// A walk over the board in the order sent that judges each transmission once, so that an ACK costs
/// no more than what it tells.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// All transmissions with smaller numbers are judged, or were no longer in flight.
    next: TxNo,
    /// No transmission from here on has been suspected.
    suspected: TxNo,
}

impl Sweep {
    /// From the oldest transmission on the board.
    pub(super) fn from_oldest(board: &Board) -> Self {
        Self { next: board.oldest_tx(), suspected: board.oldest_tx() }
    }

    /// Reports those in flight below `passed` that `is_lost` holds of, up to the first that it does
    /// not hold of; that one is a suspect, and given back.
    pub(super) fn judge(
        &mut self,
        board: &Board,
        passed: TxNo,
        out: &mut Findings,
        mut is_lost: impl FnMut(&Transmission) -> bool,
    ) -> Option<Transmission> {
        self.next = self.next.max(board.oldest_tx());
        while self.next < passed {
            let sent = board.get(self.next).filter(|sent| sent.state == TxState::InFlight);
            if let Some(sent) = sent {
                if !is_lost(&sent) {
                    if self.suspected <= sent.tx {
                        self.suspected = TxNo(sent.tx.0 + 1);
                        out.suspect(sent.tx);
                    }
                    return Some(sent);
                }
                out.lost(sent.tx);
            }
            self.next = TxNo(self.next.0 + 1);
        }
        None
    }
}

/// Whether of bytes that were sent more than once an earlier sending arrived, and not the latest
/// (RFC 8985 section 6.2): the latest left less than the smallest round-trip time ago, or the
/// echoed time stamp is older than it.
///
/// Only what the ACK covers cumulatively has its time stamp echoed: above a hole a receiver goes on
/// echoing that of the last segment in order (RFC 7323 section 4.3).
pub(crate) fn earlier_arrived(acked: &Delivered, ack: &AckView<'_>, view: &View<'_>) -> bool {
    let stamp = || Instant::from_millis(acked.sent_at.as_millis());
    let older_stamp = || acked.cumulative && ack.echo.is_some_and(|echo| echo < stamp());
    let too_soon = || view.rtt.min().is_some_and(|min| ack.now.since(acked.sent_at) < min);
    acked.resent > 0 && (older_stamp() || too_soon())
}
