//! Processing of received ACKs: impossible acknowledgement numbers are challenged, and invalid SACK
//! blocks are ignored.

use std::cmp::Ordering;

use airtcp_recovery::{Ack, Board, UndoSign};
use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant, RangeSet, SeqRange, TxNo};
use airtcp_wire::options::{MAX_SACK_BLOCKS, SackBlocks};
use airtcp_wire::tcp::Segment;
use tracing::debug;

use crate::counters::Counters;

use super::ecn::Feedback;
use super::send::WindowNews;
use super::{Connection, State};

impl Connection {
    /// Handles the ACK of a segment (RFC 9293 section 3.10.7.4, fifth). Returns whether the rest of
    /// the segment is processed. `is_syn_ack`: it is a SYN-ACK, whose flags were already read.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        seq: ExtSeq,
        is_syn_ack: bool,
        counters: &mut Counters,
    ) -> bool {
        let in_handshake = self.state == State::SynReceived;
        let first = self.send.first();
        if in_handshake && first.nearest(segment.ack) != first {
            self.refuse_handshake_ack(segment, counters);
            return false;
        }
        let ack = self.send.una().nearest(segment.ack);
        // RFC 5961 section 5.2: it acknowledges data that was never sent, or is older than any ACK
        // that may still be in flight.
        if ack > self.send.nxt() || ack < self.send.oldest_ack() {
            self.send_challenge_ack(now, counters);
            return false;
        }
        let is_of_handshake =
            in_handshake && (is_syn_ack || self.ecn.reads_handshake_code(segment));
        if in_handshake && self.defers(now, segment, counters) {
            return false;
        }
        self.ecn.on_segment(segment, self.receive.is_all_acknowledged());
        let range = SeqRange::new(seq, seq + u64::from(segment.len()));
        let window = ByteCount(u64::from(segment.window) << self.send.scale());
        self.record(|| EventKind::Received { range, ack, window });
        if in_handshake {
            let echo = segment.options.timestamps.map(|timestamps| timestamps.ecr);
            self.establish(now, echo);
        } else if self.on_special_ack(now, segment, counters) {
            return false;
        }
        if ack < self.send.una() {
            self.on_late_ack(now, segment, ack, counters);
            return true;
        }
        self.tally.on_ack(now);
        self.closing.on_ack();
        if self.send.sender().is_some() {
            let news = self.send.on_window(seq, ack, window);
            if news.shrunk {
                debug!(remote = %self.flow.remote, "peer shrank its window");
                counters.tcp_ext_window_shrunk += 1;
            }
            self.hand_to_sender(now, segment, ack, news, !is_of_handshake, counters);
            self.on_fin_acked(now);
        }
        self.state != State::Closed
    }

    /// Handles an ACK older than the newest one. Only its SACK blocks are used, because it may be
    /// the only one to report them; its window is obsolete.
    fn on_late_ack(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        ack: ExtSeq,
        counters: &mut Counters,
    ) {
        if self.sack && !segment.options.sack.is_empty() {
            self.hand_to_sender(now, segment, ack, WindowNews::default(), false, counters);
        }
    }

    fn hand_to_sender(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        ack: ExtSeq,
        window: WindowNews,
        has_feedback: bool,
        counters: &mut Counters,
    ) {
        let before = self.send.una();
        let sack = if self.sack { &segment.options.sack } else { &SackBlocks::EMPTY };
        let bounds = Bounds { first: self.send.first(), ack, una: before, nxt: self.send.nxt() };
        let reports = Reports::read(sack, &bounds);
        if reports.lies > 0 {
            debug!(remote = %self.flow.remote, blocks = reports.lies, "bad SACK blocks ignored");
            counters.tcp_ext_sack_discard += reports.lies;
        }
        counters.tcp_ext_dsack_recv += u64::from(reports.dsack.is_some());
        let echo = segment
            .options
            .timestamps
            .filter(|_| ack >= before)
            .and_then(|theirs| self.timestamps.and_then(|clock| clock.echo(now, theirs.ecr)));
        if !segment.payload.is_empty()
            && let Some(made) = echo
        {
            self.receive.on_rtt(now.since(made));
        }
        let echoed = self.echoed(segment);
        let feedback = match has_feedback && self.ecn.is_accurate() {
            true => self.feedback(segment, ack, reports.blocks()),
            false => None,
        };
        let ce = feedback.map_or(ByteCount::ZERO, |feedback| self.ecn.on_ack(&feedback));
        counters.tcp_ext_pure_acks += u64::from(segment.len() == 0);
        let undone = self.send.on_ack(
            now,
            &Ack {
                ack,
                window_changed: window.resized,
                window_opened: window.opened,
                has_payload: segment.len() > 0,
                sack: reports.blocks(),
                dsack: reports.dsack,
                echo,
                ece: segment.flags.ece && self.ecn.is_classic(),
                ce,
                echoed,
            },
        );
        self.end_black_hole(now, counters);
        self.collect_events();
        if let Some(sign) = undone {
            self.count_undo(sign, counters);
        }
        self.tally.settle(now, &self.send, counters);
    }

    fn count_undo(&self, sign: UndoSign, counters: &mut Counters) {
        debug!(remote = %self.flow.remote, ?sign, "window reduction undone");
        match sign {
            UndoSign::NewData => counters.tcp_ext_spurious_rtos += 1,
            UndoSign::Duplicates => counters.tcp_ext_dsack_undo += 1,
            UndoSign::Overtaken | UndoSign::TimeStamp => counters.tcp_ext_full_undo += 1,
        }
    }

    /// Rejects a handshake ACK of data that was not sent, with a RST: the peer refers to another
    /// connection (RFC 9293 section 3.10.7.3, first, and section 3.10.7.4, fifth).
    pub(super) fn refuse_handshake_ack(&mut self, segment: &Segment<'_>, counters: &mut Counters) {
        debug!(remote = %self.flow.remote, "ACK of unsent data in handshake: sending RST");
        counters.tcp_ext_handshake_bad_ack += 1;
        self.answer_with_rst(segment);
    }

    /// The AccECN feedback of an ACK, and the amount of data that it newly reports.
    fn feedback(
        &self,
        segment: &Segment<'_>,
        ack: ExtSeq,
        blocks: &[SeqRange],
    ) -> Option<Feedback> {
        let sender = self.send.sender()?;
        let board = sender.board();
        let outstanding = board.snd_nxt().since(board.snd_una());
        let (bytes, packets) = newly_reported(board, ack, blocks);
        let clocks = self.timestamps.zip(segment.options.timestamps);
        Some(Feedback {
            ace: segment.flags.ace(),
            option: segment.options.accecn,
            advances: ack > board.snd_una(),
            is_later: clocks
                .is_some_and(|(clock, theirs)| clock.order(theirs.val) == Ordering::Greater),
            is_idle: outstanding == ByteCount::ZERO,
            bytes,
            packets,
            unreported: outstanding - board.sacked() - bytes,
            smss: sender.smss(),
        })
    }

    /// The transmission that a segment echoes.
    fn echoed(&self, segment: &Segment<'_>) -> Option<TxNo> {
        let next = self.send.sender()?.board().next_tx();
        self.extensions.as_ref()?.echoed(&segment.options, next)
    }
}

/// The bytes that an ACK is the first to report as received, and the number of packets that start
/// in them.
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

/// The validated SACK option of an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reports {
    blocks: [SeqRange; MAX_SACK_BLOCKS],
    len: usize,
    /// The reported duplicate (RFC 2883).
    pub(super) dsack: Option<SeqRange>,
    /// The number of invalid blocks.
    pub(super) lies: u64,
}

/// The bounds against which a SACK option is validated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// ISS + 1.
    pub(super) first: ExtSeq,
    /// SEG.ACK.
    pub(super) ack: ExtSeq,
    /// SND.UNA before this ACK; above SEG.ACK if the ACK is late.
    pub(super) una: ExtSeq,
    /// SND.NXT.
    pub(super) nxt: ExtSeq,
}

impl Reports {
    /// Validates the blocks of an ACK. A block is invalid if it covers data that was never sent, is
    /// empty or reversed, or lies below its own cumulative acknowledgement. Data that a later ACK
    /// has acknowledged makes a block neither invalid nor new.
    pub(super) fn read(sack: &SackBlocks, bounds: &Bounds) -> Self {
        let range =
            |&(start, end)| SeqRange::new(bounds.ack.nearest(start), bounds.ack.nearest(end));
        let mut reports = Self::default();
        let known = bounds.ack.max(bounds.una);
        let wire = sack.as_slice();
        for (index, block) in wire.iter().map(range).enumerate() {
            let sent = bounds.first <= block.start && block.end <= bounds.nxt && !block.is_empty();
            // RFC 2883 section 4: the first block reports a duplicate if it lies below the
            // cumulative acknowledgement, or inside the second block.
            let duplicate = index == 0
                && (block.end <= bounds.ack
                    || wire.get(1).map(range).is_some_and(|second| second.covers(block)));
            if !sent {
                reports.lies += 1;
            } else if duplicate {
                reports.dsack = Some(block);
            } else if block.start < bounds.ack {
                reports.lies += 1;
            } else if block.end > known {
                reports.blocks[reports.len] = SeqRange::new(block.start.max(known), block.end);
                reports.len += 1;
            }
        }
        reports
    }

    /// The valid blocks above the cumulative acknowledgement, in the peer's order.
    pub(super) fn blocks(&self) -> &[SeqRange] {
        &self.blocks[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::SeqNumber;

    use super::*;

    const BOUNDS: Bounds =
        Bounds { first: ExtSeq(1000), ack: ExtSeq(2000), una: ExtSeq(1500), nxt: ExtSeq(5000) };

    fn read_within(bounds: &Bounds, blocks: &[(u32, u32)]) -> Reports {
        let sack = blocks.iter().map(|(a, b)| (SeqNumber(*a), SeqNumber(*b))).collect();
        Reports::read(&sack, bounds)
    }

    fn read(blocks: &[(u32, u32)]) -> Reports {
        read_within(&BOUNDS, blocks)
    }

    fn range(start: u64, end: u64) -> SeqRange {
        SeqRange::new(ExtSeq(start), ExtSeq(end))
    }

    #[test]
    fn impossible_parts_of_an_ack_are_ignored() {
        let reports = read(&[(3000, 2500), (3000, 3000), (4000, 5001), (2500, 3500)]);
        assert_eq!((reports.blocks(), reports.lies), (&[range(2500, 3500)][..], 3));
        assert_eq!(read(&[(2500, 3000), (1500, 2500)]).lies, 1, "below the cumulative ACK");
        assert_eq!(read(&[(900, 950)]).lies, 1, "below the first byte");
    }

    // Shows: RFC2883-5-2
    #[test]
    fn of_a_late_ack_only_what_is_news_is_kept() {
        let late = Bounds { una: ExtSeq(3000), ..BOUNDS };
        let reports = read_within(&late, &[(2500, 2700), (2800, 3200), (4000, 4500)]);
        assert_eq!(reports.blocks(), [range(3000, 3200), range(4000, 4500)]);
        // The first block is below SND.UNA, but does not report a duplicate, because it is above
        // SEG.ACK.
        assert_eq!((reports.lies, reports.dsack), (0, None));
        let reports = read_within(&late, &[(1500, 1600), (1700, 4500)]);
        assert_eq!((reports.lies, reports.dsack), (1, Some(range(1500, 1600))));
    }

    // Shows: RFC2883-5-1
    #[test]
    fn a_dsack_is_below_the_ack_or_inside_the_second_block() {
        assert_eq!(read(&[(1500, 2000), (3000, 4000)]).dsack, Some(range(1500, 2000)));
        let inside = read(&[(3000, 3500), (3000, 4000)]);
        assert_eq!(inside.dsack, Some(range(3000, 3500)));
        assert_eq!(inside.blocks(), [range(3000, 4000)]);
        assert_eq!(read(&[(3000, 4000), (3500, 3600)]).dsack, None);
    }
}
