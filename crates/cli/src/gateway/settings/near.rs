//! Settings of a near gateway.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use airtcp_gateway::Destination;
use airtcp_gateway::front::{Forward, Login};
use airtcp_recovery::Combination;
use airtcp_stack::host::Cidr;
use clap::Args;
use serde::Deserialize;

use super::{
    Outlets, check_flags, clients, clients_of_file, inner_mtu, listen, listen_of_file, local,
    mtu_of_file, redundancy, redundancy_of_file,
};
use crate::gateway::CLIENTS;
use crate::gateway::carrier::{self, CarrierName, Plain};
use crate::gateway::intercept::InterceptSettings;
use crate::gateway::peer::{KeyPeer, PeerSpec};
use crate::output::Mistake;
use crate::{example, live, settings, value};

/// Flags of `airtcp gateway near`, and the keys of its file.
#[derive(Args, Deserialize, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::gateway) struct NearSettings {
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
    /// The far gateway by its public key. `,address=IP` is its address inside of the tunnel if that
    /// is not 10.77.0.1; `,preshared-key=FILE` adds a preshared key
    #[arg(long, value_name = "KEY[,...]", value_parser = value::parsed::<PeerSpec>)]
    #[serde(deserialize_with = "settings::written")]
    peer: Option<PeerSpec>,
    /// Name or address of the far gateway, with its UDP port, for example gateway.example:51820. A
    /// name is resolved again while the far gateway does not answer
    #[arg(long, value_name = "HOST:PORT", value_parser = value::parsed::<Destination>)]
    #[serde(deserialize_with = "settings::written")]
    endpoint: Option<Destination>,
    /// Address of this end inside of the tunnel, as the far gateway has it for this end's key
    /// [default: 10.77.0.2/24]
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
    /// User name and password that clients of --socks5 and --http-connect have to give. Other users
    /// of this machine can read it on the command line: prefer the file
    #[arg(long, value_name = "USER:PASSWORD", value_parser = value::parsed::<Login>)]
    #[serde(deserialize_with = "settings::written")]
    login: Option<Login>,
    /// Forward a port of this machine to a destination, as ssh does; repeat for more. In a file:
    /// forwards = ["8080:host:80"]
    #[arg(short = 'L', long = "forward", value_name = "[BIND:]PORT:HOST:HOSTPORT", value_parser = value::parsed::<Forward>)]
    #[serde(deserialize_with = "settings::each_written")]
    forwards: Option<Vec<Forward>>,
    /// Forward a port of the far gateway's machine to a destination that this machine dials, as ssh
    /// does; repeat for more. The far gateway has to permit it by --permit-listen. In a file:
    /// remote-forwards = ["8080:host:80"]
    #[arg(short = 'R', long = "remote-forward", value_name = "[BIND:]PORT:HOST:HOSTPORT", value_parser = value::parsed::<Forward>)]
    #[serde(deserialize_with = "settings::each_written")]
    remote_forwards: Option<Vec<Forward>>,
    /// Maximum number of open connections of programs; further ones wait. A single address other
    /// than loopback can have at most seven eighths of them; its further ones are refused [default:
    /// 4096]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = clients)]
    #[serde(deserialize_with = "clients_of_file")]
    clients: Option<u32>,
    /// Keep connections open for this time while the far gateway does not answer [default: 120]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = value::seconds)]
    #[serde(deserialize_with = "settings::seconds")]
    hold: Option<Duration>,
    #[command(flatten)]
    intercept: InterceptSettings,
    /// Print the `ip` commands that --intercept or --carrier tun would run, and change nothing
    #[arg(long)]
    #[serde(skip)]
    dry_run: bool,
    /// Redundancy that repairs lost UDP datagrams: at most this percentage of the data sent; 0
    /// turns it off [default: 22]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = redundancy)]
    #[serde(deserialize_with = "redundancy_of_file")]
    redundancy: Option<u8>,
    /// Strategies for what is sent to the far gateway: rack/cubic or le/westwood/dcr:timer
    /// [default: rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    #[serde(deserialize_with = "settings::written")]
    strategies: Option<Combination>,
    /// Largest IP packet inside of the tunnel [default: 1440 if the far gateway has an IPv4
    /// address, otherwise 1420; with --carrier tun 1500]
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

/// The carrier of a near gateway.
#[derive(Debug)]
pub(in crate::gateway) enum NearCarrier {
    Wireguard { key: PathBuf, peer: KeyPeer, endpoint: Destination, mtu: Option<u16> },
    Tun(Plain),
}

/// The validated settings of a near gateway.
#[derive(Debug)]
pub(in crate::gateway) struct NearPlan {
    pub(in crate::gateway) carrier: NearCarrier,
    pub(in crate::gateway) address: Cidr,
    /// The far gateway's address inside the tunnel.
    pub(in crate::gateway) far: IpAddr,
    pub(in crate::gateway) socks5: Option<SocketAddr>,
    pub(in crate::gateway) http_connect: Option<SocketAddr>,
    pub(in crate::gateway) login: Option<Login>,
    pub(in crate::gateway) forwards: Vec<Forward>,
    pub(in crate::gateway) remote_forwards: Vec<Forward>,
    pub(in crate::gateway) clients: u32,
    pub(in crate::gateway) intercept: InterceptSettings,
    pub(in crate::gateway) dry_run: bool,
    pub(in crate::gateway) hold: Option<Duration>,
    pub(in crate::gateway) redundancy: Option<u8>,
    pub(in crate::gateway) strategies: Option<Combination>,
    pub(in crate::gateway) outlets: Outlets,
}

settings::merge!(NearSettings:
    carrier, insecure_carrier, key, peer, endpoint, address, socks5, http_connect, login, forwards,
    remote_forwards, clients, intercept, dry_run, hold, redundancy, strategies, mtu, control,
    metrics, live, json,
);

impl NearSettings {
    /// Validates the settings.
    ///
    /// # Errors
    /// A setting is missing, or contradicts another.
    pub(in crate::gateway) fn plan(self) -> Result<NearPlan, Mistake> {
        let is_some = |all: &Option<Vec<Forward>>| all.as_ref().is_some_and(|all| !all.is_empty());
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

    /// Validates the settings without requiring a front end for programs. `example` is a command
    /// line to show in errors.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub(in crate::gateway) fn link(self, example: &str) -> Result<NearPlan, Mistake> {
        let address = self.address.unwrap_or_else(|| local(2));
        let carrier = self.carrier.unwrap_or_default();
        let flags = [("--key", self.key.is_some()), ("--endpoint", self.endpoint.is_some())];
        check_flags(&carrier, self.insecure_carrier, flags)?;
        let (carrier, far) = match carrier {
            CarrierName::Wireguard => {
                let (Some(key), Some(peer), Some(endpoint)) = (self.key, self.peer, self.endpoint)
                else {
                    return Err(Mistake::new(format!(
                        "a near gateway needs a key, a peer and an endpoint; for example: {example}"
                    )));
                };
                let peer = peer.with_key()?;
                self.strategies.as_ref().map_or(Ok(()), carrier::check)?;
                let far = peer.address.unwrap_or_else(|| local(1).address());
                (NearCarrier::Wireguard { key, peer, endpoint, mtu: self.mtu }, far)
            }
            CarrierName::Tun(device) => {
                let Some(peer) = self.peer else {
                    return Err(Mistake::new(format!(
                        "a near gateway needs a peer; for example: {}",
                        example::NEAR_TUN
                    )));
                };
                let device = device.unwrap_or_else(|| "airtcp-near".to_owned());
                let plain = Plain::new(device, address, self.mtu);
                (NearCarrier::Tun(plain), peer.without_key()?)
            }
        };
        if !address.contains(far) || address.address() == far {
            return Err(Mistake::new(format!(
                "the far gateway's address {far} is not another one in the network of --address {address}: both ends have \
                 addresses of one network; for example --address 10.77.0.2/24 with the peer 10.77.0.1, or KEY,address=10.77.0.1"
            )));
        }
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
        let changes_kernel = self.intercept.is_wanted() || matches!(carrier, NearCarrier::Tun(_));
        if self.dry_run && !changes_kernel {
            return Err(Mistake::new(
                "--dry-run shows what --intercept and --carrier tun do: add one, or remove --dry-run"
                    .to_owned(),
            ));
        }
        Ok(NearPlan {
            carrier,
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
            outlets: Outlets {
                control: self.control,
                metrics: self.metrics,
                live: self.live,
                json: self.json,
            },
        })
    }
}
