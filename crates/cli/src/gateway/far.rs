//! `airtcp gateway far`: dials for near gateways.

use std::future::ready;
use std::sync::Arc;

use airtcp_gateway::Far;
use airtcp_gateway::datagram::{FarDatagrams, FarDatagramsConfig};
use airtcp_tunnel::TunnelConfig;
use anyhow::{Context, anyhow};

use super::carrier::{self, Carrier};
use super::ctl::Controlled;
use super::report::{End, Report};
use super::settings::FarPlan;
use super::{CLIENTS, PATIENCE, descriptors, keys, stopping};
use crate::signals::Signals;
use crate::ss::Served;
use crate::{live, metrics, output};

/// Serves until it is told to stop. A second signal stops at once.
///
/// # Errors
/// The key cannot be read, the port is in use, or the tunnel ends.
pub(super) async fn run(plan: FarPlan) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let private_key = keys::private(&plan.key)?;
    descriptors::raise(CLIENTS, "the --clients of one near gateway");
    let peers = plan.peers.iter().map(|(spec, address)| carrier::peer(spec, *address, None));
    let peers = peers.collect::<anyhow::Result<Vec<_>>>()?;
    let socket = carrier::bind(plan.listen_port).await;
    let socket = socket.with_context(|| format!("--listen-port {}", plan.listen_port))?;
    let config = TunnelConfig { private_key, peers, mtu: plan.mtu.into() };
    let carrier = Carrier::start(socket, config, plan.address, plan.strategies)?;
    let stack = carrier.stack().clone();
    let mut config =
        FarDatagramsConfig { rules: plan.far.rules.clone(), ..FarDatagramsConfig::default() };
    config.filtering = plan.udp_filtering.unwrap_or_default();
    config.redundancy = plan.redundancy.unwrap_or(config.redundancy);
    let datagrams = Arc::new(FarDatagrams::new(&stack, plan.far.listen, config)?);
    let far = Far::new(stack.clone(), plan.far)?;
    let report = Report::new(&carrier, End::Far(far.clone(), datagrams.clone()));
    let served = Served {
        command: "gateway far",
        device: "gateway-far".to_owned(),
        stacks: vec![stack.clone()],
    };
    Controlled { served, report: report.clone() }.listen(plan.control.as_deref())?;
    if let Some(address) = plan.metrics {
        let report = report.clone();
        metrics::listen(address, move || ready(Some(report.clone()))).await?;
    }
    if let Some(address) = plan.live {
        let report = report.clone();
        live::listen(address, "airtcp gateway far", move || ready(Some(report.snapshot()))).await?;
    }
    for (spec, address) in &plan.peers {
        tracing::info!(key = %spec.key, %address, "peer");
    }
    output::note("ready");

    // Both end with the stack.
    tokio::spawn(far.clone().run());
    tokio::spawn(async move { datagrams.run().await });
    let ended = tokio::select! {
        _ = signals.wait() => Ok(()),
        error = stack.closed() => Err(anyhow!("the tunnel ended: {error}")),
    };
    stopping(far.status().open);
    tokio::select! {
        () = stack.drain(PATIENCE) => {}
        _ = signals.wait() => {}
    }
    report.print(plan.json)?;
    carrier.thread.join();
    ended
}
