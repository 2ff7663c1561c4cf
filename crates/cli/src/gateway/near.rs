//! `airtcp gateway near`: takes the connections of programs.

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_gateway::datagram::{NearDatagrams, NearDatagramsConfig};
use airtcp_gateway::front::{
    Clients, Forward, serve_forward, serve_http_connect, serve_remote, serve_socks5,
};
use airtcp_gateway::{Destination, HostAddress, Near, NearConfig};
use airtcp_tunnel::{PeerConfig, TunnelConfig, TunnelHandle};
use anyhow::{Context, anyhow};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::carrier::{self, Carrier};
use super::ctl::Controlled;
use super::intercept::{Interception, Plan};
use super::report::{End, Report};
use super::settings::NearPlan;
use super::{PATIENCE, ctl, descriptors, keys, stopping};
use crate::signals::Signals;
use crate::ss::Served;
use crate::{live, metrics, output};

/// How long a far gateway may be silent until its name is resolved and a session is begun again, and how often.
const RESOLVED: Duration = Duration::from_secs(5);

/// How often it is looked whether the far gateway answers.
const LOOK: Duration = Duration::from_secs(1);

/// How long resetting what is left may take.
const RESETTING: Duration = Duration::from_millis(100);

/// Serves until it is told to stop. A second signal stops at once.
///
/// # Errors
/// The key cannot be read, a front end cannot listen, or the tunnel ends.
pub(super) async fn run(plan: NearPlan) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let private_key = keys::private(&plan.key)?;
    descriptors::raise(plan.clients, "--clients");
    let fronts = Fronts::listen(&plan).await?;
    let socket = carrier::bind(0).await.context("binding a UDP socket for the tunnel")?;
    let local = socket.local_addr()?;
    let endpoint = match resolve(&plan.endpoint, local, None).await {
        Ok(endpoint) => Some(endpoint),
        Err(error) => {
            output::note(format_args!("--endpoint {}: {error:#}; trying on", plan.endpoint));
            None
        }
    };
    let peer = carrier::peer(&plan.peer, plan.far, endpoint)?;
    let is_ipv4 = endpoint.is_some_and(|endpoint| endpoint.ip().to_canonical().is_ipv4());
    let mtu = plan.mtu.unwrap_or(carrier::mtu(is_ipv4));
    let endpoints: Vec<SocketAddr> = endpoint.into_iter().collect();
    let interception = plan.intercept.plan(mtu, &endpoints)?;
    if let Some(interception) = &interception {
        if plan.dry_run {
            return output::print(&interception.commands());
        }
        interception.set_mark(&socket)?;
    }
    let claimed = ctl::claim(&private_key.public_key());
    if claimed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse) {
        output::note(
            "another near gateway with the key of this one is running on this machine: they take each other's session. Stop \
             one, or give it a key of its own",
        );
    }
    let mtu = mtu.into();
    let config = TunnelConfig { private_key, peers: vec![peer.clone()], mtu };
    let carrier = Carrier::start(socket, config, plan.address, plan.strategies)?;
    let stack = carrier.stack().clone();
    let config = NearConfig::new(SocketAddr::new(plan.far, carrier::PORT));
    let hold = plan.hold.unwrap_or(config.hold);
    let far = config.far;
    let near = Near::start(stack.clone(), NearConfig { hold, ..config });
    let mut config = NearDatagramsConfig::default();
    config.redundancy = plan.redundancy.unwrap_or(config.redundancy);
    let datagrams = NearDatagrams::start(&stack, far, config)?;
    let report = Report::new(&carrier, End::Near(near.clone(), datagrams.clone()));
    let served = Served {
        command: "gateway near",
        device: "gateway-near".to_owned(),
        stacks: vec![stack.clone()],
    };
    Controlled { served, report: report.clone() }.listen(plan.control.as_deref())?;
    if let Some(address) = plan.metrics {
        let report = report.clone();
        metrics::listen(address, move || ready(Some(report.clone()))).await?;
    }
    if let Some(address) = plan.live {
        let report = report.clone();
        live::listen(address, "airtcp gateway near", move || ready(Some(report.snapshot())))
            .await?;
    }
    let clients = Clients::new(plan.clients);
    let mark = interception.as_ref().and_then(Plan::mark);
    let mut interception = match interception {
        Some(plan) => Some(plan.start(near.clone(), datagrams.clone(), clients.clone()).await?),
        None => None,
    };
    let mut tasks = fronts.serve(&near, &datagrams, &clients);
    for forward in plan.remote_forwards {
        let (near, clients) = (near.clone(), clients.clone());
        tasks.spawn(async move { match serve_remote(forward, near, clients, mark).await {} });
    }
    let follow = Follow {
        endpoint: plan.endpoint,
        peer,
        local,
        tunnel: carrier.tunnel.clone(),
        near: near.clone(),
    };
    tasks.spawn(follow.run());
    output::note("ready");

    let ended = tokio::select! {
        _ = signals.wait() => Ok(()),
        error = stack.closed() => Err(anyhow!("the tunnel ended: {error}")),
        error = Interception::ended(interception.as_mut()) => Err(error),
    };
    // Programs that come now are refused.
    tasks.shutdown().await;
    if let Some(interception) = &interception {
        interception.close();
    }
    stopping(clients.count() as usize);
    tokio::select! {
        done = timeout(PATIENCE, clients.drained()) => if done.is_err() {
            tracing::warn!(open = clients.count(), "resetting the rest");
        },
        _ = signals.wait() => {}
    }
    // Before the stack shuts down, which would end their data with a FIN.
    clients.reset();
    let stopped = match interception {
        Some(interception) => interception.stop().await,
        None => Ok(()),
    };
    let ended = ended.and(stopped);
    // In time or not: each has had its turn to reset.
    let _ = timeout(RESETTING, clients.drained()).await;
    report.print(plan.json)?;
    tokio::select! {
        () = stack.shutdown_within(Duration::from_secs(1)) => {}
        _ = signals.wait() => {}
    }
    carrier.thread.join();
    ended
}

/// Where programs connect to.
struct Fronts {
    socks5: Option<TcpListener>,
    http_connect: Option<TcpListener>,
    login: Option<airtcp_gateway::front::Login>,
    forwards: Vec<(Forward, Vec<TcpListener>)>,
}

impl Fronts {
    async fn listen(plan: &NearPlan) -> anyhow::Result<Self> {
        let mut forwards = Vec::new();
        for forward in &plan.forwards {
            let listeners = forward.listen().await.with_context(|| format!("-L {forward}"))?;
            forwards.push((forward.clone(), listeners));
        }
        Ok(Self {
            socks5: listen("--socks5", plan.socks5).await?,
            http_connect: listen("--http-connect", plan.http_connect).await?,
            login: plan.login.clone(),
            forwards,
        })
    }

    /// Serves in tasks of their own.
    fn serve(self, near: &Near, datagrams: &NearDatagrams, clients: &Clients) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let shared = || (near.clone(), clients.clone());
        if let Some(listener) = self.socks5 {
            let ((near, clients), login) = (shared(), self.login.clone());
            let datagrams = Some(datagrams.clone());
            tasks.spawn(async {
                match serve_socks5(listener, near, datagrams, clients, login).await {}
            });
        }
        if let Some(listener) = self.http_connect {
            let ((near, clients), login) = (shared(), self.login);
            tasks
                .spawn(async { match serve_http_connect(listener, near, clients, login).await {} });
        }
        for (forward, listeners) in self.forwards {
            for listener in listeners {
                let ((near, clients), to) = (shared(), forward.to.clone());
                tasks.spawn(async { match serve_forward(listener, near, clients, to).await {} });
            }
        }
        tasks
    }
}

async fn listen(flag: &str, address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await.with_context(|| format!("{flag} {address}"))?;
    if !address.ip().is_loopback() {
        output::note(format_args!("note: {flag} {address} serves other machines, too"));
    }
    Ok(Some(listener))
}

/// An address of the far gateway that the socket reaches: of several, the one behind `last`.
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

/// The address behind `last`, and the first behind the last one or if it is not among them.
fn next(addresses: &[SocketAddr], last: Option<SocketAddr>) -> Option<SocketAddr> {
    let place = addresses.iter().position(|address| Some(*address) == last);
    let behind = place.and_then(|place| addresses.get(place + 1));
    behind.or_else(|| addresses.first()).copied()
}

/// Tells when the far gateway answers and when it does not, and resolves its name again.
struct Follow {
    endpoint: Destination,
    peer: PeerConfig,
    /// Of the tunnel's socket.
    local: SocketAddr,
    tunnel: TunnelHandle,
    near: Near,
}

impl Follow {
    async fn run(mut self) {
        let mut reported = None;
        let mut resolved = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let status = self.near.status();
            // At the start it is neither.
            if reported != Some(status.connected) && (status.connected || status.reason.is_some()) {
                reported = Some(status.connected);
                let at = &self.endpoint;
                match status.reason {
                    Some(reason) => output::note(format_args!(
                        "the far gateway at {at} {reason}\nTo find out why, stop this one and type `airtcp gateway check` with \
                         the same options"
                    )),
                    None => output::note(format_args!("the far gateway at {at} answers")),
                }
            }
            if !status.connected && resolved.elapsed() >= RESOLVED {
                self.resolve().await;
                resolved = tokio::time::Instant::now();
            }
        }
    }

    async fn resolve(&mut self) {
        match resolve(&self.endpoint, self.local, self.peer.endpoint).await {
            Ok(endpoint) => {
                tracing::info!(address = %endpoint.ip().to_canonical(), "trying {}", self.endpoint);
                self.peer.endpoint = Some(endpoint);
            }
            Err(error) => tracing::warn!("--endpoint {}: {error:#}", self.endpoint),
        }
        // A far gateway that was restarted has no session: the next packet begins a new one, and does not wait until the
        // old one counts as broken, which takes 15 s.
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
