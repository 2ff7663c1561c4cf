//! A packet between nodes.

use crate::SharedBytes;

/// What is known of a packet's transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// It stands in the packet, over everything, and the receiver is to verify it.
    #[default]
    Full,
    /// Only the pseudo-header's sum stands in the packet; an offloading device completes it.
    Partial,
    /// A device or a local sender vouches for it: the receiver need not look.
    Verified,
}

/// One IP packet, without a link header.
///
/// A super-segment, which exists only between a host and an offloading device, is one packet whose
/// payload the device cuts into pieces of `segment_size` bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// The packet from its first IP header byte to its last payload byte; of one with a `tail`,
    /// what stands before that.
    pub data: Vec<u8>,
    /// The last part of the payload, which is not copied here from the buffer it is in: only
    /// between a host and an offloading device. All headers are in `data`.
    pub tail: Vec<SharedBytes>,
    /// Payload bytes per segment of a super-segment; `None` for an ordinary packet.
    pub segment_size: Option<u16>,
    /// What is known of the transport checksum.
    pub checksum: Checksum,
}

impl Packet {
    /// An ordinary packet with its checksum in place.
    pub const fn new(data: Vec<u8>) -> Self {
        Self { data, tail: Vec::new(), segment_size: None, checksum: Checksum::Full }
    }

    /// Makes it empty, and keeps the memory of its lists.
    pub fn clear(&mut self) {
        let Self { data, tail, segment_size, checksum } = self;
        data.clear();
        tail.clear();
        (*segment_size, *checksum) = (None, Checksum::Full);
    }

    /// Its length in bytes, IP header included.
    pub fn len(&self) -> usize {
        self.data.len() + self.tail.iter().map(|part| part.len()).sum::<usize>()
    }

    /// Whether it holds no byte at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
