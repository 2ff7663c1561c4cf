//! Settings of both gateways: flags, and files with the same keys.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use airtcp_gateway::datagram::Filtering;
use airtcp_gateway::front::{Forward, Login};
use airtcp_gateway::{Destination, FarConfig, Rule, Rules};
use airtcp_recovery::Combination;
use airtcp_stack::host::Cidr;
use clap::Args;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::CLIENTS;
use super::carrier;
use super::intercept::InterceptSettings;
use super::peer::PeerSpec;
use crate::output::Mistake;
use crate::{example, live, settings, value};

/// The UDP port of a far gateway: WireGuard's usual one.
const LISTEN: u16 = 51_820;

/// `--socks5`, `--http-connect` and `--metrics`.
fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().ok().filter(|at: &SocketAddr| at.port() > 0).ok_or_else(|| {
        "expected ADDRESS:PORT with a port from 1 to 65535; for example 127.0.0.1:1080 or [::1]:1080"
            .to_owned()
    })
}

fn listen_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<SocketAddr>, D::Error> {
    settings::text(file, listen)
}

/// `--mtu`.
fn inner_mtu(text: &str) -> Result<u16, String> {
    value::whole(576, u16::MAX, "--mtu 1400")(text)
}

fn mtu_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u16>, D::Error> {
    number(file, inner_mtu)
}

/// `--listen-port`.
fn port(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
        "expected a port from 1 to 65535; for example --listen-port 51820".to_owned()
    })
}

fn port_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u16>, D::Error> {
    number(file, port)
}

/// `--clients`.
fn clients(text: &str) -> Result<u32, String> {
    value::whole(1, 1_000_000, "--clients 4096")(text)
}

fn clients_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u32>, D::Error> {
    number(file, clients)
}

/// `--redundancy`.
fn redundancy(text: &str) -> Result<u8, String> {
    value::whole(0, 100, "--redundancy 22")(text)
}

fn redundancy_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u8>, D::Error> {
    number(file, redundancy)
}

/// A number that is judged as on the command line.
fn number<'de, T, D: Deserializer<'de>>(
    file: D,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    read(&i64::deserialize(file)?.to_string()).map(Some).map_err(D::Error::custom)
}

/// Flags of `airtcp gateway far`, and the keys of its file.
#[derive(Args, Deserialize, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FarSettings {
    /// File with the private key of this end, made by `airtcp gateway keygen --out FILE`
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// A near gateway that is served, by its public key; repeat for more. The Nth has the address 10.77.0.(N+1) inside of the
    /// tunnel unless `,address=IP` follows the key; `,preshared-key=FILE` adds a preshared key
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
    /// Serve this destination, for example 127.0.0.1:8080 or 10.0.0.0/8; repeat for more. With at least one, other
    /// destinations are refused. The longest prefix decides, and --deny between two of the same length [default: all but
    /// --deny]
    #[arg(long, value_name = "RULE", value_parser = value::parsed::<Rule>)]
    #[serde(deserialize_with = "settings::each_written")]
    allow: Option<Vec<Rule>>,
    /// Refuse this destination; repeat for more. Loopback, link-local and multicast addresses, those that hide an IPv4 address,
    /// and the metadata services of clouds are refused by default
    #[arg(long, value_name = "RULE", value_parser = value::parsed::<Rule>)]
    #[serde(deserialize_with = "settings::each_written")]
    deny: Option<Vec<Rule>>,
    /// Let near gateways listen on this address and port of this machine with -R, for example 127.0.0.1:8000-8999, or
    /// [::]:8080 for all addresses; repeat for more [default: none]
    #[arg(long, value_name = "RULE", value_parser = value::parsed::<Rule>)]
    #[serde(deserialize_with = "settings::each_written")]
    permit_listen: Option<Vec<Rule>>,
    /// Who may send UDP to a program: endpoint-independent (anybody, as games and calls need) or address-dependent (the hosts
    /// that it has sent to) [default: endpoint-independent]
    #[arg(long, value_name = "WHO", value_parser = value::parsed::<Filtering>)]
    #[serde(deserialize_with = "settings::written")]
    udp_filtering: Option<Filtering>,
    /// Redundancy that repairs lost UDP datagrams: at most this percentage of the data sent; 0 turns it off [default: 22]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = redundancy)]
    #[serde(deserialize_with = "redundancy_of_file")]
    redundancy: Option<u8>,
    /// Strategies for what is sent to near gateways: rack/cubic or le/westwood/dcr:timer [default: rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    #[serde(deserialize_with = "settings::written")]
    strategies: Option<Combination>,
    /// Largest IP packet inside of the tunnel [default: 1440]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = inner_mtu)]
    #[serde(deserialize_with = "mtu_of_file")]
    mtu: Option<u16>,
    /// Listen for `airtcp gateway ctl` on this socket [default: a path that `airtcp gateway ctl` finds]
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Serve Prometheus metrics at http://ADDR/metrics over the kernel's TCP, for example 127.0.0.1:9466
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    #[serde(deserialize_with = "listen_of_file")]
    metrics: Option<SocketAddr>,
    /// Show flows, rates and losses on a page at http://ADDR/, over the kernel's TCP: a port of 127.0.0.1, or ADDRESS:PORT.
    /// Without login
    #[arg(long, value_name = "ADDR", value_parser = live::address)]
    #[serde(deserialize_with = "settings::live")]
    live: Option<SocketAddr>,
    /// Print the status as JSON on stdout at exit
    #[arg(long)]
    json: bool,
}

/// Flags of `airtcp gateway near`, and the keys of its file.
#[derive(Args, Deserialize, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct NearSettings {
    /// File with the private key of this end, made by `airtcp gateway keygen --out FILE`
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The far gateway by its public key. `,address=IP` is its address inside of the tunnel if that is not 10.77.0.1;
    /// `,preshared-key=FILE` adds a preshared key
    #[arg(long, value_name = "KEY[,...]", value_parser = value::parsed::<PeerSpec>)]
    #[serde(deserialize_with = "settings::written")]
    peer: Option<PeerSpec>,
    /// Name or address of the far gateway, with its UDP port, for example gateway.example:51820. A name is resolved again
    /// while the far gateway does not answer
    #[arg(long, value_name = "HOST:PORT", value_parser = value::parsed::<Destination>)]
    #[serde(deserialize_with = "settings::written")]
    endpoint: Option<Destination>,
    /// Address of this end inside of the tunnel, as the far gateway has it for this end's key [default: 10.77.0.2/24]
    #[arg(long, value_name = "CIDR", value_parser = value::cidr)]
    #[serde(deserialize_with = "settings::written")]
    address: Option<Cidr>,
    /// Serve SOCKS5 to programs, for example at 127.0.0.1:1080
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    #[serde(deserialize_with = "listen_of_file")]
    socks5: Option<SocketAddr>,
    /// Serve HTTP CONNECT to programs, for example at 127.0.0.1:8080
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    #[serde(deserialize_with = "listen_of_file")]
    http_connect: Option<SocketAddr>,
    /// User name and password that clients of --socks5 and --http-connect have to give. Other users of this machine can read
    /// it on the command line: prefer the file
    #[arg(long, value_name = "USER:PASSWORD", value_parser = value::parsed::<Login>)]
    #[serde(deserialize_with = "settings::written")]
    login: Option<Login>,
    /// Forward a port of this machine to a destination, as ssh does; repeat for more. In a file: forwards = ["8080:host:80"]
    #[arg(short = 'L', long = "forward", value_name = "[BIND:]PORT:HOST:HOSTPORT", value_parser = value::parsed::<Forward>)]
    #[serde(deserialize_with = "settings::each_written")]
    forwards: Option<Vec<Forward>>,
    /// Forward a port of the far gateway's machine to a destination that this machine dials, as ssh does; repeat for more.
    /// The far gateway has to permit it by --permit-listen. In a file: remote-forwards = ["8080:host:80"]
    #[arg(short = 'R', long = "remote-forward", value_name = "[BIND:]PORT:HOST:HOSTPORT", value_parser = value::parsed::<Forward>)]
    #[serde(deserialize_with = "settings::each_written")]
    remote_forwards: Option<Vec<Forward>>,
    /// Maximum number of open connections of programs; further ones wait. A single address other than loopback can have at
    /// most seven eighths of them; its further ones are refused [default: 4096]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = clients)]
    #[serde(deserialize_with = "clients_of_file")]
    clients: Option<u32>,
    /// Keep connections open for this time while the far gateway does not answer [default: 120]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = value::seconds)]
    #[serde(deserialize_with = "settings::seconds")]
    hold: Option<Duration>,
    #[command(flatten)]
    intercept: InterceptSettings,
    /// Print the `ip` commands that set up what --intercept does, and change nothing
    #[arg(long)]
    #[serde(skip)]
    dry_run: bool,
    /// Redundancy that repairs lost UDP datagrams: at most this percentage of the data sent; 0 turns it off [default: 22]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = redundancy)]
    #[serde(deserialize_with = "redundancy_of_file")]
    redundancy: Option<u8>,
    /// Strategies for what is sent to the far gateway: rack/cubic or le/westwood/dcr:timer [default: rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    #[serde(deserialize_with = "settings::written")]
    strategies: Option<Combination>,
    /// Largest IP packet inside of the tunnel [default: 1440 if the far gateway has an IPv4 address, otherwise 1420]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = inner_mtu)]
    #[serde(deserialize_with = "mtu_of_file")]
    mtu: Option<u16>,
    /// Listen for `airtcp gateway ctl` on this socket [default: a path that `airtcp gateway ctl` finds]
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Serve Prometheus metrics at http://ADDR/metrics over the kernel's TCP, for example 127.0.0.1:9466
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    #[serde(deserialize_with = "listen_of_file")]
    metrics: Option<SocketAddr>,
    /// Show flows, rates and losses on a page at http://ADDR/, over the kernel's TCP: a port of 127.0.0.1, or ADDRESS:PORT.
    /// Without login
    #[arg(long, value_name = "ADDR", value_parser = live::address)]
    #[serde(deserialize_with = "settings::live")]
    live: Option<SocketAddr>,
    /// Print the status as JSON on stdout at exit
    #[arg(long)]
    json: bool,
}

/// What a far gateway is to do.
#[derive(Debug)]
pub(super) struct FarPlan {
    pub(super) key: PathBuf,
    /// With their addresses inside of the tunnel.
    pub(super) peers: Vec<(PeerSpec, IpAddr)>,
    pub(super) listen_port: u16,
    pub(super) address: Cidr,
    pub(super) far: FarConfig,
    pub(super) udp_filtering: Option<Filtering>,
    pub(super) redundancy: Option<u8>,
    pub(super) strategies: Option<Combination>,
    pub(super) mtu: u16,
    pub(super) control: Option<PathBuf>,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) live: Option<SocketAddr>,
    pub(super) json: bool,
}

/// What a near gateway is to do.
#[derive(Debug)]
pub(super) struct NearPlan {
    pub(super) key: PathBuf,
    pub(super) peer: PeerSpec,
    pub(super) endpoint: Destination,
    pub(super) address: Cidr,
    /// The far gateway's address inside of the tunnel.
    pub(super) far: IpAddr,
    pub(super) socks5: Option<SocketAddr>,
    pub(super) http_connect: Option<SocketAddr>,
    pub(super) login: Option<Login>,
    pub(super) forwards: Vec<Forward>,
    pub(super) remote_forwards: Vec<Forward>,
    pub(super) clients: u32,
    pub(super) intercept: InterceptSettings,
    pub(super) dry_run: bool,
    pub(super) hold: Option<Duration>,
    pub(super) redundancy: Option<u8>,
    pub(super) strategies: Option<Combination>,
    pub(super) mtu: Option<u16>,
    pub(super) control: Option<PathBuf>,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) live: Option<SocketAddr>,
    pub(super) json: bool,
}

impl FarSettings {
    /// What is said here, and what is not as there.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            key: self.key.or(other.key),
            peers: self.peers.or(other.peers),
            listen_port: self.listen_port.or(other.listen_port),
            address: self.address.or(other.address),
            allow: self.allow.or(other.allow),
            deny: self.deny.or(other.deny),
            permit_listen: self.permit_listen.or(other.permit_listen),
            udp_filtering: self.udp_filtering.or(other.udp_filtering),
            redundancy: self.redundancy.or(other.redundancy),
            strategies: self.strategies.or(other.strategies),
            mtu: self.mtu.or(other.mtu),
            control: self.control.or(other.control),
            metrics: self.metrics.or(other.metrics),
            live: self.live.or(other.live),
            json: self.json || other.json,
        }
    }

    /// What is to be done.
    ///
    /// # Errors
    /// What is missing, and what contradicts the rest.
    pub(super) fn plan(self) -> Result<FarPlan, Mistake> {
        let (Some(key), Some(peers)) = (self.key, self.peers.filter(|peers| !peers.is_empty()))
        else {
            return Err(Mistake::new(format!(
                "a far gateway needs a key and at least one peer; for example: {}",
                example::FAR
            )));
        };
        carrier::check(self.strategies.as_ref())?;
        let address = self.address.unwrap_or_else(|| local(1));
        let peers = addressed(peers, address)?;
        let mut rules = Rules { allow: self.allow.unwrap_or_default(), ..Rules::default() };
        rules.deny.extend(self.deny.unwrap_or_default());
        let listen = SocketAddr::new(address.address(), carrier::PORT);
        Ok(FarPlan {
            key,
            peers,
            listen_port: self.listen_port.unwrap_or(LISTEN),
            address,
            far: FarConfig {
                rules,
                permit_listen: self.permit_listen.unwrap_or_default(),
                ..FarConfig::new(listen)
            },
            udp_filtering: self.udp_filtering,
            redundancy: self.redundancy,
            strategies: self.strategies,
            mtu: self.mtu.unwrap_or(carrier::mtu(true)),
            control: self.control,
            metrics: self.metrics,
            live: self.live,
            json: self.json,
        })
    }
}

impl NearSettings {
    /// What is said here, and what is not as there.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            key: self.key.or(other.key),
            peer: self.peer.or(other.peer),
            endpoint: self.endpoint.or(other.endpoint),
            address: self.address.or(other.address),
            socks5: self.socks5.or(other.socks5),
            http_connect: self.http_connect.or(other.http_connect),
            login: self.login.or(other.login),
            forwards: self.forwards.or(other.forwards),
            remote_forwards: self.remote_forwards.or(other.remote_forwards),
            clients: self.clients.or(other.clients),
            intercept: self.intercept.or(other.intercept),
            dry_run: self.dry_run || other.dry_run,
            hold: self.hold.or(other.hold),
            redundancy: self.redundancy.or(other.redundancy),
            strategies: self.strategies.or(other.strategies),
            mtu: self.mtu.or(other.mtu),
            control: self.control.or(other.control),
            metrics: self.metrics.or(other.metrics),
            live: self.live.or(other.live),
            json: self.json || other.json,
        }
    }

    /// What is to be done.
    ///
    /// # Errors
    /// What is missing, and what contradicts the rest.
    pub(super) fn plan(self) -> Result<NearPlan, Mistake> {
        let is_some = |forwards: &Option<Vec<Forward>>| {
            forwards.as_ref().is_some_and(|forwards| !forwards.is_empty())
        };
        let has_fronts = self.socks5.is_some()
            || self.http_connect.is_some()
            || is_some(&self.forwards)
            || is_some(&self.remote_forwards);
        let has_way_in = has_fronts || self.intercept.is_wanted();
        let has_proxy = self.socks5.is_some() || self.http_connect.is_some();
        let plan = self.link(example::NEAR)?;
        if plan.login.is_some() && !has_proxy {
            return Err(Mistake::new(
                "--login has no effect without --socks5 or --http-connect: add one, or remove --login"
                    .to_owned(),
            ));
        }
        if !has_way_in {
            return Err(Mistake::new(
                "programs have no way into this gateway: add --socks5 127.0.0.1:1080, --http-connect 127.0.0.1:8080, -L \
                 8080:HOST:80, -R 8080:HOST:80 or --intercept"
                    .to_owned(),
            ));
        }
        Ok(plan)
    }

    /// What is to be done, also if programs have no way in. `example` is a line of the command.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub(super) fn link(self, example: &str) -> Result<NearPlan, Mistake> {
        let (Some(key), Some(peer), Some(endpoint)) = (self.key, self.peer, self.endpoint) else {
            return Err(Mistake::new(format!(
                "a near gateway needs a key, a peer and an endpoint; for example: {example}"
            )));
        };
        carrier::check(self.strategies.as_ref())?;
        let forwards = self.forwards.unwrap_or_default();
        let remote_forwards = self.remote_forwards.unwrap_or_default();
        for (index, one) in remote_forwards.iter().enumerate() {
            if let Some(other) = remote_forwards[..index].iter().find(|other| one.overlaps(other)) {
                return Err(Mistake::new(format!(
                    "-R {other} and -R {one} have the same port of the far gateway's machine: give each its own"
                )));
            }
        }
        self.intercept.check()?;
        if self.dry_run && !self.intercept.is_wanted() {
            return Err(Mistake::new(
                "--dry-run shows what --intercept does: add it, or remove --dry-run".to_owned(),
            ));
        }
        let address = self.address.unwrap_or_else(|| local(2));
        let far = peer.address.unwrap_or_else(|| local(1).address());
        if !address.contains(far) || address.address() == far {
            return Err(Mistake::new(format!(
                "the far gateway's address {far} is not another one in the network of --address {address}: both ends have \
                 addresses of one network; for example --address 10.77.0.2/24 --peer KEY,address=10.77.0.1"
            )));
        }
        Ok(NearPlan {
            key,
            peer,
            endpoint,
            address,
            far,
            socks5: self.socks5,
            http_connect: self.http_connect,
            login: self.login,
            forwards,
            remote_forwards,
            clients: self.clients.unwrap_or(CLIENTS),
            intercept: self.intercept,
            dry_run: self.dry_run,
            hold: self.hold,
            redundancy: self.redundancy,
            strategies: self.strategies,
            mtu: self.mtu,
            control: self.control,
            metrics: self.metrics,
            live: self.live,
            json: self.json,
        })
    }
}

/// An address of the default network inside of tunnels.
fn local(host: u8) -> Cidr {
    Cidr::new(Ipv4Addr::new(10, 77, 0, host).into(), 24).expect("it is a host's")
}

/// Each peer with its address: of a network as the default one, the Nth has N added to this end's.
fn addressed(peers: Vec<PeerSpec>, own: Cidr) -> Result<Vec<(PeerSpec, IpAddr)>, Mistake> {
    let mut addressed = Vec::<(PeerSpec, IpAddr)>::new();
    for (index, peer) in peers.into_iter().enumerate() {
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

/// The address so many behind another one.
fn after(address: IpAddr, count: usize) -> Option<IpAddr> {
    match address {
        IpAddr::V4(own) => {
            Some(IpAddr::V4(own.to_bits().checked_add(u32::try_from(count).ok()?)?.into()))
        }
        IpAddr::V6(own) => Some(IpAddr::V6(own.to_bits().checked_add(count as u128)?.into())),
    }
}

#[cfg(test)]
mod tests;
