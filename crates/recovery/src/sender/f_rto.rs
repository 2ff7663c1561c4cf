//! F-RTO: decides from the two ACKs that follow a time-out whether it was spurious (RFC 5682
//! sections 2.1 and 3.1).
//!
//! With time stamps, the first of these ACKs already decides (see [`undo`](super::undo)).

use airtcp_types::{ByteCount, ExtSeq, SeqRange};

use crate::view::AckView;

/// The step of the algorithm. `recover` is SND.NXT at the time-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FRto {
    /// Step 1: the oldest data, up to `resent`, was retransmitted.
    Resent { recover: ExtSeq, resent: ExtSeq },
    /// Step 2 b: new data is sent instead of retransmissions.
    Probing { recover: ExtSeq },
}

/// The effect of an ACK on the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The algorithm continues: a later ACK decides.
    Goes(FRto),
    /// The algorithm ends without a sign that the time-out was spurious; retransmissions continue.
    Ends,
    /// The time-out was spurious: data sent before it, and not retransmitted, arrives only now.
    Spurious,
}

impl FRto {
    pub(super) const fn new(una: ExtSeq, recover: ExtSeq) -> Self {
        Self::Resent { recover, resent: una }
    }

    /// Returns SND.NXT at the time-out while the algorithm waits for the second ACK.
    pub(super) const fn probes_beyond(self) -> Option<ExtSeq> {
        match self {
            Self::Probing { recover } => Some(recover),
            Self::Resent { .. } => None,
        }
    }

    pub(super) fn on_retransmission(&mut self, range: SeqRange) {
        if let Self::Resent { resent, .. } = self {
            *resent = (*resent).max(range.end);
        }
    }

    pub(super) fn on_ack(self, ack: &AckView<'_>) -> Outcome {
        let is_informative = ack.duplicate || ack.delivered > ByteCount::ZERO;
        match self {
            _ if ack.echo.is_some() => Outcome::Ends,
            _ if !is_informative => Outcome::Goes(self),
            // Step 2 a: a duplicate ACK, an ACK of everything, or one that does not cover all that
            // was retransmitted.
            Self::Resent { recover, resent } => {
                let advances = ack.acked > ByteCount::ZERO;
                let probes = advances && ack.ack >= resent && ack.ack < recover;
                if probes { Outcome::Goes(Self::Probing { recover }) } else { Outcome::Ends }
            }
            // Step 3 b, and section 3.1 for SACK.
            Self::Probing { recover } => {
                let original = |acked: &crate::transmission::Delivered| {
                    acked.resent == 0 && acked.range.start < recover
                };
                if ack.newly.iter().any(original) { Outcome::Spurious } else { Outcome::Ends }
            }
        }
    }
}
