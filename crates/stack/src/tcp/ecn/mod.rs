//! Explicit congestion notification: negotiation in the handshake, and feedback of marks.
//!
//! ```text
//! mode.rs         the setting: the form of ECN that is requested and accepted
//! negotiation/    the flags of SYN and SYN-ACK (RFC 9768 section 3.1, RFC 3168 section 6.1.1)
//! classic.rs      RFC 3168: ECE and CWR, one mark per round trip
//! accurate.rs     RFC 9768: AccECN on a connection
//! received.rs     RFC 9768: the counters of received marks, and their reports to the peer
//! delivered/      RFC 9768: the counters of sent data, from the peer's feedback
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

/// The ECN feedback of a connection.
///
/// It contains the state of both directions: received marks to report, and marks that the peer
/// reports.
#[derive(Debug)]
pub(super) enum Ecn {
    /// ECN is not in use.
    Off,
    /// RFC 3168.
    Classic(Classic),
    /// RFC 9768.
    Accurate(Box<Accurate>),
}

impl Ecn {
    /// Creates the state after the handshake negotiated `form` with this SYN or SYN-ACK of the
    /// peer.
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

    /// Whether ECN is in use as in RFC 3168.
    pub(super) const fn is_classic(&self) -> bool {
        matches!(self, Self::Classic(_))
    }

    /// Whether AccECN is in use.
    pub(super) const fn is_accurate(&self) -> bool {
        matches!(self, Self::Accurate(_))
    }

    /// Whether new data is sent as ECT(0).
    pub(super) fn marks(&self) -> bool {
        match self {
            Self::Off => false,
            Self::Classic(classic) => classic.marks,
            Self::Accurate(accurate) => accurate.marks,
        }
    }

    /// Stops sending data as ECT. Received marks are still reported.
    pub(super) fn stop_marking(&mut self) {
        match self {
            Self::Off => {}
            Self::Classic(classic) => classic.marks = false,
            Self::Accurate(accurate) => accurate.marks = false,
        }
    }

    /// The flags of an ACK that reports `reported`; with AccECN they include the ACE field.
    pub(super) fn flags(&self, reported: &ReportedCounters) -> Flags {
        match self {
            Self::Off => Flags::ACK,
            Self::Classic(classic) => Flags { ece: classic.echoes(), ..Flags::ACK },
            Self::Accurate(_) => Flags::ACK.with_ace(reported.ace),
        }
    }

    /// The flags of an ACK with the current counters.
    pub(super) fn flags_now(&self) -> Flags {
        match self {
            Self::Accurate(_) => Flags::ACK.with_ace(self.ace()),
            _ => self.flags(&ReportedCounters::default()),
        }
    }
}
