//! Counters of a sender.

use airtcp_types::ByteCount;

/// Counts since the connection started. Segments are transmissions of up to one SMSS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Transmissions, retransmissions included.
    pub segments_sent: u64,
    /// Bytes in them.
    pub bytes_sent: ByteCount,
    /// Retransmissions.
    pub segments_retransmitted: u64,
    /// Bytes in them.
    pub bytes_retransmitted: ByteCount,
    /// Transmissions marked lost.
    pub segments_lost: u64,
    /// Of these, those that a judge ruled [`Cause::Random`](crate::Cause::Random).
    pub segments_lost_at_random: u64,
    /// Retransmissions that a detection requested immediately.
    pub fast_retransmits: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Reductions of the congestion window, except those of time-outs.
    pub reductions: u64,
    /// Reductions and time-outs undone as spurious.
    pub undos: u64,
    /// DSACKs received (RFC 2883).
    pub dsacks: u64,
    /// Transmissions reported as corrupted by special ACKs (HACK 3.3).
    pub corrupted: u64,
    /// Tail loss probes sent (RFC 8985 section 7).
    pub probes: u64,
    /// Duplicate ACKs received (RFC 5681).
    pub duplicate_acks: u64,
}
