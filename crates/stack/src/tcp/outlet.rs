//! Where the packets of a host are made.

use std::sync::Arc;

use airtcp_types::Packet;

/// So many packets' memory is kept to be used again, as long as each of them takes no more than this (bytes).
const PACKETS: (usize, usize) = (256, 16 * 1024);
/// So many chunks of send buffers are.
const CHUNKS: usize = 64;

/// What the device can do, and memory that packets and send buffers have given back.
#[derive(Debug, Default)]
pub struct Outlet {
    pub(super) super_segments: bool,
    packets: Vec<Packet>,
    chunks: Vec<Arc<Vec<u8>>>,
}

impl Outlet {
    /// The size of the chunks that are kept (bytes).
    pub(super) const CHUNK: usize = 64 * 1024;

    /// `super_segments`: the device cuts them, and completes checksums.
    pub fn new(super_segments: bool) -> Self {
        Self { super_segments, ..Self::default() }
    }

    /// An empty packet, to be filled.
    pub(super) fn packet(&mut self) -> Packet {
        self.packets.pop().unwrap_or_default()
    }

    /// Takes the memory of packets that have left, or were dropped.
    pub fn take_packets(&mut self, packets: &mut Vec<Packet>) {
        for mut packet in packets.drain(..) {
            if self.packets.len() < PACKETS.0 && packet.data.capacity() <= PACKETS.1 {
                packet.clear();
                self.packets.push(packet);
            }
        }
    }

    /// An empty chunk with room for `size` bytes, or a few more.
    pub(super) fn chunk(&mut self, size: usize) -> Arc<Vec<u8>> {
        let kept = if size >= Self::CHUNK { self.chunks.pop() } else { None };
        kept.unwrap_or_else(|| Arc::new(Vec::with_capacity(size.next_power_of_two())))
    }

    /// Takes a chunk that nobody needs any more, unless a packet still shares it.
    pub(super) fn take_chunk(&mut self, mut chunk: Arc<Vec<u8>>) {
        let Some(bytes) = Arc::get_mut(&mut chunk) else { return };
        if bytes.capacity() == Self::CHUNK && self.chunks.len() < CHUNKS {
            bytes.clear();
            self.chunks.push(chunk);
        }
    }
}
