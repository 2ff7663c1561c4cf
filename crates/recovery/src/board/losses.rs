//! Losses: found, and taken back.

use airtcp_types::{ByteCount, TxNo};

use crate::transmission::{Transmission, TxState};

use super::Board;

impl Board {
    /// Marks `tx` lost, if it is in flight.
    pub(crate) fn mark_lost(&mut self, tx: TxNo) -> bool {
        let Some(transmission) = self.get(tx) else { return false };
        if transmission.state != TxState::InFlight {
            return false;
        }
        self.spell_out(transmission.range.end);
        // An earlier sending of bytes that were sent again is no longer waited for, and no more.
        let start = transmission.range.start;
        let latest = self.at(start).is_some_and(|latest| latest.tx == tx);
        self.set_state(tx, if latest { TxState::Lost } else { TxState::Superseded });
        true
    }

    /// Marks everything lost that is not selectively acknowledged, but for the bytes that `spared`
    /// speaks for and that do not start at SND.UNA: the retransmission timer ran out. If the
    /// receiver has SACKed the very first byte it has reneged, and nothing it SACKed counts any
    /// longer (RFC 2018 section 8). Gives the transmissions it marks.
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

    /// Marks everything lost that is in flight in transmissions of more than `size` bytes, and
    /// gives it.
    pub(crate) fn mark_larger_lost(&mut self, size: ByteCount) -> Vec<Transmission> {
        let larger = |t: &Transmission| t.state == TxState::InFlight && t.range.len() > size;
        let lost: Vec<_> = self.in_order_sent().filter(larger).collect();
        for lost in &lost {
            self.mark_lost(lost.tx);
        }
        lost
    }

    /// Takes back the loss of everything that still waits to be sent again: it was spurious.
    pub(crate) fn revive_lost(&mut self) {
        while let Some((_, &tx)) = self.lost.first_key_value() {
            self.set_state(tx, TxState::InFlight);
        }
    }
}
