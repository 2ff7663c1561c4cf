//! Feedback of the peer: AccECN's data sender (RFC 9768 section 3.2.2.5.2, appendix A).
//!
//! The ACE field counts marked packets modulo 8, on every segment; an option counts marked bytes
//! modulo 2^24, on some segments. If an ACK acknowledges eight packets or more, ACE alone is
//! ambiguous. The following is assumed then:
//!
//! ```text
//! an option with ECEB     the number of packets nearest to the marked bytes       A.2.2
//! no such option          the largest number that ACE and the ACK allow           A.2.1
//! no such option, and the peer usually acknowledges many packets per ACK:
//!                         the smallest number                                     A.2.1
//! ```

use airtcp_types::ByteCount;
use airtcp_wire::options::AccEcn;

use super::received::{FIRST_BYTES, FIRST_CEP};

/// The modulus of ACE.
const CYCLE: u64 = 8;
/// The average number of packets per ACK above which an ACK of many packets does not indicate that
/// ACKs were lost (RFC 9768 appendix A.2.1: the average should be well below eight). The value is
/// Linux's.
const FEW: u64 = 4;
/// The weight of an ACK in that average is one over this number.
const WEIGHT: u64 = 64;
/// With at most this many packets acknowledged since the handshake, ACE cannot have wrapped to
/// zero, even if the SYN-ACK was marked.
const BEFORE_ZERO: u64 = CYCLE - 2 - FIRST_CEP;

/// The feedback of an ACK, and the amount of data that it newly reports.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Feedback {
    /// The ACE field.
    pub(in crate::tcp) ace: u8,
    pub(in crate::tcp) option: Option<AccEcn>,
    /// Whether the ACK advances SND.UNA: then no earlier arrival is newer.
    pub(in crate::tcp) advances: bool,
    /// Whether its timestamp shows that it was sent after all earlier arrivals.
    pub(in crate::tcp) is_later: bool,
    /// Whether nothing was outstanding when it arrived.
    pub(in crate::tcp) is_idle: bool,
    /// Bytes that it is the first to report, and the packets in which they were sent.
    pub(in crate::tcp) bytes: ByteCount,
    pub(in crate::tcp) packets: u64,
    /// Bytes in flight that no ACK has reported as received.
    pub(in crate::tcp) unreported: ByteCount,
    /// The payload of a full segment.
    pub(in crate::tcp) smss: ByteCount,
}

/// The state of the peer's options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Options {
    Unseen,
    Good,
    /// The counters arrived as zero, which is impossible: the path clears them.
    Zeroed,
}

/// The counters of sent data: s.cep, s.e0b, s.ceb and s.e1b of RFC 9768.
#[derive(Debug)]
pub(super) struct DeliveredMarks {
    cep: u64,
    e0b: u64,
    /// Estimated by ACE since the last option with ECEB.
    ceb: u64,
    e1b: u64,
    /// s.cep and s.ceb at that option, and the packets that ACKs have reported since.
    at_option: (u64, u64),
    reported_since: u64,
    /// Bytes acknowledged since the last option, by ACKs without an option.
    bytes_since: u64,
    options: Options,
    /// The average number of packets per ACK, times [`WEIGHT`].
    per_ack: u64,
    /// Whether the feedback of the peer is used.
    responds: bool,
    /// Whether no ACE was read since the handshake.
    is_first: bool,
    /// Whether the feedback contradicts itself: marked bytes without a marked packet.
    contradicts: bool,
}

impl DeliveredMarks {
    pub(super) const fn new() -> Self {
        Self {
            cep: FIRST_CEP,
            e0b: FIRST_BYTES,
            ceb: 0,
            e1b: FIRST_BYTES,
            at_option: (FIRST_CEP, 0),
            reported_since: 0,
            bytes_since: 0,
            options: Options::Unseen,
            per_ack: 0,
            responds: true,
            is_first: true,
            contradicts: false,
        }
    }

    /// Reads the handshake code from the ACK of a SYN-ACK (RFC 9768 table 4).
    pub(super) fn on_handshake(&mut self, code: u8) {
        match code {
            0b000 => self.responds = false,
            0b110 => self.cep = FIRST_CEP + 1,
            _ => {}
        }
        self.at_option.0 = self.cep;
    }

    /// Checks whether the path clears the counters of an option. The counters themselves are read
    /// with the ACK that carries them.
    pub(super) fn on_option(&mut self, option: &AccEcn) {
        // RFC 9768 section 3.2.3.2.4.
        if self.options == Options::Unseen && !option.counters().is_empty() {
            let is_zeroed = option.e0b() == Some(0) || option.e1b() == Some(0);
            self.options = if is_zeroed { Options::Zeroed } else { Options::Good };
        }
    }

    /// Checks the first ACE after the handshake, on an ACK of `packets` packets (RFC 9768 section
    /// 3.2.2.4). If it is zero and cannot be a count, the path clears the field, and feedback is no
    /// longer used.
    fn check_first_ace(&mut self, ace: u8, packets: u64) {
        if std::mem::take(&mut self.is_first) && ace == 0 && packets <= BEFORE_ZERO {
            self.responds = false;
        }
    }

    /// Processes the feedback of an ACK that no newer one has overtaken; returns the number of
    /// bytes newly known to have arrived with CE.
    pub(super) fn on_ack(&mut self, feedback: &Feedback) -> ByteCount {
        let &Feedback { ace, option, advances, bytes, packets, unreported, smss, .. } = feedback;
        if let Some(option) = &option {
            self.on_option(option);
        }
        // RFC 9768 appendix A.1: an ACK that reports nothing new may be an old one, unless its
        // timestamp proves the opposite.
        if packets == 0 && !feedback.is_later {
            // Nothing that this end has sent can have changed the counter.
            if feedback.is_idle {
                self.check_first_ace(ace, packets);
            }
            return ByteCount::ZERO;
        }
        self.check_first_ace(ace, packets);
        if !self.responds {
            return ByteCount::ZERO;
        }
        let option = option.filter(|_| self.options == Options::Good);
        if !advances && option.is_some_and(|option| self.is_behind(&option)) {
            // A newer ACK has overtaken it after all: its new data is above a hole.
            return ByteCount::ZERO;
        }
        if packets > 0 {
            let before = if self.per_ack == 0 { packets * WEIGHT } else { self.per_ack };
            self.per_ack = before - before / WEIGHT + packets;
        }
        if let Some(e0b) = option.and_then(|option| option.e0b()) {
            // More than half a cycle of the counter may have arrived since the last option.
            self.e0b = nearest(self.e0b + self.bytes_since, e0b);
            self.bytes_since = 0;
        } else {
            self.bytes_since += bytes.0;
        }
        if let Some(e1b) = option.and_then(|option| option.e1b()) {
            self.e1b = nearest(self.e1b, e1b);
        }
        let least = u64::from(ace.wrapping_sub(self.cep as u8)) % CYCLE;
        // RFC 9768 appendix A.2.1: dSafer.cep.
        let most = least + packets.saturating_sub(least) / CYCLE * CYCLE;
        let size = if packets > 0 { bytes.0.div_ceil(packets) } else { smss.0 }.max(1);
        let before = self.ceb;
        match option.and_then(|option| option.ceb()) {
            Some(ceb) => {
                let ceb = nearest(self.ceb, ceb);
                let (cep_then, ceb_then) = self.at_option;
                let marked = ceb.saturating_sub(ceb_then);
                let by_ace = (self.cep - cep_then + least) % CYCLE;
                // Data for which a SACK option had no room may also have arrived.
                let most = self.reported_since + packets + unreported.0.div_ceil(size);
                self.cep = cep_then + likely(by_ace, most, marked, size);
                self.reported_since = 0;
                self.contradicts |= marked > 0 && self.cep == cep_then;
                self.ceb = ceb;
                self.at_option = (self.cep, ceb);
            }
            None => {
                self.reported_since += packets;
                let newly = if self.per_ack > FEW * WEIGHT { least } else { most };
                self.cep += newly;
                self.ceb += (newly * size).min(bytes.0.max(least * size));
            }
        }
        ByteCount(self.ceb.saturating_sub(before))
    }

    /// Whether a counter of an option is lower than the last one that was read.
    fn is_behind(&self, option: &AccEcn) -> bool {
        let known = [self.e0b, self.at_option.1, self.e1b];
        let counters = [option.e0b(), option.ceb(), option.e1b()];
        let mut pairs = known.into_iter().zip(counters);
        pairs.any(|(known, field)| field.is_some_and(|field| nearest(known, field) < known))
    }

    /// Whether the sender reacts to the peer's feedback.
    pub(super) const fn responds(&self) -> bool {
        self.responds
    }

    /// Whether the peer's feedback can be trusted. If not, no more data may be sent as ECT (RFC
    /// 9768 section 3.2.3.2.5).
    pub(super) const fn is_sound(&self) -> bool {
        self.responds && !self.contradicts
    }

    /// Packets known to have arrived with CE.
    pub(super) const fn packets(&self) -> u64 {
        self.cep - FIRST_CEP
    }

    /// Bytes known to have arrived with ECT(0), CE and ECT(1).
    pub(super) const fn bytes(&self) -> [u64; 3] {
        let [e0b, e1b] = [self.e0b, self.e1b];
        [e0b.saturating_sub(FIRST_BYTES), self.ceb, e1b.saturating_sub(FIRST_BYTES)]
    }
}

/// Of the numbers of packets that ACE allows (`by_ace`, plus a multiple of [`CYCLE`]) and that are
/// at most `most`, returns the one nearest to `marked` bytes in packets of `size` bytes.
fn likely(by_ace: u64, most: u64, marked: u64, size: u64) -> u64 {
    let estimate = marked.div_ceil(size);
    let cycles = (estimate.saturating_sub(by_ace) + CYCLE / 2) / CYCLE;
    // Marked bytes arrived in at least one packet.
    let cycles = if by_ace == 0 && marked > 0 { cycles.max(1) } else { cycles };
    by_ace + cycles.min(most.saturating_sub(by_ace) / CYCLE) * CYCLE
}

/// The number nearest to `near` whose lower 24 bits are `field`.
fn nearest(near: u64, field: u32) -> u64 {
    const HALF: u64 = 1 << 23;
    let forward = (u64::from(field).wrapping_sub(near)) % (2 * HALF);
    if forward < HALF { near + forward } else { (near + forward).saturating_sub(2 * HALF) }
}

#[cfg(test)]
mod tests;
