//! The fields of an ACK that the control uses.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use crate::view::AckView;

/// The rate sample of an ACK that delivers data (RS), and the state of the connection after it (C).
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) now: Instant,
    /// RS.rtt.
    pub(super) rtt: Option<Duration>,
    /// RS.delivery_rate; zero if the ACKs were compressed.
    pub(super) delivery_rate: Rate,
    /// RS.delivered.
    pub(super) delivered: ByteCount,
    /// RS.newly_acked.
    pub(super) newly_acked: ByteCount,
    /// RS.prior_delivered.
    pub(super) prior_delivered: ByteCount,
    /// RS.tx_in_flight.
    pub(super) tx_in_flight: ByteCount,
    /// RS.lost.
    pub(super) lost: ByteCount,
    /// RS.is_app_limited.
    pub(super) is_app_limited: bool,
    /// C.delivered.
    pub(super) total_delivered: ByteCount,
    /// C.inflight.
    pub(super) inflight: ByteCount,
    /// C.is_cwnd_limited.
    pub(super) is_cwnd_limited: bool,
}

impl Sample {
    /// Returns the sample of an ACK; `None` if the ACK delivers nothing.
    pub(super) fn of(ack: &AckView<'_>) -> Option<Self> {
        let rate = ack.rate?;
        Some(Self {
            now: ack.now,
            rtt: ack.rtt,
            delivery_rate: rate.rate().unwrap_or_default(),
            delivered: rate.delivered,
            newly_acked: ack.delivered,
            prior_delivered: rate.prior_delivered,
            tx_in_flight: rate.tx_in_flight,
            lost: rate.lost,
            is_app_limited: rate.app_limited,
            total_delivered: ack.delivered_total,
            inflight: ack.pipe,
            is_cwnd_limited: ack.cwnd_limited,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An empty sample, for tests to fill in.
    pub(in crate::control::bbr3) fn sample() -> Sample {
        Sample {
            now: Instant::ZERO,
            rtt: None,
            delivery_rate: Rate::ZERO,
            delivered: ByteCount::ZERO,
            newly_acked: ByteCount::ZERO,
            prior_delivered: ByteCount::ZERO,
            tx_in_flight: ByteCount::ZERO,
            lost: ByteCount::ZERO,
            is_app_limited: false,
            total_delivered: ByteCount::ZERO,
            inflight: ByteCount::ZERO,
            is_cwnd_limited: false,
        }
    }
}
