//! Starts the stack of a gateway in its own thread: in a WireGuard tunnel over UDP, or on a TUN
//! device.

mod name;
mod peers;
mod plain;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use airtcp_device::{Device, Tun};
use airtcp_gateway::{PeerFigures, carrier_config, peers_only};
use airtcp_net::{Stack, StackThread};
use airtcp_recovery::Combination;
use airtcp_stack::HostConfig;
use airtcp_stack::host::Cidr;
use airtcp_tunnel::{PeerConfig, Tunnel, TunnelConfig, TunnelHandle};
use airtcp_types::ByteCount;
use anyhow::Context;

pub(super) use name::CarrierName;
pub(super) use peers::Peer;
pub(super) use plain::Plain;

use super::keys;
use super::peer::KeyPeer;
use crate::output::Mistake;

/// The port of the far gateway inside the tunnel.
pub(super) const PORT: u16 = 7077;

/// The memory limit for all connections of a stack.
const MEMORY: ByteCount = ByteCount::from_mib(256);

/// A stack that reaches the other gateway.
pub(super) struct Carrier {
    pub(super) thread: StackThread,
    pub(super) way: Way,
}

/// How packets get to the other gateway.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Encrypted, in UDP.
    Wireguard(TunnelHandle),
    /// Unencrypted, through a TUN device.
    Tun(PeerFigures),
}

/// The largest packet inside a tunnel whose outer packets have 1500 bytes: the headers of IPv4 or
/// IPv6, UDP and WireGuard need 60 or 80 bytes.
pub(super) const fn mtu(is_ipv4: bool) -> u16 {
    if is_ipv4 { 1440 } else { 1420 }
}

/// Binds a UDP socket for both families, or for IPv4 if the machine has no IPv6.
///
/// # Errors
/// The port is in use.
pub(super) async fn bind(port: u16) -> io::Result<UdpSocket> {
    let any = |ip: IpAddr| airtcp_tunnel::bind(SocketAddr::new(ip, port));
    let socket = match any(Ipv6Addr::UNSPECIFIED.into()).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            any(Ipv4Addr::UNSPECIFIED.into()).await
        }
        bound => bound,
    };
    // The socket is for another runtime.
    socket?.into_std()
}

/// Returns the address in the form that a socket of that family uses; `None` if the socket cannot
/// reach it.
pub(super) fn through(socket: SocketAddr, to: SocketAddr) -> Option<SocketAddr> {
    match (socket.is_ipv6(), to.ip()) {
        (true, IpAddr::V4(ip)) => Some((ip.to_ipv6_mapped(), to.port()).into()),
        (false, IpAddr::V6(_)) => None,
        _ => Some(to),
    }
}

/// Returns the tunnel's settings for a peer with this address.
///
/// # Errors
/// The preshared key cannot be read.
pub(super) fn peer(
    spec: &KeyPeer,
    address: IpAddr,
    endpoint: Option<SocketAddr>,
) -> anyhow::Result<PeerConfig> {
    Ok(PeerConfig {
        preshared_key: spec.preshared_key.as_deref().map(keys::preshared).transpose()?,
        endpoint,
        allowed_ips: vec![address.into()],
        ..PeerConfig::new(spec.key)
    })
}

impl Carrier {
    /// Starts a WireGuard tunnel and its stack, which sends with these strategies.
    ///
    /// # Errors
    /// No thread or descriptor is left, or two peers have the same key.
    pub(super) fn in_tunnel(
        socket: UdpSocket,
        tunnel: TunnelConfig,
        address: Cidr,
        strategies: Option<Combination>,
    ) -> anyhow::Result<Self> {
        let host = host(address, tunnel.mtu, tunnel.peers.len(), strategies);
        Self::start(host, || {
            let tunnel = Tunnel::new(tokio::net::UdpSocket::from_std(socket)?, tunnel)?;
            let way = Way::Wireguard(tunnel.handle());
            Ok((tunnel, way))
        })
    }

    /// Starts a stack on a TUN device, which sends with these strategies.
    ///
    /// # Errors
    /// No thread is left, or the kernel does not permit the use of the device.
    pub(super) async fn on_tun(
        plain: Plain,
        peers: &[IpAddr],
        strategies: Option<Combination>,
    ) -> anyhow::Result<Self> {
        let host = host(plain.address, plain.mtu.into(), peers.len(), strategies);
        let file = plain.open().await?;
        Self::start(host, || {
            let (device, figures) = peers_only(Tun::new(file)?, peers);
            Ok((device, Way::Tun(figures)))
        })
    }

    fn start<D: Device>(
        host: HostConfig,
        open: impl FnOnce() -> anyhow::Result<(D, Way)>,
    ) -> anyhow::Result<Self> {
        let mut way = None;
        let thread = StackThread::start("gateway", || {
            let (device, opened) = open()?;
            way = Some(opened);
            Ok::<_, anyhow::Error>(Stack::new(device, host)?)
        });
        let thread = thread.context("starting the stack between the gateways")?;
        Ok(Self { thread, way: way.context("a stack without a device")? })
    }

    pub(super) fn stack(&self) -> &Stack {
        self.thread.stack()
    }
}

fn host(address: Cidr, mtu: usize, peers: usize, strategies: Option<Combination>) -> HostConfig {
    let mut host = carrier_config([address], MEMORY, peers);
    host.tcp.sender.combination = strategies.unwrap_or_default();
    host.mtu = ByteCount::from(mtu);
    host.tcp.mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    host
}

impl Way {
    /// The public key of this end; `None` without WireGuard.
    pub(super) fn key(&self) -> Option<String> {
        match self {
            Self::Wireguard(tunnel) => Some(tunnel.public_key().to_string()),
            Self::Tun(_) => None,
        }
    }

    /// The carrier's name in the settings.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Wireguard(_) => name::WIREGUARD,
            Self::Tun(_) => name::TUN,
        }
    }

    /// The peers of the carrier.
    pub(super) fn peers(&self) -> Vec<Peer> {
        match self {
            Self::Wireguard(tunnel) => tunnel.peers().into_iter().map(Peer::from).collect(),
            Self::Tun(figures) => figures.peers().into_iter().map(Peer::from).collect(),
        }
    }

    /// The number of packets dropped because they did not come from a peer; `None` with WireGuard,
    /// which authenticates its peers.
    pub(super) fn refused(&self) -> Option<u64> {
        match self {
            Self::Wireguard(_) => None,
            Self::Tun(figures) => Some(figures.refused()),
        }
    }

    /// Rejects strategies that need damaged packets, which WireGuard drops.
    ///
    /// # Errors
    /// The strategies include HACK, and the carrier is WireGuard.
    pub(super) fn check(&self, strategies: &Combination) -> Result<(), Mistake> {
        match self {
            Self::Wireguard(_) => check(strategies),
            Self::Tun(_) => Ok(()),
        }
    }
}

/// Rejects strategies that do not work in a WireGuard tunnel.
///
/// # Errors
/// The strategies need packets with damaged payloads.
pub(super) fn check(strategies: &Combination) -> Result<(), Mistake> {
    match strategies.needs().hack {
        true => Err(Mistake::new(format!(
            "{strategies} needs packets with damaged payloads, which WireGuard drops: omit the judge hack, or use --carrier tun"
        ))),
        false => Ok(()),
    }
}
