//! AccECN on a connection (RFC 9768): marks counted, reported, and read. `ecn/` has the counters.
//!
//! Options leave where they tell something new: beside an ACK, or on new data that leaves room for one. They take nothing from
//! full segments: before one of those the ACK that has to tell something leaves alone.

use std::cmp::Ordering;

use airtcp_recovery::{Board, Transmit};
use airtcp_types::{ByteCount, ExtSeq, RangeSet, SeqRange};
use airtcp_wire::ip::CE;
use airtcp_wire::options::{AccEcn, SackBlocks, TcpOptions};
use airtcp_wire::tcp::{Flags, Segment};

use crate::tcp::Connection;

use super::{Accurate, Classic, Ecn, Feedback, Form, ReportedCounters, echo_of, is_unchanged};

/// The length of an option with all counters (bytes).
const WHOLE: usize = AccEcn::len_of(3);
/// SACK blocks that have room before an AccECN option (RFC 9768 section 3.2.3.3), the length of a block, and that of the
/// SACK option without blocks (bytes).
const BLOCKS: usize = 2;
const BLOCK_LEN: usize = 8;
const BLOCKS_LEN: usize = 4;
/// A SYN or SYN-ACK was marked (RFC 9768 tables 2 and 4).
const MARKED: u8 = 0b110;

impl Connection {
    fn accurate(&mut self) -> Option<&mut Accurate> {
        self.receive.ecn.as_mut()?.accurate_mut()
    }

    /// The handshake has agreed on `form` with the peer's SYN or SYN-ACK.
    pub(in crate::tcp) fn begin_ecn(&mut self, form: Form, syn: &Segment<'_>) {
        self.receive.ecn = match form {
            Form::Nothing => None,
            Form::Classic => Some(Ecn::Classic(Classic::new())),
            Form::Accurate => Some(Ecn::Accurate(Box::new(Accurate::new(syn.ecn)))),
        };
        let number = ExtSeq::starting_at(syn.seq);
        let Some(accurate) = self.accurate().filter(|_| syn.flags.ack) else { return };
        let code = syn.flags.ace();
        // RFC 9768 section 3.2.2.3: what writes into one packet's field may write into others.
        accurate.marks = is_unchanged(code);
        accurate.marked_syn = code == MARKED;
        accurate.syn_ack = Some(number);
        accurate.received.owe_first_data();
        if let Some(option) = &syn.options.accecn {
            accurate.delivered.on_option(option);
        }
        accurate.on_syn_ack_mark(syn.ecn);
    }

    /// Whether this end's SYN or SYN-ACK arrived with CE.
    pub(in crate::tcp) fn was_syn_marked(&self) -> bool {
        let accurate = self.receive.ecn.as_ref().and_then(|ecn| ecn.accurate());
        accurate.is_some_and(|accurate| accurate.marked_syn)
    }

    /// The code for the ECN field of the peer's latest SYN-ACK, which the ACK of it has in place of ACE (RFC 9768 section
    /// 3.2.2.1).
    pub(in crate::tcp) fn handshake_code(&self) -> Option<u8> {
        let handshake = self.handshake.as_ref()?;
        (handshake.ecn.agreed() == Form::Accurate).then(|| echo_of(handshake.ecn.heard()))
    }

    /// As [`handshake_code`](Self::handshake_code), of the SYN-ACK that opened the connection if `segment` is that once more.
    pub(in crate::tcp) fn repeated_code(
        &mut self,
        segment: &Segment<'_>,
        seq: ExtSeq,
    ) -> Option<u8> {
        let is_ours = segment.flags.ack && segment.ack == self.send.first().wire();
        let accurate = self.accurate().filter(|accurate| accurate.syn_ack == Some(seq))?;
        is_ours.then(|| {
            accurate.on_syn_ack_mark(segment.ecn);
            echo_of(segment.ecn)
        })
    }

    /// Takes ACE from a segment in SYN-RECEIVED, if it is one that tells of the SYN-ACK (RFC 9768 section 3.2.2.1); gives
    /// whether it was.
    pub(in crate::tcp) fn reads_handshake_code(&mut self, segment: &Segment<'_>) -> bool {
        let is_pure = segment.len() == 0 && segment.options.sack.is_empty();
        let Some(accurate) = self.accurate().filter(|_| is_pure) else { return false };
        if std::mem::replace(&mut accurate.handshake_read, true) {
            return true;
        }
        let code = segment.flags.ace();
        accurate.delivered.on_handshake(code);
        accurate.marks &= is_unchanged(code) && accurate.delivered.responds();
        accurate.marked_syn = code == MARKED;
        true
    }

    /// Takes the SYN-ACK of a peer whose SYN this end has answered with one of its own; its flags are then read. Gives whether
    /// it contradicts that SYN.
    pub(in crate::tcp) fn on_crossing_syn_ack(&mut self, segment: &mut Segment<'_>) -> bool {
        let Some(handshake) = &mut self.handshake else { return false };
        if handshake.ecn.on_crossing_syn_ack(segment) {
            return true;
        }
        let code = segment.flags.ace();
        segment.flags = segment.flags.with_ace(0);
        if let Some(accurate) = self.accurate() {
            accurate.handshake_read = true;
            // RFC 9768 section 3.1.5: without ECN in the SYN-ACK the peer may not know of it.
            accurate.marks &= is_unchanged(code) && code != 0;
            accurate.marked_syn = code == MARKED;
            accurate.syn_ack_ce |= segment.ecn == CE;
        }
        false
    }

    /// Counts the mark of a segment that is acceptable.
    pub(in crate::tcp) fn note_marks(&mut self, segment: &Segment<'_>) {
        let is_all_acknowledged = self.receive.nxt() == self.receive.last_ack_sent;
        let Some(accurate) = self.accurate() else { return };
        let (packets, bytes) = (segment.count(), segment.payload.len());
        accurate.received.on_packets(segment.ecn, packets, bytes, is_all_acknowledged);
    }

    /// Whether the marks want an ACK to leave now.
    pub(in crate::tcp) fn marks_want_ack(&mut self) -> bool {
        self.accurate().is_some_and(|accurate| accurate.received.take_wish())
    }

    /// Has an ACK leave that marks of segments without data want: without SACK blocks, so that it is no duplicate (RFC 9768
    /// section 3.2.2.5.1).
    pub(in crate::tcp) fn acknowledge_marks(&mut self) {
        if self.marks_want_ack() {
            self.schedule(SackBlocks::EMPTY, None);
        }
    }

    /// The counters that a segment which leaves now reports.
    pub(in crate::tcp) fn report_marks(&mut self) -> ReportedCounters {
        self.accurate().map_or_else(ReportedCounters::default, |accurate| {
            accurate.received.on_ack_due();
            accurate.received.now()
        })
    }

    /// The flags of an ACK that reports `reported`: with AccECN the field ACE.
    pub(in crate::tcp) fn flags_reporting(&self, reported: &ReportedCounters) -> Flags {
        match &self.receive.ecn {
            None => Flags::ACK,
            Some(Ecn::Classic(classic)) => Flags { ece: classic.echoes, ..Flags::ACK },
            Some(Ecn::Accurate(_)) => Flags::ACK.with_ace(reported.ace),
        }
    }

    /// Those of everything that acknowledges now.
    pub(in crate::tcp) fn ack_flags(&self) -> Flags {
        let accurate = self.receive.ecn.as_ref().and_then(|ecn| ecn.accurate());
        let reported =
            accurate.map_or_else(ReportedCounters::default, |accurate| accurate.received.now());
        self.flags_reporting(&reported)
    }

    /// The AccECN option of an ACK with `blocks` SACK blocks beside `options`, if it is to have one and there is room.
    pub(in crate::tcp) fn option_on_ack(
        &mut self,
        reported: &ReportedCounters,
        options: &TcpOptions,
        blocks: usize,
    ) -> Option<AccEcn> {
        let received = &mut self.accurate()?.received;
        let option = if received.owes_option(reported) {
            // RFC 9768 section 3.2.3.3: loss is the more important to tell of.
            let sack = if blocks > 0 { BLOCKS_LEN + BLOCK_LEN * blocks.min(BLOCKS) } else { 0 };
            received.take_option(reported, options.room().saturating_sub(sack))
        } else {
            None
        };
        received.on_sent(option.is_some(), false);
        option
    }

    /// The AccECN option of a segment with `len` bytes of data beside `options`, if it is to have one and there is room.
    pub(in crate::tcp) fn option_on_data(
        &mut self,
        reported: &ReportedCounters,
        options: &TcpOptions,
        len: ByteCount,
    ) -> Option<AccEcn> {
        let room = usize::from(self.segment_size()).saturating_sub(len.as_usize());
        let received = &mut self.accurate()?.received;
        let option = match received.owes_option_on_data(reported) {
            true => received.take_option(reported, room.min(options.room())),
            false => None,
        };
        received.on_sent(option.is_some(), true);
        option
    }

    /// Whether the ACK that a transmission would carry leaves before it, alone: it has an option, for which there is no room
    /// beside so much data.
    pub(in crate::tcp) fn ack_goes_before(&self, transmit: &Transmit) -> bool {
        let accurate = self.receive.ecn.as_ref().and_then(|ecn| ecn.accurate());
        let Some(Accurate { received, .. }) = accurate else { return false };
        let is_full = transmit.rule.is_retransmission()
            || transmit.range.len().as_usize() + WHOLE > usize::from(self.segment_size());
        is_full && self.acks.is_pending() && received.owes_option(&received.now())
    }

    /// Data came in: all of it acknowledged before, or something new.
    pub(in crate::tcp) fn note_progress(&mut self, is_new: bool) {
        if let Some(accurate) = self.accurate() {
            match is_new {
                true => accurate.received.on_new_data(),
                false => accurate.received.on_old_data(),
            }
        }
    }

    /// Takes what an ACK tells of marks; gives how many bytes are newly known to have arrived with CE.
    pub(in crate::tcp) fn newly_marked(
        &mut self,
        segment: &Segment<'_>,
        ack: ExtSeq,
        blocks: &[SeqRange],
    ) -> ByteCount {
        let Some(accurate) = self.receive.ecn.as_mut().and_then(|ecn| ecn.accurate_mut()) else {
            return ByteCount::ZERO;
        };
        let Some(sender) = &self.send.sender else { return ByteCount::ZERO };
        if let Some(option) = &segment.options.accecn {
            accurate.delivered.on_option(option);
        }
        let board = sender.board();
        let outstanding = board.snd_nxt().since(board.snd_una());
        let (bytes, packets) = newly_reported(board, ack, blocks);
        // RFC 9768 appendix A.1: an ACK that tells of nothing new may be an old one, unless its clock says otherwise.
        let is_later = self
            .timestamps
            .zip(segment.options.timestamps)
            .is_some_and(|(clock, theirs)| clock.order(theirs.val) == Ordering::Greater);
        if packets == 0 && !is_later {
            // Nothing that this end has sent can have changed the count.
            if outstanding == ByteCount::ZERO {
                accurate.delivered.check_first_ace(segment.flags.ace(), packets);
                accurate.marks &= accurate.delivered.is_sound();
            }
            return ByteCount::ZERO;
        }
        let advances = ack > board.snd_una();
        let marked = accurate.delivered.on_ack(&Feedback {
            ace: segment.flags.ace(),
            option: segment.options.accecn,
            advances,
            bytes,
            packets,
            unreported: outstanding - board.sacked() - bytes,
            smss: sender.smss(),
        });
        accurate.marks &= accurate.delivered.is_sound();
        marked
    }
}

impl Accurate {
    /// The peer's SYN-ACK came with this ECN field; of those with CE one is counted (RFC 9768 section 3.2.2.2).
    fn on_syn_ack_mark(&mut self, ecn: u8) {
        if ecn == CE && !std::mem::replace(&mut self.syn_ack_ce, true) {
            self.received.on_marked_syn_ack();
        }
    }
}

/// Bytes of which an ACK is the first to report that they arrived, and the packets that begin among them.
fn newly_reported(board: &Board, ack: ExtSeq, blocks: &[SeqRange]) -> (ByteCount, u64) {
    let (mut bytes, mut packets) = (ByteCount::ZERO, 0);
    let mut reported = RangeSet::new();
    let cumulative = SeqRange::new(board.snd_una(), ack.max(board.snd_una()));
    for range in std::iter::once(cumulative).chain(blocks.iter().copied()) {
        reported.insert_with(range, |part| {
            for gap in board.sacked_ranges().gaps(part) {
                bytes += gap.len();
                packets += (board.starting_in(gap).count() as u64).max(1);
            }
        });
    }
    (bytes, packets)
}
