//! Policy routing that sends a machine's traffic into the TUN device of a gateway.
//!
//! The rules and routes of one gateway, for each IP version, are:
//!
//! - a mark on the tunnel's own packets, and for IPv4 the address of the far gateway, which skip
//!   all that follows;
//! - for each network that is carried, the main table without its routes that are as short or
//!   shorter: a more specific route of the machine goes first, such as that of the local network;
//! - the table of the gateway: the networks that are carried, through the device; `throw` for what
//!   is excluded; and behind each network an `unreachable`, so that nothing leaves in clear when
//!   the device is gone.
//!
//! All of them have a priority in the same range, the same table and the same protocol number, by
//! which they are found and removed, also those of a process that was killed. Nothing else is
//! changed: no sysctl, no firewall, no route of others.

mod kernel;
mod message;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use airtcp_testbed::Cidr;
use anyhow::{Context, bail};
use nix::net::if_::if_nametoindex;
use rtnetlink::packet_route::route::RouteType;

use crate::output::Mistake;
use kernel::{Found, Kernel, explain};

/// The number of the routing table, and of the mark of packets that do not use it.
pub(super) const TABLE: u32 = 51877;
/// The protocol number of rules and routes, which tells them from those of others (`rt_protos`
/// names none of this number).
const PROTOCOL: u8 = 177;
/// The priority of the first rule, and of the last, where those that skip the others go.
const FIRST: u32 = 27700;
const LAST: u32 = 27799;
/// The most networks and addresses that there are priorities for.
const MOST: usize = 40;
/// Metrics of the routes through the device, and of those behind them.
const METRIC: u32 = 1024;
const BEHIND: u32 = 65535;
const MAIN: u32 = 254;
/// No route is suppressed.
const NEVER: u32 = u32::MAX;

/// What is never carried: multicast and broadcast of IPv4. IPv6 has its own route for multicast.
const LOCAL: [Cidr; 2] = [
    Cidr { address: IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), prefix: 4 },
    Cidr { address: IpAddr::V4(Ipv4Addr::BROADCAST), prefix: 32 },
];

/// Everything, of both versions.
pub(super) const EVERYTHING: [Cidr; 2] = [
    Cidr { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix: 0 },
    Cidr { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), prefix: 0 },
];

/// Reads `--route` and `--exclude`: a network, or an address alone.
pub(super) fn network(text: &str) -> Result<Cidr, String> {
    let whole = match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => format!("{text}/32"),
        Ok(IpAddr::V6(_)) => format!("{text}/128"),
        Err(_) => text.to_owned(),
    };
    let cidr: Cidr = whole.parse().map_err(|_| {
        "expected a network or an address; for example 10.0.0.0/8 or 2001:db8::/32".to_owned()
    })?;
    let prefix = u32::from(cidr.prefix);
    let address = match cidr.address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    };
    Ok(Cidr { address, ..cidr })
}

/// What IPv6 can do on a device that is made now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ipv6 {
    /// It is carried.
    On,
    /// New devices have none, and others may: it is only kept from going around.
    Blocked,
    /// The machine has none.
    Absent,
}

impl Ipv6 {
    /// Asks the kernel.
    pub(super) fn of_this_machine() -> Self {
        let is_disabled = |device: &str| {
            let path = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
            // A service need not see it: then IPv6 has to be taken care of.
            std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
        };
        let addresses = std::fs::read_to_string("/proc/thread-self/net/if_inet6");
        // A device can have it although `all` says no.
        let is_used = addresses.as_ref().is_ok_and(|addresses| !addresses.is_empty());
        if addresses.is_err() || (is_disabled("all") && !is_used) {
            Self::Absent
        } else if is_disabled("all") || is_disabled("default") {
            Self::Blocked
        } else {
            Self::On
        }
    }
}

/// Rules and routes as they are to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Routes {
    device: String,
    rules: Vec<Rule>,
    routes: Vec<Route>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Rule {
    is_ipv6: bool,
    priority: u32,
    mark: Option<u32>,
    to: Option<Cidr>,
    /// The port of UDP packets.
    port: Option<u16>,
    action: Action,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    /// Look in a table, without the default routes and others of at most so many bits, or with all.
    Lookup {
        table: u32,
        suppress: u32,
    },
    Goto(u32),
    Nop,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Route {
    to: Cidr,
    kind: RouteType,
    metric: u32,
}

impl Routes {
    /// Those that carry `networks` through `device`, except `excluded`, for a far gateway at
    /// `endpoints`.
    ///
    /// # Errors
    /// There are too many of them.
    pub(super) fn new(
        device: &str,
        networks: &[Cidr],
        excluded: &[Cidr],
        endpoints: &[SocketAddr],
        ipv6: Ipv6,
    ) -> Result<Self, Mistake> {
        let mut routes = Self { device: device.to_owned(), rules: Vec::new(), routes: Vec::new() };
        for is_ipv6 in [false, true] {
            let of_version = |cidr: &&Cidr| cidr.address.is_ipv6() == is_ipv6;
            let mut networks: Vec<Cidr> = networks.iter().filter(of_version).copied().collect();
            if networks.is_empty() || (is_ipv6 && ipv6 == Ipv6::Absent) {
                continue;
            }
            networks.sort_unstable_by_key(|network| (u8::MAX - network.prefix, network.address));
            networks.dedup();
            let local = LOCAL.iter().filter(of_version);
            let excluded = excluded.iter().filter(of_version);
            let mut excluded: Vec<Cidr> = excluded.chain(local).copied().collect();
            excluded.sort_unstable();
            excluded.dedup();
            // A socket for both versions writes them as addresses of IPv6.
            let endpoints =
                endpoints.iter().map(|one| SocketAddr::new(one.ip().to_canonical(), one.port()));
            let endpoints: Vec<SocketAddr> =
                endpoints.filter(|one| one.is_ipv4() && !is_ipv6).collect();
            if networks.len() + endpoints.len() > MOST {
                return Err(Mistake::new(format!(
                    "--route takes at most {} networks of an IP version: name larger ones, and leave out parts with --exclude",
                    MOST - endpoints.len()
                )));
            }
            routes.add_rules(is_ipv6, &networks, &endpoints);
            routes.add_routes(&networks, &excluded, !is_ipv6 || ipv6 == Ipv6::On);
        }
        Ok(routes)
    }

    /// In the order in which they are made: a packet that skips the others needs the last one
    /// first, and no packet is carried before all that shall not be are told.
    fn add_rules(&mut self, is_ipv6: bool, networks: &[Cidr], endpoints: &[SocketAddr]) {
        let blank =
            Rule { is_ipv6, priority: LAST, mark: None, to: None, port: None, action: Action::Nop };
        let skip = |priority| Rule { priority, action: Action::Goto(LAST), ..blank.clone() };
        let mut priorities = FIRST..;
        let mut next = move || priorities.next().unwrap_or(LAST);
        self.rules.push(blank.clone());
        self.rules.push(Rule { mark: Some(TABLE), ..skip(next()) });
        // Strict reverse path filtering of IPv4 looks up the way back without the mark.
        for endpoint in endpoints {
            let to = Some(Cidr { address: endpoint.ip(), prefix: 32 });
            self.rules.push(Rule { to, port: Some(endpoint.port()), ..skip(next()) });
        }
        for network in networks {
            for (table, suppress) in [(MAIN, network.prefix.into()), (TABLE, NEVER)] {
                let action = Action::Lookup { table, suppress };
                let to = Some(*network);
                self.rules.push(Rule { priority: next(), to, action, ..blank.clone() });
            }
        }
    }

    fn add_routes(&mut self, networks: &[Cidr], excluded: &[Cidr], carries: bool) {
        for to in networks.iter().copied() {
            self.routes.push(Route { to, kind: RouteType::Unreachable, metric: BEHIND });
            if carries {
                self.routes.push(Route { to, kind: RouteType::Unicast, metric: METRIC });
            }
        }
        let throw = |to: &Cidr| Route { to: *to, kind: RouteType::Throw, metric: METRIC };
        self.routes.extend(excluded.iter().map(throw));
    }

    /// The commands that do the same, a line each.
    pub(super) fn commands(&self) -> Vec<String> {
        let device = &self.device;
        let routes = self.routes.iter().map(|route| format!("ip {}", route.words("add", device)));
        routes.chain(self.rules.iter().map(|rule| format!("ip {}", rule.words("add")))).collect()
    }

    /// Makes them, and removes what another process left that is not among them.
    ///
    /// # Errors
    /// Another gateway has some, the table is another program's, or the kernel refuses. What was
    /// made is removed again.
    pub(super) async fn add(&self) -> anyhow::Result<()> {
        let kernel = Kernel::open()?;
        let left = kernel.routes().await?;
        check(&left)?;
        let added = self.add_to(&kernel, &left).await;
        if added.is_err() {
            // The error of the first is the one to tell.
            let _ = remove_from(&kernel).await;
        }
        added
    }

    async fn add_to(&self, kernel: &Kernel, left: &[Found]) -> anyhow::Result<()> {
        let index = if_nametoindex(self.device.as_str())
            .with_context(|| format!("{} does not exist any more", self.device))?;
        for route in &self.routes {
            let message = route.message(index);
            let request = kernel.0.route().add(message).replace();
            explain(request.execute().await, || route.words("add", &self.device))?;
        }
        for stale in left.iter().filter(|left| !self.routes.contains(&left.route)) {
            kernel.remove_route(&stale.route).await?;
        }
        let left = kernel.rules().await?;
        for rule in &self.rules {
            if !left.iter().any(|(there, _)| there.as_ref() == Some(rule)) {
                let mut request = kernel.0.rule().add();
                *request.message_mut() = rule.message();
                explain(request.execute().await, || rule.words("add"))?;
            }
        }
        for (rule, message) in left {
            if rule.is_none_or(|rule| !self.rules.contains(&rule)) {
                kernel.remove_rule(message).await?;
            }
        }
        Ok(())
    }
}

/// Removes the rules and routes of every gateway of this machine.
///
/// # Errors
/// The kernel refuses.
pub(super) async fn remove() -> anyhow::Result<()> {
    remove_from(&Kernel::open()?).await
}

async fn remove_from(kernel: &Kernel) -> anyhow::Result<()> {
    // What looks in tables goes first: until then the tunnel's packets have to skip it.
    let mut rules = kernel.rules().await?;
    rules.sort_by_key(|(rule, _)| !rule.as_ref().is_some_and(Rule::looks_up));
    // One that cannot be removed keeps the others not.
    let mut removed = Ok(());
    for (_, message) in rules {
        removed = removed.and(kernel.remove_rule(message).await);
    }
    for found in kernel.routes().await?.iter().filter(|found| found.is_ours) {
        removed = removed.and(kernel.remove_route(&found.route).await);
    }
    removed
}

/// Whether the table may be used.
fn check(found: &[Found]) -> anyhow::Result<()> {
    for Found { route, is_ours, .. } in found {
        if !is_ours {
            bail!(
                "routing table {TABLE} has routes of another program, such as to {}: see `ip route show table {TABLE}`, and \
                 remove them",
                route.to
            );
        }
        if route.kind == RouteType::Unicast {
            bail!(
                "another gateway of this machine intercepts already: stop it, or start this one without --intercept"
            );
        }
    }
    Ok(())
}

fn version(is_ipv6: bool) -> &'static str {
    if is_ipv6 { "-6" } else { "-4" }
}

impl Rule {
    /// As `ip` has it.
    fn words(&self, verb: &str) -> String {
        use fmt::Write as _;
        let mut words = format!("{} rule {verb} priority {}", version(self.is_ipv6), self.priority);
        let mut add = |word: fmt::Arguments<'_>| {
            let _ = write!(words, " {word}");
        };
        if let Some(mark) = self.mark {
            add(format_args!("fwmark {mark}"));
        }
        if let Some(to) = self.to {
            add(format_args!("to {to}"));
        }
        if let Some(port) = self.port {
            add(format_args!("ipproto udp dport {port}"));
        }
        match self.action {
            Action::Lookup { table: MAIN, suppress } => {
                add(format_args!("lookup main suppress_prefixlength {suppress}"));
            }
            Action::Lookup { table, .. } => add(format_args!("lookup {table}")),
            Action::Goto(priority) => add(format_args!("goto {priority}")),
            Action::Nop => add(format_args!("nop")),
        }
        add(format_args!("protocol {PROTOCOL}"));
        words
    }

    const fn looks_up(&self) -> bool {
        matches!(self.action, Action::Lookup { .. })
    }
}

impl Route {
    /// As `ip` has it.
    fn words(&self, verb: &str, device: &str) -> String {
        let kind = match self.kind {
            RouteType::Unreachable => "unreachable ",
            RouteType::Throw => "throw ",
            _ => "",
        };
        let through = match self.kind {
            RouteType::Unicast => format!(" dev {device}"),
            _ => String::new(),
        };
        let version = version(self.to.address.is_ipv6());
        let (to, metric) = (self.to, self.metric);
        format!(
            "{version} route {verb} {kind}{to}{through} metric {metric} table {TABLE} protocol {PROTOCOL}"
        )
    }
}

#[cfg(test)]
mod tests;
