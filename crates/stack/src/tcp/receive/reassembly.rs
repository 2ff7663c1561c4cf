//! Reassembly: out-of-order data and its SACK blocks.

use std::collections::{BTreeMap, VecDeque};

use airtcp_types::{ByteCount, ExtSeq, SeqRange};
use airtcp_wire::payload::Payload;

/// The maximum number of separate ranges; a segment that would add one more is dropped. A window of
/// 16 MiB in which every third segment is lost has fewer.
const MAX_RANGES: usize = 4096;
/// The maximum size up to which adjacent data is merged into one piece (bytes), so that tiny
/// segments use little memory.
const PIECE: usize = 16 * 1024;
/// The memory overhead of a piece.
const OVERHEAD: ByteCount = ByteCount(96);
/// The number of ranges kept in order of arrival: as many as an ACK can report.
const RECENT: usize = 4;

/// Out-of-order data. The receive window limits its bytes, a constant the number of its ranges.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// The stored ranges, ascending and neither overlapping nor adjacent.
    ranges: VecDeque<SeqRange>,
    /// The data by its first number, without overlaps. A FIN has a number but no data.
    pieces: BTreeMap<ExtSeq, Vec<u8>>,
    /// The starts of the latest segments, the latest first; at most one per range.
    recent: Vec<ExtSeq>,
    bytes: usize,
}

/// The result of inserting a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Inserted {
    /// Bytes that were not stored before.
    pub(super) new_bytes: ByteCount,
    /// The first part of the segment that was stored before.
    pub(super) duplicate: Option<SeqRange>,
    /// The segment was dropped because of the limit of ranges.
    pub(super) refused: bool,
}

impl Reassembly {
    pub(super) fn len(&self) -> ByteCount {
        self.bytes.into()
    }

    /// The memory used, including the overhead.
    pub(super) fn cost(&self) -> ByteCount {
        self.len() + OVERHEAD * self.pieces.len() as u64
    }

    /// The maximum memory that a segment with `len` bytes adds.
    pub(super) fn cost_of(len: usize) -> ByteCount {
        ByteCount::from(len) + OVERHEAD
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// One past the highest number stored.
    pub(super) fn end(&self) -> Option<ExtSeq> {
        self.ranges.back().map(|range| range.end)
    }

    /// Stores a segment above a hole. `range` is its range of numbers, one longer than `data` if it
    /// has a FIN.
    pub(super) fn insert(&mut self, range: SeqRange, data: &[u8]) -> Inserted {
        let mut done = Inserted::default();
        if range.is_empty() {
            return done;
        }
        let (first, last) = self.touched(range);
        if first == last && self.ranges.len() >= MAX_RANGES {
            return Inserted { refused: true, ..done };
        }
        let mut merged = range;
        let mut at = range.start;
        for index in first..last {
            let held = self.ranges[index];
            merged.start = merged.start.min(held.start);
            merged.end = merged.end.max(held.end);
            let overlap = SeqRange::new(held.start.max(range.start), held.end.min(range.end));
            if !overlap.is_empty() {
                done.duplicate.get_or_insert(overlap);
                done.new_bytes += self.fill(SeqRange::new(at, overlap.start), range.start, data);
                at = overlap.end;
            }
        }
        done.new_bytes += self.fill(SeqRange::new(at, range.end), range.start, data);
        self.ranges.drain(first..last);
        self.ranges.insert(first, merged);

        self.recent.retain(|seq| !merged.contains(*seq));
        self.recent.insert(0, range.start);
        self.recent.truncate(RECENT);
        done
    }

    /// The stored ranges that overlap or touch `range`: the index of the first, and one past the
    /// last.
    fn touched(&self, range: SeqRange) -> (usize, usize) {
        (
            self.ranges.partition_point(|held| held.end < range.start),
            self.ranges.partition_point(|held| held.start <= range.end),
        )
    }

    /// Stores the part `gap` of a segment that starts at `start`. Adjacent small pieces are merged,
    /// so that there are few pieces in any order of arrival.
    fn fill(&mut self, gap: SeqRange, start: ExtSeq, data: &[u8]) -> ByteCount {
        let from = gap.start.since(start).as_usize().min(data.len());
        let to = gap.end.since(start).as_usize().clamp(from, data.len());
        let part = &data[from..to];
        if part.is_empty() {
            return ByteCount::ZERO;
        }
        self.bytes += part.len();
        let end = gap.start + part.len() as u64;
        let room = PIECE.saturating_sub(part.len());
        let above = match self.pieces.get(&end).is_some_and(|above| above.len() <= room) {
            true => self.pieces.remove(&end).unwrap_or_default(),
            false => Vec::new(),
        };
        let room = room - above.len();
        match self.pieces.range_mut(..gap.start).next_back() {
            Some((at, below)) if *at + below.len() as u64 == gap.start && below.len() <= room => {
                below.extend_from_slice(part);
                below.extend_from_slice(&above);
            }
            _ => {
                self.pieces.insert(gap.start, [part, &above].concat());
            }
        }
        part.len().into()
    }

    /// Takes a segment that starts at RCV.NXT: calls `take` with its data and with the stored data
    /// that follows without a hole. Where data is stored already, the stored bytes are kept.
    /// Returns the result and the new RCV.NXT.
    pub(super) fn take_next(
        &mut self,
        range: SeqRange,
        payload: Payload<'_>,
        mut take: impl FnMut(Payload<'_>),
    ) -> (Inserted, ExtSeq) {
        let mut done = Inserted::default();
        let mut nxt = range.start;
        while nxt < range.end {
            let hole_end = self.ranges.front().map_or(range.end, |held| held.start.min(range.end));
            let known = nxt.since(range.start).as_usize();
            let data = payload.skip(known).truncate(hole_end.since(nxt).as_usize());
            done.new_bytes += ByteCount::from(data.len());
            take(data);
            nxt = self.drain(hole_end, |held| take(held.into()));
            if hole_end < range.end {
                done.duplicate.get_or_insert(SeqRange::new(hole_end, nxt.min(range.end)));
            }
        }
        (done, nxt)
    }

    /// Removes the data that follows `nxt` without a hole and calls `take` with it; returns the new
    /// RCV.NXT.
    fn drain(&mut self, nxt: ExtSeq, mut take: impl FnMut(&[u8])) -> ExtSeq {
        let mut nxt = nxt;
        while let Some(range) = self.ranges.front().copied().filter(|range| range.start == nxt) {
            self.ranges.pop_front();
            while let Some(entry) =
                self.pieces.first_entry().filter(|entry| *entry.key() < range.end)
            {
                let piece = entry.remove();
                self.bytes -= piece.len();
                take(&piece);
            }
            nxt = range.end;
        }
        self.recent.retain(|seq| *seq >= nxt);
        nxt
    }

    /// The ranges to report as SACK blocks, in the order of their latest segments, the latest first
    /// (RFC 2018 section 4).
    pub(super) fn blocks(&self) -> impl Iterator<Item = SeqRange> {
        self.recent.iter().filter_map(|seq| self.range_of(*seq))
    }

    /// The stored range that contains `seq`.
    pub(super) fn range_of(&self, seq: ExtSeq) -> Option<SeqRange> {
        let index = self.ranges.partition_point(|range| range.end <= seq);
        self.ranges.get(index).copied().filter(|range| range.contains(seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> SeqRange {
        SeqRange::new(ExtSeq(start), ExtSeq(end))
    }

    fn insert(reassembly: &mut Reassembly, start: u64, data: &[u8]) -> Inserted {
        reassembly.insert(range(start, start + data.len() as u64), data)
    }

    /// Takes `data` at `start`, the current RCV.NXT; returns the result, the new RCV.NXT and the
    /// delivered data.
    fn take_next(r: &mut Reassembly, start: u64, data: &[u8]) -> (Inserted, ExtSeq, Vec<u8>) {
        let mut out = Vec::new();
        let place = range(start, start + data.len() as u64);
        let (inserted, nxt) =
            r.take_next(place, data.into(), |part| out.extend_from_slice(&part.contiguous()));
        (inserted, nxt, out)
    }

    #[test]
    fn in_order_data_is_delivered_with_its_neighbours_and_the_first_copy_stays() {
        let mut r = Reassembly::default();
        insert(&mut r, 10, b"abcd");
        insert(&mut r, 18, b"ij");
        insert(&mut r, 30, b"z");
        let (over, nxt, out) = take_next(&mut r, 8, b"yzABCDefghI");
        assert_eq!((over.new_bytes, over.duplicate), (ByteCount(6), Some(range(10, 14))));
        assert_eq!((out.as_slice(), nxt), (&b"yzabcdefghij"[..], ExtSeq(20)));
        assert_eq!(r.blocks().collect::<Vec<_>>(), [range(30, 31)]);
        let (joined, nxt, out) = take_next(&mut r, 20, b"klmnopqrst");
        assert_eq!((joined.new_bytes, joined.duplicate), (ByteCount(10), None));
        assert_eq!((out.as_slice(), nxt), (&b"klmnopqrstz"[..], ExtSeq(31)));
        assert!(r.is_empty() && r.len() == ByteCount::ZERO);
    }

    #[test]
    fn blocks_come_latest_first_and_merge() {
        let mut r = Reassembly::default();
        insert(&mut r, 10, b"aa");
        insert(&mut r, 20, b"bb");
        insert(&mut r, 30, b"cc");
        insert(&mut r, 12, b"dd");
        let blocks: Vec<_> = r.blocks().collect();
        assert_eq!(blocks, [range(10, 14), range(30, 32), range(20, 22)]);
        let filled = insert(&mut r, 14, b"eeeeee");
        assert_eq!(filled.duplicate, None);
        assert_eq!(r.blocks().collect::<Vec<_>>(), [range(10, 22), range(30, 32)]);
    }

    #[test]
    fn a_segment_that_comes_next_takes_no_block_from_the_ranges_that_stay() {
        let mut r = Reassembly::default();
        for start in [10, 20, 30, 40] {
            insert(&mut r, start, b"aa");
        }
        let held = [range(40, 42), range(30, 32), range(20, 22), range(10, 12)];
        take_next(&mut r, 2, b"bb");
        assert_eq!(r.blocks().collect::<Vec<_>>(), held);
        take_next(&mut r, 4, b"cccccc");
        assert_eq!(r.blocks().collect::<Vec<_>>(), held[..3]);
    }

    #[test]
    fn overlaps_are_kept_once_and_reported() {
        let mut r = Reassembly::default();
        insert(&mut r, 10, b"abcd");
        insert(&mut r, 18, b"ij");
        let over = insert(&mut r, 8, b"yzABCDefghIJkl");
        assert_eq!(over.new_bytes, ByteCount(8));
        assert_eq!(over.duplicate, Some(range(10, 14)));
        assert_eq!(r.len(), ByteCount(14));
        let mut out = Vec::new();
        assert_eq!(r.drain(ExtSeq(8), |part| out.extend_from_slice(part)), ExtSeq(22));
        assert_eq!(out, b"yzabcdefghijkl", "what came first stays");
        assert!(r.is_empty() && r.len() == ByteCount::ZERO);
    }

    #[test]
    fn in_order_data_may_cover_a_part() {
        let mut r = Reassembly::default();
        insert(&mut r, 10, b"abcd");
        insert(&mut r, 20, b"z");
        let (_, nxt, out) = take_next(&mut r, 8, b"xyAB");
        assert_eq!((out.as_slice(), nxt), (&b"xyabcd"[..], ExtSeq(14)));
        let (_, nxt, out) = take_next(&mut r, 14, b"efghijZk");
        assert_eq!((out.as_slice(), nxt), (&b"efghijzk"[..], ExtSeq(22)));
        assert_eq!(r.len(), ByteCount::ZERO);
    }

    #[test]
    fn a_fin_takes_a_number_and_no_byte() {
        let mut r = Reassembly::default();
        r.insert(range(10, 13), b"ab");
        assert_eq!(r.blocks().next(), Some(range(10, 13)));
        let mut out = Vec::new();
        assert_eq!(r.drain(ExtSeq(10), |part| out.extend_from_slice(part)), ExtSeq(13));
        assert_eq!(out, b"ab");
    }

    #[test]
    fn ranges_are_bounded_and_tiny_neighbours_share_a_piece() {
        let mut r = Reassembly::default();
        for n in 0..5_000 {
            insert(&mut r, 10 + 2 * n, b"x");
        }
        assert_eq!(r.ranges.len(), MAX_RANGES);
        assert!(insert(&mut r, 100_000, b"x").refused);
        assert!(!insert(&mut r, 11, b"x").refused, "it fills a hole");
        let mut r = Reassembly::default();
        for n in 0..5_000 {
            insert(&mut r, 10 + n, b"x");
        }
        assert_eq!((r.ranges.len(), r.pieces.len()), (1, 1));
    }

    #[test]
    fn tiny_segments_share_pieces_in_any_order() {
        let odd_last = (0..1_000).map(|n| 2 * n).chain((0..1_000).map(|n| 2 * n + 1));
        for order in [odd_last.collect::<Vec<u64>>(), (0..2_000).rev().collect()] {
            let mut r = Reassembly::default();
            for at in order {
                insert(&mut r, 10 + at, &[(at % 251) as u8]);
            }
            assert_eq!((r.ranges.len(), r.pieces.len(), r.len()), (1, 1, ByteCount(2_000)));
            let mut out = Vec::new();
            r.drain(ExtSeq(10), |part| out.extend_from_slice(part));
            assert!(out.into_iter().eq((0..2_000).map(|at| (at % 251) as u8)));
        }
    }

    #[test]
    fn in_order_data_is_accepted_with_any_number_of_ranges() {
        let mut r = Reassembly::default();
        (0..MAX_RANGES as u64).for_each(|n| {
            insert(&mut r, 100 + 2 * n, b"x");
        });
        assert!(insert(&mut r, 10, b"ab").refused);
        let (taken, nxt, out) = take_next(&mut r, 10, b"ab");
        assert_eq!((taken.refused, taken.new_bytes, nxt), (false, ByteCount(2), ExtSeq(12)));
        assert_eq!((out.as_slice(), r.ranges.len()), (&b"ab"[..], MAX_RANGES));
    }
}
