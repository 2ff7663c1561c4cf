//! Packet-timed round trips (draft-ietf-ccwg-bbr, "BBR.round_count: Tracking Packet-Timed Round
//! Trips").

use airtcp_types::ByteCount;

/// Counts round trips. A round ends with the ACK of data sent after its start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// BBR.round_count.
    count: u64,
    /// BBR.round_start: whether this ACK started a round.
    start: bool,
    /// BBR.next_round_delivered.
    next_round_delivered: ByteCount,
}

impl Rounds {
    /// UpdateRound: processes an ACK. `prior_delivered` is P.delivered, `delivered` is C.delivered.
    pub(super) fn on_ack(&mut self, prior_delivered: ByteCount, delivered: ByteCount) {
        self.start = prior_delivered >= self.next_round_delivered;
        if self.start {
            self.restart(delivered);
            self.count += 1;
        }
    }

    /// StartRound: data sent from now on ends the round.
    pub(super) fn restart(&mut self, delivered: ByteCount) {
        self.next_round_delivered = delivered;
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) const fn start(&self) -> bool {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(rounds: &mut Rounds, prior: u64, delivered: u64) -> bool {
        rounds.on_ack(ByteCount(prior), ByteCount(delivered));
        rounds.start()
    }

    #[test]
    fn a_round_ends_with_what_was_sent_after_it_began() {
        let mut rounds = Rounds::default();
        assert!(ack(&mut rounds, 0, 10), "the first ACK begins the first round");
        assert!(!ack(&mut rounds, 0, 20));
        assert!(!ack(&mut rounds, 9, 30));
        assert!(ack(&mut rounds, 10, 40));
        assert_eq!(rounds.count(), 2);
        rounds.restart(ByteCount(60));
        assert!(!ack(&mut rounds, 50, 70), "it was put off");
        assert!(ack(&mut rounds, 60, 80));
        assert_eq!(rounds.count(), 3);
    }
}
