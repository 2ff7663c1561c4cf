//! The counters of received marks, and their reports to the peer: AccECN's data receiver (RFC 9768
//! section 3.2).

use airtcp_wire::ip::{CE, ECT_0, ECT_1, NOT_ECT};
use airtcp_wire::options::{AccEcn, Order};

/// The initial values of r.cep and s.cep, and of r.e0b and r.e1b; r.ceb starts at zero (RFC 9768
/// section 3.2.1).
pub(super) const FIRST_CEP: u64 = 5;
pub(super) const FIRST_BYTES: u64 = 1;
/// The number of CE marks that require an ACK, with data to acknowledge and without (RFC 9768
/// section 3.2.2.5.1).
const MARKS_OF_DATA: u32 = 2;
const MARKS_OF_ACKS: u32 = 3;
/// If `REPEATS` segments repeat data that was acknowledged with an option, ACKs with options are
/// being lost; `FRESH` segments of new data reset the count.
const REPEATS: u8 = 2;
const FRESH: u8 = 16;

/// A snapshot of the counters, as ACE and the option report them: r.cep modulo 8, the others modulo
/// 2^24.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::tcp) struct ReportedCounters {
    /// The ACE field.
    pub(super) ace: u8,
    e0b: u32,
    ceb: u32,
    e1b: u32,
}

impl ReportedCounters {
    const FIRST: Self = Self { ace: 5, e0b: 1, ceb: 0, e1b: 1 };
}

/// The counters of received marks: r.cep, r.e0b, r.ceb and r.e1b of RFC 9768.
#[derive(Debug)]
pub(in crate::tcp) struct ReceivedMarks {
    cep: u64,
    e0b: u64,
    ceb: u64,
    e1b: u64,
    /// Packets with CE since the last ACK became due.
    pending: u32,
    /// The ECN field of the last packet.
    last: u8,
    /// Whether the marks require an immediate ACK.
    wants_ack: bool,
    /// The counters in the last option sent, if any.
    last_option: Option<ReportedCounters>,
    /// Whether options may be sent.
    options: bool,
    /// Whether the first data segment has to carry an option, too.
    owes_first_data: bool,
    /// Whether the last ACK had an option.
    had_option: bool,
    /// Segments that arrived again although they were acknowledged with an option, and new segments
    /// since the last of them.
    repeats: u8,
    fresh: u8,
}

impl ReceivedMarks {
    /// Creates the counters; `last` is the ECN field of the last packet.
    pub(super) const fn new(last: u8) -> Self {
        Self {
            cep: FIRST_CEP,
            e0b: FIRST_BYTES,
            ceb: 0,
            e1b: FIRST_BYTES,
            pending: 0,
            last,
            wants_ack: false,
            last_option: None,
            options: true,
            owes_first_data: false,
            had_option: false,
            repeats: 0,
            fresh: 0,
        }
    }

    /// The option of a stateless SYN-ACK, in `room` bytes.
    pub(in crate::tcp) fn first_option(room: usize) -> Option<AccEcn> {
        Self::new(NOT_ECT).take_option(&ReportedCounters::FIRST, room)
    }

    /// Counts the marks of acceptable segments: `packets` on the wire, with `bytes` of data in
    /// total. `is_all_acknowledged`: no other data has to be acknowledged.
    pub(super) fn on_packets(
        &mut self,
        ecn: u8,
        packets: u32,
        bytes: usize,
        is_all_acknowledged: bool,
    ) {
        match ecn {
            CE => {
                self.cep += u64::from(packets);
                self.ceb += bytes as u64;
                self.pending = self.pending.saturating_add(packets);
            }
            ECT_0 => self.e0b += bytes as u64,
            ECT_1 => self.e1b += bytes as u64,
            _ => {}
        }
        // Both rules of RFC 9768 section 3.2.2.5.1; the first one is about data packets.
        let changed = ecn == CE && self.last != CE && bytes > 0;
        let enough = if is_all_acknowledged && bytes == 0 { MARKS_OF_ACKS } else { MARKS_OF_DATA };
        self.wants_ack |= changed || self.pending >= enough;
        self.last = ecn;
    }

    /// Counts the first SYN-ACK of a connection that arrived with CE.
    pub(super) fn on_marked_syn_ack(&mut self) {
        self.cep += 1;
    }

    /// Whether the marks require an immediate ACK; clears the request.
    pub(super) fn take_wish(&mut self) -> bool {
        std::mem::take(&mut self.wants_ack)
    }

    /// Records that an ACK, or data with an ACK, is scheduled.
    pub(super) fn on_ack_due(&mut self) {
        self.pending = 0;
        self.wants_ack = false;
    }

    /// The current counters.
    pub(super) const fn now(&self) -> ReportedCounters {
        ReportedCounters {
            ace: self.cep as u8 & 0b111,
            e0b: self.e0b as u32 & 0xff_ffff,
            ceb: self.ceb as u32 & 0xff_ffff,
            e1b: self.e1b as u32 & 0xff_ffff,
        }
    }

    /// Makes the first data segment of this end carry an option.
    pub(super) fn owe_first_data(&mut self) {
        self.owes_first_data = true;
    }

    /// Whether an option is due: none was sent, or the counters have changed since.
    pub(super) fn owes_option(&self, current: &ReportedCounters) -> bool {
        let bytes = |counters: &ReportedCounters| (counters.e0b, counters.ceb, counters.e1b);
        self.options
            && self.last_option.as_ref().is_none_or(|counters| bytes(counters) != bytes(current))
    }

    /// Whether data that is sent now has to carry an option.
    pub(super) fn owes_option_on_data(&self, current: &ReportedCounters) -> bool {
        self.options && (self.owes_first_data || self.owes_option(current))
    }

    /// Records that an ACK or data was sent, with or without an option.
    pub(super) fn on_sent(&mut self, has_option: bool, has_data: bool) {
        self.had_option = has_option;
        self.owes_first_data &= !has_data;
    }

    /// Builds the option that reports `current` in `room` bytes, and records it as sent: all three
    /// counters in Linux's order, or two of them, preferring those that changed since the last
    /// option and then those that have ever changed. `None` if that does not fit (RFC 9768 section
    /// 3.2.3.3).
    pub(super) fn take_option(
        &mut self,
        current: &ReportedCounters,
        room: usize,
    ) -> Option<AccEcn> {
        let last = self.last_option.unwrap_or(ReportedCounters::FIRST);
        let (e0b, e1b) = (last.e0b != current.e0b, last.e1b != current.e1b);
        let option = if room >= AccEcn::len_of(3) {
            AccEcn::new(Order::One, &[current.e1b, current.ceb, current.e0b])
        } else if room < AccEcn::len_of(2) || e0b && e1b {
            return None;
        } else if e1b || self.e0b == FIRST_BYTES {
            AccEcn::new(Order::One, &[current.e1b, current.ceb])
        } else {
            AccEcn::new(Order::Zero, &[current.e0b, current.ceb])
        };
        self.last_option = Some(*current);
        Some(option)
    }

    /// Records data that was acknowledged before. If that happens repeatedly, ACKs with an option
    /// are being lost, and no more options are sent (RFC 9768 section 3.2.3.2.2).
    pub(super) fn on_old_data(&mut self) {
        self.repeats = self.repeats.saturating_add(self.had_option.into());
        self.fresh = 0;
        self.options &= self.repeats < REPEATS;
    }

    pub(super) fn on_new_data(&mut self) {
        self.fresh = self.fresh.saturating_add(1);
        if self.fresh >= FRESH {
            self.repeats = 0;
        }
    }

    /// Packets that arrived with CE.
    pub(super) const fn packets(&self) -> u64 {
        self.cep - FIRST_CEP
    }

    /// Bytes that arrived with ECT(0), CE and ECT(1).
    pub(super) const fn bytes(&self) -> [u64; 3] {
        [self.e0b - FIRST_BYTES, self.ceb, self.e1b - FIRST_BYTES]
    }
}
