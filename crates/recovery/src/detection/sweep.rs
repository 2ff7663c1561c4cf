//! Shared by `rack` and `le`: transmissions are examined in the order sent, and those sent before a
//! delivered one may be lost.

use airtcp_types::{Instant, TxNo};

use super::Findings;
use crate::board::Board;
use crate::transmission::{Delivered, Transmission, TxState};
use crate::view::{AckView, View};

/// An iteration over the board in the order sent that judges each transmission once, so that the
/// cost of an ACK is proportional to what it newly reports.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// All transmissions with smaller numbers were judged, or were no longer in flight.
    next: TxNo,
    /// Transmissions from this number on have not been reported as suspect.
    suspected: TxNo,
}

impl Sweep {
    /// Starts at the oldest transmission on the board.
    pub(super) fn from_oldest(board: &Board) -> Self {
        Self { next: board.oldest_tx(), suspected: board.oldest_tx() }
    }

    /// Reports the transmissions in flight below `passed` as lost, up to the first for which
    /// `is_lost` returns false. That one is reported as suspect and returned.
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

/// Returns whether an earlier transmission of retransmitted bytes arrived, rather than the latest
/// (RFC 8985 section 6.2): the latest was sent less than the smallest RTT ago, or it is newer than
/// the echoed time stamp.
///
/// The echoed time stamp applies only to cumulatively acknowledged data: above a hole, a receiver
/// keeps echoing the time stamp of the last segment in order (RFC 7323 section 4.3).
pub(crate) fn earlier_arrived(acked: &Delivered, ack: &AckView<'_>, view: &View<'_>) -> bool {
    let stamp = || Instant::from_millis(acked.sent_at.as_millis());
    let older_stamp = || acked.cumulative && ack.echo.is_some_and(|echo| echo < stamp());
    let too_soon = || view.rtt.min().is_some_and(|min| ack.now.since(acked.sent_at) < min);
    acked.resent > 0 && (older_stamp() || too_soon())
}
