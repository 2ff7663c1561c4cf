//! Measurements of a connection that the next connection to the same peer reuses (RFC 9040).

use std::time::Duration;

use airtcp_types::{Instant, Rate};

/// Path state that connections to one peer share (RFC 9040, TCP control block interdependence).
///
/// A connection exports it with [`Sender::hand_on`](crate::Sender::hand_on), and another starts
/// from it with [`Sender::inherit`](crate::Sender::inherit). The host stores it in between,
/// discards old values and divides the rate among the connections that use it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Learned {
    /// Round-trip times.
    pub rtt: Option<LearnedRtt>,
    /// The rate at which the new connection may start. Connections do not export a rate, because
    /// each knows only its own share of the path's rate.
    pub rate: Option<Rate>,
    /// The random losses that the judge has counted.
    pub losses: Option<RandomLosses>,
}

/// The round-trip times of a connection (RFC 6298).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LearnedRtt {
    /// SRTT.
    pub srtt: Duration,
    /// RTTVAR.
    pub rttvar: Duration,
    /// The smallest recent sample.
    pub min: Duration,
}

/// A judge's counts of transmissions and random losses. Older ones have less weight.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RandomLosses {
    /// The number of transmissions.
    pub sent: f64,
    /// The number of lost transmissions.
    pub lost: f64,
    /// The number of blocks of consecutive transmissions in which they were counted.
    pub blocks: f64,
    /// The sum over the blocks of the squared number of losses, which shows whether losses come in
    /// bursts.
    pub squares: f64,
    /// When the counts were last halved, so that they decay at the same pace on every connection.
    pub halved_at: Option<Instant>,
}

impl RandomLosses {
    /// No counts: those that another connection exported proved wrong.
    pub const NONE: Self =
        Self { sent: 0.0, lost: 0.0, blocks: 0.0, squares: 0.0, halved_at: None };
}
