//! Counts of received and lost packets: since the sender's last reduction, and in total.

use crate::differentiation::Loss;
use crate::wire::Counts;

#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// The counts since the sender's last reduction.
    counts: Counts,
    /// The full number of the first transmission counted, which may be older than 32 bits can
    /// express.
    first_counted: u64,
    /// The recovery bit of the newest packet.
    recovery_bit: bool,
    congestive: u64,
    wireless: u64,
    received: u64,
}

impl Evidence {
    /// The counts since the sender's last reduction.
    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the numbers of packets received, of congestive losses, and of losses of the link.
    pub(super) const fn totals(&self) -> [u64; 3] {
        [self.received, self.congestive, self.wireless]
    }

    /// Handles the newest transmission so far: if its recovery bit has toggled, the counts restart.
    pub(super) fn on_newest(&mut self, transmission: u64, recovery_bit: bool) {
        if recovery_bit != self.recovery_bit {
            (self.recovery_bit, self.first_counted) = (recovery_bit, transmission);
            self.counts = Counts { first_counted: transmission as u32, ..Counts::default() };
        }
    }

    /// Counts a packet received for the first time.
    pub(super) fn on_received(&mut self, transmission: u64) {
        self.received += 1;
        let since_recovery = transmission >= self.first_counted;
        self.counts.received = self.counts.received.wrapping_add(since_recovery.into());
    }

    /// Counts a lost packet that was sent after the transmission `after`.
    pub(super) fn on_lost(&mut self, loss: Loss, after: u64) {
        let counts = &mut self.counts;
        let (all, since_recovery) = match loss {
            Loss::Congestive => (&mut self.congestive, &mut counts.congestive),
            Loss::Wireless => (&mut self.wireless, &mut counts.wireless),
            Loss::Stalled => return,
        };
        *all += 1;
        // A packet that may have been sent before the reduction does not count.
        *since_recovery = since_recovery.wrapping_add((after >= self.first_counted).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_restart_when_the_bit_turns_and_totals_continue() {
        let mut evidence = Evidence::default();
        for transmission in 0..5 {
            evidence.on_newest(transmission, false);
            evidence.on_received(transmission);
        }
        evidence.on_lost(Loss::Wireless, 2);
        evidence.on_newest(7, true);
        assert_eq!(evidence.counts(), Counts { first_counted: 7, ..Counts::default() });
        // Packets sent before the toggle, and after it.
        evidence.on_received(5);
        evidence.on_received(7);
        evidence.on_lost(Loss::Congestive, 6);
        evidence.on_lost(Loss::Congestive, 7);
        evidence.on_lost(Loss::Stalled, 8);
        let counts = Counts { first_counted: 7, congestive: 1, wireless: 0, received: 1 };
        assert_eq!(evidence.counts(), counts);
        assert_eq!(evidence.totals(), [7, 2, 1]);
    }
}
