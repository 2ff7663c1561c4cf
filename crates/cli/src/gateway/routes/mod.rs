//! Policy routing that sends a machine's traffic into the TUN device of a gateway.
//!
//! The rules and routes of one gateway, for each IP version, are:
//!
//! - a mark on the tunnel's own packets, and for IPv4 the address and UDP port of the far gateway:
//!   such packets skip all that follows;
//! - for each carried network, a lookup in the main table that ignores routes with the same prefix
//!   length or a shorter one: a more specific route of the machine, such as that of the local
//!   network, takes precedence;
//! - the gateway's own table: a route to each carried network through the device; `throw` routes
//!   for excluded networks; and an `unreachable` route behind each network, so that packets do not
//!   leave unencrypted when the device is gone.
//!
//! All of them have priorities in one range, one table and one protocol number, by which they are
//! found and removed, including those of a process that was killed. Nothing else is changed: no
//! sysctl, no firewall, no route of other programs.

mod ipv6;
mod kernel;
mod message;
mod words;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use airtcp_testbed::Cidr;
use anyhow::Context;
use nix::net::if_::if_nametoindex;
use rtnetlink::packet_route::route::RouteType;

use crate::output::Mistake;
pub(super) use ipv6::Ipv6;
use kernel::{Found, Kernel, check, explain};

/// The number of the routing table, and the mark of packets that do not use it.
pub(super) const TABLE: u32 = 51877;
/// The protocol number of the gateway's rules and routes, which distinguishes them from others
/// (`rt_protos` does not assign this number).
const PROTOCOL: u8 = 177;
/// The priority of the first rule, and of the last, which is the target of the `goto` rules.
const FIRST: u32 = 27700;
const LAST: u32 = 27799;
/// The most networks and addresses that the range of priorities has room for.
const MOST: usize = 40;
/// The metric of the routes through the device, and of the `unreachable` routes behind them.
const METRIC: u32 = 1024;
const BEHIND: u32 = 65535;
const MAIN: u32 = 254;
/// The value for "suppress no route".
const NEVER: u32 = u32::MAX;

/// Networks that are never carried: multicast and broadcast of IPv4. IPv6 has its own multicast
/// route.
const LOCAL: [Cidr; 2] = [
    Cidr { address: IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), prefix: 4 },
    Cidr { address: IpAddr::V4(Ipv4Addr::BROADCAST), prefix: 32 },
];

/// All addresses of both versions.
pub(super) const EVERYTHING: [Cidr; 2] = [
    Cidr { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix: 0 },
    Cidr { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), prefix: 0 },
];

/// Parses `--route` and `--exclude`: a network, or a single address.
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

/// The desired rules and routes.
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
    /// The destination port of UDP packets.
    port: Option<u16>,
    action: Action,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    /// Looks in a table; ignores routes with a prefix of at most `suppress` bits.
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
    /// Returns the rules and routes that carry `networks` through `device`, except `excluded`, for
    /// a far gateway at `endpoints`.
    ///
    /// # Errors
    /// There are too many networks.
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
            // A dual-stack socket writes IPv4 addresses as IPv4-mapped IPv6 addresses.
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

    /// Appends the rules in the order in which the kernel must get them: first the target of the
    /// `goto` rules, then the rules that exempt packets, and only then those that carry packets.
    fn add_rules(&mut self, is_ipv6: bool, networks: &[Cidr], endpoints: &[SocketAddr]) {
        let blank =
            Rule { is_ipv6, priority: LAST, mark: None, to: None, port: None, action: Action::Nop };
        let skip = |priority| Rule { priority, action: Action::Goto(LAST), ..blank.clone() };
        let mut priorities = FIRST..;
        let mut next = move || priorities.next().unwrap_or(LAST);
        self.rules.push(blank.clone());
        self.rules.push(Rule { mark: Some(TABLE), ..skip(next()) });
        // Strict reverse path filtering of IPv4 looks up the return path without the mark.
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

    /// Returns the equivalent `ip` commands, one per line.
    pub(super) fn commands(&self) -> Vec<String> {
        let device = &self.device;
        let routes = self.routes.iter().map(|route| format!("ip {}", route.words("add", device)));
        routes.chain(self.rules.iter().map(|rule| format!("ip {}", rule.words("add")))).collect()
    }

    /// Adds the rules and routes, and removes others that an earlier process left.
    ///
    /// # Errors
    /// Another gateway intercepts already, the table has routes of another program, or the kernel
    /// refuses. Added rules and routes are removed again.
    pub(super) async fn add(&self) -> anyhow::Result<()> {
        let kernel = Kernel::open()?;
        let left = kernel.routes().await?;
        check(&left)?;
        let added = self.add_to(&kernel, &left).await;
        if added.is_err() {
            // The first error is the one to report.
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
    // Lookup rules are removed first: while they exist, the tunnel's packets need the rules that
    // skip them.
    let mut rules = kernel.rules().await?;
    let looks_up =
        |rule: &Option<Rule>| matches!(rule, Some(Rule { action: Action::Lookup { .. }, .. }));
    rules.sort_by_key(|(rule, _)| !looks_up(rule));
    // Continues after a failure, so that the others are still removed.
    let mut removed = Ok(());
    for (_, message) in rules {
        removed = removed.and(kernel.remove_rule(message).await);
    }
    for found in kernel.routes().await?.iter().filter(|found| found.is_ours) {
        removed = removed.and(kernel.remove_route(&found.route).await);
    }
    removed
}

#[cfg(test)]
mod tests;
