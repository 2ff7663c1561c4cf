//! Settings of an endpoint and its connections.

use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

/// The user's knowledge of a network; each value may be left out (thesis, Table 3.1).
///
/// A connection starts with these values. All three are refined by measurement, and can be replaced
/// while the connection runs ([`Endpoint::reconfigure`](crate::Endpoint::reconfigure)).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NetworkProfile {
    /// The rate of the path, counted in IP packets: `SendRate_char`. With this value, the
    /// connection does not probe the path first.
    pub send_rate: Option<Rate>,
    /// The round-trip time: `RoundTripTime_char`.
    pub round_trip_time: Option<Duration>,
    /// The share of packets lost, 0 to 1: `LossRate_char`. At a higher share, more probes have to
    /// stay unanswered before the path counts as dead.
    pub loss_rate: Option<f64>,
}

/// The rules for the rate of a connection, and for the receiver's classification of losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkKind {
    /// A slow wireless link at the end of the path, used by this flow alone: the rate is that of
    /// the link. Losses are classified by Biaz.
    WirelessLastHop,
    /// A path shared by several flows: linear increase, multiplicative decrease. Losses are
    /// classified by Spike.
    #[default]
    General,
}

/// The bounds of Biaz: a loss of n packets is a wireless loss if it takes from (n + sigma) Tmin to
/// (n + phi) Tmin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Biaz {
    /// The lower bound, inclusive.
    pub sigma: f64,
    /// The upper bound, exclusive.
    pub phi: f64,
}

impl Default for Biaz {
    /// 1 and 2, which classify best (thesis, Table 3.2).
    fn default() -> Self {
        Self { sigma: 1.0, phi: 2.0 }
    }
}

/// The settings of a connection. An endpoint has one for all connections that it accepts, and takes
/// one for each that it opens.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The kind of network. Each end chooses it for the data that it sends and the losses that it
    /// observes.
    pub kind: NetworkKind,
    /// The known properties of the network.
    pub profile: NetworkProfile,
    /// The maximum send rate, counted in IP packets; 1 Gbit/s by default.
    pub rate_cap: Rate,
    /// The maximum send rate that a profile of the peer can set
    /// ([`Endpoint::reconfigure_as_asked`](crate::Endpoint::reconfigure_as_asked)), counted in IP
    /// packets; 100 Mbit/s by default. A higher rate has to be measured.
    pub asked_rate_cap: Rate,
    /// The maximum packet size in bytes of UDP payload; 64 to 65,507.
    pub packet_size: u16,
    /// The maximum amount of data that waits for the application, in bytes. It is announced to the
    /// peer, and data beyond it is refused.
    pub receive_buffer: ByteCount,
    /// The maximum amount of data that the application can write before the peer acknowledges it,
    /// in bytes.
    pub send_buffer: ByteCount,
    /// The time after which a connection attempt fails.
    pub handshake_timeout: Duration,
    /// The time without any packet sent or received after which a PING is sent.
    pub keepalive: Duration,
    /// The time without any packet from the peer after which the connection ends.
    pub idle_timeout: Duration,
    /// The time after which the connection ends if the peer has room and responds, but receives
    /// nothing new. A connection that the application has released ends after ten times this in any
    /// case.
    pub progress_timeout: Duration,
    /// The bounds of Biaz.
    pub biaz: Biaz,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            kind: NetworkKind::General,
            profile: NetworkProfile::default(),
            rate_cap: Rate::from_bits_per_sec(1_000_000_000),
            asked_rate_cap: Rate::from_bits_per_sec(100_000_000),
            packet_size: 1_400,
            receive_buffer: ByteCount::from_mib(8),
            send_buffer: ByteCount::from_mib(4),
            handshake_timeout: Duration::from_secs(10),
            keepalive: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            progress_timeout: Duration::from_secs(120),
            biaz: Biaz::default(),
        }
    }
}

impl Config {
    pub(crate) fn packet_size(&self) -> u16 {
        self.packet_size.clamp(crate::wire::LEAST_PACKET, 65_507)
    }

    /// Returns the receive window in packets of `packet_size` bytes.
    pub(crate) fn window(&self, packet_size: u16) -> u64 {
        // Packet numbers are unambiguous within half of 32 bits.
        (self.receive_buffer.0 / u64::from(packet_size)).clamp(2, 1 << 30)
    }
}

/// The limits of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of connections.
    pub connections: usize,
    /// The number of connections accepted from one address. Connections opened by this endpoint do
    /// not count.
    pub connections_per_peer: usize,
    /// The number of accepted connections that wait for the application.
    pub backlog: usize,
    /// The amount of buffered data in all connections, received and to be sent, in bytes. Each
    /// connection can have 64 KiB in each direction beyond it, so that all of them make progress.
    pub memory: ByteCount,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            connections_per_peer: 256,
            backlog: 128,
            memory: ByteCount::from_mib(256),
        }
    }
}
