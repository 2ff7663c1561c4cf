//! Settings of a gateway in the path.

use std::net::SocketAddr;
use std::path::PathBuf;

use airtcp_recovery::Combination;
use clap::Args;
use serde::{Deserialize, Deserializer};

use super::{clients, clients_of_file, listen, listen_of_file, number};
use crate::gateway::CLIENTS;
use crate::output::Mistake;
use crate::{settings, value};

/// Parses `--mtu`: IPv6 needs 1280 (RFC 8200 section 5).
fn mtu(text: &str) -> Result<u16, String> {
    value::whole(1280, u16::MAX, "--mtu 1500")(text)
}

fn mtu_of_file<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u16>, D::Error> {
    number(file, mtu)
}

/// Flags of `airtcp gateway split`, and the keys of its file.
#[derive(Args, Deserialize, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::gateway) struct SplitSettings {
    /// TUN device for the side of the clients or servers; created if it does not exist. Routes into
    /// it are yours to make [default: split0]
    #[arg(long, value_name = "NAME", value_parser = value::tun)]
    #[serde(deserialize_with = "settings::device")]
    local_tun: Option<String>,
    /// TUN device for the side of the link; created if it does not exist. Routes into it are yours
    /// to make [default: split1]
    #[arg(long, value_name = "NAME", value_parser = value::tun)]
    #[serde(deserialize_with = "settings::device")]
    link_tun: Option<String>,
    /// MTU of both devices: at most that of every device of this machine that carries their traffic
    /// [default: 1500]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = mtu)]
    #[serde(deserialize_with = "mtu_of_file")]
    mtu: Option<u16>,
    /// Strategies for what is sent to the link: rack/cubic or le/westwood/dcr:timer [default:
    /// rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    #[serde(deserialize_with = "settings::written")]
    strategies: Option<Combination>,
    /// Strategies for what is sent to the other side [default: rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    #[serde(deserialize_with = "settings::written")]
    local_strategies: Option<Combination>,
    /// The most connections at a time from each side; one address may have seven eighths of them
    /// [default: 4096]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = clients)]
    #[serde(deserialize_with = "clients_of_file")]
    clients: Option<u32>,
    /// Listen for `airtcp gateway ctl` on this socket [default: a path that `airtcp gateway ctl`
    /// finds]
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Serve Prometheus metrics at http://ADDR/metrics over the kernel's TCP, for example
    /// 127.0.0.1:9466
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    #[serde(deserialize_with = "listen_of_file")]
    metrics: Option<SocketAddr>,
    /// Print the status as JSON on stdout at exit
    #[arg(long)]
    json: bool,
}

/// The validated settings of a gateway in the path.
#[derive(Debug)]
pub(in crate::gateway) struct SplitPlan {
    pub(in crate::gateway) local_tun: String,
    pub(in crate::gateway) link_tun: String,
    pub(in crate::gateway) mtu: u16,
    pub(in crate::gateway) strategies: Option<Combination>,
    pub(in crate::gateway) local_strategies: Option<Combination>,
    pub(in crate::gateway) clients: u32,
    pub(in crate::gateway) control: Option<PathBuf>,
    pub(in crate::gateway) metrics: Option<SocketAddr>,
    pub(in crate::gateway) json: bool,
}

settings::merge!(SplitSettings:
    local_tun, link_tun, mtu, strategies, local_strategies, clients, control, metrics, json,
);

impl SplitSettings {
    /// Validates the settings.
    ///
    /// # Errors
    /// Both sides have the same device, or strategies need help of the other end.
    pub(in crate::gateway) fn plan(self) -> Result<SplitPlan, Mistake> {
        let local_tun = self.local_tun.unwrap_or_else(|| "split0".to_owned());
        let link_tun = self.link_tun.unwrap_or_else(|| "split1".to_owned());
        if local_tun == link_tun {
            return Err(Mistake::new(format!(
                "--local-tun and --link-tun are both {link_tun}: each side needs a device of its own"
            )));
        }
        for strategies in [&self.strategies, &self.local_strategies].into_iter().flatten() {
            check_strategies(strategies)?;
        }
        Ok(SplitPlan {
            local_tun,
            link_tun,
            mtu: self.mtu.unwrap_or(1500),
            strategies: self.strategies,
            local_strategies: self.local_strategies,
            clients: self.clients.unwrap_or(CLIENTS),
            control: self.control,
            metrics: self.metrics,
            json: self.json,
        })
    }
}

/// Rejects strategies that do not work with a kernel at the other end.
///
/// # Errors
/// The strategies need packets with damaged payloads.
pub(in crate::gateway) fn check_strategies(strategies: &Combination) -> Result<(), Mistake> {
    match strategies.needs().hack {
        true => Err(Mistake::new(format!(
            "{strategies} needs packets with damaged payloads, which kernels drop: omit the judge hack"
        ))),
        false => Ok(()),
    }
}
