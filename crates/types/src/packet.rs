//! IP packets between nodes.

use crate::SharedBytes;

/// The state of a packet's transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// The packet has its complete checksum, which the receiver has to verify.
    #[default]
    Full,
    /// The checksum field holds only the pseudo-header's sum; an offloading device completes it.
    Partial,
    /// A device or a local sender has verified the checksum; the receiver need not.
    Verified,
}

/// An IP packet without a link header.
///
/// A super-segment, which exists only between a host and an offloading device, is one packet whose
/// payload the device splits into segments of `segment_size` bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// The bytes of the packet from the start of the IP header, without those in `tail`.
    pub data: Vec<u8>,
    /// The last part of the payload, shared with the buffer that holds it and not copied. Only
    /// between a host and an offloading device. All headers are in `data`.
    pub tail: Vec<SharedBytes>,
    /// The payload bytes in each segment of a super-segment; `None` for an ordinary packet.
    pub segment_size: Option<u16>,
    /// The state of the transport checksum.
    pub checksum: Checksum,
}

impl Packet {
    /// Creates an ordinary packet with a complete checksum.
    pub const fn new(data: Vec<u8>) -> Self {
        Self { data, tail: Vec::new(), segment_size: None, checksum: Checksum::Full }
    }

    /// Empties the packet and keeps the capacity of its lists.
    pub fn clear(&mut self) {
        let Self { data, tail, segment_size, checksum } = self;
        data.clear();
        tail.clear();
        (*segment_size, *checksum) = (None, Checksum::Full);
    }

    /// The length in bytes, IP header included.
    pub fn len(&self) -> usize {
        self.data.len() + self.tail.iter().map(|part| part.len()).sum::<usize>()
    }

    /// Whether the packet has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
