//! A set of sequence numbers, kept as ranges.

use std::collections::BTreeMap;

use crate::{ByteCount, ExtSeq, SeqRange};

/// A set of sequence numbers as sorted, disjoint, non-adjacent ranges.
///
/// Insertion, removal and lookup take logarithmic time in the number of ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ends: BTreeMap<ExtSeq, ExtSeq>,
    bytes: ByteCount,
}

impl RangeSet {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self { ends: BTreeMap::new(), bytes: ByteCount::ZERO }
    }

    /// Adds `range`, and calls `added` for each part that was not in the set, in ascending order.
    pub fn insert_with(&mut self, range: SeqRange, mut added: impl FnMut(SeqRange)) {
        if range.is_empty() {
            return;
        }
        let mut merged = range;
        let mut covered = range.start;
        if let Some(before) = self.range_reaching(range.start) {
            merged.start = before.start;
            merged.end = merged.end.max(before.end);
            covered = covered.max(before.end);
            self.ends.remove(&before.start);
        }
        while let Some((&start, &end)) = self.ends.range(range.start..=range.end).next() {
            if covered < start {
                added(SeqRange::new(covered, start));
                self.bytes += start.since(covered);
            }
            covered = covered.max(end);
            merged.end = merged.end.max(end);
            self.ends.remove(&start);
        }
        if covered < range.end {
            added(SeqRange::new(covered, range.end));
            self.bytes += range.end.since(covered);
        }
        self.ends.insert(merged.start, merged.end);
    }

    /// Adds `range`.
    pub fn insert(&mut self, range: SeqRange) {
        self.insert_with(range, |_| {});
    }

    /// Removes every number below `seq`.
    pub fn remove_below(&mut self, seq: ExtSeq) {
        while let Some((&start, &end)) = self.ends.first_key_value() {
            if start >= seq {
                break;
            }
            self.ends.remove(&start);
            self.bytes -= end.min(seq).since(start);
            if end > seq {
                self.ends.insert(seq, end);
            }
        }
    }

    /// Removes all ranges.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The number of sequence numbers in the set.
    pub const fn bytes(&self) -> ByteCount {
        self.bytes
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = SeqRange> {
        self.ends.iter().map(|(&start, &end)| SeqRange::new(start, end))
    }

    /// Returns the lowest range.
    pub fn first(&self) -> Option<SeqRange> {
        self.iter().next()
    }

    /// Returns the highest range.
    pub fn last(&self) -> Option<SeqRange> {
        self.iter().next_back()
    }

    /// Returns the range that contains `seq`.
    pub fn range_at(&self, seq: ExtSeq) -> Option<SeqRange> {
        self.range_reaching(seq).filter(|range| range.contains(seq))
    }

    /// Whether all of `range` is in the set; true if `range` is empty.
    pub fn covers(&self, range: SeqRange) -> bool {
        range.is_empty() || self.range_at(range.start).is_some_and(|held| held.end >= range.end)
    }

    /// Returns the lowest number at or above `seq` that is not in the set.
    pub fn next_gap(&self, seq: ExtSeq) -> ExtSeq {
        self.range_at(seq).map_or(seq, |range| range.end)
    }

    /// Returns the parts of `range` that are not in the set, in ascending order.
    pub fn gaps(&self, range: SeqRange) -> impl Iterator<Item = SeqRange> {
        let mut start = range.start;
        std::iter::from_fn(move || {
            start = self.next_gap(start);
            if start >= range.end {
                return None;
            }
            let next = self.ends.range(start..range.end).next().map_or(range.end, |(&at, _)| at);
            let gap = SeqRange::new(start, next);
            start = next;
            Some(gap)
        })
    }

    /// Returns the range that contains `seq` or ends directly before it.
    fn range_reaching(&self, seq: ExtSeq) -> Option<SeqRange> {
        let (&start, &end) = self.ends.range(..=seq).next_back()?;
        (end >= seq).then_some(SeqRange::new(start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> SeqRange {
        SeqRange::new(ExtSeq(start), ExtSeq(end))
    }

    fn added(set: &mut RangeSet, new: SeqRange) -> Vec<SeqRange> {
        let mut parts = Vec::new();
        set.insert_with(new, |part| parts.push(part));
        parts
    }

    #[test]
    fn only_what_is_new_is_reported() {
        let mut set = RangeSet::new();
        assert_eq!(added(&mut set, range(10, 20)), [range(10, 20)]);
        assert_eq!(added(&mut set, range(30, 40)), [range(30, 40)]);
        assert_eq!(added(&mut set, range(5, 50)), [range(5, 10), range(20, 30), range(40, 50)]);
        assert_eq!(added(&mut set, range(6, 44)), []);
        assert_eq!(set.iter().collect::<Vec<_>>(), [range(5, 50)]);
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut set = RangeSet::new();
        set.insert(range(10, 20));
        set.insert(range(20, 30));
        set.insert(range(5, 10));
        assert_eq!(set.iter().collect::<Vec<_>>(), [range(5, 30)]);
    }

    #[test]
    fn a_range_set_agrees_with_a_set_of_numbers() {
        let mut stream = crate::rng::Stream::new(3, 0);
        for _ in 0..200 {
            let (mut set, mut plain) = (RangeSet::new(), std::collections::BTreeSet::new());
            for _ in 0..40 {
                let start = stream.below(100);
                let new = range(start, start + stream.below(15));
                if stream.chance(0.1) {
                    set.remove_below(new.start);
                    plain.retain(|&n| n >= new.start.0);
                } else {
                    let gaps: Vec<SeqRange> = set.gaps(new).collect();
                    let parts = added(&mut set, new);
                    assert_eq!(gaps, parts);
                    let fresh: Vec<u64> =
                        (new.start.0..new.end.0).filter(|&n| plain.insert(n)).collect();
                    let covered: Vec<u64> =
                        parts.iter().flat_map(|part| part.start.0..part.end.0).collect();
                    assert_eq!(covered, fresh);
                }
                assert_eq!(set.bytes().0, plain.len() as u64);
                let held: Vec<u64> = set.iter().flat_map(|r| r.start.0..r.end.0).collect();
                assert_eq!(held, plain.iter().copied().collect::<Vec<_>>());
                let gap = (start..).find(|n| !plain.contains(n)).unwrap();
                assert_eq!(set.next_gap(ExtSeq(start)), ExtSeq(gap));
            }
        }
    }
}
