//! The observable state of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

use crate::config::NetworkKind;

/// The phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The handshake is in progress.
    Connecting,
    /// Data can flow.
    Established,
    /// Everything was sent and received; the endpoint still responds, in case the peer does not
    /// know.
    Lingering,
    /// The connection has ended.
    Closed,
}

/// A snapshot of a connection. Durations are serialized as milliseconds, rates as bits per second.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Info {
    /// The phase of the connection.
    pub phase: Phase,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The kind of network whose rules apply.
    pub kind: NetworkKind,
    /// The maximum packet size of both ends, in bytes of UDP payload.
    pub packet_size: usize,
    /// The smoothed round-trip time; before data flows, that of the handshake or the profile.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub round_trip_time: Option<Duration>,
    /// The mean deviation of the round-trip time.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub round_trip_variation: Option<Duration>,
    /// The smallest round-trip time sample.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub least_round_trip_time: Option<Duration>,
    /// The current send rate, counted in IP packets.
    pub rate: Rate,
    /// The lower bound for a step of congestion avoidance: `SendRate_min`.
    pub rate_min: Rate,
    /// The upper bound for growth: `SendRate_max`.
    pub rate_max: Rate,
    /// The rate of the profile, or the mean of the rates that the path carried unchanged:
    /// `SendRate_char`.
    pub characteristic_rate: Option<Rate>,
    /// The share of sent packets that is lost: that of the profile, refined by the receiver's
    /// reports.
    pub loss_rate: f64,
    /// Data packets sent, including retransmissions.
    pub packets_sent: u64,
    /// Retransmitted data packets.
    pub retransmissions: u64,
    /// Data packets received, without duplicates.
    pub packets_received: u64,
    /// Losses observed by this end and classified as caused by congestion.
    pub congestive_losses: u64,
    /// Losses observed by this end and classified as losses of the link.
    pub wireless_losses: u64,
    /// Bytes written that the peer has not acknowledged.
    pub unacknowledged: ByteCount,
    /// Bytes received and not read, including those behind a hole.
    pub unread: ByteCount,
    /// Whether the path seems dead: only PINGs are sent until one is answered.
    pub is_stalled: bool,
}
