//! Sequence numbers: on the wire, and in the engine.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Sub};

use crate::ByteCount;

/// A TCP sequence number on the wire (RFC 9293 section 3.4): 32 bits that wrap.
///
/// Comparison is valid within half the number space. Arithmetic wraps and never panics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Returns the signed distance from `other` to `self` in bytes.
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

impl PartialOrd for SeqNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.distance(*other).partial_cmp(&0)
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;

    fn add(self, rhs: u32) -> Self {
        Self(self.0.wrapping_add(rhs))
    }
}

impl Sub<u32> for SeqNumber {
    type Output = Self;

    fn sub(self, rhs: u32) -> Self {
        Self(self.0.wrapping_sub(rhs))
    }
}

impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A sequence number that does not wrap: its low 32 bits are the number on the wire.
///
/// The engine uses this type; only the codec uses [`SeqNumber`]. A connection starts in the second
/// cycle of the number space (see [`ExtSeq::starting_at`]), so that numbers just below its first
/// one exist.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ExtSeq(pub u64);

impl ExtSeq {
    /// Returns the first number of a connection with the initial sequence number `isn`.
    pub const fn starting_at(isn: SeqNumber) -> Self {
        Self((1 << 32) | isn.0 as u64)
    }

    /// Returns the number on the wire.
    pub const fn wire(self) -> SeqNumber {
        SeqNumber(self.0 as u32)
    }

    /// Returns the number nearest to `self` that is `wire` on the wire.
    ///
    /// The result is unique up to 2 GiB below and above `self`, which TCP's windows guarantee.
    pub const fn nearest(self, wire: SeqNumber) -> Self {
        let distance = wire.distance(self.wire()) as i64;
        Self(self.0.saturating_add_signed(distance))
    }

    /// Returns the bytes from `earlier` to `self`; zero if `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> ByteCount {
        ByteCount(self.0.saturating_sub(earlier.0))
    }
}

impl Add<u64> for ExtSeq {
    type Output = Self;

    fn add(self, rhs: u64) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl Sub<u64> for ExtSeq {
    type Output = Self;

    fn sub(self, rhs: u64) -> Self {
        Self(self.0.saturating_sub(rhs))
    }
}

impl Add<ByteCount> for ExtSeq {
    type Output = Self;

    fn add(self, rhs: ByteCount) -> Self {
        self + rhs.0
    }
}

impl fmt::Debug for ExtSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A half-open range of sequence numbers: includes `start`, excludes `end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqRange {
    /// The first number.
    pub start: ExtSeq,
    /// The number after the last one.
    pub end: ExtSeq,
}

impl SeqRange {
    /// Creates the range from `start` to `end`; empty if `end` is before `start`.
    pub const fn new(start: ExtSeq, end: ExtSeq) -> Self {
        Self { start, end }
    }

    /// The number of sequence numbers in the range.
    pub const fn len(self) -> ByteCount {
        self.end.since(self.start)
    }

    /// Whether the range is empty.
    pub const fn is_empty(self) -> bool {
        self.end.0 <= self.start.0
    }

    /// Whether all of `other` is in the range.
    pub const fn covers(self, other: Self) -> bool {
        self.start.0 <= other.start.0 && other.end.0 <= self.end.0
    }

    /// Whether `seq` is in the range.
    pub const fn contains(self, seq: ExtSeq) -> bool {
        self.start.0 <= seq.0 && seq.0 < self.end.0
    }
}

impl fmt::Debug for SeqRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start.0, self.end.0)
    }
}

/// The number of a transmission: one sending of one byte range.
///
/// Numbers increase with every transmission, so the higher number was sent later, regardless of the
/// byte range. A segment that is sent twice has two transmission numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TxNo(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_numbers_are_ordered_across_the_wrap() {
        assert!(SeqNumber(u32::MAX) < SeqNumber(0));
        assert!(SeqNumber(0) - 1 < SeqNumber(0));
        assert_eq!(SeqNumber(u32::MAX) + 2, SeqNumber(1));
    }

    #[test]
    fn extended_numbers_follow_the_wire_across_the_wrap() {
        let first = ExtSeq::starting_at(SeqNumber(u32::MAX));
        assert_eq!(first.nearest(SeqNumber(3)), first + 4);
        assert_eq!(first.nearest(SeqNumber(u32::MAX - 5)), first - 5);
        assert_eq!((first + 4).wire(), SeqNumber(3));
    }

    #[test]
    fn nearest_never_panics_at_the_edges() {
        assert_eq!(ExtSeq(0).nearest(SeqNumber(u32::MAX)), ExtSeq(0));
        assert!(ExtSeq(u64::MAX).nearest(SeqNumber(7)) <= ExtSeq(u64::MAX));
    }

    #[test]
    fn ranges_that_run_backwards_are_empty() {
        let range = SeqRange::new(ExtSeq(9), ExtSeq(3));
        assert!(range.is_empty());
        assert_eq!(range.len(), ByteCount(0));
    }
}
