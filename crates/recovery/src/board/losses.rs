//! Marking of losses, and their undo.

use airtcp_types::{ByteCount, TxNo};

use crate::transmission::{Transmission, TxState};

use super::Board;

impl Board {
    /// Marks `tx` lost, if it is in flight; returns whether it was.
    pub(crate) fn mark_lost(&mut self, tx: TxNo) -> bool {
        let Some(transmission) = self.get(tx) else { return false };
        if transmission.state != TxState::InFlight {
            return false;
        }
        self.spell_out(transmission.range.end);
        // A transmission whose bytes were retransmitted is superseded, not lost.
        let start = transmission.range.start;
        let latest = self.at(start).is_some_and(|latest| latest.tx == tx);
        self.set_state(tx, if latest { TxState::Lost } else { TxState::Superseded });
        true
    }

    /// Marks all data lost that is not SACKed, after the retransmission timer expired; returns the
    /// transmissions that it marked. Transmissions for which `spared` returns true stay in flight,
    /// except at SND.UNA. If the receiver has SACKed the byte at SND.UNA, it has reneged, and all
    /// its SACKs are discarded (RFC 2018 section 8).
    pub(crate) fn mark_all_lost(
        &mut self,
        spared: impl Fn(&Transmission) -> bool,
    ) -> Vec<Transmission> {
        let reneged = self.sacked.range_at(self.snd_una).is_some();
        if reneged {
            self.sacked.clear();
        }
        self.spell_out(self.snd_nxt);
        let mut marked = Vec::new();
        for index in 0..self.transmissions.len() {
            let Some(&transmission) = self.transmissions.get(index) else { break };
            let (tx, state) = (transmission.tx, transmission.state);
            let spared = transmission.range.start > self.snd_una && spared(&transmission);
            if state == TxState::InFlight && !spared {
                self.mark_lost(tx);
                marked.push(transmission);
            } else if reneged && state == TxState::Sacked {
                self.set_state(tx, TxState::Lost);
                marked.push(transmission);
            }
        }
        marked
    }

    /// Marks all transmissions in flight of more than `size` bytes lost, and returns them.
    pub(crate) fn mark_larger_lost(&mut self, size: ByteCount) -> Vec<Transmission> {
        let larger = |t: &Transmission| t.state == TxState::InFlight && t.range.len() > size;
        let lost: Vec<_> = self.in_order_sent().filter(larger).collect();
        for lost in &lost {
            self.mark_lost(lost.tx);
        }
        lost
    }

    /// Undoes spurious losses: data that is lost and not yet retransmitted is in flight again.
    pub(crate) fn revive_lost(&mut self) {
        while let Some((_, &tx)) = self.lost.first_key_value() {
            self.set_state(tx, TxState::InFlight);
        }
    }
}
