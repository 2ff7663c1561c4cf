//! Counters of a bridge.

/// What arrived on one side of a bridge, and what became of it.
///
/// Every packet that arrived is in exactly one of `packets`, `dropped_not_ip` and `dropped_full`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counters {
    /// Packets taken, to leave by the other side.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Packets dropped because they do not begin with a whole IPv4 or IPv6 header.
    pub dropped_not_ip: u64,
    /// Packets dropped because the queue towards the other side was full.
    pub dropped_full: u64,
}
