//! `airtcp gateway near`: accepts the connections of programs.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_gateway::datagram::{NearDatagrams, NearDatagramsConfig};
use airtcp_gateway::front::{
    Clients, Forward, serve_forward, serve_http_connect, serve_remote, serve_socks5,
};
use airtcp_gateway::{Near, NearConfig};
use anyhow::{Context, anyhow};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::carrier;
use super::claim::claim;
use super::intercept::{Interception, Plan};
use super::reach::Reach;
use super::report::{End, Report};
use super::settings::NearPlan;
use super::{PATIENCE, descriptors, stopping};
use crate::output;
use crate::signals::Signals;

/// The time limit for resetting the remaining connections.
const RESETTING: Duration = Duration::from_millis(100);

/// Serves until a signal to stop, then waits for connections to end. A second signal stops at once.
///
/// # Errors
/// The key cannot be read, a front end cannot listen, the carrier cannot be started, or it ends.
pub(super) async fn run(plan: NearPlan) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    descriptors::raise(plan.clients, "--clients");
    let fronts = Fronts::listen(&plan).await?;
    let reach = Reach::new(plan.carrier, plan.far).await?;
    if let Reach::Wireguard(tunnel) = &reach
        && let Err(error) = &tunnel.resolved
    {
        output::note(format_args!("--endpoint {}: {error:#}; trying on", tunnel.endpoint));
    }
    let (endpoints, plain_far) = match &reach {
        Reach::Wireguard(tunnel) => (tunnel.resolved.as_ref().ok().copied(), None),
        Reach::Tun(_) => (None, Some(plan.far)),
    };
    let interception = plan.intercept.plan(reach.mtu(), endpoints.as_slice(), plain_far)?;
    if plan.dry_run {
        let of_carrier = match &reach {
            Reach::Wireguard(_) => None,
            Reach::Tun(plain) => Some(plain.commands()),
        };
        let commands = of_carrier.into_iter().chain(interception.iter().map(Plan::commands));
        return output::print(&commands.collect::<Vec<_>>().join("\n"));
    }
    if let Reach::Wireguard(tunnel) = &reach {
        interception.as_ref().map_or(Ok(()), |plan| plan.set_mark(&tunnel.socket))?;
        if claim(tunnel.private_key()).is_err_and(|error| error.kind() == ErrorKind::AddrInUse) {
            output::note(
                "another near gateway with the key of this one is running on this machine: they take each other's session. \
                 Stop one, or give it a key of its own",
            );
        }
    }
    let (carrier, follow) = reach.start(plan.address, plan.far, plan.strategies).await?;
    let stack = carrier.stack().clone();
    let config = NearConfig::new(SocketAddr::new(plan.far, carrier::PORT));
    let hold = plan.hold.unwrap_or(config.hold);
    let far = config.far;
    let near = Near::start(stack.clone(), NearConfig { hold, ..config });
    let mut config = NearDatagramsConfig::default();
    config.redundancy = plan.redundancy.unwrap_or(config.redundancy);
    let datagrams = NearDatagrams::start(&stack, far, config)?;
    let report = Report::new(&carrier, End::Near(near.clone(), datagrams.clone()));
    report.serve("gateway near", &plan.outlets).await?;
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
    tasks.spawn(follow.run(near.clone()));
    output::note("ready");

    let ended = tokio::select! {
        _ = signals.wait() => Ok(()),
        error = stack.closed() => Err(anyhow!("the carrier ended: {error}")),
        error = Interception::ended(interception.as_mut()) => Err(error),
    };
    // Refuses programs that connect from now on.
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
    // Done before the stack shuts down, which would end their data with a FIN.
    clients.reset();
    let stopped = match interception {
        Some(interception) => interception.stop().await,
        None => Ok(()),
    };
    let ended = ended.and(stopped);
    // Even after a timeout, each connection has had its turn to reset.
    let _ = timeout(RESETTING, clients.drained()).await;
    report.print(plan.outlets.json)?;
    tokio::select! {
        () = stack.shutdown_within(Duration::from_secs(1)) => {}
        _ = signals.wait() => {}
    }
    carrier.thread.join();
    ended
}

/// The listeners that programs connect to.
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
            let listeners = forward.listen().await.with_context(|| format!("-L {forward}"));
            let listeners =
                listeners.map_err(|error| output::if_privileged(error, forward.port()))?;
            forwards.push((forward.clone(), listeners));
        }
        Ok(Self {
            socks5: listen("--socks5", plan.socks5).await?,
            http_connect: listen("--http-connect", plan.http_connect).await?,
            login: plan.login.clone(),
            forwards,
        })
    }

    /// Serves each listener in its own task.
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
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("{flag} {address}"))
        .map_err(|error| output::if_privileged(error, address.port()))?;
    if !address.ip().is_loopback() {
        output::note(format_args!("note: {flag} {address} serves other machines, too"));
    }
    Ok(Some(listener))
}
