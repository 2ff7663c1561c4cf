//! Probes the code for the rows about the gateway in the table of capabilities.

use airtcp_gateway::datagram::FarDatagramsConfig;

use crate::capabilities::help_of;

/// Returns whether the code has the feature of the row.
pub(crate) fn has(row: &str) -> bool {
    match row {
        "Gateway: TCP and UDP of unmodified programs by SOCKS5, TCP by HTTP CONNECT and by forwarded ports in both directions" =>
        {
            let flags = ["--socks5", "--http-connect", "--forward", "--remote-forward"];
            has_flags("near", &flags) && has_flags("far", &["--permit-listen"])
        }
        "Gateway: all TCP, UDP and pings of a machine (`gateway near --intercept`)" => {
            has_flags("near", &["--intercept", "--route", "--exclude"])
        }
        "Gateway: in the path, without a second one; the ends see each other's addresses (`gateway split`)" => {
            has_flags("split", &["--local-tun", "--link-tun", "--strategies"])
        }
        "Gateway: WireGuard between the near and the far gateway, rules for destinations" => {
            has_flags("far", &["--key", "--peer", "--allow", "--deny"])
        }
        "Gateway: plain packets between the gateways, through TUN devices, for HACK (`--carrier tun`)" =>
        {
            let flags = ["--carrier", "--insecure-carrier"];
            ["near", "far", "check"].iter().all(|command| has_flags(command, &flags))
        }
        "Gateway: lost datagrams of UDP repaired by redundancy that follows the loss" => {
            FarDatagramsConfig::default().redundancy > 0
                && ["near", "far"].iter().all(|end| has_flags(end, &["--redundancy"]))
        }
        "Gateway: a control socket, a settings file, Prometheus metrics, a check of the link" => {
            let flags = ["--control", "--config", "--metrics"];
            ["near", "far"].iter().all(|end| has_flags(end, &flags))
                && has_flags("check", &["--key"])
        }
        row => panic!("no check for the row `{row}`: add one here"),
    }
}

/// Returns whether a command of `airtcp gateway` has these flags.
fn has_flags(command: &str, flags: &[&str]) -> bool {
    let help = help_of(&["gateway", command]);
    flags.iter().all(|flag| help.contains(flag))
}
