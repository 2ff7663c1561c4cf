//! The send buffer: data that the peer has not acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;

use airtcp_types::{ByteCount, ExtSeq, SeqRange, SharedBytes};

use crate::tcp::Outlet;

/// The maximum number of write ends that are remembered; forgetting one only costs a PSH.
const WRITES: usize = 64;
/// The length below which shared writes are copied (bytes), because a copy costs less than a
/// reference.
const SHARED: usize = 4096;

/// The bytes from SND.UNA to the last one written. The owner limits its size.
///
/// The bytes are in chunks, which packets to an offloading device may share; a shared chunk is not
/// appended to. Bytes are copied in once, or stay in the memory of the application, and are never
/// moved.
#[derive(Debug)]
pub(in crate::tcp) struct SendBuffer {
    /// The sequence number of the first byte held.
    start: ExtSeq,
    /// `None` until data is written and after a long idle time, so that an idle connection is
    /// small.
    held: Option<Box<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    chunks: VecDeque<Chunk>,
    /// The ends of writes, ascending, except that of the last write.
    writes: VecDeque<ExtSeq>,
    /// Whether the next write continues the last one.
    open: bool,
    /// Chunks whose bytes are all acknowledged.
    done: Vec<Arc<Vec<u8>>>,
}

#[derive(Debug)]
struct Chunk {
    /// The sequence number of its first byte.
    start: ExtSeq,
    bytes: SharedBytes,
    /// Whether the memory belongs to the buffer, not to the application.
    own: bool,
}

impl Chunk {
    fn end(&self) -> ExtSeq {
        self.start + self.bytes.len() as u64
    }

    /// The part of the chunk that `range` covers, relative to its first byte.
    fn place(&self, range: SeqRange) -> std::ops::Range<usize> {
        let at = |seq: ExtSeq| seq.since(self.start).as_usize().min(self.bytes.len());
        at(range.start)..at(range.end)
    }
}

impl SendBuffer {
    /// Creates an empty buffer whose first byte will have the number `start`.
    pub(super) const fn new(start: ExtSeq) -> Self {
        Self { start, held: None }
    }

    pub(in crate::tcp) fn len(&self) -> ByteCount {
        self.end().since(self.start)
    }

    /// The number of the first unacknowledged byte, or of the next byte written.
    pub(in crate::tcp) const fn start(&self) -> ExtSeq {
        self.start
    }

    /// One past the last byte's number.
    pub(in crate::tcp) fn end(&self) -> ExtSeq {
        let last = self.held.as_ref().and_then(|held| held.chunks.back());
        last.map_or(self.start, Chunk::end)
    }

    /// Copies one write into the buffer.
    pub(super) fn push(&mut self, mut data: &[u8], outlet: &mut Outlet) {
        let mut end = self.end();
        let chunks = &mut self.begin_write().chunks;
        while !data.is_empty() {
            let mut last = chunks.back_mut().filter(|chunk| chunk.own);
            let appended = last.as_mut().map_or(0, |chunk| chunk.bytes.append(data));
            if appended == 0 {
                let size = last.map_or(0, |chunk| chunk.bytes.len() * 2);
                let bytes = SharedBytes::new(&outlet.chunk(data.len().max(size)), 0..0);
                chunks.push_back(Chunk { start: end, bytes, own: true });
            }
            end = end + appended as u64;
            data = &data[appended..];
        }
    }

    /// Adds one write without a copy, unless it is short. The memory is kept until its last byte is
    /// acknowledged.
    pub(super) fn push_shared(&mut self, bytes: SharedBytes, outlet: &mut Outlet) {
        if bytes.len() < SHARED {
            return self.push(&bytes, outlet);
        }
        let start = self.end();
        self.begin_write().chunks.push_back(Chunk { start, bytes, own: false });
    }

    /// Records the end of the last write, unless the new write continues it.
    fn begin_write(&mut self) -> &mut Held {
        let end = self.end();
        let held = self.held.get_or_insert_default();
        let follows = std::mem::take(&mut held.open);
        if !held.chunks.is_empty() && !follows {
            if held.writes.len() == WRITES {
                held.writes.pop_front();
            }
            held.writes.push_back(end);
        }
        held
    }

    /// Makes the next write continue the last one.
    pub(super) fn leave_open(&mut self) {
        self.held.get_or_insert_default().open = true;
    }

    /// Ends the last write.
    pub(super) fn end_write(&mut self) {
        if let Some(held) = &mut self.held {
            held.open = false;
        }
    }

    /// Drops everything below `una`.
    pub(super) fn free_to(&mut self, una: ExtSeq) {
        let una = una.min(self.end());
        self.start = self.start.max(una);
        let Some(held) = &mut self.held else { return };
        while held.chunks.front().is_some_and(|chunk| chunk.end() <= una) {
            held.done.extend(held.chunks.pop_front().map(|chunk| chunk.bytes.into_buffer()));
        }
        while held.writes.front().is_some_and(|end| *end <= una) {
            held.writes.pop_front();
        }
    }

    /// Returns the memory of acknowledged data to the outlet.
    pub(super) fn give_back(&mut self, outlet: &mut Outlet) {
        let Some(held) = &mut self.held else { return };
        held.done.drain(..).for_each(|chunk| outlet.take_chunk(chunk));
    }

    /// Whether [`shrink`](Self::shrink) would free memory.
    pub(super) fn can_shrink(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.chunks.is_empty() && held.done.is_empty())
    }

    /// Frees the memory that is kept to avoid an allocation per write.
    pub(super) fn shrink(&mut self) {
        if self.can_shrink() {
            self.held = None;
        }
    }

    /// Drops all data.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.end());
    }

    /// The bytes of `range`, in order; bytes that are not in the buffer are skipped.
    pub(in crate::tcp) fn slices(&self, range: SeqRange) -> impl Iterator<Item = &[u8]> + Clone {
        self.parts(range).map(|(bytes, place)| &bytes[place])
    }

    /// As [`slices`](Self::slices), but with shared ownership of the bytes.
    pub(in crate::tcp) fn shared(&self, range: SeqRange) -> impl Iterator<Item = SharedBytes> {
        self.parts(range).map(|(bytes, place)| bytes.part(place))
    }

    /// The chunks that contain `range`, each with the part that it contains.
    fn parts(
        &self,
        range: SeqRange,
    ) -> impl Iterator<Item = (&SharedBytes, std::ops::Range<usize>)> + Clone {
        let range = SeqRange::new(range.start.max(self.start), range.end);
        let chunks = self.held.as_ref().map(|held| &held.chunks);
        let first =
            chunks.map_or(0, |chunks| chunks.partition_point(|chunk| chunk.end() <= range.start));
        let rest = chunks.into_iter().flat_map(move |chunks| chunks.range(first..));
        let within = rest.take_while(move |chunk| chunk.start < range.end);
        within.map(move |chunk| (&chunk.bytes, chunk.place(range)))
    }

    /// Whether `range` contains the end of a write, so that the segment carries PSH.
    pub(in crate::tcp) fn ends_write(&self, range: SeqRange) -> bool {
        let ends_one = |held: &Held| {
            let after = held.writes.partition_point(|end| *end <= range.start);
            held.writes.get(after).is_some_and(|end| *end <= range.end)
        };
        let open = self.held.as_ref().is_some_and(|held| held.open);
        (range.end >= self.end() && !open) || self.held.as_deref().is_some_and(ends_one)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNK: usize = Outlet::CHUNK.1;

    fn range(start: u64, end: u64) -> SeqRange {
        SeqRange::new(ExtSeq(start), ExtSeq(end))
    }

    fn bytes(buffer: &SendBuffer, start: u64, end: u64) -> Vec<u8> {
        buffer.slices(range(start, end)).collect::<Vec<_>>().concat()
    }

    #[test]
    fn ranges_are_found_after_bytes_were_freed() {
        let mut outlet = Outlet::default();
        let mut buffer = SendBuffer::new(ExtSeq(100));
        buffer.push(b"abcdefgh", &mut outlet);
        buffer.free_to(ExtSeq(106));
        buffer.push(b"ijklmn", &mut outlet);
        assert_eq!(bytes(&buffer, 106, 114), b"ghijklmn");
        assert_eq!(bytes(&buffer, 109, 111), b"jk");
        assert_eq!(bytes(&buffer, 90, 500), b"ghijklmn", "only what is held");
        assert_eq!(buffer.len(), ByteCount(8));
    }

    #[test]
    fn an_empty_buffer_gives_its_memory_back_and_the_next_one_uses_it() {
        let mut outlet = Outlet::default();
        let mut buffer = SendBuffer::new(ExtSeq(0));
        buffer.push(&[7; 2 * CHUNK], &mut outlet);
        let address = buffer.slices(range(0, 1)).next().unwrap().as_ptr();
        buffer.free_to(ExtSeq(2 * CHUNK as u64));
        assert!(!buffer.can_shrink());
        buffer.give_back(&mut outlet);
        assert!(buffer.can_shrink());
        buffer.shrink();
        assert!(buffer.held.is_none());
        // Takes memory that the allocator could otherwise return again.
        let _others: [Vec<u8>; 4] = std::array::from_fn(|_| Vec::with_capacity(CHUNK));
        assert_eq!((buffer.end(), buffer.len()), (ExtSeq(2 * CHUNK as u64), ByteCount::ZERO));
        buffer.push(&[8; 2 * CHUNK], &mut outlet);
        assert!(buffer.slices(range(0, 1 << 20)).any(|slice| slice.as_ptr() == address));
    }

    #[test]
    fn shared_chunks_are_not_appended_to() {
        let mut outlet = Outlet::default();
        let mut buffer = SendBuffer::new(ExtSeq(0));
        buffer.push(b"abc", &mut outlet);
        let shared: Vec<SharedBytes> = buffer.shared(range(1, 3)).collect();
        buffer.push(b"def", &mut outlet);
        buffer.free_to(ExtSeq(3));
        buffer.give_back(&mut outlet);
        buffer.push(b"ghi", &mut outlet);
        assert_eq!(shared[0][..], *b"bc");
        assert_eq!(bytes(&buffer, 0, 9), b"defghi");
    }

    #[test]
    fn shared_bytes_are_copied_only_if_they_are_short() {
        let mut outlet = Outlet::default();
        let mut buffer = SendBuffer::new(ExtSeq(0));
        let data = Arc::new(vec![7; SHARED]);
        for (len, shared) in [(SHARED - 1, false), (SHARED, true)] {
            buffer.push_shared(SharedBytes::new(&data, 0..len), &mut outlet);
            assert_eq!(Arc::strong_count(&data) > 1, shared);
            let end = buffer.end().0;
            buffer.push(b"more", &mut outlet);
            assert!(buffer.ends_write(range(end - 1, end)));
            assert!(!buffer.ends_write(range(end - 2, end - 1)));
            buffer.free_to(buffer.end());
            buffer.give_back(&mut outlet);
            assert_eq!(Arc::strong_count(&data), 1, "it was acknowledged");
        }
    }

    #[test]
    fn a_shared_write_may_continue_the_one_before() {
        let mut outlet = Outlet::default();
        let mut buffer = SendBuffer::new(ExtSeq(0));
        buffer.push(b"head", &mut outlet);
        buffer.leave_open();
        buffer.push_shared(SharedBytes::new(&Arc::new(vec![7; SHARED]), 0..SHARED), &mut outlet);
        assert!(!buffer.ends_write(range(3, 4)));
        assert!(buffer.ends_write(range(4, 4 + SHARED as u64)));
    }

    #[test]
    fn nothing_is_added_to_memory_that_the_application_gave() {
        let mut outlet = Outlet::default();
        let mut buffer = SendBuffer::new(ExtSeq(0));
        let mut roomy = Vec::with_capacity(4 * SHARED);
        roomy.resize(SHARED, 7);
        let address = roomy.as_ptr();
        buffer.push_shared(SharedBytes::new(&Arc::new(roomy), 0..SHARED), &mut outlet);
        buffer.push(b"next", &mut outlet);
        let slices: Vec<&[u8]> = buffer.slices(range(0, 1 << 20)).collect();
        assert_eq!((slices.len(), slices[0].as_ptr(), slices[1]), (2, address, &b"next"[..]));
    }

    #[test]
    fn the_ends_of_writes_are_known() {
        let mut buffer = SendBuffer::new(ExtSeq(0));
        buffer.push(b"abc", &mut Outlet::default());
        buffer.push(b"defgh", &mut Outlet::default());
        let ends = |start, end| buffer.ends_write(range(start, end));
        assert!(!ends(0, 2));
        assert!(ends(0, 3) && ends(0, 4));
        assert!(!ends(3, 7));
        assert!(ends(3, 8));
    }

    proptest! {
        #[test]
        fn the_buffer_holds_the_written_and_not_freed_bytes(
            steps in prop::collection::vec(
                (0usize..200_000, 0u64..200_000, any::<bool>(), any::<bool>()), 1..12,
            ),
        ) {
            let mut outlet = Outlet::default();
            let mut buffer = SendBuffer::new(ExtSeq(5));
            let (mut written, mut freed, mut packets) = (Vec::new(), 0, Vec::new());
            let mut owners = Vec::new();
            for (write, free, share, copied) in steps {
                let data: Vec<u8> = (0..write).map(|at| ((written.len() + at) % 251) as u8).collect();
                if copied {
                    buffer.push(&data, &mut outlet);
                    written.extend(data);
                } else {
                    // A part of a larger buffer, which must be neither changed nor sent.
                    let tail: &[u8] = if share { b"after" } else { b"" };
                    let more = Arc::new([b"before".as_slice(), &data, tail].concat());
                    let part = SharedBytes::new(&more, 6..6 + data.len());
                    if share {
                        owners.push((more, data.len()));
                    }
                    written.extend_from_slice(&part);
                    buffer.push_shared(part, &mut outlet);
                }
                let whole = range(5 + freed, 5 + written.len() as u64);
                if share {
                    packets.push((freed as usize, buffer.shared(whole).collect::<Vec<_>>()));
                }
                freed = (freed + free).min(written.len() as u64);
                buffer.free_to(ExtSeq(5 + freed));
                buffer.give_back(&mut outlet);
                prop_assert_eq!(buffer.len().0, written.len() as u64 - freed);
                prop_assert!(bytes(&buffer, 0, u64::MAX) == written[freed as usize..]);
            }
            for (memory, len) in owners {
                prop_assert!(memory.len() == len + 11 && memory.ends_with(b"after"));
            }
            for (from, packet) in packets {
                let bytes: Vec<u8> = packet.iter().flat_map(|part| part.to_vec()).collect();
                prop_assert!(bytes == written[from..from + bytes.len()], "nobody changed it");
            }
        }
    }
}
