//! F-RTO: whether a time-out was spurious, from the two ACKs that follow (RFC 5682 sections 2.1 and
//! 3.1).
//!
//! Where there are time stamps the first of them tells already (see [`undo`](super::undo)).

use airtcp_types::{ByteCount, ExtSeq, SeqRange};

use crate::view::AckView;

/// How far it has got. `recover` is SND.NXT at the time-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FRto {
    /// Step 1: the oldest segment is sent again, everything below `resent`.
    Resent { recover: ExtSeq, resent: ExtSeq },
    /// Step 2 b: new data leaves, and no repair.
    Probing { recover: ExtSeq },
}

/// What an ACK makes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The next one will tell.
    Goes(FRto),
    /// It shows nothing, and repairs leave.
    Ends,
    /// What had been sent before the time-out, and not again, has arrived only now.
    Spurious,
}

impl FRto {
    pub(super) const fn new(una: ExtSeq, recover: ExtSeq) -> Self {
        Self::Resent { recover, resent: una }
    }

    /// Where it waits for the second ACK: SND.NXT at the time-out.
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
        let tells = ack.duplicate || ack.delivered > ByteCount::ZERO;
        match self {
            _ if ack.echo.is_some() => Outcome::Ends,
            _ if !tells => Outcome::Goes(self),
            // Step 2 a: a duplicate, all there was, or not even all that was sent again.
            Self::Resent { recover, resent } => {
                let advances = ack.acked > ByteCount::ZERO;
                let probes = advances && ack.ack >= resent && ack.ack < recover;
                if probes { Outcome::Goes(Self::Probing { recover }) } else { Outcome::Ends }
            }
            // Step 3 b, and by SACK section 3.1's.
            Self::Probing { recover } => {
                let original = |acked: &crate::transmission::Delivered| {
                    acked.resent == 0 && acked.range.start < recover
                };
                if ack.newly.iter().any(original) { Outcome::Spurious } else { Outcome::Ends }
            }
        }
    }
}
