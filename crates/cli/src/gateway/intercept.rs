//! `--tun` and `--intercept` of `airtcp gateway near`: carries the traffic of programs that do not
//! know about the gateway.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
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
use clap::Args;
use nix::sys::socket::{setsockopt, sockopt};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use tokio::task::JoinHandle;

use super::routes::{self, EVERYTHING, Ipv6, Routes};
use crate::device;
use crate::output::Mistake;
use crate::ss::Served;
use crate::{settings, value};

/// The default device.
const DEVICE: &str = "airtcp0";

/// The source addresses of programs, which only this machine sees: IPv4's is from the network for
/// benchmarks (RFC 2544), which no other network uses; IPv6's is from a random local network (RFC
/// 4193).
const ADDRESSES: [Cidr; 2] = [
    Cidr { address: IpAddr::V4(Ipv4Addr::new(198, 18, 77, 1)), prefix: 32 },
    Cidr { address: IpAddr::V6(Ipv6Addr::new(0xfd41, 0x6972, 0x7463, 0, 0, 0, 0, 1)), prefix: 128 },
];

/// The header of a datagram inside the tunnel (bytes).
const HEADER: u16 = 8;
/// The minimum MTU of IPv6 (RFC 8200 section 5).
const LEAST: u16 = 1280;

/// Flags, and the keys of the table `[intercept]` in a file.
#[derive(Args, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct InterceptSettings {
    /// Carry the traffic of all programs of this machine, and of those for which it is the router:
    /// creates a TUN device, and routes and rules, which are removed at exit. Needs root. In a
    /// file: enabled = true below [intercept]
    #[arg(long = "intercept")]
    enabled: bool,
    /// TUN device whose traffic is carried [default with --intercept: airtcp0]. Without
    /// --intercept, routes into it are yours to make
    #[arg(long, value_name = "NAME", value_parser = value::tun)]
    #[serde(deserialize_with = "device_name")]
    tun: Option<String>,
    /// Carry what goes to these networks, separated by commas [default: everything but the
    /// machine's own networks]
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', value_parser = routes::network)]
    #[serde(deserialize_with = "networks")]
    route: Option<Vec<Cidr>>,
    /// Do not carry what goes to these networks, separated by commas
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', value_parser = routes::network)]
    #[serde(deserialize_with = "networks")]
    exclude: Option<Vec<Cidr>>,
    /// Answer programs before the far gateway has connected. Saves them a round trip, but they see
    /// a reset instead of a refusal
    #[arg(long)]
    answer_early: bool,
}

fn device_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    settings::text(deserializer, value::tun)
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Cidr>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let networks = texts.iter().map(|text| routes::network(text)).collect::<Result<_, _>>();
    networks.map(Some).map_err(D::Error::custom)
}

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

impl InterceptSettings {
    /// Merges the settings; those of `self` take precedence.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            enabled: self.enabled || other.enabled,
            tun: self.tun.or(other.tun),
            route: self.route.or(other.route),
            exclude: self.exclude.or(other.exclude),
            answer_early: self.answer_early || other.answer_early,
        }
    }

    /// Whether the settings ask for a device.
    pub(super) const fn is_wanted(&self) -> bool {
        self.enabled || self.tun.is_some()
    }

    /// Rejects flags without effect.
    ///
    /// # Errors
    /// A flag needs another one, which is missing.
    pub(super) fn check(&self) -> Result<(), Mistake> {
        let needs = |flag: &str, other: &str| {
            Err(Mistake::new(format!(
                "{flag} has no effect without {other}: add it, or remove {flag}"
            )))
        };
        match self {
            Self { enabled: false, route: Some(_), .. } => needs("--route", "--intercept"),
            Self { enabled: false, exclude: Some(_), .. } => needs("--exclude", "--intercept"),
            Self { answer_early: true, .. } if !self.is_wanted() => {
                needs("--answer-early", "--intercept or --tun")
            }
            _ => Ok(()),
        }
    }

    /// Validates the settings, for an MTU of `mtu` bytes inside the tunnel and a far gateway at
    /// `endpoints`; `None` if nothing is intercepted. Packets to `plain_far`, a far gateway without
    /// a tunnel, are not intercepted.
    ///
    /// # Errors
    /// As [`check`](Self::check), and too many networks.
    pub(super) fn plan(
        self,
        mtu: u16,
        endpoints: &[SocketAddr],
        plain_far: Option<IpAddr>,
    ) -> Result<Option<Plan>, Mistake> {
        self.check()?;
        if !self.is_wanted() {
            return Ok(None);
        }
        let device = self.tun.unwrap_or_else(|| DEVICE.to_owned());
        let ipv6 = Ipv6::of_this_machine();
        let networks = self.route.unwrap_or_else(|| EVERYTHING.to_vec());
        let mut excluded = self.exclude.unwrap_or_default();
        excluded.extend(
            plain_far
                .map(|address| Cidr { address, prefix: if address.is_ipv4() { 32 } else { 128 } }),
        );
        let routes = || Routes::new(&device, &networks, &excluded, endpoints, ipv6);
        let routes = self.enabled.then(routes).transpose()?;
        let mtu = mtu.saturating_sub(HEADER).max(LEAST);
        Ok(Some(Plan { device, mtu, routes, ipv6, answer_early: self.answer_early }))
    }
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        intercept: InterceptSettings,
    }

    fn settings(line: &str) -> InterceptSettings {
        let words = std::iter::once("near").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().intercept
    }

    #[test]
    fn nothing_is_intercepted_unless_it_is_asked_for() {
        assert_eq!(settings("").plan(1440, &[], None).unwrap(), None);
        let plan = settings("--tun tun7").plan(1440, &[], None).unwrap().unwrap();
        assert_eq!((plan.device.as_str(), plan.routes.is_none()), ("tun7", true));
        let plan = settings("--intercept").plan(1440, &[], None).unwrap().unwrap();
        assert_eq!((plan.device.as_str(), plan.mtu), (DEVICE, 1432));
        assert!(plan.routes.is_some());
        let plan = settings("--intercept").plan(1200, &[], None).unwrap().unwrap();
        assert_eq!(plan.mtu, LEAST);
    }

    #[test]
    fn a_flag_without_effect_is_refused() {
        for (line, missing) in [
            ("--route 10.0.0.0/8", "--route has no effect without --intercept"),
            ("--tun tun7 --exclude 10.0.0.0/8", "--exclude has no effect without --intercept"),
            ("--answer-early", "--answer-early has no effect without --intercept or --tun"),
        ] {
            let mistake = settings(line).plan(1440, &[], None).unwrap_err().to_string();
            assert!(mistake.contains(missing), "{mistake}");
        }
    }

    #[test]
    fn a_file_says_the_same_and_flags_override_it() {
        let file = "enabled = true\ntun = \"tun7\"\nroute = [\"10.1.2.3/8\", \"::1\"]\nexclude = [\"10.1.0.0/16\"]\n";
        let file: InterceptSettings = toml::from_str(file).unwrap();
        let line = "--intercept --tun tun7 --route 10.0.0.0/8,::1 --exclude 10.1.0.0/16";
        assert_eq!(file, settings(line));
        let both = settings("--tun tun8 --answer-early").or(file.clone());
        assert_eq!(both, settings(&format!("{line} --answer-early").replace("tun7", "tun8")));
        assert!(toml::from_str::<InterceptSettings>("route = [\"10.0.0.0/33\"]").is_err());
        assert!(toml::from_str::<InterceptSettings>("tun = \"a b\"").is_err());
    }

    #[test]
    fn the_commands_begin_with_the_device_and_end_with_the_rules() {
        let plan =
            settings("--intercept --route 10.0.0.0/8").plan(1440, &[], None).unwrap().unwrap();
        let commands = plan.commands();
        let lines: Vec<_> = commands.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "ip tuntap add dev airtcp0 mode tun",
                "ip link set dev airtcp0 mtu 1432 up",
                "ip address add 198.18.77.1/32 dev airtcp0",
            ]
        );
        let last = "ip -4 rule add priority 27702 to 10.0.0.0/8 lookup 51877 protocol 177";
        assert_eq!(lines.last(), Some(&last));
        let far = "10.77.0.1".parse().unwrap();
        let plan = settings("--intercept").plan(1500, &[], Some(far)).unwrap().unwrap();
        let commands = plan.commands();
        assert!(commands.contains("route add throw 10.77.0.1/32"), "{commands}");
    }
}
