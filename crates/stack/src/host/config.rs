//! The settings of a host.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use airtcp_types::ByteCount;

use crate::tcp::TcpConfig;

use super::outbox::MAX_WAITING;
use super::{Share, peers::Quota};

/// The settings of a host.
///
/// ```
/// use airtcp_stack::HostConfig;
/// use airtcp_types::ByteCount;
///
/// let mut config = HostConfig::new(["10.0.0.2/24".parse()?, "fd00::2/64".parse()?]);
/// config.tcp.sender.combination = "rack/cubic".parse()?;
/// config.tcp.nodelay = true;
/// // Segments of more than 1500 bytes, on a device that takes them: both limits count.
/// (config.mtu, config.tcp.mtu) = (ByteCount(9000), 9000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The host's addresses of both IP versions, each with the prefix of its network.
    pub addresses: Vec<Cidr>,
    /// The maximum size of IP packets sent, at most 65,535 bytes. `tcp.mtu` limits TCP segments as
    /// well: set both to send larger segments.
    pub mtu: ByteCount,
    /// The TTL or hop limit of packets sent; `tcp.hop_limit` is set to it.
    pub hop_limit: u8,
    /// The key from which sequence numbers, timestamps, ports and hash places are derived. Use a
    /// random key if untrusted hosts can send packets, and a fixed key for a reproducible run. The
    /// tokio stack replaces an all-zero key by random bytes from the operating system.
    pub secret: [u8; 16],
    /// The default settings of connections; a socket call may pass other settings.
    pub tcp: TcpConfig,
    /// The maximum number of connections that wait at a listener, half-open or not yet accepted. As
    /// many again may wait to be accepted after a SYN cookie.
    pub backlog: usize,
    /// The maximum size of the receive queue of a UDP socket.
    pub udp_receive_buffer: ByteCount,
    /// The number of packets in the host's transmit queue, at most 256, from which on UDP sockets
    /// cannot send. A program with a queue of its own chooses less: then it decides what leaves
    /// next.
    pub udp_send_queue: usize,
    /// The maximum number of connections in TIME-WAIT that the application has closed.
    pub time_waits: usize,
    /// Limits for all peers together.
    pub quota: Quota,
    /// Limits per peer: an IPv4 address, or an IPv6 network of 64 bits.
    pub peer_quota: Quota,
    /// The approximate limit of challenge ACKs per second for all connections together (RFC 5961
    /// section 7).
    pub challenge_acks: u32,
    /// Whether connections emit events.
    pub events: bool,
    /// Whether the device verifies checksums and drops corrupted packets. HACK is then not
    /// negotiated, because it needs the corrupted ones.
    pub checksum_offload: bool,
    /// Whether the device accepts super-segments and completes their checksums: data then leaves in
    /// packets of up to 64 KiB. It implies `checksum_offload`. The tokio stack sets it to the
    /// capability of its device.
    pub segmentation_offload: bool,
    /// The maximum number of segments in a super-segment, as Linux's `gso_max_segs`. A low limit
    /// keeps bursts short.
    pub segments_at_once: u16,
    /// The position of this host among the hosts that share these addresses. A stack with several
    /// queues sets it.
    pub share: Share,
}

impl HostConfig {
    /// Creates the settings of a host with these addresses. The secret is all zeros: set it for a
    /// [`Host`](super::Host) that untrusted hosts can reach; the tokio stack does so itself.
    pub fn new(addresses: impl IntoIterator<Item = Cidr>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
            mtu: ByteCount(1500),
            hop_limit: 64,
            secret: [0; 16],
            tcp: TcpConfig::default(),
            backlog: 4096,
            udp_receive_buffer: ByteCount::from_kib(208),
            udp_send_queue: MAX_WAITING,
            time_waits: 65_536,
            quota: Quota::ALL,
            peer_quota: Quota::PEER,
            challenge_acks: 1000,
            events: false,
            checksum_offload: false,
            segmentation_offload: false,
            segments_at_once: u16::MAX,
            share: Share::default(),
        }
    }

    /// Whether `address` is one of the host's addresses.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|cidr| cidr.address == address)
    }

    /// The MTU, limited to the range of an IP header's length field.
    pub(super) fn packet_limit(&self) -> u16 {
        u16::try_from(self.mtu.0).unwrap_or(u16::MAX)
    }

    /// A connection's own settings, limited to what this host supports.
    pub(super) fn fitted(&self, config: TcpConfig) -> TcpConfig {
        let mtu = config.mtu.min(self.packet_limit());
        TcpConfig { mtu, events: config.events | self.events, ..config }
    }

    /// Whether `address` is a broadcast address of one of the host's IPv4 networks.
    pub(super) fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        address.is_broadcast()
            || self.addresses.iter().any(|cidr| cidr.broadcast() == Some(address))
    }

    /// The source address for packets to `remote`: one in the same network if there is one. `None`
    /// if `remote` cannot be a peer.
    pub(super) fn source_for(&self, remote: SocketAddr) -> Option<IpAddr> {
        let to = remote.ip();
        if remote.port() == 0 || !self.may_be_peer(to) {
            return None;
        }
        let same = |cidr: &&Cidr| cidr.address.is_ipv4() == to.is_ipv4();
        let near = self.addresses.iter().find(|cidr| cidr.contains(to));
        near.or_else(|| self.addresses.iter().find(same)).map(|cidr| cidr.address)
    }

    /// Whether another host may have `address` (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5).
    pub(super) fn may_be_peer(&self, address: IpAddr) -> bool {
        let mapped = match address {
            IpAddr::V4(v4) => v4.octets()[0] == 0,
            IpAddr::V6(v6) => v6.to_ipv4_mapped().is_some(),
        };
        !(mapped
            || address.is_unspecified()
            || address.is_multicast()
            || address.is_loopback()
            || self.is_broadcast(address)
            || self.is_own(address))
    }
}

/// An address and the length of its network's prefix: `10.0.0.1/24`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cidr {
    address: IpAddr,
    prefix_len: u8,
}

/// The reason why a text is not an address with a prefix.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CidrError {
    /// The text is not an address.
    #[error("{0:?} is not an IP address with a prefix, such as 10.0.0.1/24 or fd00::1/64")]
    Syntax(String),
    /// The prefix is longer than the address, or no host can have the address.
    #[error("{0} is not a host address in a network with a prefix of {1} bits")]
    Value(IpAddr, u8),
}

impl Cidr {
    /// Creates a host address in a network with a prefix of `prefix_len` bits.
    ///
    /// # Errors
    ///
    /// [`CidrError::Value`] if the prefix is longer than the address, or if the address is
    /// unspecified or a multicast address.
    pub fn new(address: IpAddr, prefix_len: u8) -> Result<Self, CidrError> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if prefix_len > longest || address.is_unspecified() || address.is_multicast() {
            return Err(CidrError::Value(address, prefix_len));
        }
        Ok(Self { address, prefix_len })
    }

    /// The address.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// The length of the network's prefix, in bits.
    pub const fn prefix_len(self) -> u8 {
        self.prefix_len
    }

    /// Whether `address` is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let host_bits = 32 - u32::from(self.prefix_len);
                (own.to_bits() ^ other.to_bits()).checked_shr(host_bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let host_bits = 128 - u32::from(self.prefix_len);
                (own.to_bits() ^ other.to_bits()).checked_shr(host_bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// The network's broadcast address. Networks of one or two addresses have none (RFC 3021).
    fn broadcast(self) -> Option<Ipv4Addr> {
        match self.address {
            IpAddr::V4(own) if self.prefix_len < 31 => {
                let host_mask = u32::MAX.checked_shr(self.prefix_len.into()).unwrap_or(0);
                Some(Ipv4Addr::from_bits(own.to_bits() | host_mask))
            }
            _ => None,
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    /// Parses `10.0.0.1/24`, or an address alone, whose prefix has the maximum length.
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let syntax = || CidrError::Syntax(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| syntax())?;
        let prefix_len = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| syntax())?,
            None if address.is_ipv4() => 32,
            None => 128,
        };
        Self::new(address, prefix_len)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_contain_what_they_should() {
        assert!(cidr("10.0.0.1/24").contains([10, 0, 0, 255].into()));
        assert!(!cidr("10.0.0.1/24").contains([10, 0, 1, 1].into()));
        assert!(cidr("10.0.0.1/0").contains([192, 0, 2, 1].into()));
        assert!(!cidr("10.0.0.1").contains([10, 0, 0, 2].into()));
        assert!(cidr("fd00::1/64").contains("fd00::2".parse().unwrap()));
        assert!(!cidr("fd00::1/64").contains("fd00:1::2".parse().unwrap()));
    }

    #[test]
    fn broadcasts_follow_the_prefix() {
        assert_eq!(cidr("10.0.0.1/24").broadcast(), Some([10, 0, 0, 255].into()));
        assert_eq!(cidr("10.0.0.1/31").broadcast(), None);
        assert_eq!(cidr("10.0.0.1/0").broadcast(), Some(Ipv4Addr::BROADCAST));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "10.0.0.1/33", "10.0.0.1/x", "224.0.0.1/24", "::/0", "fd00::1/129"] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
        assert_eq!(cidr("fd00::1/64").to_string(), "fd00::1/64");
    }

    // Shows: RFC9293-MUST-44, RFC9293-MUST-46
    #[test]
    fn the_source_is_in_the_peers_network_if_one_is() {
        let config = HostConfig::new(["10.0.0.1/24", "10.9.0.1/24", "fd00::1/64"].map(cidr));
        let source = |to: &str| config.source_for(to.parse().unwrap()).map(|a| a.to_string());
        assert_eq!(source("10.9.0.7:1").as_deref(), Some("10.9.0.1"));
        assert_eq!(source("192.0.2.7:1").as_deref(), Some("10.0.0.1"));
        assert_eq!(source("[2001:db8::1]:1").as_deref(), Some("fd00::1"));
        for to in ["10.0.0.2:0", "10.0.0.1:9", "10.0.0.255:9", "0.0.0.0:9", "224.0.0.1:9", "[::]:9"]
        {
            assert_eq!(source(to), None, "{to}");
        }
    }
}
