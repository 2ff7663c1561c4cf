//! How a near gateway reaches the far gateway: starts the carrier, and resolves the far gateway's
//! name again while it does not answer.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use airtcp_gateway::{Destination, HostAddress, Near};
use airtcp_recovery::Combination;
use airtcp_stack::host::Cidr;
use airtcp_tunnel::{PeerConfig, PrivateKey, TunnelConfig, TunnelHandle};
use anyhow::Context;

use super::carrier::{self, Carrier, Plain, Way};
use super::keys;
use super::settings::NearCarrier;
use crate::output;

/// The interval between attempts to resolve the name and start a session again, while the far
/// gateway does not answer.
const RESOLVED: Duration = Duration::from_secs(5);

/// The interval between checks whether the far gateway answers.
const LOOK: Duration = Duration::from_secs(1);

/// A carrier that is not started yet.
pub(super) enum Reach {
    Wireguard(Box<Endpoint>),
    Tun(Plain),
}

/// A WireGuard tunnel that is not started yet.
pub(super) struct Endpoint {
    pub(super) endpoint: Destination,
    /// The address of the far gateway; on an error, it is resolved again later.
    pub(super) resolved: anyhow::Result<SocketAddr>,
    pub(super) config: TunnelConfig,
    pub(super) socket: UdpSocket,
    local: SocketAddr,
    peer: PeerConfig,
}

impl Reach {
    /// Prepares the carrier for a far gateway with the address `far` inside it.
    ///
    /// # Errors
    /// A key cannot be read, or a UDP socket cannot be bound.
    pub(super) async fn new(carrier: NearCarrier, far: IpAddr) -> anyhow::Result<Self> {
        let (key, spec, endpoint, mtu) = match carrier {
            NearCarrier::Tun(plain) => return Ok(Self::Tun(plain)),
            NearCarrier::Wireguard { key, peer, endpoint, mtu } => (key, peer, endpoint, mtu),
        };
        let private_key = keys::private(&key)?;
        let socket = carrier::bind(0).await.context("binding a UDP socket for the tunnel")?;
        let local = socket.local_addr()?;
        let resolved = resolve(&endpoint, local, None).await;
        let address = resolved.as_ref().ok().copied();
        let peer = carrier::peer(&spec, far, address)?;
        let is_ipv4 = address.is_some_and(|endpoint| endpoint.ip().to_canonical().is_ipv4());
        let mtu = mtu.unwrap_or(carrier::mtu(is_ipv4)).into();
        let config = TunnelConfig { private_key, peers: vec![peer.clone()], mtu };
        Ok(Self::Wireguard(Box::new(Endpoint { endpoint, resolved, config, socket, local, peer })))
    }

    /// The largest packet that the carrier carries (bytes).
    pub(super) fn mtu(&self) -> u16 {
        match self {
            Self::Wireguard(tunnel) => u16::try_from(tunnel.config.mtu).unwrap_or(u16::MAX),
            Self::Tun(plain) => plain.mtu,
        }
    }

    /// Starts the carrier, with a stack at `address` that sends with these strategies.
    ///
    /// # Errors
    /// As [`Carrier::in_tunnel`] and [`Carrier::on_tun`].
    pub(super) async fn start(
        self,
        address: Cidr,
        far: IpAddr,
        strategies: Option<Combination>,
    ) -> anyhow::Result<(Carrier, Follow)> {
        match self {
            Self::Wireguard(tunnel) => {
                let Endpoint { endpoint, config, socket, local, peer, .. } = *tunnel;
                let carrier = Carrier::in_tunnel(socket, config, address, strategies)?;
                let name = endpoint.to_string();
                let tunnel = match &carrier.way {
                    Way::Wireguard(tunnel) => {
                        Some(Session { endpoint, peer, local, tunnel: tunnel.clone() })
                    }
                    Way::Tun(_) => None,
                };
                Ok((carrier, Follow { name, tunnel }))
            }
            Self::Tun(plain) => {
                let carrier = Carrier::on_tun(plain, &[far], strategies).await?;
                Ok((carrier, Follow { name: far.to_string(), tunnel: None }))
            }
        }
    }
}

impl Endpoint {
    /// The private key of this end.
    pub(super) const fn private_key(&self) -> &PrivateKey {
        &self.config.private_key
    }
}

/// Resolves an address of the far gateway that the socket can reach; of several, the one after
/// `last`.
pub(super) async fn resolve(
    endpoint: &Destination,
    local: SocketAddr,
    last: Option<SocketAddr>,
) -> anyhow::Result<SocketAddr> {
    let addresses: Vec<SocketAddr> = match &endpoint.host {
        HostAddress::Ip(ip) => vec![SocketAddr::new(*ip, endpoint.port)],
        HostAddress::Name(name) => {
            tokio::net::lookup_host((name.as_str(), endpoint.port)).await?.collect()
        }
    };
    let reached = addresses.into_iter().filter_map(|address| carrier::through(local, address));
    next(&reached.collect::<Vec<_>>(), last).context("it has no address that this machine reaches")
}

/// Returns the address after `last`; the first one if `last` is the final one or not in the list.
fn next(addresses: &[SocketAddr], last: Option<SocketAddr>) -> Option<SocketAddr> {
    let place = addresses.iter().position(|address| Some(*address) == last);
    let behind = place.and_then(|place| addresses.get(place + 1));
    behind.or_else(|| addresses.first()).copied()
}

/// Reports whether the far gateway answers, and resolves its name again while it does not.
pub(super) struct Follow {
    name: String,
    tunnel: Option<Session>,
}

/// The state for starting a new session with a far gateway that does not answer.
struct Session {
    endpoint: Destination,
    peer: PeerConfig,
    /// The local address of the tunnel's socket.
    local: SocketAddr,
    tunnel: TunnelHandle,
}

impl Follow {
    /// Runs for as long as it is polled.
    pub(super) async fn run(mut self, near: Near) {
        let mut reported = None;
        let mut resolved = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let status = near.status();
            // Right after the start, the state is not known.
            if reported != Some(status.connected) && (status.connected || status.reason.is_some()) {
                reported = Some(status.connected);
                let at = &self.name;
                match status.reason {
                    Some(reason) => output::note(format_args!(
                        "the far gateway at {at} {reason}\nTo find out why, stop this one and type `airtcp gateway check` with \
                         the same options"
                    )),
                    None => output::note(format_args!("the far gateway at {at} answers")),
                }
            }
            if let Some(session) = &mut self.tunnel
                && !status.connected
                && resolved.elapsed() >= RESOLVED
            {
                session.resolve().await;
                resolved = tokio::time::Instant::now();
            }
        }
    }
}

impl Session {
    async fn resolve(&mut self) {
        match resolve(&self.endpoint, self.local, self.peer.endpoint).await {
            Ok(endpoint) => {
                tracing::info!(address = %endpoint.ip().to_canonical(), "trying {}", self.endpoint);
                self.peer.endpoint = Some(endpoint);
            }
            Err(error) => tracing::warn!("--endpoint {}: {error:#}", self.endpoint),
        }
        // A restarted far gateway has no session. With the peer added again, the next packet starts
        // a handshake at once, instead of after the 15 s until the old session counts as broken.
        self.tunnel.remove_peer(&self.peer.public_key);
        if let Err(error) = self.tunnel.add_peer(self.peer.clone()) {
            tracing::error!(%error, "the session with the far gateway");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_far_gateway_is_tried_in_turn() {
        let at = |host: u8| SocketAddr::from(([192, 0, 2, host], 51_820));
        let (one, two) = (at(1), at(2));
        assert_eq!(next(&[one, two], None), Some(one));
        assert_eq!(next(&[one, two], Some(one)), Some(two));
        assert_eq!(next(&[one, two], Some(two)), Some(one));
        assert_eq!(next(&[one], Some(one)), Some(one));
        assert_eq!(next(&[one], Some(two)), Some(one));
        assert_eq!(next(&[], Some(two)), None);
    }

    #[tokio::test]
    async fn an_endpoint_is_written_as_the_tunnels_socket_writes_it() {
        let resolved = async |local: &str, endpoint: &str| {
            let local = local.parse().unwrap();
            resolve(&endpoint.parse().unwrap(), local, None).await.map(|found| found.to_string())
        };
        assert_eq!(resolved("[::]:9", "192.0.2.1:7").await.unwrap(), "[::ffff:192.0.2.1]:7");
        assert_eq!(resolved("[::]:9", "[fd00::1]:7").await.unwrap(), "[fd00::1]:7");
        assert_eq!(resolved("0.0.0.0:9", "192.0.2.1:7").await.unwrap(), "192.0.2.1:7");
        let unreached = resolved("0.0.0.0:9", "[fd00::1]:7").await.unwrap_err();
        assert!(unreached.to_string().contains("no address that this machine reaches"));
    }
}
