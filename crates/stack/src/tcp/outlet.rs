//! Construction of packets: device capabilities and recycled memory.

use std::sync::Arc;

use airtcp_types::Packet;

/// The maximum number of packets whose memory is kept for reuse, and the maximum size of each
/// (bytes).
const PACKETS: (usize, usize) = (256, 16 * 1024);
/// The maximum number of send-buffer chunks kept for reuse, for each of the two sizes.
const CHUNKS: usize = 64;

/// The capabilities of the device, and recycled memory of packets and send buffers.
#[derive(Debug, Default)]
pub struct Outlet {
    /// The maximum number of segments in a super-segment; zero if the device does not cut
    /// super-segments.
    pub(super) at_once: u16,
    packets: Vec<Packet>,
    chunks: Vec<Arc<Vec<u8>>>,
    small_chunks: Vec<Arc<Vec<u8>>>,
}

impl Outlet {
    /// The minimum and the maximum size of a chunk (bytes). Only chunks of these two sizes are kept
    /// for reuse.
    pub(super) const CHUNK: (usize, usize) = (512, 64 * 1024);

    /// Creates an outlet. `at_once` is the maximum number of segments in a super-segment, which the
    /// device cuts and whose checksums it completes; zero if it does neither.
    pub fn new(at_once: u16) -> Self {
        Self { at_once, ..Self::default() }
    }

    /// Returns an empty packet.
    pub(super) fn packet(&mut self) -> Packet {
        self.packets.pop().unwrap_or_default()
    }

    /// Recycles the memory of packets that were sent or dropped.
    pub fn take_packets(&mut self, packets: &mut Vec<Packet>) {
        for mut packet in packets.drain(..) {
            if self.packets.len() < PACKETS.0 && packet.data.capacity() <= PACKETS.1 {
                packet.clear();
                self.packets.push(packet);
            }
        }
    }

    /// Returns an empty chunk for at least `size` bytes, or of the maximum size.
    pub(super) fn chunk(&mut self, size: usize) -> Arc<Vec<u8>> {
        let size = size.next_power_of_two().clamp(Self::CHUNK.0, Self::CHUNK.1);
        let kept = self.kept(size).and_then(|chunks| chunks.pop());
        kept.unwrap_or_else(|| Arc::new(Vec::with_capacity(size)))
    }

    /// The kept chunks of this size, if chunks of this size are kept.
    fn kept(&mut self, size: usize) -> Option<&mut Vec<Arc<Vec<u8>>>> {
        match size {
            size if size == Self::CHUNK.0 => Some(&mut self.small_chunks),
            size if size == Self::CHUNK.1 => Some(&mut self.chunks),
            _ => None,
        }
    }

    /// Keeps a chunk for reuse, unless a packet still shares it.
    pub(super) fn take_chunk(&mut self, mut chunk: Arc<Vec<u8>>) {
        let Some(bytes) = Arc::get_mut(&mut chunk) else { return };
        bytes.clear();
        let size = bytes.capacity();
        if let Some(chunks) = self.kept(size).filter(|chunks| chunks.len() < CHUNKS) {
            chunks.push(chunk);
        }
    }
}
