//! The observable state of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

use crate::config::NetworkKind;

/// Where a connection is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The handshake is under way.
    Connecting,
    /// Data flows, or may.
    Established,
    /// Everything has come both ways, and answers are ready for a peer that has not heard so.
    Lingering,
    /// It has ended.
    Closed,
}

/// A connection as it is now. Durations are serialised as milliseconds, rates as bits per second.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Info {
    /// Where it is in its life.
    pub phase: Phase,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The kind of network that its rules are for.
    pub kind: NetworkKind,
    /// The largest packet that either end sends, in bytes of UDP payload.
    pub packet_size: usize,
    /// Smoothed; of the handshake or the seed until data flows.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub round_trip_time: Option<Duration>,
    /// Its mean deviation.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub round_trip_variation: Option<Duration>,
    /// The least sample.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub least_round_trip_time: Option<Duration>,
    /// What is sent at most now, counted in IP packets.
    pub rate: Rate,
    /// The least that one step of congestion avoidance may leave: `SendRate_min`.
    pub rate_min: Rate,
    /// The most that growth may come to: `SendRate_max`.
    pub rate_max: Rate,
    /// The seed, or the mean of the rates that the path took unchanged: `SendRate_char`.
    pub characteristic_rate: Option<Rate>,
    /// The share of the sent packets that is lost: the seed, refined by what the receiver reports.
    pub loss_rate: f64,
    /// Data packets that left, the retransmissions included.
    pub packets_sent: u64,
    /// Those of them that had left before.
    pub retransmissions: u64,
    /// Data packets that came, without duplicates.
    pub packets_received: u64,
    /// Losses that this end saw and judged to be of congestion.
    pub congestive_losses: u64,
    /// Losses that this end saw and judged to be of the link.
    pub wireless_losses: u64,
    /// Bytes written that the peer is not known to have.
    pub unacknowledged: ByteCount,
    /// Bytes that have come and are not read, those behind a hole too.
    pub unread: ByteCount,
    /// The path seems dead: nothing but questions is sent until one is answered.
    pub is_stalled: bool,
}
