//! Construction of packets: device capabilities and recycled memory.

use std::sync::Arc;

use airtcp_types::Packet;

/// So many packets' memory is kept to be used again, as long as each of them takes no more than
/// this (bytes).
const PACKETS: (usize, usize) = (256, 16 * 1024);
/// So many chunks of send buffers of either size are.
const CHUNKS: usize = 64;

/// The capabilities of the device, and recycled memory of packets and send buffers.
#[derive(Debug, Default)]
pub struct Outlet {
    /// The most segments that leave as one; none do where it is zero.
    pub(super) at_once: u16,
    packets: Vec<Packet>,
    chunks: Vec<Arc<Vec<u8>>>,
    small_chunks: Vec<Arc<Vec<u8>>>,
}

impl Outlet {
    /// The sizes of the chunks that are kept (bytes): there are none smaller than the first, or
    /// larger than the second.
    pub(super) const CHUNK: (usize, usize) = (512, 64 * 1024);

    /// `at_once`: how many segments may leave as one, which the device cuts, and completes
    /// checksums; zero: it does neither.
    pub fn new(at_once: u16) -> Self {
        Self { at_once, ..Self::default() }
    }

    /// An empty packet, to be filled.
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

    /// An empty chunk for `size` bytes and perhaps more, or for as many of them as one can take.
    pub(super) fn chunk(&mut self, size: usize) -> Arc<Vec<u8>> {
        let size = size.next_power_of_two().clamp(Self::CHUNK.0, Self::CHUNK.1);
        let kept = self.kept(size).and_then(|chunks| chunks.pop());
        kept.unwrap_or_else(|| Arc::new(Vec::with_capacity(size)))
    }

    /// The chunks that are kept of this size, if any are.
    fn kept(&mut self, size: usize) -> Option<&mut Vec<Arc<Vec<u8>>>> {
        match size {
            size if size == Self::CHUNK.0 => Some(&mut self.small_chunks),
            size if size == Self::CHUNK.1 => Some(&mut self.chunks),
            _ => None,
        }
    }

    /// Takes a chunk that nobody needs any more, unless a packet still shares it.
    pub(super) fn take_chunk(&mut self, mut chunk: Arc<Vec<u8>>) {
        let Some(bytes) = Arc::get_mut(&mut chunk) else { return };
        bytes.clear();
        let size = bytes.capacity();
        if let Some(chunks) = self.kept(size).filter(|chunks| chunks.len() < CHUNKS) {
            chunks.push(chunk);
        }
    }
}
