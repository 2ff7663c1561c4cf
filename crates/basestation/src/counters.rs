//! Counters of a bridge.

/// Counters of the packets that arrived on one side of a bridge.
///
/// Every packet is counted in exactly one of `packets`, `dropped_not_ip` and `dropped_full`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counters {
    /// Packets queued towards the other side.
    pub packets: u64,
    /// The bytes of these packets, IP headers included.
    pub bytes: u64,
    /// Packets dropped because they do not start with a complete IPv4 or IPv6 header.
    pub dropped_not_ip: u64,
    /// Packets dropped because the queue towards the other side was full.
    pub dropped_full: u64,
}
