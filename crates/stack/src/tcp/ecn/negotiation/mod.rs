//! Negotiation by the flags of SYN and SYN-ACK (RFC 9768 section 3.1, RFC 3168 section 6.1.1).
//!
//! The first SYN or SYN-ACK of the peer decides (RFC 9768 section 3.1.5). Its flags are written as
//! a number here, AE the highest bit and ECE the lowest, as in [`Flags::ace`].

use airtcp_wire::ip::{CE, ECT_0, ECT_1, NOT_ECT};
use airtcp_wire::tcp::{Flags, Segment};

use super::EcnMode;

/// A SYN that requests nothing, and the SYN-ACK that grants nothing.
const PLAIN: u8 = 0b000;
/// A SYN that requests ECN, and the SYN-ACK that grants it.
const CLASSIC_SYN: u8 = 0b011;
const CLASSIC_SYN_ACK: u8 = 0b001;
/// A SYN that requests AccECN. A peer that sends it back does not understand it.
pub(in crate::tcp) const ACCURATE_SYN: u8 = 0b111;
/// The number of SYNs that request AccECN before the next ones request nothing (RFC 9768 section
/// 3.1.4.1), and of SYN-ACKs that grant it before the next ones grant nothing (section 3.2.3.2.2).
const TRIES: u32 = 2;

/// A form of feedback, from the least to the most capable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(in crate::tcp) enum Form {
    /// No ECN.
    #[default]
    Nothing,
    /// RFC 3168.
    Classic,
    /// RFC 9768.
    Accurate,
}

/// The request of a repeated SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum Repeat {
    /// It is the same as in the first SYN, or the difference has no effect.
    Same,
    /// It no longer requests what was negotiated: packets with ECN may not get through.
    Plain,
    /// It requests another form, so that the ends might disagree about the form in use.
    Contradiction,
}

/// The forms that this end requests and grants, and the form that was negotiated.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Negotiation {
    asks: Form,
    grants: Form,
    /// `None` before the peer's first SYN or SYN-ACK.
    agreed: Option<Form>,
    /// The ECN field of the peer's latest SYN or SYN-ACK.
    received_ecn: u8,
    /// Whether SYN-ACKs no longer grant anything.
    plain: bool,
}

/// The code that reports the ECN field with which the peer's SYN or SYN-ACK arrived (RFC 9768
/// tables 2 and 3).
pub(super) const fn echo_of(ecn: u8) -> u8 {
    match ecn {
        CE => 0b110,
        ECT_0 => 0b100,
        ECT_1 => 0b011,
        _ => 0b010,
    }
}

/// The ECN field that a code reports (RFC 9768 tables 2 and 4); `None` if the code reports none.
pub(super) const fn echoed(code: u8) -> Option<u8> {
    match code {
        0b010 => Some(NOT_ECT),
        0b011 => Some(ECT_1),
        0b100 => Some(ECT_0),
        0b110 => Some(CE),
        _ => None,
    }
}

impl Negotiation {
    /// Creates the state. `is_needed`: a strategy needs ECN, so that it is requested unless it is
    /// off.
    pub(in crate::tcp) fn new(mode: EcnMode, is_needed: bool) -> Self {
        let needed = if is_needed && mode != EcnMode::Off { Form::Classic } else { Form::Nothing };
        Self {
            asks: mode.asks().max(needed),
            grants: mode.grants(),
            agreed: None,
            received_ecn: NOT_ECT,
            plain: false,
        }
    }

    /// Whether this end's SYN requests a form of ECN, or one was negotiated.
    pub(in crate::tcp) fn offers(&self) -> bool {
        self.agreed.unwrap_or(self.asks) != Form::Nothing
    }

    /// The negotiated form; nothing before the peer's first SYN or SYN-ACK.
    fn agreed(&self) -> Form {
        self.agreed.unwrap_or_default()
    }

    /// The code for the ECN field of the peer's latest SYN-ACK, which replaces ACE in the ACK of
    /// that SYN-ACK (RFC 9768 section 3.2.2.1).
    pub(in crate::tcp) fn code(&self) -> Option<u8> {
        (self.agreed() == Form::Accurate).then(|| echo_of(self.received_ecn))
    }

    /// The flags of a SYN that is sent for the `sent`th time.
    pub(in crate::tcp) fn syn(&self, sent: u32) -> Flags {
        let ace = match self.asks {
            // RFC 9768 section 3.1.1, and 3.1.4.1.
            Form::Accurate if sent <= TRIES => ACCURATE_SYN,
            // RFC 3168 section 6.1.1.1: the path may drop SYNs that request ECN.
            Form::Classic if sent <= 1 => CLASSIC_SYN,
            _ => PLAIN,
        };
        Flags { syn: true, ..Flags::default() }.with_ace(ace)
    }

    /// The flags of a SYN-ACK after this number of time-outs.
    pub(in crate::tcp) fn syn_ack(&mut self, timeouts: u8) -> Flags {
        // RFC 9768 section 3.2.3.2.2.
        self.plain |= self.agreed() == Form::Accurate && u32::from(timeouts) >= TRIES;
        let ace = match self.agreed() {
            _ if self.plain => PLAIN,
            Form::Nothing => PLAIN,
            Form::Classic => CLASSIC_SYN_ACK,
            // RFC 9768 section 3.1.5: the latest SYN counts.
            Form::Accurate => echo_of(self.received_ecn),
        };
        Flags { syn: true, ..Flags::default() }.with_ace(ace)
    }

    /// Whether a SYN-ACK of this end has granted nothing.
    pub(in crate::tcp) const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Processes the peer's first SYN; returns the negotiated form. `crossed`: this end has sent a
    /// SYN as well.
    pub(in crate::tcp) fn on_syn(&mut self, syn: &Segment<'_>, crossed: bool) -> Form {
        let most = if crossed { self.grants.min(self.asks) } else { self.grants };
        let agreed = match (most, asked(syn)) {
            (Form::Accurate, Form::Accurate) => Form::Accurate,
            // RFC 9768 section 3.1.2: an end that supports only ECN treats a request for AccECN as
            // a request for ECN.
            (Form::Accurate | Form::Classic, _) if is_classic(syn) => Form::Classic,
            _ => Form::Nothing,
        };
        self.received_ecn = syn.ecn;
        *self.agreed.insert(agreed)
    }

    /// Processes the peer's first SYN-ACK; returns the negotiated form.
    pub(in crate::tcp) fn on_syn_ack(&mut self, syn_ack: &Segment<'_>) -> Form {
        let ace = syn_ack.flags.ace();
        let agreed = match self.asks {
            Form::Accurate => match ace {
                PLAIN | ACCURATE_SYN => Form::Nothing,
                CLASSIC_SYN_ACK => Form::Classic,
                _ => Form::Accurate,
            },
            // The ECN nonce of RFC 3540 may be granted as well.
            Form::Classic if ace & 0b011 == CLASSIC_SYN_ACK => Form::Classic,
            _ => Form::Nothing,
        };
        self.received_ecn = syn_ack.ecn;
        *self.agreed.insert(agreed)
    }

    /// Processes a SYN with the number of the first one, in SYN-RECEIVED.
    pub(in crate::tcp) fn on_repeated_syn(&mut self, syn: &Segment<'_>) -> Repeat {
        self.received_ecn = syn.ecn;
        match (self.agreed(), asked(syn)) {
            // RFC 9768 section 3.1.5.
            (Form::Classic, Form::Accurate) if self.grants == Form::Accurate => {
                Repeat::Contradiction
            }
            (Form::Accurate, Form::Classic) => Repeat::Contradiction,
            (Form::Accurate, Form::Nothing) => Repeat::Plain,
            // RFC 3168 section 6.1.1.1: the SYN-ACK may have been lost because of ECN, too.
            (Form::Classic, _) if !is_classic(syn) => {
                self.plain = true;
                Repeat::Plain
            }
            _ => Repeat::Same,
        }
    }

    /// Processes the SYN-ACK of a peer whose SYN this end has answered; returns whether it
    /// contradicts that SYN.
    pub(in crate::tcp) fn on_crossing_syn_ack(&mut self, syn_ack: &Segment<'_>) -> bool {
        self.received_ecn = syn_ack.ecn;
        let ace = syn_ack.flags.ace();
        match self.agreed() {
            Form::Nothing => false,
            Form::Classic => self.grants == Form::Accurate && echoed(ace).is_some(),
            Form::Accurate => ace == CLASSIC_SYN_ACK,
        }
    }
}

/// The form that a SYN requests from a peer that supports AccECN.
fn asked(syn: &Segment<'_>) -> Form {
    match syn.flags.ace() {
        PLAIN => Form::Nothing,
        CLASSIC_SYN => Form::Classic,
        // RFC 9768 section 3.1.3: undefined codes count as a request for AccECN.
        _ => Form::Accurate,
    }
}

/// Whether a SYN requests ECN, for an end that supports nothing else. Without AccECN no SYN is ECT:
/// the path has changed the field of a SYN that is, and as in Linux RFC 3168 ECN is not used there.
const fn is_classic(syn: &Segment<'_>) -> bool {
    syn.flags.ace() & 0b011 == CLASSIC_SYN && syn.ecn == NOT_ECT
}

/// Whether the code of a SYN-ACK, or of the ACK of one, allows that the SYN or SYN-ACK of this end
/// arrived unchanged, as Not-ECT. Codes that report no field do (RFC 9768 section 3.1.3, table 4).
pub(super) const fn is_unchanged(code: u8) -> bool {
    matches!(echoed(code), None | Some(NOT_ECT))
}

#[cfg(test)]
mod tests;
