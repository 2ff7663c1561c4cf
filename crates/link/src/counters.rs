//! Packet counters.

use airtcp_types::ByteCount;

/// Packet counters of one direction of a link; bytes where stated.
///
/// `received + duplicated` is the sum of `forwarded`, `policed`, `queue_dropped`, `channel_lost`,
/// `disconnected`, `overflowed` and the packets that the link holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counters {
    /// Packets received.
    pub received: u64,
    /// Packets forwarded.
    pub forwarded: u64,
    /// Bytes forwarded.
    pub forwarded_bytes: ByteCount,
    /// Packets dropped by the policer. Serialised only if there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub policed: u64,
    /// Packets dropped by the queue because it is full, or by its discipline.
    pub queue_dropped: u64,
    /// Packets marked CE by the queue.
    pub marked: u64,
    /// Packets lost in the channel: at random, in a burst, by number or by the duty cycle.
    pub channel_lost: u64,
    /// Packets lost because the link was down.
    pub disconnected: u64,
    /// Packets with flipped bits.
    pub corrupted: u64,
    /// Corrupted packets with flipped bits in the IP or transport header.
    pub corrupted_header: u64,
    /// Corrupted packets that are complete TCP or UDP packets with valid checksums: no receiver can
    /// detect the corruption.
    pub corrupted_unnoticed: u64,
    /// Packets that were duplicated.
    pub duplicated: u64,
    /// Packets that left after a packet that had entered the channel later (RFC 4737 section 3.3);
    /// second copies are not counted.
    pub reordered: u64,
    /// Packets dropped because the delay line is full.
    pub overflowed: u64,
}

/// Whether a counter that is rarely used is left out of JSON.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.forwarded += other.forwarded;
        self.forwarded_bytes += other.forwarded_bytes;
        self.policed += other.policed;
        self.queue_dropped += other.queue_dropped;
        self.marked += other.marked;
        self.channel_lost += other.channel_lost;
        self.disconnected += other.disconnected;
        self.corrupted += other.corrupted;
        self.corrupted_header += other.corrupted_header;
        self.corrupted_unnoticed += other.corrupted_unnoticed;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.overflowed += other.overflowed;
    }
}
