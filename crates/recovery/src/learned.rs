//! What a connection has measured of the path to its peer, for the next one to the same peer (RFC
//! 9040).

use std::time::Duration;

use airtcp_types::{Instant, Rate};

/// The state of a path that connections to one peer share (RFC 9040, TCP control block
/// interdependence).
///
/// A connection hands it on ([`Sender::hand_on`](crate::Sender::hand_on)) and another one starts
/// with it ([`Sender::inherit`](crate::Sender::inherit)). The host, which keeps it meanwhile,
/// forgets old values and divides the rate among the connections that use it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Learned {
    /// Round-trip times.
    pub rtt: Option<LearnedRtt>,
    /// The rate that the new connection may begin with. A connection does not hand one on: it knows
    /// only its own part of what the path carries.
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
    /// The smallest sample of late.
    pub min: Duration,
}

/// Transmissions and random losses that a judge has counted, older ones with less weight.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RandomLosses {
    /// Transmissions.
    pub sent: f64,
    /// Those of them that were lost.
    pub lost: f64,
    /// The blocks of consecutive transmissions in which they were counted.
    pub blocks: f64,
    /// The sum of the squares of the losses of each block: it shows whether losses come in bursts.
    pub squares: f64,
    /// When the counts were last halved, so that they lose weight at the same pace wherever they
    /// are handed on.
    pub halved_at: Option<Instant>,
}

impl RandomLosses {
    /// Nothing was counted: what another connection handed on has proved wrong.
    pub const NONE: Self =
        Self { sent: 0.0, lost: 0.0, blocks: 0.0, squares: 0.0, halved_at: None };
}
