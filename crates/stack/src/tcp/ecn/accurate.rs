//! AccECN on a connection (RFC 9768): counting, reporting and reading marks.
//!
//! Options are sent if they report a change: on an ACK, or on new data with enough room. They take
//! no room from full segments: an ACK with the option is sent on its own before such a segment.

use airtcp_types::{ByteCount, ExtSeq, SeqNumber};
use airtcp_wire::ip::CE;
use airtcp_wire::options::{AccEcn, TcpOptions};
use airtcp_wire::tcp::Segment;

use crate::tcp::AccEcnInfo;

use super::delivered::{DeliveredMarks, Feedback};
use super::negotiation::{echo_of, is_unchanged};
use super::received::{ReceivedMarks, ReportedCounters};
use super::{Ecn, News};

/// The length of an option with all counters (bytes).
const WHOLE: usize = AccEcn::len_of(3);
/// The number of SACK blocks that take precedence over an AccECN option (RFC 9768 section 3.2.3.3),
/// the length of a block, and the length of the SACK option without blocks (bytes).
const BLOCKS: usize = 2;
const BLOCK_LEN: usize = 8;
const BLOCKS_LEN: usize = 4;
/// The code of a SYN or SYN-ACK that arrived with CE (RFC 9768 tables 2 and 4).
const MARKED: u8 = 0b110;

/// The state of AccECN.
#[derive(Debug)]
pub(in crate::tcp) struct Accurate {
    received: ReceivedMarks,
    delivered: DeliveredMarks,
    /// Whether new data is sent as ECT(0).
    pub(super) marks: bool,
    /// The sequence number of the SYN-ACK that opened the connection, at the end that sent the SYN.
    syn_ack: Option<ExtSeq>,
    /// Whether the handshake code of the peer was read.
    handshake_read: bool,
    /// Whether a CE mark of a SYN-ACK was counted.
    syn_ack_ce: bool,
    /// Whether this end's SYN or SYN-ACK arrived with CE.
    marked_syn: bool,
}

impl Accurate {
    /// Creates the state after AccECN was negotiated with this SYN or SYN-ACK of the peer.
    pub(super) fn new(syn: &Segment<'_>) -> Self {
        let mut accurate = Self {
            received: ReceivedMarks::new(syn.ecn),
            delivered: DeliveredMarks::new(),
            marks: true,
            syn_ack: None,
            handshake_read: false,
            syn_ack_ce: false,
            marked_syn: false,
        };
        if syn.flags.ack {
            accurate.on_syn_ack(syn);
        }
        accurate
    }

    fn on_syn_ack(&mut self, syn_ack: &Segment<'_>) {
        let code = syn_ack.flags.ace();
        // RFC 9768 section 3.2.2.3: a path that changes the field of one packet may change others.
        self.marks = is_unchanged(code);
        self.marked_syn = code == MARKED;
        self.syn_ack = Some(ExtSeq::starting_at(syn_ack.seq));
        self.received.owe_first_data();
        if let Some(option) = &syn_ack.options.accecn {
            self.delivered.on_option(option);
        }
        self.on_syn_ack_mark(syn_ack.ecn);
    }

    /// Processes the ECN field of the peer's SYN-ACK; only one SYN-ACK with CE is counted (RFC 9768
    /// section 3.2.2.2).
    fn on_syn_ack_mark(&mut self, ecn: u8) {
        if ecn == CE && !std::mem::replace(&mut self.syn_ack_ce, true) {
            self.received.on_marked_syn_ack();
        }
    }
}

impl Ecn {
    /// The code with which to acknowledge a segment that repeats the SYN-ACK which opened the
    /// connection, with the number `seq`: the code replaces ACE (RFC 9768 section 3.2.2.1). `first`
    /// acknowledges this end's SYN.
    pub(in crate::tcp) fn repeated_code(
        &mut self,
        segment: &Segment<'_>,
        seq: ExtSeq,
        first: SeqNumber,
    ) -> Option<u8> {
        let is_ours = segment.flags.ack && segment.ack == first;
        let accurate = self.accurate_mut().filter(|accurate| accurate.syn_ack == Some(seq))?;
        is_ours.then(|| {
            accurate.on_syn_ack_mark(segment.ecn);
            echo_of(segment.ecn)
        })
    }

    /// Reads ACE from a segment in SYN-RECEIVED, if it is the handshake code for the SYN-ACK (RFC
    /// 9768 section 3.2.2.1); returns whether it is.
    pub(in crate::tcp) fn reads_handshake_code(&mut self, segment: &Segment<'_>) -> bool {
        let is_pure = segment.len() == 0 && segment.options.sack.is_empty();
        let Some(accurate) = self.accurate_mut().filter(|_| is_pure) else { return false };
        if std::mem::replace(&mut accurate.handshake_read, true) {
            return true;
        }
        let code = segment.flags.ace();
        accurate.delivered.on_handshake(code);
        accurate.marks &= is_unchanged(code) && accurate.delivered.responds();
        accurate.marked_syn = code == MARKED;
        true
    }

    /// Processes the SYN-ACK of a peer whose SYN this end has answered with a SYN-ACK.
    pub(in crate::tcp) fn on_crossing_syn_ack(&mut self, syn_ack: &Segment<'_>) {
        let Some(accurate) = self.accurate_mut() else { return };
        let code = syn_ack.flags.ace();
        accurate.handshake_read = true;
        // RFC 9768 section 3.1.5: a SYN-ACK without ECN may come from a peer that does not support
        // it.
        accurate.marks &= is_unchanged(code) && code != 0;
        accurate.marked_syn = code == MARKED;
        accurate.syn_ack_ce |= syn_ack.ecn == CE;
    }

    /// Whether this end's SYN or SYN-ACK arrived with CE.
    pub(in crate::tcp) fn was_syn_marked(&self) -> bool {
        self.accurate().is_some_and(|accurate| accurate.marked_syn)
    }

    /// Counts the mark of an acceptable segment. `is_all_acknowledged`: no other data has to be
    /// acknowledged.
    pub(in crate::tcp) fn on_segment(&mut self, segment: &Segment<'_>, is_all_acknowledged: bool) {
        let Some(accurate) = self.accurate_mut() else { return };
        let (packets, bytes) = (segment.count(), segment.payload.len());
        accurate.received.on_packets(segment.ecn, packets, bytes, is_all_acknowledged);
    }

    /// Processes the ECN bits of new data.
    pub(in crate::tcp) fn on_new_data(&mut self, segment: &Segment<'_>) -> News {
        match self {
            Self::Off => return News::Nothing,
            Self::Classic(classic) => return classic.on_data(segment),
            Self::Accurate(accurate) => accurate.received.on_new_data(),
        }
        News::Nothing
    }

    /// Records data that was acknowledged before.
    pub(in crate::tcp) fn on_old_data(&mut self) {
        if let Self::Accurate(accurate) = self {
            accurate.received.on_old_data();
        }
    }

    /// Whether the marks require an immediate ACK; clears the request.
    pub(in crate::tcp) fn take_wish(&mut self) -> bool {
        self.accurate_mut().is_some_and(|accurate| accurate.received.take_wish())
    }

    /// The counters to report in a segment that is sent or scheduled now.
    pub(in crate::tcp) fn report(&mut self) -> ReportedCounters {
        self.accurate_mut().map_or_else(ReportedCounters::default, |accurate| {
            accurate.received.on_ack_due();
            accurate.received.now()
        })
    }

    /// The current ACE field; zero without AccECN.
    pub(in crate::tcp) fn ace(&self) -> u8 {
        self.accurate().map_or(0, |accurate| accurate.received.now().ace)
    }

    /// The AccECN option of an ACK with `blocks` SACK blocks and `options`, if one is due and fits.
    pub(in crate::tcp) fn option_on_ack(
        &mut self,
        reported: &ReportedCounters,
        options: &TcpOptions,
        blocks: usize,
    ) -> Option<AccEcn> {
        let received = &mut self.accurate_mut()?.received;
        let option = if received.owes_option(reported) {
            // RFC 9768 section 3.2.3.3: SACK blocks take precedence.
            let sack = if blocks > 0 { BLOCKS_LEN + BLOCK_LEN * blocks.min(BLOCKS) } else { 0 };
            received.take_option(reported, options.room().saturating_sub(sack))
        } else {
            None
        };
        received.on_sent(option.is_some(), false);
        option
    }

    /// The AccECN option of a segment with data and `options`, if one is due and fits into `room`
    /// bytes.
    pub(in crate::tcp) fn option_on_data(
        &mut self,
        reported: &ReportedCounters,
        options: &TcpOptions,
        room: usize,
    ) -> Option<AccEcn> {
        let received = &mut self.accurate_mut()?.received;
        let option = match received.owes_option_on_data(reported) {
            true => received.take_option(reported, room.min(options.room())),
            false => None,
        };
        received.on_sent(option.is_some(), true);
        option
    }

    /// Whether an option is due that does not fit into `room` bytes.
    pub(in crate::tcp) fn lacks_room(&self, room: usize) -> bool {
        self.accurate().is_some_and(|Accurate { received, .. }| {
            room < WHOLE && received.owes_option(&received.now())
        })
    }

    /// Processes the feedback of an ACK; returns the number of bytes newly known to have arrived
    /// with CE.
    pub(in crate::tcp) fn on_ack(&mut self, feedback: &Feedback) -> ByteCount {
        let Some(accurate) = self.accurate_mut() else { return ByteCount::ZERO };
        let marked = accurate.delivered.on_ack(feedback);
        accurate.marks &= accurate.delivered.is_sound();
        marked
    }

    /// The counters of AccECN, if it is in use.
    pub(in crate::tcp) fn counts(&self) -> Option<AccEcnInfo> {
        let Accurate { received, delivered, .. } = self.accurate()?;
        let [delivered_e0_bytes, delivered_ce_bytes, delivered_e1_bytes] =
            delivered.bytes().map(ByteCount);
        let [received_e0_bytes, received_ce_bytes, received_e1_bytes] =
            received.bytes().map(ByteCount);
        Some(AccEcnInfo {
            delivered_ce: delivered.packets(),
            delivered_ce_bytes,
            delivered_e0_bytes,
            delivered_e1_bytes,
            received_ce: received.packets(),
            received_ce_bytes,
            received_e0_bytes,
            received_e1_bytes,
        })
    }

    fn accurate(&self) -> Option<&Accurate> {
        match self {
            Self::Accurate(accurate) => Some(accurate),
            Self::Off | Self::Classic(_) => None,
        }
    }

    fn accurate_mut(&mut self) -> Option<&mut Accurate> {
        match self {
            Self::Accurate(accurate) => Some(accurate),
            Self::Off | Self::Classic(_) => None,
        }
    }
}
