//! Counters of a sender.

use airtcp_types::ByteCount;

/// Counts since the connection began. Segments are transmissions of up to one SMSS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Transmissions, repairs included.
    pub segments_sent: u64,
    /// Bytes in them.
    pub bytes_sent: ByteCount,
    /// Transmissions of bytes that had been sent before.
    pub segments_retransmitted: u64,
    /// Bytes in them.
    pub bytes_retransmitted: ByteCount,
    /// Transmissions judged lost.
    pub segments_lost: u64,
    /// Of these, those that a judge ruled [`Cause::Random`](crate::Cause::Random).
    pub segments_lost_at_random: u64,
    /// Retransmissions that a detector requested immediately.
    pub fast_retransmits: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
    /// Reductions of the congestion window, time-outs apart.
    pub reductions: u64,
    /// Reductions and time-outs taken back as spurious.
    pub undos: u64,
    /// Reports of a duplicate (RFC 2883).
    pub dsacks: u64,
    /// Transmissions that special ACKs reported as corrupted (HACK 3.3).
    pub corrupted: u64,
    /// Tail loss probes (RFC 8985 section 7).
    pub probes: u64,
    /// Duplicate ACKs (RFC 5681).
    pub duplicate_acks: u64,
}
