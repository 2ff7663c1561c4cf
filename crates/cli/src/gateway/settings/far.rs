//! Settings of a far gateway.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use airtcp_gateway::datagram::Filtering;
use airtcp_gateway::{FarConfig, Rule, Rules};
use airtcp_recovery::Combination;
use airtcp_stack::host::Cidr;
use clap::Args;
use serde::{Deserialize, Deserializer};

use super::{
    Outlets, check_flags, inner_mtu, listen, listen_of_file, local, mtu_of_file, number,
    redundancy, redundancy_of_file,
};
use crate::gateway::carrier::{self, CarrierName, Plain};
use crate::gateway::peer::{KeyPeer, PeerSpec};
use crate::output::Mistake;
use crate::{example, live, settings, value};

/// The default UDP port of a far gateway: WireGuard's usual one.
const LISTEN: u16 = 51_820;

/// Parses `--listen-port`.
fn port(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
        "expected a port from 1 to 65535; for example --listen-port 51820".to_owned()
    })
}

fn port_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u16>, D::Error> {
    number(file, port)
}

/// Flags of `airtcp gateway far`, and the keys of its file.
#[derive(Args, Deserialize, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::gateway) struct FarSettings {
    /// How packets get to the other gateway: wireguard, or tun[:DEVICE], which sends them as they
    /// are through a TUN device, unencrypted and unauthenticated, and so needs --insecure-carrier.
    /// Both gateways need the same [default: wireguard]
    #[arg(long, value_name = "CARRIER", value_parser = value::parsed::<CarrierName>)]
    #[serde(deserialize_with = "settings::written")]
    carrier: Option<CarrierName>,
    /// Accept that --carrier tun neither encrypts nor authenticates: anyone on the link can read,
    /// change and use what is carried
    #[arg(long)]
    insecure_carrier: bool,
    /// File with the private key of this end, made by `airtcp gateway keygen --out FILE`
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// A near gateway that is served, by its public key; repeat for more. The Nth has the address
    /// 10.77.0.(N+1) inside of the tunnel unless `,address=IP` follows the key;
    /// `,preshared-key=FILE` adds a preshared key. With --carrier tun, by its address alone
    #[arg(long = "peer", value_name = "KEY[,...]", value_parser = value::parsed::<PeerSpec>)]
    #[serde(deserialize_with = "settings::each_written")]
    peers: Option<Vec<PeerSpec>>,
    /// UDP port of the tunnel, at all addresses of this machine [default: 51820]
    #[arg(long, value_name = "PORT", value_parser = port)]
    #[serde(deserialize_with = "port_of_file")]
    listen_port: Option<u16>,
    /// Address of this end inside of the tunnel [default: 10.77.0.1/24]
    #[arg(long, value_name = "CIDR", value_parser = value::cidr)]
    #[serde(deserialize_with = "settings::written")]
    address: Option<Cidr>,
    /// Serve this destination, for example 127.0.0.1:8080 or 10.0.0.0/8; repeat for more. With at
    /// least one, other destinations are refused. The longest prefix decides, and --deny between
    /// two of the same length [default: all but --deny]
    #[arg(long, value_name = "RULE", value_parser = value::parsed::<Rule>)]
    #[serde(deserialize_with = "settings::each_written")]
    allow: Option<Vec<Rule>>,
    /// Refuse this destination; repeat for more. Loopback, link-local and multicast addresses,
    /// those that hide an IPv4 address, and the metadata services of clouds are refused by default
    #[arg(long, value_name = "RULE", value_parser = value::parsed::<Rule>)]
    #[serde(deserialize_with = "settings::each_written")]
    deny: Option<Vec<Rule>>,
    /// Let near gateways listen on this address and port of this machine with -R, for example
    /// 127.0.0.1:8000-8999, or [::]:8080 for all addresses; repeat for more [default: none]
    #[arg(long, value_name = "RULE", value_parser = value::parsed::<Rule>)]
    #[serde(deserialize_with = "settings::each_written")]
    permit_listen: Option<Vec<Rule>>,
    /// Who may send UDP to a program: endpoint-independent (anybody, as games and calls need) or
    /// address-dependent (the hosts that it has sent to) [default: endpoint-independent]
    #[arg(long, value_name = "WHO", value_parser = value::parsed::<Filtering>)]
    #[serde(deserialize_with = "settings::written")]
    udp_filtering: Option<Filtering>,
    /// Redundancy that repairs lost UDP datagrams: at most this percentage of the data sent; 0
    /// turns it off [default: 22]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = redundancy)]
    #[serde(deserialize_with = "redundancy_of_file")]
    redundancy: Option<u8>,
    /// Strategies for what is sent to near gateways: rack/cubic or le/westwood/dcr:timer [default:
    /// rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    #[serde(deserialize_with = "settings::written")]
    strategies: Option<Combination>,
    /// Largest IP packet inside of the tunnel [default: 1440; with --carrier tun 1500]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = inner_mtu)]
    #[serde(deserialize_with = "mtu_of_file")]
    mtu: Option<u16>,
    /// Listen for `airtcp gateway ctl` on this socket [default: a path that `airtcp gateway ctl`
    /// finds]
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Serve Prometheus metrics at http://ADDR/metrics over the kernel's TCP, for example
    /// 127.0.0.1:9466
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    #[serde(deserialize_with = "listen_of_file")]
    metrics: Option<SocketAddr>,
    /// Show flows, rates and losses on a page at http://ADDR/, over the kernel's TCP: a port of
    /// 127.0.0.1, or ADDRESS:PORT. Without login
    #[arg(long, value_name = "ADDR", value_parser = live::address)]
    #[serde(deserialize_with = "settings::live")]
    live: Option<SocketAddr>,
    /// Print the status as JSON on stdout at exit
    #[arg(long)]
    json: bool,
}

/// The validated settings of a far gateway.
#[derive(Debug)]
pub(in crate::gateway) struct FarPlan {
    pub(in crate::gateway) carrier: FarCarrier,
    pub(in crate::gateway) address: Cidr,
    pub(in crate::gateway) far: FarConfig,
    pub(in crate::gateway) udp_filtering: Option<Filtering>,
    pub(in crate::gateway) redundancy: Option<u8>,
    pub(in crate::gateway) strategies: Option<Combination>,
    pub(in crate::gateway) outlets: Outlets,
}

/// The carrier of a far gateway, with its peers.
#[derive(Debug)]
pub(in crate::gateway) enum FarCarrier {
    Wireguard {
        key: PathBuf,
        /// The peers, with their addresses inside the tunnel.
        peers: Vec<(KeyPeer, IpAddr)>,
        listen_port: u16,
        mtu: u16,
    },
    Tun {
        plain: Plain,
        peers: Vec<IpAddr>,
    },
}

settings::merge!(FarSettings:
    carrier, insecure_carrier, key, peers, listen_port, address, allow, deny, permit_listen,
    udp_filtering, redundancy, strategies, mtu, control, metrics, live, json,
);

impl FarSettings {
    /// Validates the settings.
    ///
    /// # Errors
    /// A setting is missing, or contradicts another.
    pub(in crate::gateway) fn plan(self) -> Result<FarPlan, Mistake> {
        let address = self.address.unwrap_or_else(|| local(1));
        let peers = self.peers.unwrap_or_default();
        let carrier = self.carrier.unwrap_or_default();
        let flags = [("--key", self.key.is_some()), ("--listen-port", self.listen_port.is_some())];
        check_flags(&carrier, self.insecure_carrier, flags)?;
        let carrier = match carrier {
            CarrierName::Wireguard => {
                let Some(key) = self.key.filter(|_| !peers.is_empty()) else {
                    return Err(Mistake::new(format!(
                        "a far gateway needs a key and at least one peer; for example: {}",
                        example::FAR
                    )));
                };
                self.strategies.as_ref().map_or(Ok(()), carrier::check)?;
                FarCarrier::Wireguard {
                    key,
                    peers: addressed(peers, address)?,
                    listen_port: self.listen_port.unwrap_or(LISTEN),
                    mtu: self.mtu.unwrap_or(carrier::mtu(true)),
                }
            }
            CarrierName::Tun(device) => {
                if peers.is_empty() {
                    return Err(Mistake::new(format!(
                        "a far gateway needs at least one peer; for example: {}",
                        example::FAR_TUN
                    )));
                }
                let peers = peers.into_iter().map(PeerSpec::without_key);
                let peers = peers.collect::<Result<Vec<_>, _>>()?;
                check_addresses(&peers, address)?;
                let device = device.unwrap_or_else(|| "airtcp-far".to_owned());
                FarCarrier::Tun { plain: Plain::new(device, address, self.mtu), peers }
            }
        };
        let mut rules = Rules { allow: self.allow.unwrap_or_default(), ..Rules::default() };
        rules.deny.extend(self.deny.unwrap_or_default());
        let listen = SocketAddr::new(address.address(), carrier::PORT);
        Ok(FarPlan {
            carrier,
            address,
            far: FarConfig {
                rules,
                permit_listen: self.permit_listen.unwrap_or_default(),
                ..FarConfig::new(listen)
            },
            udp_filtering: self.udp_filtering,
            redundancy: self.redundancy,
            strategies: self.strategies,
            outlets: Outlets {
                control: self.control,
                metrics: self.metrics,
                live: self.live,
                json: self.json,
            },
        })
    }
}

/// Assigns an address to each peer: its own if given, otherwise the Nth peer gets this end's plus
/// N.
fn addressed(peers: Vec<PeerSpec>, own: Cidr) -> Result<Vec<(KeyPeer, IpAddr)>, Mistake> {
    let mut addressed = Vec::<(KeyPeer, IpAddr)>::new();
    for (index, peer) in peers.into_iter().enumerate() {
        let peer = peer.with_key()?;
        let address = peer.address.or_else(|| after(own.address(), index + 1));
        let is_other = |address: &IpAddr| own.contains(*address) && own.address() != *address;
        let Some(address) = address.filter(is_other) else {
            return Err(Mistake::new(format!(
                "the peer {} has no address of its own in the network of --address {own}: add one, for example \
                 {},address=10.77.0.9",
                peer.key, peer.key
            )));
        };
        if addressed.iter().any(|(other, _)| other.key == peer.key) {
            return Err(Mistake::new(format!("the peer {} is given twice: remove one", peer.key)));
        }
        if addressed.iter().any(|(_, other)| *other == address) {
            return Err(Mistake::new(format!(
                "two peers have the address {address}: give each its own, for example {},address=10.77.0.9",
                peer.key
            )));
        }
        addressed.push((peer, address));
    }
    Ok(addressed)
}

/// Rejects peer addresses that are outside the network, are this end's, or are given twice.
fn check_addresses(peers: &[IpAddr], own: Cidr) -> Result<(), Mistake> {
    for (index, address) in peers.iter().enumerate() {
        if !own.contains(*address) || own.address() == *address {
            return Err(Mistake::new(format!(
                "the peer {address} is not another address in the network of --address {own}: both ends have addresses of \
                 one network; for example --address 10.77.0.1/24 --peer 10.77.0.2"
            )));
        }
        if peers[..index].contains(address) {
            return Err(Mistake::new(format!("the peer {address} is given twice: remove one")));
        }
    }
    Ok(())
}

/// Returns the address that is `count` after another one.
fn after(address: IpAddr, count: usize) -> Option<IpAddr> {
    match address {
        IpAddr::V4(own) => {
            Some(IpAddr::V4(own.to_bits().checked_add(u32::try_from(count).ok()?)?.into()))
        }
        IpAddr::V6(own) => Some(IpAddr::V6(own.to_bits().checked_add(count as u128)?.into())),
    }
}
