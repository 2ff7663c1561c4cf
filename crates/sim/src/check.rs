//! Validation of scenarios.

use std::time::Duration;

use airtcp_link::LinkSpec;
use airtcp_link::spec::RateSpec;
use airtcp_recovery::Profile;
use airtcp_types::Rate;

use crate::measure::PORTS;
use crate::network::UDP_HEADERS;
use crate::{App, FlowSpec, Scenario, Sender, SimError, Topology, Wire};

/// The maximum number of flows, which the ports of a router limit.
const MAX_FLOWS: u64 = 60_000;
/// The smallest MTU: the 68 bytes that every module must forward unfragmented (RFC 791 section
/// 3.2), and 20 more.
const MIN_MTU: u16 = 68 + 20;
/// The smallest MTU of RRTP: 64 bytes and 28 of IP and UDP (docs/rrtp.md).
const MIN_RRTP_MTU: u16 = 64 + UDP_HEADERS;
/// The longest duration; the clock ends after 584 years.
const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The error for `mark_aware` without a base station.
pub(crate) const NOBODY_MARKS: &str = "it needs the marks of a base station: add a `[station]`";

/// The error for an option of TCP in a flow of another transport.
pub(crate) fn only_for_tcp(key: &str, transport: &str) -> String {
    format!("`{key}` is an option of TCP, which {transport} does not have: remove it")
}

/// Rejects invalid scenarios.
pub(crate) fn check(scenario: &Scenario) -> Result<(), SimError> {
    let of_scenario = |what: &str| senseless("scenario", what);
    if scenario.duration.is_zero() {
        return Err(of_scenario("the duration is zero: choose a longer one"));
    }
    if scenario.duration > MAX_DURATION {
        return Err(of_scenario("the duration is over 100 years: choose a shorter one"));
    }
    if scenario.warm_up >= scenario.duration {
        return Err(of_scenario("the warm-up is as long as the duration: make it shorter"));
    }
    let total: u64 = scenario.flows.iter().map(|flow| u64::from(flow.count)).sum();
    if total == 0 {
        return Err(of_scenario("there are no flows: add one"));
    }
    let most = match &scenario.topology {
        Topology::Dumbbell { .. } | Topology::Wireless { .. } => MAX_FLOWS,
        Topology::Chain { wires } if wires.is_empty() => {
            return Err(senseless("topology", "the chain has no wires: add one"));
        }
        Topology::Chain { .. } => u64::from(PORTS),
    };
    if total > most {
        return Err(of_scenario(&format!("{total} flows: at most {most} fit this topology")));
    }
    changes(scenario)?;
    scenario.flows.iter().try_for_each(|one| flow(scenario, one))
}

/// Rejects links that change after the end of the run.
pub(crate) fn changes(scenario: &Scenario) -> Result<(), SimError> {
    let mut wires: Vec<(String, &Wire)> = match &scenario.topology {
        Topology::Dumbbell { access, bottleneck }
        | Topology::Wireless { access, bottleneck, .. } => {
            vec![("bottleneck".to_owned(), bottleneck), ("access".to_owned(), access)]
        }
        Topology::Chain { wires } => {
            (1..).zip(wires).map(|(number, wire)| (format!("wire-{number}"), wire)).collect()
        }
    };
    let of_flow = |flow: &FlowSpec| format!("access` of flow `{}", flow.name);
    let flows = scenario.flows.iter();
    wires.extend(flows.filter_map(|flow| Some((of_flow(flow), flow.access.as_ref()?))));
    for (name, wire) in wires {
        let last = [&wire.forth, &wire.back].map(|spec| spec.changes.last());
        let late = last.into_iter().flatten().find(|change| change.at >= scenario.duration);
        if let Some(change) = late {
            let what = format!(
                "it changes at {:?}, and the run ends at {:?}: change it earlier, or run longer",
                change.at, scenario.duration
            );
            return Err(senseless(&format!("link `{name}`"), &what));
        }
    }
    Ok(())
}

/// Rejects settings of a flow that contradict each other or the scenario.
pub(crate) fn flow(scenario: &Scenario, flow: &FlowSpec) -> Result<(), SimError> {
    let refuse = |what: &str| Err(senseless(&format!("flow `{}`", flow.name), what));
    if flow.count == 0 {
        return refuse("its count is zero: remove the flow, or choose a count");
    }
    if flow.start.saturating_add(flow.stagger.saturating_mul(flow.count - 1)) >= scenario.duration {
        return refuse("a copy starts after the end of the run: start it earlier");
    }
    if flow.mtu < MIN_MTU {
        return refuse(&format!("its mtu is below {MIN_MTU} bytes: choose a larger one"));
    }
    if [flow.receive_buffer, flow.send_buffer].iter().flatten().any(|buffer| buffer.0 == 0) {
        return refuse("it has a buffer of zero bytes: choose a size");
    }
    let last = flow.start + flow.stagger.saturating_mul(flow.count.saturating_sub(1));
    if flow.stop.is_some_and(|stop| stop <= last) {
        return refuse("it stops before its last copy starts: choose a later stop");
    }
    if flow.changes.iter().any(|change| change.at <= last) {
        return refuse("its strategies change before its last copy starts: choose a later time");
    }
    if !flow.changes.is_empty() && matches!(flow.app, App::ShortFlows { .. }) {
        return refuse("short flows cannot change their strategies: remove `change`");
    }
    match &flow.app {
        App::Bulk { size } if size.is_some_and(|size| size.0 == 0) => {
            return refuse("it transfers nothing: choose a size");
        }
        App::RequestResponse { request, response, .. } if request.0 == 0 || response.0 == 0 => {
            return refuse("its request or its response is empty: choose a size");
        }
        App::PingPong { size, .. } if size.0 == 0 => {
            return refuse("its message is empty: choose a size");
        }
        App::RequestResponse { count: Some(0), .. } | App::PingPong { count: Some(0), .. } => {
            return refuse("its count is zero: remove the count, or choose one");
        }
        App::ShortFlows { size: (smallest, largest), users, .. } => {
            if smallest.0 == 0 || smallest > largest {
                return refuse("its sizes are zero, or `largest` is below `smallest`");
            }
            if *users == 0 {
                return refuse("it has no users: choose one or more");
            }
        }
        _ => {}
    }
    if let Some(transport) = flow.sender.transport() {
        check_other(flow, transport).or_else(|what| refuse(&what))?;
    }
    let is_wireless = matches!(scenario.topology, Topology::Wireless { .. });
    if flow.mark_aware && !is_wireless {
        return refuse(NOBODY_MARKS);
    }
    if flow.wires.is_some() && !matches!(scenario.topology, Topology::Chain { .. }) {
        return refuse("it crosses all of a dumbbell: leave `wires` out, or make a chain of wires");
    }
    let wires: Vec<&Wire> = match &scenario.topology {
        Topology::Dumbbell { access, bottleneck }
        | Topology::Wireless { access, bottleneck, .. } => {
            vec![flow.access.as_ref().unwrap_or(access), bottleneck]
        }
        Topology::Chain { .. } if flow.access.is_some() => {
            return refuse("it has an access wire, but a chain has none: remove it");
        }
        Topology::Chain { wires } => match flow.wires {
            Some((first, last)) if first == 0 || first > last || last > wires.len() => {
                return refuse(&format!(
                    "its wires are not in order or not there: choose the first and the last of 1 to {}",
                    wires.len()
                ));
            }
            _ => {
                let [from, to] = flow.ends(wires.len());
                wires[from..to].iter().collect()
            }
        },
    };
    let on_wires = wires.iter().any(|wire| takes_time(&wire.forth) || takes_time(&wire.back));
    if !on_wires && !is_wireless {
        return refuse("its path has neither rate nor delay: add one to a link");
    }
    Ok(())
}

/// Rejects invalid settings of a transport other than TCP.
fn check_other(flow: &FlowSpec, transport: &str) -> Result<(), String> {
    if !matches!(flow.app, App::Bulk { .. }) {
        return Err(format!(
            "{transport} supports only bulk: remove the application, or choose strategies of TCP"
        ));
    }
    if flow.sender == Sender::Udp(Rate::ZERO) {
        return Err("its rate is zero: choose one".to_owned());
    }
    if matches!(flow.sender, Sender::Rrtp(_)) && flow.mtu < MIN_RRTP_MTU {
        return Err(format!(
            "its mtu is below {MIN_RRTP_MTU} bytes, the minimum of rrtp: choose a larger one"
        ));
    }
    let of_tcp = [
        ("profile", flow.profile != Profile::default()),
        ("timestamps", !flow.timestamps),
        ("sack", !flow.sack),
        ("pacing", flow.pacing),
        ("path_memory", flow.path_memory),
        ("change", !flow.changes.is_empty()),
        ("mark_aware", flow.mark_aware),
    ];
    match of_tcp.iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(only_for_tcp(key, transport)),
        None => Ok(()),
    }
}

/// Whether some packets always take time, whatever the random numbers.
fn takes_time(spec: &LinkSpec) -> bool {
    let (one, other) = spec.paths.unwrap_or_default();
    let times = [spec.delay.base, spec.delay.jitter, one, other, spec.half.unwrap_or_default()];
    spec.rate != RateSpec::Unlimited || times.iter().any(|time| !time.is_zero())
}

fn senseless(place: &str, what: &str) -> SimError {
    SimError::Senseless { place: place.to_owned(), what: what.to_owned() }
}
