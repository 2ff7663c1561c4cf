//! Reads and removes the kernel's rules and routes.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::pin::pin;

use anyhow::{Context, anyhow, bail};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::route::{RouteAttribute, RouteProtocol, RouteScope, RouteType};
use rtnetlink::packet_route::rule::RuleMessage;
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};

use super::message::{is_ours, priority, table};
use super::{FIRST, PROTOCOL, Route, Rule, TABLE};

/// A route in the table.
pub(super) struct Found {
    pub(super) route: Route,
    pub(super) is_ours: bool,
}

/// An rtnetlink connection to the kernel.
pub(super) struct Kernel(pub(super) Handle);

impl Kernel {
    pub(super) fn open() -> anyhow::Result<Self> {
        let (connection, handle, _) =
            rtnetlink::new_connection().context("asking the kernel for its routes")?;
        // The task ends when the handle is dropped.
        tokio::spawn(connection);
        Ok(Self(handle))
    }

    /// Lists the gateway's rules; `None` for a rule of another version, in a form unknown to this
    /// one.
    pub(super) async fn rules(&self) -> anyhow::Result<Vec<(Option<Rule>, RuleMessage)>> {
        let mut rules = Vec::new();
        for version in [IpVersion::V4, IpVersion::V6] {
            let mut found = pin!(self.0.rule().get(version).execute());
            loop {
                match found.try_next().await {
                    Ok(Some(rule)) if is_ours(&rule) => rules.push((Rule::of(&rule), rule)),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) if is_without_ipv6(&error) => break,
                    Err(error) => return Err(to_io(error)).context("listing the routing rules"),
                }
            }
        }
        Ok(rules)
    }

    /// Lists the routes of the table.
    pub(super) async fn routes(&self) -> anyhow::Result<Vec<Found>> {
        let mut routes = Vec::new();
        let messages = [
            RouteMessageBuilder::<Ipv4Addr>::new().build(),
            RouteMessageBuilder::<Ipv6Addr>::new().build(),
        ];
        for message in messages {
            let mut found = pin!(self.0.route().get(message).execute());
            loop {
                match found.try_next().await {
                    Ok(Some(route)) if table(&route) == TABLE => {
                        let is_ours = route.header.protocol == RouteProtocol::Other(PROTOCOL);
                        routes.push(Found { route: Route::of(&route), is_ours });
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) if is_without_ipv6(&error) => break,
                    Err(error) => return Err(to_io(error)).context("listing the routes"),
                }
            }
        }
        Ok(routes)
    }

    pub(super) async fn remove_rule(&self, message: RuleMessage) -> anyhow::Result<()> {
        let shown = format!("rule del priority {}", priority(&message).unwrap_or(FIRST));
        explain(self.0.rule().del(message).execute().await, || shown)
    }

    pub(super) async fn remove_route(&self, route: &Route) -> anyhow::Result<()> {
        // Removes the route whatever its device is.
        let mut message = route.message(0);
        message.header.scope = RouteScope::NoWhere;
        message.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Oif(_)));
        explain(self.0.route().del(message).execute().await, || {
            format!("route del {} table {TABLE}", route.to)
        })
    }
}

fn is_without_ipv6(error: &rtnetlink::Error) -> bool {
    let unsupported = [nix::errno::Errno::EAFNOSUPPORT, nix::errno::Errno::EOPNOTSUPP];
    matches!(error, rtnetlink::Error::NetlinkError(message)
        if unsupported.iter().any(|errno| message.raw_code() == -(*errno as i32)))
}

fn to_io(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    }
}

/// Converts an error into one that shows the equivalent `ip` command.
pub(super) fn explain(
    outcome: Result<(), rtnetlink::Error>,
    words: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    outcome.map_err(|error| {
        let error = to_io(error);
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => ": run this as root, or with CAP_NET_ADMIN",
            _ => "",
        };
        anyhow!("`ip {}`: {error}{hint}", words())
    })
}

/// Checks that the table has no routes of another program or of a running gateway.
pub(super) fn check(found: &[Found]) -> anyhow::Result<()> {
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
