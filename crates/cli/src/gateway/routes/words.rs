//! Rules and routes as arguments of `ip`.

use std::fmt::{Arguments, Write as _};

use rtnetlink::packet_route::route::RouteType;

use super::{Action, MAIN, PROTOCOL, Route, Rule, TABLE};

fn version(is_ipv6: bool) -> &'static str {
    if is_ipv6 { "-6" } else { "-4" }
}

impl Rule {
    /// The arguments of the `ip` command.
    pub(super) fn words(&self, verb: &str) -> String {
        let mut words = format!("{} rule {verb} priority {}", version(self.is_ipv6), self.priority);
        let mut add = |word: Arguments<'_>| {
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
}

impl Route {
    /// The arguments of the `ip` command.
    pub(super) fn words(&self, verb: &str, device: &str) -> String {
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
