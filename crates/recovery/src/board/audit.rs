//! Consistency check of the board.

use airtcp_types::ByteCount;

use crate::transmission::TxState;

use super::Board;

impl Board {
    /// Recounts everything and compares: every transmission has one state, every byte is counted,
    /// every index is right. For tests; takes linear time.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub fn audit(&self) -> Result<(), String> {
        let sum = |state| -> ByteCount {
            self.in_order_sent().filter(|t| t.state == state).map(|t| t.range.len()).sum()
        };
        let check = |what: &str, held: ByteCount, counted: ByteCount| {
            if held == counted {
                Ok(())
            } else {
                Err(format!("{what}: {held:?} held, {counted:?} counted"))
            }
        };
        check("in flight", self.in_flight_bytes, sum(TxState::InFlight))?;
        check("lost", self.lost_bytes, sum(TxState::Lost))?;
        check("sacked", self.sacked_bytes, sum(TxState::Sacked))?;
        if let Some(empty) = self.in_order_sent().find(|sent| sent.range.is_empty()) {
            return Err(format!("{empty:?} is not acknowledged, and has no bytes"));
        }
        let mut next = self.snd_una;
        for segment in &self.segments {
            if segment.range.start != next || segment.range.is_empty() {
                return Err(format!("segment {:?} does not start at {next:?}", segment.range));
            }
            next = segment.range.end;
            let latest = self.latest_of(segment).ok_or("a segment without transmission")?;
            if latest.range != segment.range || latest.state == TxState::Superseded {
                return Err(format!("{segment:?} disagrees with {latest:?}"));
            }
            let listed = self.lost.get(&segment.range.start) == Some(&latest.tx);
            if listed != (latest.state == TxState::Lost) {
                return Err(format!("{latest:?} and the list of lost segments disagree"));
            }
        }
        let mut tx = self.next_spelled();
        for run in &self.runs {
            let first = run.first();
            let is_fresh = first.state == TxState::InFlight && first.previous.is_none();
            if run.range().start != next || first.tx != tx || run.is_empty() || !is_fresh {
                return Err(format!("{run:?} does not follow {tx:?} and {next:?}"));
            }
            (next, tx) = (run.range().end, run.next_tx());
        }
        if next != self.snd_nxt {
            return Err(format!("segments end at {next:?}, SND.NXT is {:?}", self.snd_nxt));
        }
        Ok(())
    }
}
