//! Negotiation by the flags of SYN and SYN-ACK (RFC 9768 section 3.1, RFC 3168 section 6.1.1).
//!
//! The first SYN or SYN-ACK of the peer decides (RFC 9768 section 3.1.5). Its flags are written as
//! a number here, AE the highest bit and ECE the lowest, as [`Flags::ace`] has them.

use airtcp_wire::ip::{CE, ECT_0, ECT_1, NOT_ECT};
use airtcp_wire::tcp::{Flags, Segment};

use super::EcnMode;

/// A SYN that asks for nothing, and the SYN-ACK that grants nothing.
const PLAIN: u8 = 0b000;
/// A SYN that asks for ECN, and the SYN-ACK that grants it.
const CLASSIC_SYN: u8 = 0b011;
const CLASSIC_SYN_ACK: u8 = 0b001;
/// A SYN that asks for AccECN. A peer that sends it back does not know what it means.
pub(in crate::tcp) const ACCURATE_SYN: u8 = 0b111;
/// So many SYNs ask for AccECN before others ask for nothing (RFC 9768 section 3.1.4.1), and as
/// many SYN-ACKs grant it before others grant nothing (section 3.2.3.2.2).
const TRIES: u32 = 2;

/// A form of feedback, from the poorest to the richest.
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

/// What a repeated SYN says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum Repeat {
    /// As the first one, or something that changes nothing.
    Same,
    /// It no longer asks for what was agreed on: what carries ECN may not get through.
    Plain,
    /// It asks for another form, so that the ends could disagree about which is used.
    Contradiction,
}

/// What one end offers and grants, and what was agreed on.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Negotiation {
    asks: Form,
    grants: Form,
    /// `None` before the peer's first SYN or SYN-ACK.
    agreed: Option<Form>,
    /// The ECN field of the peer's latest SYN or SYN-ACK.
    received_ecn: u8,
    /// SYN-ACKs grant nothing any more.
    plain: bool,
}

/// The code that tells the peer which ECN field its SYN or SYN-ACK arrived with (RFC 9768 tables 2
/// and 3).
pub(super) const fn echo_of(ecn: u8) -> u8 {
    match ecn {
        CE => 0b110,
        ECT_0 => 0b100,
        ECT_1 => 0b011,
        _ => 0b010,
    }
}

/// The ECN field that a code tells of (RFC 9768 tables 2 and 4); `None` of the codes that tell of
/// none.
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
    /// `is_needed`: a strategy needs ECN, so that it is asked for unless it is off.
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

    /// Whether a SYN of this end asks for anything, or something was agreed on.
    pub(in crate::tcp) fn offers(&self) -> bool {
        self.agreed.unwrap_or(self.asks) != Form::Nothing
    }

    /// What was agreed on; nothing before the peer's first SYN or SYN-ACK.
    fn agreed(&self) -> Form {
        self.agreed.unwrap_or_default()
    }

    /// The code for the ECN field of the peer's latest SYN-ACK, which the ACK of it has in place of
    /// ACE (RFC 9768 section 3.2.2.1).
    pub(in crate::tcp) fn code(&self) -> Option<u8> {
        (self.agreed() == Form::Accurate).then(|| echo_of(self.received_ecn))
    }

    /// The flags of a SYN that leaves for the `sent`th time.
    pub(in crate::tcp) fn syn(&self, sent: u32) -> Flags {
        let ace = match self.asks {
            // RFC 9768 section 3.1.1, and 3.1.4.1.
            Form::Accurate if sent <= TRIES => ACCURATE_SYN,
            // RFC 3168 section 6.1.1.1: somebody on the way may drop what asks for ECN.
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

    /// Takes the peer's first SYN; gives what is agreed on. `crossed`: this end has sent a SYN of
    /// its own.
    pub(in crate::tcp) fn on_syn(&mut self, syn: &Segment<'_>, crossed: bool) -> Form {
        let most = if crossed { self.grants.min(self.asks) } else { self.grants };
        let agreed = match (most, asked(syn)) {
            (Form::Accurate, Form::Accurate) => Form::Accurate,
            // RFC 9768 section 3.1.2: one that knows ECN alone takes a SYN that asks for AccECN for
            // one that asks for ECN.
            (Form::Accurate | Form::Classic, _) if is_classic(syn) => Form::Classic,
            _ => Form::Nothing,
        };
        self.received_ecn = syn.ecn;
        *self.agreed.insert(agreed)
    }

    /// Takes the peer's first SYN-ACK; gives what is agreed on.
    pub(in crate::tcp) fn on_syn_ack(&mut self, syn_ack: &Segment<'_>) -> Form {
        let ace = syn_ack.flags.ace();
        let agreed = match self.asks {
            Form::Accurate => match ace {
                PLAIN | ACCURATE_SYN => Form::Nothing,
                CLASSIC_SYN_ACK => Form::Classic,
                _ => Form::Accurate,
            },
            // The Nonce of RFC 3540 may have been granted with it.
            Form::Classic if ace & 0b011 == CLASSIC_SYN_ACK => Form::Classic,
            _ => Form::Nothing,
        };
        self.received_ecn = syn_ack.ecn;
        *self.agreed.insert(agreed)
    }

    /// Takes a SYN with the number of the first one, in SYN-RECEIVED.
    pub(in crate::tcp) fn on_repeated_syn(&mut self, syn: &Segment<'_>) -> Repeat {
        self.received_ecn = syn.ecn;
        match (self.agreed(), asked(syn)) {
            // RFC 9768 section 3.1.5.
            (Form::Classic, Form::Accurate) if self.grants == Form::Accurate => {
                Repeat::Contradiction
            }
            (Form::Accurate, Form::Classic) => Repeat::Contradiction,
            (Form::Accurate, Form::Nothing) => Repeat::Plain,
            // RFC 3168 section 6.1.1.1: its answer may have been lost for that, too.
            (Form::Classic, _) if !is_classic(syn) => {
                self.plain = true;
                Repeat::Plain
            }
            _ => Repeat::Same,
        }
    }

    /// Takes the SYN-ACK of a peer whose SYN this end has answered; gives whether it contradicts
    /// that SYN.
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

/// What a SYN asks of a peer that knows AccECN.
fn asked(syn: &Segment<'_>) -> Form {
    match syn.flags.ace() {
        PLAIN => Form::Nothing,
        CLASSIC_SYN => Form::Classic,
        // RFC 9768 section 3.1.3: what has no meaning yet counts as that.
        _ => Form::Accurate,
    }
}

/// Whether a SYN asks for ECN, to a peer that knows nothing else. Without AccECN no SYN is ECT: one
/// that is has come by a path that writes into the field, and as in Linux there is no ECN of RFC
/// 3168 there.
const fn is_classic(syn: &Segment<'_>) -> bool {
    syn.flags.ace() & 0b011 == CLASSIC_SYN && syn.ecn == NOT_ECT
}

/// Whether a SYN-ACK, or the ACK of one, leaves it possible that the SYN or SYN-ACK of this end
/// arrived as it left, with Not-ECT. Codes that tell of no field do (RFC 9768 section 3.1.3, table
/// 4).
pub(super) const fn is_unchanged(code: u8) -> bool {
    matches!(echoed(code), None | Some(NOT_ECT))
}

#[cfg(test)]
mod tests;
