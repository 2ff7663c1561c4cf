//! Settings of an endpoint and its connections.

use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

/// What a network is like, as far as the user knows; each value may be left out (thesis, Table
/// 3.1).
///
/// It is where a connection begins. All three are refined as it goes, and can be told again while
/// it runs ([`Endpoint::reconfigure`](crate::Endpoint::reconfigure)).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NetworkProfile {
    /// The rate that the path carries, counted in IP packets: `SendRate_char`. Seeded, nothing is
    /// probed first.
    pub send_rate: Option<Rate>,
    /// Its round-trip time: `RoundTripTime_char`.
    pub round_trip_time: Option<Duration>,
    /// The share of packets that it loses, 0 to 1: `LossRate_char`. Where much is lost, more probes
    /// have to go unanswered before the path counts as dead.
    pub loss_rate: Option<f64>,
}

/// What rules a connection's rate follows, and how the receiver judges losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkKind {
    /// A slow wireless link at the end, whose bandwidth is this flow's alone: the rate is that
    /// link's. Losses are judged by Biaz.
    WirelessLastHop,
    /// Several flows share the path: linear increase, multiplicative decrease. Losses are judged by
    /// Spike.
    #[default]
    General,
}

/// The bounds between which a loss of n packets is a wireless one: (n + sigma) Tmin to (n + phi)
/// Tmin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Biaz {
    /// The lower one, itself included.
    pub sigma: f64,
    /// The upper one.
    pub phi: f64,
}

impl Default for Biaz {
    /// 1 and 2, which judge best (thesis, Table 3.2).
    fn default() -> Self {
        Self { sigma: 1.0, phi: 2.0 }
    }
}

/// What a connection is made with. An endpoint has one for all it accepts, and takes one for each
/// it opens.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The kind of the network. Each end chooses for what it sends and for the losses it sees.
    pub kind: NetworkKind,
    /// What is known of the network.
    pub profile: NetworkProfile,
    /// The rate that is never passed, counted in IP packets; 1 Gbit/s by default.
    pub rate_cap: Rate,
    /// The highest send rate that a profile of the peer may set
    /// ([`Endpoint::reconfigure_as_asked`](crate::Endpoint::reconfigure_as_asked)), counted in IP
    /// packets; 100 Mbit/s by default. A higher one has to be measured.
    pub asked_rate_cap: Rate,
    /// The largest packet sent, in bytes of UDP payload; 64 to 65,507.
    pub packet_size: u16,
    /// What may wait for the application, in bytes. The peer is told, and what is beyond is
    /// refused.
    pub receive_buffer: ByteCount,
    /// What the application may write ahead of what the peer has acknowledged, in bytes.
    pub send_buffer: ByteCount,
    /// A connection that is not there after this has failed.
    pub handshake_timeout: Duration,
    /// Where nothing else is sent for so long, the peer is asked whether it is still there.
    pub keepalive: Duration,
    /// A peer that has not been heard for so long is gone.
    pub idle_timeout: Duration,
    /// A peer that has room, is heard, and yet got nothing new for so long is given up. A
    /// connection that was let go of has ten times as long in all.
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

    /// How many of the peer's packets may wait here.
    pub(crate) fn window(&self, packet_size: u16) -> u64 {
        // Numbers are told apart within half of 32 bits.
        (self.receive_buffer.0 / u64::from(packet_size)).clamp(2, 1 << 30)
    }
}

/// What an endpoint allows in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections.
    pub connections: usize,
    /// Connections from one address. Those opened from here do not count.
    pub connections_per_peer: usize,
    /// Accepted connections that the application has not taken yet.
    pub backlog: usize,
    /// Bytes that wait in all connections together, for the application or for the peer. Each may
    /// have 64 KiB in each direction beyond that, so that all of them go on.
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
