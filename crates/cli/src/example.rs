//! Examples of command lines, for error messages.

/// Returns a valid command line for the command in `words`.
pub(crate) fn of(words: &[&str]) -> &'static str {
    let mut words = words.iter();
    match words.find_map(|word| Some((*word, of_command(word)?))) {
        Some(("gateway", usual)) => match words.find_map(|word| of_gateway(word)) {
            Some(CTL) if words.any(|word| *word == "set") => CTL_SET,
            found => found.unwrap_or(usual),
        },
        Some((_, usual)) => usual,
        None => USUAL,
    }
}

/// A valid command line, if no known command was given.
const USUAL: &str = "airtcp demo, or: airtcp compare weak-4g";

/// Returns a valid command line for a command.
fn of_command(command: &str) -> Option<&'static str> {
    Some(match command {
        "serve" => "airtcp serve --tun tun0 --address 10.0.0.2/24 echo:7",
        "get" => "airtcp get --tun tun0 --address 10.0.0.2/24 http://10.0.0.1/file -o file",
        "put" => "airtcp put --tun tun0 --address 10.0.0.2/24 file http://10.0.0.1/file",
        "connect" => "airtcp connect --tun tun0 --address 10.0.0.2/24 10.0.0.1:7",
        "quickserve" => "airtcp quickserve . --listen rrtp://0.0.0.0:8000",
        "quickget" => "airtcp quickget rrtp://10.0.0.1:8000/file -o file",
        "gateway" => "airtcp gateway keygen --out near.key, or: airtcp gateway ctl status",
        "ss" => "airtcp ss --watch",
        "names" => "airtcp names --json",
        "demo" => {
            "airtcp demo --size 64MiB, or: airtcp demo --lossy --link \"rate 20mbit delay 20ms loss 1%\", or: airtcp \
             demo --radio \"error 20%\" --arq mac+link"
        }
        "link" => "airtcp link --a tun0 --b tun1 \"rate 10mbit delay 20ms loss 1%\"",
        "sim" => {
            "airtcp sim init > scenario.toml, or: airtcp sim run scenario.toml --seeds 10 --state states.jsonl"
        }
        "report" => "airtcp report results -o report.html",
        "sweep" => {
            "airtcp sweep grid.toml --out results, or: airtcp sweep scenario.toml --vary flow.0.strategies=rack/cubic,sack/reno \
             --out results"
        }
        "compare" => "airtcp compare \"rate 10mbit delay 20ms limit 50 loss 1%\"",
        "lab" => {
            "airtcp lab list, or: airtcp lab run self/loss --out results, or: airtcp lab results results"
        }
        "completions" => "airtcp completions bash",
        "man" => "airtcp man sim | man -l -",
        "plot" => "airtcp plot capture.pcapng --list, or: airtcp plot capture.pcapng -o flow.svg",
        _ => return None,
    })
}

/// An example for `airtcp gateway near`.
pub(crate) const NEAR: &str = "airtcp gateway near --key near.key --peer PUBLIC_KEY_OF_THE_FAR_END --endpoint \
                               gateway.example:51820 --socks5 127.0.0.1:1080";

/// An example for `airtcp gateway far`.
pub(crate) const FAR: &str = "airtcp gateway far --key far.key --peer PUBLIC_KEY_OF_THE_NEAR_END";

/// A line of `airtcp gateway near` without WireGuard.
pub(crate) const NEAR_TUN: &str =
    "airtcp gateway near --carrier tun --insecure-carrier --peer 10.77.0.1 --socks5 127.0.0.1:1080";

/// A line of `airtcp gateway far` without WireGuard.
pub(crate) const FAR_TUN: &str =
    "airtcp gateway far --carrier tun --insecure-carrier --peer 10.77.0.2";

/// An example for `airtcp gateway check`.
pub(crate) const CHECK: &str = "airtcp gateway check --key near.key --peer PUBLIC_KEY_OF_THE_FAR_END --endpoint \
                                gateway.example:51820";

/// An example for `airtcp gateway ctl`.
const CTL: &str = "airtcp gateway ctl status, or: airtcp gateway ctl set strategies le/westwood";

/// An example for `airtcp gateway ctl set`.
pub(crate) const CTL_SET: &str = "airtcp gateway ctl set strategies rack/cubic";

fn of_gateway(command: &str) -> Option<&'static str> {
    Some(match command {
        "keygen" => "airtcp gateway keygen --out near.key",
        "pubkey" => "airtcp gateway pubkey near.key",
        "near" => NEAR,
        "far" => FAR,
        "split" => "airtcp gateway split --strategies rack/bbr3/spike",
        "check" => CHECK,
        "ctl" => CTL,
        _ => return None,
    })
}
