//! `airtcp gateway split`: a gateway in the path that needs no far gateway.

mod report;

use std::future::ready;
use std::time::Duration;

use airtcp_device::{Tun, TunFile};
use airtcp_gateway::split::{Split, bypass, link_config, local_config};
use airtcp_net::{Stack, StackThread};
use airtcp_testbed::here;
use anyhow::{Context, anyhow};
use tokio::time::timeout;

use self::report::SplitReport;
use super::ctl::Controlled;
use super::settings::SplitPlan;
use super::{PATIENCE, stopping};
use crate::signals::Signals;
use crate::ss::Served;
use crate::{device, metrics, output};

/// The time limit for resetting the remaining connections.
const RESETTING: Duration = Duration::from_millis(100);

/// Opens a TUN device, and sets it up.
async fn open(name: &str, mtu: u16) -> anyhow::Result<TunFile> {
    let opened = device::open(name, Some(mtu), true, 1)?;
    here::configure(name, &[], &[]).await.with_context(|| {
        format!("setting {name} up: run this as root, or type: ip link set {name} up")
    })?;
    opened.files.into_iter().next().context("a device without a queue")
}

/// Serves until a signal to stop, then waits for connections to end. A second signal stops at once.
///
/// # Errors
/// A device cannot be opened or is gone, or the control socket or the metrics' address cannot be
/// bound.
pub(super) async fn run(plan: SplitPlan) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let local = open(&plan.local_tun, plan.mtu).await?;
    let link = open(&plan.link_tun, plan.mtu).await?;
    let [mut local_host, mut link_host] = [local_config(plan.mtu), link_config(plan.mtu)];
    local_host.tcp.sender.combination = plan.local_strategies.unwrap_or_default();
    link_host.tcp.sender.combination = plan.strategies.unwrap_or_default();
    let mut other = None;
    let thread = StackThread::start("split", || {
        let (local, link) = bypass(Tun::new(local)?, Tun::new(link)?);
        other = Some(Stack::new(local, local_host)?);
        Stack::new(link, link_host).context("starting the stack of the link")
    });
    let thread = thread?;
    let (local, link) = (other.context("no stack was started")?, thread.stack().clone());
    let split = Split::new(local.clone(), link.clone(), plan.clients);
    let stacks = [local, link];
    let report = SplitReport { split: split.clone(), stacks: stacks.clone() };
    let served = Served {
        command: "gateway split",
        device: "gateway-split".to_owned(),
        stacks: stacks.to_vec(),
    };
    Controlled { served, report: report.clone() }.listen(plan.control.as_deref())?;
    if let Some(address) = plan.metrics {
        let report = report.clone();
        metrics::listen(address, move || ready(Some(report.clone()))).await?;
    }
    let mut task = thread.spawn(split.clone().run());
    output::note("ready");

    let ended = tokio::select! {
        _ = signals.wait() => Ok(()),
        ended = &mut task => match ended {
            Ok(Err(error)) => Err(anyhow!("nothing is carried any more: {error}")),
            Ok(Ok(never)) => match never {},
            Err(error) => Err(error.into()),
        },
    };
    // Refuses connections from now on.
    task.abort();
    stopping(split.status().open as usize);
    tokio::select! {
        _ = timeout(PATIENCE, split.drained()) => {}
        _ = signals.wait() => {}
    }
    split.reset();
    // Even after a timeout, each connection has had its turn to reset.
    let _ = timeout(RESETTING, split.drained()).await;
    report.print(plan.json)?;
    for stack in &stacks {
        stack.reset_connections();
        stack.shutdown_within(Duration::ZERO).await;
    }
    thread.join();
    ended
}
