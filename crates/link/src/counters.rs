//! Packet counters.

use airtcp_types::ByteCount;

/// The counters of one direction of a link, in packets unless noted.
///
/// `received + duplicated` is the sum of `forwarded`, `policed`, `queue_dropped`, `channel_lost`,
/// `disconnected`, `overflowed` and what the link holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counters {
    /// Packets received.
    pub received: u64,
    /// Packets forwarded.
    pub forwarded: u64,
    /// Bytes forwarded.
    pub forwarded_bytes: ByteCount,
    /// Dropped by the policer. Serialised only if there were any.
    #[serde(skip_serializing_if = "is_zero")]
    pub policed: u64,
    /// Dropped by the queue: full, or kept short.
    pub queue_dropped: u64,
    /// Given the CE mark by the queue.
    pub marked: u64,
    /// Lost in the channel: at random, in a burst, by number or by the duty cycle.
    pub channel_lost: u64,
    /// Lost because the link was down.
    pub disconnected: u64,
    /// Had bits flipped.
    pub corrupted: u64,
    /// Of these, had bits of the IP or transport header flipped.
    pub corrupted_header: u64,
    /// Of the corrupted, whole TCP or UDP packets whose every checksum still holds: no receiver can
    /// notice.
    pub corrupted_unnoticed: u64,
    /// Sent a second time.
    pub duplicated: u64,
    /// Went out after a packet that had entered the channel later (RFC 4737 section 3.3); second
    /// copies are not counted.
    pub reordered: u64,
    /// Dropped because the delay line holds all it may.
    pub overflowed: u64,
}

/// Whether a counter that most links have no use for is left out of JSON.
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
