//! The scoreboard: every transmission and its state.

mod acks;
mod audit;
mod losses;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use airtcp_types::{ByteCount, ExtSeq, Instant, RangeSet, SendRule, SeqRange, TxNo};

use crate::rate::Snapshot;
use crate::run::Run;
use crate::transmission::{Transmission, TxState};

/// A range of outstanding bytes that is transmitted as one unit.
#[derive(Clone, Copy, Debug)]
struct Segment {
    range: SeqRange,
    latest: TxNo,
}

/// The board of transmissions: everything between SND.UNA and SND.NXT, by sequence number and in
/// the order sent.
///
/// Strategies read it; only the [`Sender`](crate::Sender) changes it. A segment counts as SACKed
/// once SACK blocks cover all of it. SACKed data stays on the board until it is cumulatively
/// acknowledged, because a receiver may renege (RFC 2018 section 8). Processing an ACK takes time
/// proportional to the data that it newly acknowledges, times a logarithm.
#[derive(Debug)]
pub struct Board {
    /// By sequence number, without gaps from SND.UNA to the first of `runs`.
    segments: VecDeque<Segment>,
    /// By number, without gaps; the first has the number `base`.
    transmissions: VecDeque<Transmission>,
    base: TxNo,
    /// The most recent transmissions, up to SND.NXT: sent once, in flight, and without a report
    /// about any of them. A run is [expanded](Self::spell_out) into segments and transmissions when
    /// the state of one of them changes.
    runs: VecDeque<Run>,
    snd_una: ExtSeq,
    snd_nxt: ExtSeq,
    sacked: RangeSet,
    lost: BTreeMap<ExtSeq, TxNo>,
    in_flight_bytes: ByteCount,
    lost_bytes: ByteCount,
    sacked_bytes: ByteCount,
}

impl Board {
    /// An empty board; `first` is the sequence number of the first byte to send.
    pub(crate) fn new(first: ExtSeq) -> Self {
        Self {
            segments: VecDeque::new(),
            transmissions: VecDeque::new(),
            base: TxNo(0),
            runs: VecDeque::new(),
            snd_una: first,
            snd_nxt: first,
            sacked: RangeSet::new(),
            lost: BTreeMap::new(),
            in_flight_bytes: ByteCount::ZERO,
            lost_bytes: ByteCount::ZERO,
            sacked_bytes: ByteCount::ZERO,
        }
    }

    /// Returns SND.UNA, the oldest byte not cumulatively acknowledged.
    pub const fn snd_una(&self) -> ExtSeq {
        self.snd_una
    }

    /// Returns SND.NXT, the next byte to be sent for the first time.
    pub const fn snd_nxt(&self) -> ExtSeq {
        self.snd_nxt
    }

    /// Returns FlightSize: the bytes sent and not cumulatively acknowledged (RFC 5681 section 2).
    pub const fn flight_size(&self) -> ByteCount {
        self.snd_nxt.since(self.snd_una)
    }

    /// Returns the bytes of all transmissions in flight. Bytes that were sent twice, with neither
    /// transmission marked lost, count twice.
    pub const fn in_flight(&self) -> ByteCount {
        self.in_flight_bytes
    }

    /// Returns the bytes that are lost and not yet retransmitted.
    pub const fn lost(&self) -> ByteCount {
        self.lost_bytes
    }

    /// Returns the bytes of the segments that SACK blocks cover.
    pub const fn sacked(&self) -> ByteCount {
        self.sacked_bytes
    }

    /// Returns whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.snd_una == self.snd_nxt
    }

    /// Returns the byte ranges that the receiver has selectively acknowledged.
    pub const fn sacked_ranges(&self) -> &RangeSet {
        &self.sacked
    }

    /// Returns the number of the oldest transmission on the board; on an empty board, that of the
    /// next transmission.
    pub const fn oldest_tx(&self) -> TxNo {
        self.base
    }

    /// Returns the number of the next transmission.
    pub fn next_tx(&self) -> TxNo {
        self.runs.back().map_or_else(|| self.next_spelled(), Run::next_tx)
    }

    /// Returns the transmission numbered `tx`, unless its bytes are cumulatively acknowledged.
    pub fn get(&self, tx: TxNo) -> Option<Transmission> {
        if tx < self.next_spelled() {
            return self.spelled(tx).copied();
        }
        let run = self.runs.get(self.runs.partition_point(|run| run.next_tx() <= tx))?;
        Some(run.get(tx))
    }

    /// Returns the latest transmission of the segment at SND.UNA.
    pub fn first(&self) -> Option<Transmission> {
        match self.segments.front() {
            Some(segment) => self.latest_of(segment).copied(),
            None => self.runs.front().map(|run| *run.first()),
        }
    }

    /// Returns the lost transmission with the lowest bytes that are not yet retransmitted.
    pub fn first_lost(&self) -> Option<Transmission> {
        self.spelled(*self.lost.first_key_value()?.1).copied()
    }

    /// Returns the latest transmission of the segment that contains `seq`.
    pub fn at(&self, seq: ExtSeq) -> Option<Transmission> {
        match self.index_of(seq) {
            Some(index) => self.latest_of(self.segments.get(index)?).copied(),
            None => self.run_at(seq).map(|run| run.at(seq)),
        }
    }

    /// Returns the latest transmission of the highest segment.
    pub fn last(&self) -> Option<Transmission> {
        match self.runs.back() {
            Some(run) => Some(run.last()),
            None => self.latest_of(self.segments.back()?).copied(),
        }
    }

    /// Returns the latest transmissions of the segments that start in `range`, by sequence number.
    pub fn starting_in(&self, range: SeqRange) -> impl Iterator<Item = Transmission> {
        let spelled = self
            .indices_starting_in(range)
            .filter_map(|index| self.latest_of(self.segments.get(index)?));
        let from = self.runs.partition_point(|run| run.range().end <= range.start);
        let together = (self.runs.range(from..).flat_map(Run::transmissions))
            .skip_while(move |t| t.range.start < range.start)
            .take_while(move |t| t.range.start < range.end);
        spelled.copied().chain(together)
    }

    /// Returns all transmissions whose bytes are not cumulatively acknowledged, in the order sent.
    pub fn in_order_sent(&self) -> impl DoubleEndedIterator<Item = Transmission> {
        let spelled = self.transmissions.iter().filter(|t| t.state != TxState::Acked);
        spelled.copied().chain(self.runs.iter().flat_map(Run::transmissions))
    }

    /// Returns `tx` and the numbers of the earlier transmissions of the same bytes, as far back as
    /// the board goes. They may be cumulatively acknowledged.
    pub(crate) fn sendings(&self, tx: TxNo) -> impl Iterator<Item = TxNo> {
        let previous = |tx: &TxNo| {
            let index = tx.0.checked_sub(self.base.0)?;
            self.transmissions.get(usize::try_from(index).ok()?)?.previous
        };
        std::iter::successors(Some(tx), previous)
    }

    /// Records that `range`, which starts at SND.NXT, was sent for the first time.
    pub(crate) fn send_new(
        &mut self,
        now: Instant,
        range: SeqRange,
        rule: SendRule,
        snapshot: Snapshot,
    ) -> TxNo {
        let tx = self.next_tx();
        self.send_together(self.new_run(now, range, range.len(), rule, snapshot));
        tx
    }

    /// Returns new data in `range` as a run of segments of `size` bytes. `range` starts at SND.NXT
    /// and its length is a multiple of `size`.
    pub(crate) fn new_run(
        &self,
        now: Instant,
        range: SeqRange,
        size: ByteCount,
        rule: SendRule,
        snapshot: Snapshot,
    ) -> Run {
        debug_assert_eq!(range.start, self.snd_nxt, "new data starts at SND.NXT");
        debug_assert!(range.len().0.is_multiple_of(size.0), "whole segments");
        let first = Transmission {
            tx: self.next_tx(),
            range: SeqRange::new(range.start, range.start + size),
            sent_at: now,
            rule,
            state: TxState::InFlight,
            resent: 0,
            previous: None,
            snapshot,
        };
        Run::new(first, range.len().0 / size.0.max(1))
    }

    /// Records that a [run](Self::new_run) was sent.
    pub(crate) fn send_together(&mut self, run: Run) {
        let range = run.range();
        self.snd_nxt = range.end;
        self.in_flight_bytes += range.len();
        if !run.is_empty() && !self.runs.back_mut().is_some_and(|last| last.extend(&run)) {
            self.runs.push_back(run);
        }
    }

    /// Records that the first `len` bytes of the segment at `start` were retransmitted.
    ///
    /// If `len` is less than the segment, the segment is split, and the old transmission keeps the
    /// rest. Returns `None` if there is no such segment.
    pub(crate) fn send_again(
        &mut self,
        now: Instant,
        start: ExtSeq,
        len: ByteCount,
        rule: SendRule,
        snapshot: Snapshot,
    ) -> Option<TxNo> {
        self.spell_out(self.snd_nxt);
        let index = self.index_of(start)?;
        let segment = *self.segments.get(index)?;
        let old = self.latest_of(&segment)?;
        let (old_tx, old_state, resent) = (old.tx, old.state, old.resent);
        let range =
            SeqRange::new(segment.range.start, segment.range.end.min(segment.range.start + len));
        let whole = range == segment.range;
        if whole {
            if old_state == TxState::Lost {
                self.set_state(old_tx, TxState::Superseded);
            }
        } else {
            self.trim_chain(old_tx, range.end);
            let rest = SeqRange::new(range.end, segment.range.end);
            self.segments.insert(index + 1, Segment { range: rest, latest: old_tx });
        }
        let tx = self.next_tx();
        self.push(Transmission {
            tx,
            range,
            sent_at: now,
            rule,
            state: TxState::InFlight,
            resent: resent.saturating_add(1),
            previous: whole.then_some(old_tx),
            snapshot,
        });
        if let Some(segment) = self.segments.get_mut(index) {
            *segment = Segment { range, latest: tx };
        }
        Some(tx)
    }

    /// Frees memory that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.segments.shrink_to(0);
        self.transmissions.shrink_to(0);
        self.runs.shrink_to(0);
    }

    /// Expands the runs that start below `seq` into segments and transmissions.
    fn spell_out(&mut self, seq: ExtSeq) {
        while let Some(run) = self.runs.front().filter(|run| run.first().range.start < seq) {
            for sent in run.transmissions() {
                self.segments.push_back(Segment { range: sent.range, latest: sent.tx });
                self.transmissions.push_back(sent);
            }
            self.runs.pop_front();
        }
    }

    /// Removes the bytes below `ack` from all transmissions of a segment.
    fn trim_chain(&mut self, latest: TxNo, ack: ExtSeq) {
        let mut next = Some(latest);
        while let Some(tx) = next {
            next = self.spelled(tx).and_then(|t| t.previous);
            self.trim(tx, ack);
        }
    }

    /// Removes the bytes below `start` from a transmission.
    fn trim(&mut self, tx: TxNo, start: ExtSeq) {
        let Some(t) = self.spelled(tx) else { return };
        let (state, old) = (t.state, t.range);
        self.count(state, old, false);
        let new = SeqRange::new(old.start.max(start), old.end);
        let new_state = if new.is_empty() { TxState::Acked } else { state };
        if let Some(t) = self.get_mut(tx) {
            (t.range, t.state) = (new, new_state);
        }
        self.count(new_state, new, true);
        if state == TxState::Lost {
            self.lost.remove(&old.start);
        }
        if new_state == TxState::Lost {
            self.lost.insert(new.start, tx);
        }
    }

    fn push(&mut self, transmission: Transmission) {
        self.count(transmission.state, transmission.range, true);
        self.transmissions.push_back(transmission);
    }

    fn set_state(&mut self, tx: TxNo, state: TxState) {
        let Some(t) = self.get_mut(tx) else { return };
        let (old, range) = (t.state, t.range);
        t.state = state;
        self.count(old, range, false);
        self.count(state, range, true);
        if old == TxState::Lost {
            self.lost.remove(&range.start);
        }
        if state == TxState::Lost {
            self.lost.insert(range.start, tx);
        }
    }

    fn count(&mut self, state: TxState, range: SeqRange, enters: bool) {
        let total = match state {
            TxState::InFlight => &mut self.in_flight_bytes,
            TxState::Lost => &mut self.lost_bytes,
            TxState::Sacked => &mut self.sacked_bytes,
            TxState::Superseded | TxState::Acked => return,
        };
        if enters {
            *total += range.len();
        } else {
            *total -= range.len();
        }
    }

    fn get_mut(&mut self, tx: TxNo) -> Option<&mut Transmission> {
        let index = tx.0.checked_sub(self.base.0)?;
        self.transmissions
            .get_mut(usize::try_from(index).ok()?)
            .filter(|t| t.state != TxState::Acked)
    }

    /// Returns the number after the last transmission that is not in a run.
    fn next_spelled(&self) -> TxNo {
        TxNo(self.base.0 + self.transmissions.len() as u64)
    }

    fn spelled(&self, tx: TxNo) -> Option<&Transmission> {
        let index = tx.0.checked_sub(self.base.0)?;
        self.transmissions.get(usize::try_from(index).ok()?).filter(|t| t.state != TxState::Acked)
    }

    fn latest_of(&self, segment: &Segment) -> Option<&Transmission> {
        self.spelled(segment.latest)
    }

    /// Returns the index of the segment that contains `seq`, if `seq` is not in a run.
    fn index_of(&self, seq: ExtSeq) -> Option<usize> {
        if seq < self.snd_una || seq >= self.segments.back()?.range.end {
            return None;
        }
        self.segments.partition_point(|segment| segment.range.start <= seq).checked_sub(1)
    }

    fn run_at(&self, seq: ExtSeq) -> Option<&Run> {
        let index = self.runs.partition_point(|run| run.range().end <= seq);
        self.runs.get(index).filter(|run| run.range().contains(seq))
    }

    fn indices_starting_in(&self, range: SeqRange) -> Range<usize> {
        let from = self.segments.partition_point(|s| s.range.start < range.start);
        let to = self.segments.partition_point(|s| s.range.start < range.end);
        from..to.max(from)
    }
}

#[cfg(test)]
mod tests;
