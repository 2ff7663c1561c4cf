//! Explicit congestion notification (RFC 3168): who asks for it, which packets a queue may mark, and how the two ends tell
//! each other of marks.
//!
//! ```text
//! receiver: data with CE        -> ECE in every ACK ...
//! sender:   ECE                 -> one reduction a round trip (the sender's), CWR in the next new data
//! receiver: data with CWR       -> ... until then
//! ```

use airtcp_recovery::Sender;
use airtcp_wire::ip::{CE, NOT_ECT};
use airtcp_wire::tcp::{Flags, Segment};

/// When explicit congestion notification is used (Linux's `tcp_ecn`: 0, 2 and 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnMode {
    /// Never.
    Off,
    /// Where a peer asks for it.
    #[default]
    Passive,
    /// Peers are asked, too.
    Active,
}

/// What a connection keeps of it, once it was agreed on; before that, what this end asks for or would grant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecn {
    /// A packet was marked, and the sender has not said since that it slows down.
    pub(super) echoes: bool,
    /// How often the window had been reduced, or the control had answered a mark itself, when the peer
    /// was last told, without what does not fit.
    told: u16,
}

/// What the marks of data change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum News {
    Nothing,
    /// It is the first mark since the sender last said that it slows down.
    Marked,
    /// The sender says that it slows down: its window may be one segment.
    SlowsDown,
}

impl Ecn {
    /// Whether a SYN, or the SYN-ACK that answers ours, agrees (RFC 3168 section 6.1.1).
    pub(super) const fn is_agreed(syn: &Segment<'_>) -> bool {
        let Flags { ack, ece, cwr, .. } = syn.flags;
        // No SYN is ECT. One that is has come by a path that writes into the field: as Linux, without ECN there.
        ece && if ack { !cwr } else { cwr && syn.ecn == NOT_ECT }
    }

    /// Takes the marks of data that is new.
    pub(super) fn on_data(&mut self, segment: &Segment<'_>) -> News {
        let before = self.echoes;
        self.echoes = segment.ecn == CE || (self.echoes && !segment.flags.cwr);
        match (segment.flags.cwr, before, self.echoes) {
            (true, ..) => News::SlowsDown,
            (false, false, true) => News::Marked,
            _ => News::Nothing,
        }
    }

    /// Whether the next new data is to say that the window was reduced, for whatever reason (RFC 3168 section 6.1.2).
    pub(super) fn owes_cwr(&self, sender: &Sender) -> bool {
        reductions(sender) != self.told
    }

    pub(super) fn on_cwr_sent(&mut self, sender: &Sender) {
        self.told = reductions(sender);
    }
}

fn reductions(sender: &Sender) -> u16 {
    let stats = sender.stats();
    ((stats.reductions + stats.timeouts) as u16).wrapping_add(sender.mark_answers())
}
