//! How often the radio transmits a frame.

/// The number of transmissions of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tries {
    /// The number of tries of the MAC.
    pub(super) tries: u32,
    /// How often the link layer of TCP-ECN passes a frame to the MAC.
    pub(super) passes: u32,
    /// Whether link ACKs have errors as often as data frames. Otherwise they have fewer, because
    /// they are shorter.
    pub(super) are_acks_hit: bool,
}

/// The paper's tries and passes; then two settings of ours with fewer: with link retransmission,
/// frames overtake each other, or are lost.
pub(super) const PAPER: Tries = Tries { tries: 7, passes: 3, are_acks_hit: false };
pub(super) const REORDERING: Tries = Tries { tries: 2, ..PAPER };
pub(super) const LOSING: Tries = Tries { tries: 1, passes: 2, ..PAPER };
/// A bound of ours: the MAC of ns-2 tries a frame that RTS announces four times
/// (`LongRetryLimit_`), and its error model is the same for all frames. Our radio cannot give link
/// ACKs an error rate of their own, so a frame whose link ACK has an error is lost here, too; in
/// ns-2 it has arrived.
pub(super) const NS_2: Tries = Tries { tries: 4, are_acks_hit: true, ..PAPER };

impl Tries {
    /// Returns whether the paper's radio had these tries.
    pub(super) fn is_papers(self) -> bool {
        self == PAPER
    }
}

#[cfg(test)]
mod tests {
    use airtcp_link::{Arq, RadioSpec};

    use super::super::course::Course;
    use super::super::policies::POLICIES;
    use super::*;
    use crate::Run;

    #[test]
    fn link_retransmission_is_a_part_of_tcp_ecn() {
        let run = Run { seeds: 1, is_small: true, ..Run::default() };
        let station =
            |tries, policy| Course::PAPER.with_tries(tries).station(&run, policy).unwrap();
        let arqs = POLICIES.map(|policy| station(PAPER, policy).arq);
        assert_eq!(arqs, [Arq::Mac, Arq::Mac, Arq::MacLink]);
        // A try fails if the frame or its link ACK has an error: 1 - 0.8 * 0.8.
        let expected: RadioSpec = "error 36% tries 4".parse().unwrap();
        let radio = station(NS_2, POLICIES[2]).radio;
        assert_eq!((radio.tries, radio.passes, radio.error), (4, 3, expected.error));
    }
}
