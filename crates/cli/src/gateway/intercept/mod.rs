//! `--tun` and `--intercept` of `airtcp gateway near`: carries the traffic of programs that do not
//! know about the gateway.

mod settings;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::time::Duration;

use airtcp_device::Tun;
use airtcp_gateway::Near;
use airtcp_gateway::datagram::NearDatagrams;
use airtcp_gateway::front::{
    Clients, InterceptConfig, carry_pings, intercept, intercept_config, without_pings,
};
use airtcp_net::{Stack, StackThread};
use airtcp_testbed::{Cidr, here};
use anyhow::{Context, anyhow, bail};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::task::JoinHandle;

pub(super) use self::settings::InterceptSettings;
use super::routes::{self, Ipv6, Routes};
use crate::device;
use crate::ss::Served;

/// The source addresses of programs, which only this machine sees: IPv4's is from the network for
/// benchmarks (RFC 2544), which no other network uses; IPv6's is from a random local network (RFC
/// 4193).
const ADDRESSES: [Cidr; 2] = [
    Cidr { address: IpAddr::V4(Ipv4Addr::new(198, 18, 77, 1)), prefix: 32 },
    Cidr { address: IpAddr::V6(Ipv6Addr::new(0xfd41, 0x6972, 0x7463, 0, 0, 0, 0, 1)), prefix: 128 },
];

/// The validated settings of interception.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plan {
    device: String,
    /// The MTU of the device.
    mtu: u16,
    /// `None` if the user makes the routes.
    routes: Option<Routes>,
    ipv6: Ipv6,
    answer_early: bool,
}

impl Plan {
    /// Returns the equivalent `ip` commands, one per line.
    pub(super) fn commands(&self) -> String {
        let (device, mtu) = (&self.device, self.mtu);
        let mut lines = vec![format!("ip tuntap add dev {device} mode tun")];
        if let Some(routes) = &self.routes {
            lines.push(format!("ip link set dev {device} mtu {mtu} up"));
            lines.extend(self.addresses().iter().map(|cidr| {
                let nodad = if cidr.address.is_ipv6() { " nodad" } else { "" };
                format!("ip address add {cidr} dev {device}{nodad}")
            }));
            lines.extend(routes.commands());
        }
        lines.join("\n")
    }

    fn addresses(&self) -> &'static [Cidr] {
        if self.ipv6 == Ipv6::On { &ADDRESSES } else { &ADDRESSES[..1] }
    }

    /// The mark of packets that bypass the device.
    pub(super) fn mark(&self) -> Option<u32> {
        self.routes.as_ref().map(|_| routes::TABLE)
    }

    /// Marks the packets of the tunnel's `socket`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn set_mark(&self, socket: &impl AsFd) -> anyhow::Result<()> {
        let Some(mark) = self.mark() else { return Ok(()) };
        setsockopt(socket, sockopt::Mark, &mark).map_err(|errno| {
            anyhow!(
                "marking the tunnel's packets for --intercept: {}: run this as root, or with CAP_NET_ADMIN",
                errno.desc()
            )
        })
    }

    /// Opens the device, carries its traffic, and then makes the kernel route traffic into it.
    ///
    /// # Errors
    /// The device cannot be opened, or the kernel refuses a route. Nothing is left behind in that
    /// case.
    pub(super) async fn start(
        self,
        near: Near,
        datagrams: NearDatagrams,
        clients: Clients,
    ) -> anyhow::Result<Interception> {
        let name = &self.device;
        if self.routes.is_some() && device::exists(name) {
            bail!(
                "{name} exists already: --intercept creates its device; choose another name with --tun, or omit --intercept \
                 and make the routes yourself"
            );
        }
        let mtu = (!device::exists(name)).then_some(self.mtu);
        let opened = device::open(name, mtu, true, 1)?;
        let file = opened.files.into_iter().next().context("a device without a queue")?;
        let config = intercept_config(u16::try_from(opened.mtu.0).unwrap_or(u16::MAX));
        let mut pings = None;
        let thread = StackThread::start("intercept", || {
            let (device, taken) = without_pings(Tun::new(file)?);
            pings = Some(taken);
            Stack::new(device, config).context("starting the stack of intercepted connections")
        })?;
        let pings = carry_pings(pings.context("a stack without a device")?, datagrams.clone());
        // The task ends with the device.
        thread.spawn(async { drop(pings.await) });
        let mut config = InterceptConfig::default();
        config.answer_early = self.answer_early;
        let stack = thread.stack().clone();
        let task = thread.spawn(intercept(stack, near, Some(datagrams), clients, config));
        let device = self.device.clone();
        let has_routes = self.routes.is_some();
        let served = Served {
            command: "gateway near",
            device: device.clone(),
            stacks: vec![thread.stack().clone()],
        };
        served.listen_by_default();
        let interception = Interception { device, thread, task, has_routes };
        if let Some(routes) = &self.routes {
            let added = async {
                here::configure(name, self.addresses(), &[]).await?;
                routes.add().await
            };
            added.await.with_context(|| format!("routing traffic into {name}"))?;
        }
        Ok(interception)
    }
}

/// A device whose traffic is carried.
pub(super) struct Interception {
    device: String,
    thread: StackThread,
    task: JoinHandle<io::Result<Infallible>>,
    has_routes: bool,
}

impl Interception {
    /// Waits until the device stops carrying, which happens only when it is gone; waits forever
    /// without interception.
    pub(super) async fn ended(interception: Option<&mut Self>) -> anyhow::Error {
        let Some(Self { device, task, .. }) = interception else {
            return std::future::pending().await;
        };
        let why = match task.await {
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(never)) => match never {},
            Err(error) => error.to_string(),
        };
        anyhow!("{device} does not carry any more: {why}")
    }

    /// Refuses new connections. Open ones continue.
    pub(super) fn close(&self) {
        self.task.abort();
    }

    /// Resets the remaining connections, and removes the rules and routes.
    ///
    /// # Errors
    /// The kernel refuses; the text says what to type.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.close();
        // Done before the routes are removed, so that no packet of these connections leaves by
        // another route. A reset, not a FIN: a FIN would claim that all data has arrived.
        self.thread.stack().reset_connections();
        self.thread.stack().shutdown_within(Duration::ZERO).await;
        let removed = match self.has_routes {
            true => routes::remove().await.context(
                "some routing rules are left; type: ip rule flush protocol 177 && ip -6 rule flush protocol 177",
            ),
            false => Ok(()),
        };
        self.thread.join();
        removed
    }
}
