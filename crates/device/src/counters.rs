//! The counters of a device.

/// The counters of a device, with the names of `ip -s link`, from its user's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received, IP headers included.
    pub rx_bytes: u64,
    /// Failed receive calls, and received packets that were dropped as malformed.
    pub rx_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent, IP headers included.
    pub tx_bytes: u64,
    /// Packets dropped because the link was down.
    pub tx_dropped: u64,
    /// Packets dropped because the device refused them: malformed, too long, or the device is gone.
    pub tx_errors: u64,
}

/// Sums the counters of several devices, or of the queues of one.
impl std::iter::Sum for Counters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            rx_packets: sum.rx_packets + one.rx_packets,
            rx_bytes: sum.rx_bytes + one.rx_bytes,
            rx_errors: sum.rx_errors + one.rx_errors,
            tx_packets: sum.tx_packets + one.tx_packets,
            tx_bytes: sum.tx_bytes + one.tx_bytes,
            tx_dropped: sum.tx_dropped + one.tx_dropped,
            tx_errors: sum.tx_errors + one.tx_errors,
        })
    }
}
