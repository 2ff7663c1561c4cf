//! Reassembles datagrams that were too long for one frame.

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_types::Instant;

use super::frame::{MAX_DATAGRAM, Part};

/// The most incomplete datagrams, and the most bytes of their parts.
const INCOMPLETE: usize = 64;
const BYTES: usize = 1 << 20;
/// The time limit for completing a datagram.
const PATIENCE: Duration = Duration::from_secs(2);

/// The incomplete datagrams, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    incomplete: VecDeque<Incomplete>,
    bytes: usize,
    abandoned: u64,
}

#[derive(Debug)]
struct Incomplete {
    since: Instant,
    key: Key,
    count: u8,
    parts: Vec<Option<Box<[u8]>>>,
    bytes: usize,
}

/// Identifies the datagram of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    /// The sequence number of the datagram's first part.
    pub(crate) first: u32,
    pub(crate) association: u32,
}

impl Parts {
    /// Adds a part that has arrived; returns the datagram that it completes.
    pub(crate) fn on_part(
        &mut self,
        now: Instant,
        key: Key,
        part: Part,
        data: &[u8],
    ) -> Option<Vec<u8>> {
        let Part { index, count } = part;
        while self.incomplete.front().is_some_and(|oldest| now.since(oldest.since) > PATIENCE) {
            self.abandon_oldest();
        }
        let known = self.incomplete.iter().position(|incomplete| incomplete.key == key);
        let at = known.unwrap_or_else(|| {
            if self.incomplete.len() == INCOMPLETE {
                self.abandon_oldest();
            }
            let parts = vec![None; count.into()];
            self.incomplete.push_back(Incomplete { since: now, key, count, parts, bytes: 0 });
            self.incomplete.len() - 1
        });
        let incomplete = &mut self.incomplete[at];
        if incomplete.count != count || incomplete.bytes + data.len() > MAX_DATAGRAM {
            return None;
        }
        let place = incomplete.parts.get_mut(usize::from(index)).filter(|part| part.is_none())?;
        *place = Some(data.into());
        incomplete.bytes += data.len();
        self.bytes += data.len();
        if incomplete.parts.iter().all(Option::is_some) {
            let complete = self.incomplete.remove(at)?;
            self.bytes -= complete.bytes;
            return Some(complete.parts.into_iter().flatten().flatten().collect());
        }
        while self.bytes > BYTES {
            self.abandon_oldest();
        }
        None
    }

    fn abandon_oldest(&mut self) {
        if let Some(oldest) = self.incomplete.pop_front() {
            self.bytes -= oldest.bytes;
            self.abandoned += 1;
        }
    }

    /// The number of datagrams that were dropped incomplete.
    pub(crate) const fn abandoned(&self) -> u64 {
        self.abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u32) -> Key {
        Key { first, association: 1 }
    }

    fn part(index: u8, count: u8) -> Part {
        Part { index, count }
    }

    #[test]
    fn parts_are_joined_in_any_order() {
        let mut parts = Parts::default();
        let now = Instant::ZERO;
        assert_eq!(parts.on_part(now, key(1), part(2, 3), b"c"), None);
        assert_eq!(parts.on_part(now, key(9), part(0, 2), b"x"), None);
        assert_eq!(parts.on_part(now, key(1), part(0, 3), b"aa"), None);
        assert_eq!(parts.on_part(now, key(1), part(0, 3), b"zz"), None, "twice");
        assert_eq!(parts.on_part(now, key(1), part(1, 3), b"b").as_deref(), Some(&b"aabc"[..]));
        assert_eq!(parts.on_part(now, key(9), part(1, 2), b"y").as_deref(), Some(&b"xy"[..]));
        assert_eq!(parts.bytes, 0);
    }

    #[test]
    fn parts_that_contradict_each_other_are_dropped() {
        let mut parts = Parts::default();
        let now = Instant::ZERO;
        assert_eq!(parts.on_part(now, key(1), part(0, 2), b"a"), None);
        assert_eq!(parts.on_part(now, key(1), part(1, 3), b"b"), None);
        assert_eq!(parts.on_part(now, key(2), part(0, 2), &[0; 40_000]), None);
        assert_eq!(parts.on_part(now, key(2), part(1, 2), &[0; 40_000]), None, "too long together");
    }

    #[test]
    fn what_stays_incomplete_is_bounded_in_number_size_and_time() {
        let mut parts = Parts::default();
        for first in 0..1000 {
            assert_eq!(parts.on_part(Instant::ZERO, key(first), part(0, 2), &[0; 100]), None);
        }
        assert_eq!((parts.incomplete.len(), parts.abandoned()), (INCOMPLETE, 1000 - 64));
        for first in 1000..1060 {
            assert_eq!(parts.on_part(Instant::ZERO, key(first), part(0, 2), &[0; 60_000]), None);
        }
        assert!(parts.bytes <= BYTES && parts.bytes > BYTES - 60_100, "{}", parts.bytes);
        let later = Instant::ZERO + PATIENCE + Duration::from_millis(1);
        assert_eq!(parts.on_part(later, key(5000), part(0, 2), b"a"), None);
        assert_eq!((parts.incomplete.len(), parts.bytes), (1, 1));
    }
}
