//! Explicit congestion notification: negotiation in the handshake, and feedback of marks.
//!
//! ```text
//! mode.rs         the setting: what is asked for, and what is granted
//! negotiation/    the flags of SYN and SYN-ACK (RFC 9768 section 3.1, RFC 3168 section 6.1.1)
//! classic.rs      RFC 3168: ECE and CWR, one mark a round trip
//! accurate.rs     RFC 9768: AccECN on a connection
//! received.rs     RFC 9768: the counters of what arrived, and how they are reported
//! delivered/      RFC 9768: the counters of what was sent, from what the peer reports
//! ```

mod accurate;
mod classic;
mod delivered;
mod mode;
mod negotiation;
mod received;

#[cfg(test)]
mod tests;

use airtcp_wire::tcp::{Flags, Segment};

pub(super) use classic::News;
pub(super) use delivered::Feedback;
pub use mode::{EcnMode, EcnModeError};
pub(super) use negotiation::{ACCURATE_SYN, Form, Negotiation, Repeat};
pub(super) use received::{ReceivedMarks, ReportedCounters};

use accurate::Accurate;
use classic::Classic;

/// How the two ends of a connection tell each other of marks.
///
/// It holds both directions: the marks that arrived and are to be reported, and those that the peer
/// reports.
#[derive(Debug)]
pub(super) enum Ecn {
    /// Not at all.
    Off,
    /// RFC 3168.
    Classic(Classic),
    /// RFC 9768.
    Accurate(Box<Accurate>),
}

impl Ecn {
    /// The handshake has agreed on `form` with this SYN or SYN-ACK of the peer.
    pub(super) fn new(form: Form, syn: &Segment<'_>) -> Self {
        match form {
            Form::Nothing => Self::Off,
            Form::Classic => Self::Classic(Classic::new()),
            Form::Accurate => Self::Accurate(Box::new(Accurate::new(syn))),
        }
    }

    /// Whether ECN is in use.
    pub(super) const fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether it is as RFC 3168 has it.
    pub(super) const fn is_classic(&self) -> bool {
        matches!(self, Self::Classic(_))
    }

    /// Whether it is AccECN.
    pub(super) const fn is_accurate(&self) -> bool {
        matches!(self, Self::Accurate(_))
    }

    /// Whether new data leaves as ECT(0).
    pub(super) fn marks(&self) -> bool {
        match self {
            Self::Off => false,
            Self::Classic(classic) => classic.marks,
            Self::Accurate(accurate) => accurate.marks,
        }
    }

    /// Nothing leaves as ECT any more. Marks that arrive are reported all the same.
    pub(super) fn stop_marking(&mut self) {
        match self {
            Self::Off => {}
            Self::Classic(classic) => classic.marks = false,
            Self::Accurate(accurate) => accurate.marks = false,
        }
    }

    /// The flags of a segment that acknowledges and reports `reported`: with AccECN the field ACE.
    pub(super) fn flags(&self, reported: &ReportedCounters) -> Flags {
        match self {
            Self::Off => Flags::ACK,
            Self::Classic(classic) => Flags { ece: classic.echoes(), ..Flags::ACK },
            Self::Accurate(_) => Flags::ACK.with_ace(reported.ace),
        }
    }

    /// The same of a segment that reports nothing new.
    pub(super) fn flags_now(&self) -> Flags {
        match self {
            Self::Accurate(_) => Flags::ACK.with_ace(self.ace()),
            _ => self.flags(&ReportedCounters::default()),
        }
    }
}
