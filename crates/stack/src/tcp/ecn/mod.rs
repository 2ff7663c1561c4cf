//! Explicit congestion notification: what a handshake agrees on, and how the two ends tell each other of marks.
//!
//! ```text
//! mode.rs         the setting: what is asked for, and what is granted
//! negotiation.rs  the flags of SYN and SYN-ACK (RFC 9768 section 3.1, RFC 3168 section 6.1.1)
//! classic.rs      RFC 3168: ECE and CWR, one mark a round trip
//! received.rs     RFC 9768: the counters of what arrived, and how they are reported
//! delivered.rs    RFC 9768: the counters of what was sent, from what the peer tells
//! ```

mod accurate;
mod classic;
mod delivered;
mod mode;
mod negotiation;
mod received;

use airtcp_types::ExtSeq;

pub(super) use classic::{Classic, News};
pub(super) use delivered::{DeliveredMarks, Feedback};
pub use mode::{EcnMode, EcnModeError};
pub(super) use negotiation::{ACCURATE_SYN, Form, Negotiation, Repeat, echo_of, is_unchanged};
pub(super) use received::{ReceivedMarks, ReportedCounters};

/// How the two ends of a connection tell each other of marks.
#[derive(Debug)]
pub(super) enum Ecn {
    /// RFC 3168.
    Classic(Classic),
    /// RFC 9768.
    Accurate(Box<Accurate>),
}

/// The state of AccECN.
#[derive(Debug)]
pub(super) struct Accurate {
    pub(super) received: ReceivedMarks,
    pub(super) delivered: DeliveredMarks,
    /// Whether new data leaves as ECT(0).
    pub(super) marks: bool,
    /// The number of the SYN-ACK that opened the connection, on the side that asked.
    pub(super) syn_ack: Option<ExtSeq>,
    /// What the peer's SYN-ACK tells was read.
    pub(super) handshake_read: bool,
    /// A CE mark of a SYN-ACK was counted.
    pub(super) syn_ack_ce: bool,
    /// The SYN or SYN-ACK of this end arrived with CE.
    pub(super) marked_syn: bool,
}

impl Accurate {
    /// The peer's SYN or SYN-ACK came with the ECN field `heard`.
    pub(super) fn new(heard: u8) -> Self {
        Self {
            received: ReceivedMarks::new(heard),
            delivered: DeliveredMarks::new(),
            marks: true,
            syn_ack: None,
            handshake_read: false,
            syn_ack_ce: false,
            marked_syn: false,
        }
    }
}

impl Ecn {
    /// Whether new data leaves as ECT(0).
    pub(super) fn marks(&self) -> bool {
        match self {
            Self::Classic(classic) => classic.marks,
            Self::Accurate(accurate) => accurate.marks,
        }
    }

    /// Nothing leaves as ECT any more. Marks that arrive are reported all the same.
    pub(super) fn stop_marking(&mut self) {
        match self {
            Self::Classic(classic) => classic.marks = false,
            Self::Accurate(accurate) => accurate.marks = false,
        }
    }

    pub(super) fn classic(&mut self) -> Option<&mut Classic> {
        match self {
            Self::Classic(classic) => Some(classic),
            Self::Accurate(_) => None,
        }
    }

    pub(super) fn accurate(&self) -> Option<&Accurate> {
        match self {
            Self::Classic(_) => None,
            Self::Accurate(accurate) => Some(accurate),
        }
    }

    pub(super) fn accurate_mut(&mut self) -> Option<&mut Accurate> {
        match self {
            Self::Classic(_) => None,
            Self::Accurate(accurate) => Some(accurate),
        }
    }
}
