//! Counters of a sender.

use airtcp_types::ByteCount;

/// Counts since the connection started. Segments are transmissions of up to one SMSS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// The number of transmissions, including retransmissions.
    pub segments_sent: u64,
    /// Bytes in them.
    pub bytes_sent: ByteCount,
    /// The number of retransmissions.
    pub segments_retransmitted: u64,
    /// Bytes in them.
    pub bytes_retransmitted: ByteCount,
    /// The number of transmissions marked lost.
    pub segments_lost: u64,
    /// The number of these that a judge ruled [`Cause::Random`](crate::Cause::Random).
    pub segments_lost_at_random: u64,
    /// The number of retransmissions that a detection requested immediately.
    pub fast_retransmits: u64,
    /// The number of expiries of the retransmission timer.
    pub timeouts: u64,
    /// The number of reductions of the congestion window, except those of time-outs.
    pub reductions: u64,
    /// The number of reductions and time-outs undone as spurious.
    pub undos: u64,
    /// The number of DSACKs received (RFC 2883).
    pub dsacks: u64,
    /// The number of transmissions reported as corrupted by special ACKs (HACK 3.3).
    pub corrupted: u64,
    /// The number of tail loss probes sent (RFC 8985 section 7).
    pub probes: u64,
    /// The number of duplicate ACKs received (RFC 5681).
    pub duplicate_acks: u64,
}
