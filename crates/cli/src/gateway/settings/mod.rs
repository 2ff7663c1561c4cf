//! Settings of the gateways: flags, and files with the same keys.

mod far;
mod near;
mod split;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use airtcp_stack::host::Cidr;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::carrier::CarrierName;
use crate::output::Mistake;
use crate::{settings, value};

pub(super) use far::{FarCarrier, FarPlan, FarSettings};
pub(super) use near::{NearCarrier, NearPlan, NearSettings};
pub(super) use split::{SplitPlan, SplitSettings, check_strategies};

/// How a near or far gateway shows its state.
#[derive(Debug)]
pub(super) struct Outlets {
    pub(super) control: Option<PathBuf>,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) live: Option<SocketAddr>,
    pub(super) json: bool,
}

/// Parses `--clients`.
fn clients(text: &str) -> Result<u32, String> {
    value::whole(1, 1_000_000, "--clients 4096")(text)
}

fn clients_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u32>, D::Error> {
    number(file, clients)
}

/// Parses `--socks5`, `--http-connect` and `--metrics`.
fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().ok().filter(|at: &SocketAddr| at.port() > 0).ok_or_else(|| {
        "expected ADDRESS:PORT with a port from 1 to 65535; for example 127.0.0.1:1080 or [::1]:1080"
            .to_owned()
    })
}

fn listen_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<SocketAddr>, D::Error> {
    settings::text(file, listen)
}

/// Parses `--mtu`.
fn inner_mtu(text: &str) -> Result<u16, String> {
    value::whole(576, u16::MAX, "--mtu 1400")(text)
}

fn mtu_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u16>, D::Error> {
    number(file, inner_mtu)
}

/// Parses `--redundancy`.
fn redundancy(text: &str) -> Result<u8, String> {
    value::whole(0, 100, "--redundancy 22")(text)
}

fn redundancy_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u8>, D::Error> {
    number(file, redundancy)
}

/// Reads a number of a file, with the same checks as on the command line.
fn number<'de, T, D: Deserializer<'de>>(
    file: D,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    read(&i64::deserialize(file)?.to_string()).map(Some).map_err(D::Error::custom)
}

/// An address of the default network inside tunnels.
fn local(host: u8) -> Cidr {
    Cidr::new(Ipv4Addr::new(10, 77, 0, host).into(), 24).expect("it is a host's")
}

/// Rejects the flags `of_wireguard` and `--insecure-carrier` where they have no effect, and
/// `--carrier tun` without `--insecure-carrier`.
fn check_flags(
    carrier: &CarrierName,
    is_insecure: bool,
    of_wireguard: [(&str, bool); 2],
) -> Result<(), Mistake> {
    let is_tun = *carrier != CarrierName::Wireguard;
    if is_tun && !is_insecure {
        return Err(Mistake::new(
            "--carrier tun neither encrypts nor authenticates: anyone on the link can read and change what is carried, and \
             use the far gateway with the address of a peer. If only you are on the link, type --insecure-carrier as well; \
             otherwise remove --carrier tun"
                .to_owned(),
        ));
    }
    if !is_tun && is_insecure {
        return Err(Mistake::new(
            "--insecure-carrier has no effect without --carrier tun: add it, or remove --insecure-carrier"
                .to_owned(),
        ));
    }
    match of_wireguard.into_iter().find(|(_, is_given)| is_tun && *is_given) {
        Some((flag, _)) => Err(Mistake::new(format!(
            "{flag} is for WireGuard and has no effect with --carrier tun: remove one of the two"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
