//! Shared, immutable bytes.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A part of a reference-counted buffer.
///
/// The buffer cannot change while parts of it exist. When all parts have been dropped, its owner
/// has exclusive access again ([`Arc::get_mut`]).
///
/// ```
/// use std::sync::Arc;
///
/// use airtcp_types::SharedBytes;
///
/// let mut buffer = Arc::new(b"headers and payload".to_vec());
/// let payload = SharedBytes::new(&buffer, 12..19);
/// assert_eq!(&payload[..], b"payload");
/// assert!(Arc::get_mut(&mut buffer).is_none());
/// drop(payload);
/// assert!(Arc::get_mut(&mut buffer).is_some());
/// ```
#[derive(Clone, Default)]
pub struct SharedBytes {
    buffer: Arc<Vec<u8>>,
    start: u32,
    end: u32,
}

impl SharedBytes {
    /// Creates the part of `buffer` at `range`.
    ///
    /// # Panics
    /// If `range` is not within `buffer`, or ends beyond 4 GiB.
    pub fn new(buffer: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= buffer.len(), "{range:?}");
        let end = u32::try_from(range.end).expect("buffers of less than 4 GiB");
        Self { buffer: buffer.clone(), start: range.start as u32, end }
    }

    /// Appends as much of `data` as fits into the spare capacity of the buffer; returns the number
    /// of bytes appended: zero if the buffer is shared, or has bytes after this part.
    pub fn append(&mut self, data: &[u8]) -> usize {
        let end = self.end as usize;
        let Some(buffer) = Arc::get_mut(&mut self.buffer).filter(|buffer| buffer.len() == end)
        else {
            return 0;
        };
        let room = (buffer.capacity() - end).min((u32::MAX - self.end) as usize);
        let count = data.len().min(room);
        buffer.extend_from_slice(&data[..count]);
        self.end += count as u32;
        count
    }

    /// Returns the buffer that contains this part.
    pub fn into_buffer(self) -> Arc<Vec<u8>> {
        self.buffer
    }

    /// Returns the part of this one at `range`, truncated to its length.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        let mut part = self.clone();
        part.truncate(range.end);
        part.advance(range.start);
        part
    }

    /// Drops the first `count` bytes, or all if there are fewer.
    pub fn advance(&mut self, count: usize) {
        self.start = self.end.min(self.start.saturating_add(count.try_into().unwrap_or(u32::MAX)));
    }

    /// Drops all but the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.end = self.end.min(self.start.saturating_add(len.try_into().unwrap_or(u32::MAX)));
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for SharedBytes {}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimming_removes_bytes_at_either_end() {
        let buffer = Arc::new((0..10).collect::<Vec<u8>>());
        let mut part = SharedBytes::new(&buffer, 2..8);
        part.advance(1);
        part.truncate(3);
        assert_eq!(part[..], [3, 4, 5]);
        part.truncate(9);
        assert_eq!(part.len(), 3);
        part.advance(9);
        assert!(part.is_empty());
        assert_eq!(part, SharedBytes::default());
    }

    #[test]
    fn bytes_are_appended_only_to_unshared_memory() {
        let mut bytes = SharedBytes::new(&Arc::new(Vec::with_capacity(8)), 0..0);
        assert_eq!(bytes.append(b"abcde"), 5);
        let part = bytes.part(3..9);
        assert_eq!((&part[..], bytes.append(b"f")), (&b"de"[..], 0));
        drop(part);
        assert_eq!((bytes.append(b"fghijkl"), &bytes[..]), (3, &b"abcdefgh"[..]));
        bytes.truncate(2);
        assert_eq!((bytes.append(b"x"), &bytes[..]), (0, &b"ab"[..]));
        assert_eq!(*bytes.into_buffer(), b"abcdefgh");
    }

    #[test]
    #[should_panic(expected = "5..11")]
    fn bytes_that_are_not_there_are_a_bug() {
        let _ = SharedBytes::new(&Arc::new(vec![0; 10]), 5..11);
    }
}
