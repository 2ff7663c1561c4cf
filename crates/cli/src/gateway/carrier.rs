//! Starts the stack of a gateway: in a WireGuard tunnel over UDP, on a thread of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use airtcp_gateway::carrier_config;
use airtcp_net::{Stack, StackThread};
use airtcp_recovery::Combination;
use airtcp_stack::host::Cidr;
use airtcp_tunnel::{PeerConfig, Tunnel, TunnelConfig, TunnelHandle};
use airtcp_types::ByteCount;
use anyhow::Context;

use super::keys;
use super::peer::PeerSpec;
use crate::output::Mistake;

/// The port of the far gateway inside of the tunnel.
pub(super) const PORT: u16 = 7077;

/// What all connections of a stack may hold.
const MEMORY: ByteCount = ByteCount::from_mib(256);

/// A stack whose device is a tunnel.
pub(super) struct Carrier {
    pub(super) thread: StackThread,
    pub(super) tunnel: TunnelHandle,
}

/// The largest packet inside of a tunnel whose own packets are of 1500 bytes: IPv4 or IPv6, UDP and WireGuard need 60 or 80.
pub(super) const fn mtu(is_ipv4: bool) -> u16 {
    if is_ipv4 { 1440 } else { 1420 }
}

/// A UDP socket for both families, or for IPv4 where there is no other.
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
    // The runtime that it is for is not this one.
    socket?.into_std()
}

/// The address as a socket of that family writes it; none if the socket cannot reach it.
pub(super) fn through(socket: SocketAddr, to: SocketAddr) -> Option<SocketAddr> {
    match (socket.is_ipv6(), to.ip()) {
        (true, IpAddr::V4(ip)) => Some((ip.to_ipv6_mapped(), to.port()).into()),
        (false, IpAddr::V6(_)) => None,
        _ => Some(to),
    }
}

/// What a tunnel knows of a peer with this address.
///
/// # Errors
/// The preshared key cannot be read.
pub(super) fn peer(
    spec: &PeerSpec,
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
    /// Starts the tunnel and the stack, which sends by these strategies.
    ///
    /// # Errors
    /// The kernel has no thread or descriptor left; two peers have one key.
    pub(super) fn start(
        socket: UdpSocket,
        tunnel: TunnelConfig,
        address: Cidr,
        strategies: Option<Combination>,
    ) -> anyhow::Result<Self> {
        let mut host = carrier_config([address], MEMORY, tunnel.peers.len());
        host.tcp.sender.combination = strategies.unwrap_or_default();
        host.mtu = ByteCount::from(tunnel.mtu);
        host.tcp.mtu = u16::try_from(tunnel.mtu).unwrap_or(u16::MAX);
        let mut handle = None;
        let thread = StackThread::start("gateway", || {
            let tunnel = Tunnel::new(tokio::net::UdpSocket::from_std(socket)?, tunnel)?;
            handle = Some(tunnel.handle());
            Stack::new(tunnel, host)
        });
        let thread = thread.context("starting the tunnel")?;
        let tunnel = handle.context("a stack without a tunnel")?;
        Ok(Self { thread, tunnel })
    }

    pub(super) fn stack(&self) -> &Stack {
        self.thread.stack()
    }
}

/// Refuses strategies that need damaged packets, which no tunnel passes on.
pub(super) fn check(strategies: Option<&Combination>) -> Result<(), Mistake> {
    match strategies {
        Some(asked) if asked.needs().hack => Err(Mistake::new(format!(
            "{asked} needs packets with damaged payloads, which WireGuard drops: omit the judge hack"
        ))),
        _ => Ok(()),
    }
}
