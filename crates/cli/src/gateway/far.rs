//! `airtcp gateway far`: dials for near gateways.

use std::sync::Arc;

use airtcp_gateway::Far;
use airtcp_gateway::datagram::{FarDatagrams, FarDatagramsConfig};
use airtcp_recovery::Combination;
use airtcp_stack::host::Cidr;
use airtcp_tunnel::TunnelConfig;
use anyhow::{Context, anyhow};

use super::carrier::{self, Carrier};
use super::report::{End, Report};
use super::settings::{FarCarrier, FarPlan};
use super::{CLIENTS, PATIENCE, descriptors, keys, stopping};
use crate::output;
use crate::signals::Signals;

/// Serves until a signal to stop, then waits for connections to end. A second signal stops at once.
///
/// # Errors
/// The key cannot be read, the port is in use, the carrier cannot be started, or it ends.
pub(super) async fn run(plan: FarPlan) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    descriptors::raise(CLIENTS, "the --clients of one near gateway");
    let carrier = start(plan.carrier, plan.address, plan.strategies).await?;
    let stack = carrier.stack().clone();
    let mut config =
        FarDatagramsConfig { rules: plan.far.rules.clone(), ..FarDatagramsConfig::default() };
    config.filtering = plan.udp_filtering.unwrap_or_default();
    config.redundancy = plan.redundancy.unwrap_or(config.redundancy);
    let datagrams = Arc::new(FarDatagrams::new(&stack, plan.far.listen, config)?);
    let far = Far::new(stack.clone(), plan.far)?;
    let report = Report::new(&carrier, End::Far(far.clone(), datagrams.clone()));
    report.serve("gateway far", &plan.outlets).await?;
    output::note("ready");

    // Both tasks end with the stack.
    tokio::spawn(far.clone().run());
    tokio::spawn(async move { datagrams.run().await });
    let ended = tokio::select! {
        _ = signals.wait() => Ok(()),
        error = stack.closed() => Err(anyhow!("the carrier ended: {error}")),
    };
    stopping(far.status().open);
    tokio::select! {
        () = stack.drain(PATIENCE) => {}
        _ = signals.wait() => {}
    }
    report.print(plan.outlets.json)?;
    carrier.thread.join();
    ended
}

async fn start(
    carrier: FarCarrier,
    address: Cidr,
    strategies: Option<Combination>,
) -> anyhow::Result<Carrier> {
    let (key, peers, listen_port, mtu) = match carrier {
        FarCarrier::Tun { plain, peers } => {
            return Carrier::on_tun(plain, &peers, strategies).await;
        }
        FarCarrier::Wireguard { key, peers, listen_port, mtu } => (key, peers, listen_port, mtu),
    };
    let private_key = keys::private(&key)?;
    for (spec, address) in &peers {
        tracing::info!(key = %spec.key, %address, "peer");
    }
    let peers = peers.iter().map(|(spec, address)| carrier::peer(spec, *address, None));
    let peers = peers.collect::<anyhow::Result<Vec<_>>>()?;
    let socket = carrier::bind(listen_port).await;
    let socket = socket
        .with_context(|| format!("--listen-port {listen_port}"))
        .map_err(|error| output::if_privileged(error, listen_port))?;
    let config = TunnelConfig { private_key, peers, mtu: mtu.into() };
    Carrier::in_tunnel(socket, config, address, strategies)
}
