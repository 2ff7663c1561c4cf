//! What the application wrote and the peer has not acknowledged.

use std::collections::VecDeque;

use airtcp_types::{ByteCount, ExtSeq, SeqRange};

/// So many ends of writes are remembered; more only cost a PSH.
const WRITES: usize = 64;

/// The bytes from SND.UNA to the last one written. Its bound is its owner's.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// The sequence number of the first byte held.
    start: ExtSeq,
    data: VecDeque<u8>,
    /// Where writes ended, rising; only while there are some.
    #[expect(clippy::box_collection, reason = "an idle connection has none, and is to be small")]
    writes: Option<Box<VecDeque<ExtSeq>>>,
}

impl SendBuffer {
    /// An empty buffer whose first byte will have the number `start`.
    pub(super) const fn new(start: ExtSeq) -> Self {
        Self { start, data: VecDeque::new(), writes: None }
    }

    pub(super) fn len(&self) -> ByteCount {
        self.data.len().into()
    }

    /// The number of the first byte that is not acknowledged, or of the next one written.
    pub(super) const fn start(&self) -> ExtSeq {
        self.start
    }

    /// One past the last byte's number.
    pub(super) fn end(&self) -> ExtSeq {
        self.start + self.data.len() as u64
    }

    /// Takes one write in.
    pub(super) fn push(&mut self, data: &[u8]) {
        self.data.extend(data);
        let end = self.end();
        let writes = self.writes.get_or_insert_default();
        if writes.len() == WRITES {
            writes.pop_front();
        }
        writes.push_back(end);
    }

    /// Forgets everything below `una`.
    pub(super) fn free_to(&mut self, una: ExtSeq) {
        let freed = una.since(self.start).as_usize().min(self.data.len());
        self.start = self.start + freed as u64;
        if freed == self.data.len() {
            self.data = VecDeque::new();
        } else {
            self.data.drain(..freed);
        }
        if let Some(writes) = &mut self.writes {
            while writes.front().is_some_and(|end| *end <= una) {
                writes.pop_front();
            }
            self.writes.take_if(|writes| writes.is_empty());
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.end());
    }

    /// The bytes of `range`; what is not held is left out.
    pub(super) fn slices(&self, range: SeqRange) -> (&[u8], &[u8]) {
        let from = range.start.since(self.start).as_usize().min(self.data.len());
        let to = range.end.since(self.start).as_usize().clamp(from, self.data.len());
        let (a, b) = self.data.as_slices();
        if to <= a.len() {
            (&a[from..to], &[])
        } else if from >= a.len() {
            (&b[from - a.len()..to - a.len()], &[])
        } else {
            (&a[from..], &b[..to - a.len()])
        }
    }

    /// Whether `range` holds the end of a write, so that the receiver should pass it on (PSH).
    pub(super) fn ends_write(&self, range: SeqRange) -> bool {
        let ends_one = |writes: &VecDeque<ExtSeq>| {
            let after = writes.partition_point(|end| *end <= range.start);
            writes.get(after).is_some_and(|end| *end <= range.end)
        };
        range.end >= self.end() || self.writes.as_deref().is_some_and(ends_one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(buffer: &SendBuffer, start: u64, end: u64) -> Vec<u8> {
        let (a, b) = buffer.slices(SeqRange::new(ExtSeq(start), ExtSeq(end)));
        [a, b].concat()
    }

    #[test]
    fn ranges_are_found_after_bytes_were_freed_and_the_ring_wrapped() {
        let mut buffer = SendBuffer::new(ExtSeq(100));
        buffer.push(b"abcdefgh");
        buffer.free_to(ExtSeq(106));
        buffer.push(b"ijklmn");
        assert_eq!(bytes(&buffer, 106, 114), b"ghijklmn");
        assert_eq!(bytes(&buffer, 109, 111), b"jk");
        assert_eq!(bytes(&buffer, 90, 500), b"ghijklmn", "only what is held");
        assert_eq!(buffer.len(), ByteCount(8));
    }

    #[test]
    fn an_empty_buffer_gives_its_memory_back() {
        let mut buffer = SendBuffer::new(ExtSeq(0));
        buffer.push(&[7; 100_000]);
        buffer.free_to(ExtSeq(100_000));
        assert_eq!(buffer.data.capacity(), 0);
        assert_eq!(buffer.end(), ExtSeq(100_000));
    }

    #[test]
    fn the_ends_of_writes_are_known() {
        let mut buffer = SendBuffer::new(ExtSeq(0));
        buffer.push(b"abc");
        buffer.push(b"defgh");
        let ends = |start, end| buffer.ends_write(SeqRange::new(ExtSeq(start), ExtSeq(end)));
        assert!(!ends(0, 2));
        assert!(ends(0, 3) && ends(0, 4));
        assert!(!ends(3, 7));
        assert!(ends(3, 8));
    }
}
