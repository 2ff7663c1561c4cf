//! `airtcp gateway check`: tests whether the far gateway can be reached, and measures the link.

mod pinger;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use airtcp_device::Tun;
use airtcp_gateway::peers_only;
use airtcp_tunnel::Tunnel;
use anyhow::{Context, bail};
use serde::Serialize;

use self::pinger::Pinger;
use super::carrier::Plain;
use super::claim::claim;
use super::reach::{Endpoint, Reach};
use super::settings::NearPlan;
use crate::output;

/// The time limit for the first answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The smallest packet length that is tried (bytes).
const LEAST: usize = 576;

/// The result of a check.
#[derive(Debug, Serialize)]
struct Found {
    endpoint: String,
    /// The kind of the first answer.
    #[serde(skip)]
    first: &'static str,
    first_answer_ms: f64,
    pings: usize,
    answers: usize,
    round_trip_ms: Option<[f64; 3]>,
    /// The largest packet that came back, in bytes.
    mtu: Option<usize>,
    /// The MTU in the settings.
    mtu_asked: usize,
}

/// Pings the far gateway through the carrier, and prints the result.
///
/// # Errors
/// The far gateway does not answer; the text says what to check.
pub(super) async fn run(plan: NearPlan) -> anyhow::Result<()> {
    let (own, far) = (plan.address.address(), plan.far);
    let found = match Reach::new(plan.carrier, far).await? {
        Reach::Wireguard(tunnel) => through_tunnel(*tunnel, own, far).await?,
        Reach::Tun(plain) => on_tun(&plain, far).await?,
    };
    output::print_result(&found, plan.outlets.json)
}

async fn through_tunnel(tunnel: Endpoint, own: IpAddr, far: IpAddr) -> anyhow::Result<Found> {
    if claim(tunnel.private_key()).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse) {
        let key = tunnel.private_key().public_key();
        bail!(
            "a near gateway with this key ({key}) is running on this machine, and would lose its session to the check: type \
             `airtcp gateway ctl status` as its user, or stop it first"
        );
    }
    let Endpoint { endpoint, resolved, config, socket, .. } = tunnel;
    let at = resolved.with_context(|| format!("--endpoint {endpoint}"))?;
    let key = config.peers.first().map_or(String::new(), |peer| peer.public_key.to_string());
    let mtu = config.mtu;
    let tunnel = Tunnel::new(tokio::net::UdpSocket::from_std(socket)?, config)?;
    let handle = tunnel.handle();
    let mut pinger = Pinger::new(tunnel, own, far);
    let Some(first) = pinger.first().await? else {
        let handshake = handle.peers().first().is_some_and(|peer| peer.last_handshake.is_some());
        if handshake {
            bail!(
                "the tunnel is up, but {far} does not answer inside of it: is that the --address of the far gateway, and does \
                 it have {own} for this key?"
            );
        }
        bail!(
            "no answer from {endpoint} within {} s: is its UDP port open, does it run with --peer {}, and is its own public \
             key {key}?",
            PATIENCE.as_secs(),
            handle.public_key(),
        );
    };
    Ok(Found {
        endpoint: at.ip().to_canonical().to_string(),
        first: "handshake and first ping",
        first_answer_ms: first.as_secs_f64() * 1e3,
        ..pinger.look(mtu).await?
    })
}

async fn on_tun(plain: &Plain, far: IpAddr) -> anyhow::Result<Found> {
    let own = plain.address.address();
    let file = plain.open().await.context(
        "the check needs the device (a near gateway that runs here has it: type `airtcp gateway ctl status`, or stop it first)",
    )?;
    let (device, _) = peers_only(Tun::new(file)?, &[far]);
    let mut pinger = Pinger::new(device, own, far);
    let Some(first) = pinger.first().await? else {
        bail!(
            "no answer from {far} through {} within {} s: does the far gateway run with --carrier tun and --peer {own}, do both \
             machines forward packets (sysctl net.ipv4.ip_forward), and do their routes to {far} and {own} lead to the link?",
            plain.device,
            PATIENCE.as_secs(),
        );
    };
    Ok(Found {
        endpoint: far.to_string(),
        first_answer_ms: first.as_secs_f64() * 1e3,
        ..pinger.look(plain.mtu.into()).await?
    })
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} answers: {} in {:.0} ms", self.endpoint, self.first, self.first_answer_ms)?;
        let lost = self.pings - self.answers;
        let percent = lost as f64 / self.pings as f64 * 1e2;
        write!(f, "lost: {lost} of {} pings ({percent:.0} %, both ways together)", self.pings)?;
        if let Some([least, median, most]) = self.round_trip_ms {
            write!(
                f,
                "\nround trip: {least:.1} ms at least, {median:.1} ms median, {most:.1} ms at most"
            )?;
        }
        match self.mtu {
            Some(mtu) if mtu == self.mtu_asked => {
                write!(f, "\nlargest packet between the gateways: {mtu} bytes, as set")
            }
            Some(mtu) => write!(
                f,
                "\nlargest packet between the gateways: {mtu} bytes; set --mtu {mtu} at both ends instead of {}",
                self.mtu_asked
            ),
            None => write!(f, "\nno packet of {LEAST} bytes comes back: the link loses too many"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_loses_everything_is_reported() {
        let found = Found {
            endpoint: "192.0.2.1".to_owned(),
            first: "handshake and first ping",
            first_answer_ms: 40.0,
            pings: 100,
            answers: 0,
            round_trip_ms: None,
            mtu: None,
            mtu_asked: 1440,
        };
        let expected = "\
192.0.2.1 answers: handshake and first ping in 40 ms
lost: 100 of 100 pings (100 %, both ways together)
no packet of 576 bytes comes back: the link loses too many";
        assert_eq!(found.to_string(), expected);
    }
}
