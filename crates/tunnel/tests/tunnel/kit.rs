//! Two ends, and packets for tests.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use airtcp_device::Device;
use airtcp_tunnel::memory::{Socket, Switch};
use airtcp_tunnel::{
    Datagrams, Network, PeerConfig, PeerStatus, PrivateKey, PublicKey, Tunnel, TunnelConfig,
};
use airtcp_types::Packet;

pub(crate) type MemoryTunnel = Tunnel<Arc<Socket>>;

pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

pub(crate) fn outside(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}

pub(crate) fn peer(key: PublicKey, inner: Ipv4Addr, endpoint: Option<SocketAddr>) -> PeerConfig {
    let allowed_ips = vec![Network::from(IpAddr::V4(inner))];
    PeerConfig { allowed_ips, endpoint, ..PeerConfig::new(key) }
}

/// Two tunnels; the near one knows the endpoint of the far one.
pub(crate) struct Ends {
    pub(crate) switch: Switch,
    pub(crate) near: MemoryTunnel,
    pub(crate) near_socket: Arc<Socket>,
    pub(crate) near_key: PrivateKey,
    pub(crate) far: MemoryTunnel,
    pub(crate) far_key: PrivateKey,
}

pub(crate) fn near_config(ends: (&PrivateKey, PublicKey)) -> TunnelConfig {
    let mut config = TunnelConfig::new(ends.0.clone());
    config.peers.push(peer(ends.1, FAR, Some(outside(1, 51_820))));
    config
}

pub(crate) fn far_config(ends: (&PrivateKey, PublicKey)) -> TunnelConfig {
    let mut config = TunnelConfig::new(ends.0.clone());
    config.peers.push(peer(ends.1, NEAR, None));
    config
}

pub(crate) fn ends() -> Ends {
    let (near_key, far_key) = (PrivateKey::generate(), PrivateKey::generate());
    let near = near_config((&near_key, far_key.public_key()));
    let far = far_config((&far_key, near_key.public_key()));
    ends_of(near, far, near_key, far_key)
}

pub(crate) fn ends_of(
    near: TunnelConfig,
    far: TunnelConfig,
    near_key: PrivateKey,
    far_key: PrivateKey,
) -> Ends {
    let switch = Switch::new(4096);
    let near_socket = Arc::new(switch.bind(outside(2, 40_000)).unwrap());
    let far_socket = Arc::new(switch.bind(outside(1, 51_820)).unwrap());
    let near = Tunnel::new(near_socket.clone(), near).unwrap();
    let far = Tunnel::new(far_socket, far).unwrap();
    Ends { switch, near, near_socket, near_key, far, far_key }
}

impl Ends {
    /// Runs both ends until nothing more happens; returns the packets that they received.
    pub(crate) fn settle(&mut self) -> (Vec<Packet>, Vec<Packet>) {
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for _ in 0..8 {
            self.far.try_recv(&mut far, 1 << 16).unwrap();
            self.near.try_recv(&mut near, 1 << 16).unwrap();
        }
        (near, far)
    }

    /// Establishes a session by sending a packet.
    pub(crate) fn establish(&mut self) {
        send(&mut self.near, packet(NEAR, FAR, 100));
        assert_eq!(self.settle().1, [packet(NEAR, FAR, 100)]);
    }
}

pub(crate) fn send<S: Datagrams>(tunnel: &mut Tunnel<S>, packet: Packet) {
    assert_eq!(tunnel.try_send(&mut VecDeque::from([packet])), 1);
}

pub(crate) fn status<S: Datagrams>(tunnel: &Tunnel<S>) -> PeerStatus {
    tunnel.handle().peers().remove(0)
}

/// Takes all datagrams queued at a socket.
pub(crate) fn take(socket: &Socket) -> Vec<(Vec<u8>, SocketAddr)> {
    let mut all = Vec::new();
    let mut buf = [0; 2048];
    while let Ok((length, from)) = socket.try_recv_from(&mut buf) {
        all.push((buf[..length].to_vec(), from));
    }
    all
}

/// An IPv4 packet with the fields that a tunnel reads.
pub(crate) fn packet(from: Ipv4Addr, to: Ipv4Addr, length: u16) -> Packet {
    let mut data = vec![0x5a; usize::from(length)];
    data[0] = 0x45;
    data[2..4].copy_from_slice(&length.to_be_bytes());
    data[12..16].copy_from_slice(&from.octets());
    data[16..20].copy_from_slice(&to.octets());
    Packet::new(data)
}
