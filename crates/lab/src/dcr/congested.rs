//! The network of DCR 5.2: twelve flows share a bottleneck whose queue alone drops packets.

use airtcp_recovery::{RtoForm, SACK1};

use super::{ACCESS, ACCESS_AT_RANDOM, flow};
use crate::prelude::*;

const FLOWS: u32 = 12;
// DCR 3.1 and 5.2: the queue at the bottleneck holds 60 packets, all others 50.
const QUEUE: u32 = 60;

/// The parts of the set-up that the paper leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Setup {
    pub(super) name: &'static str,
    /// Whether packets wait for a random time on their way to the bottleneck.
    pub(super) is_random: bool,
    /// The bottleneck's queue, in packets.
    pub(super) queue: u32,
}

pub(super) const AS_DESCRIBED: Setup =
    Setup { name: "as described", is_random: false, queue: QUEUE };
pub(super) const RANDOM_WAIT: Setup =
    Setup { name: "random wait", is_random: true, ..AS_DESCRIBED };
/// In ns-2 a queue is full when one more packet would reach its limit.
pub(super) const NS2: Setup =
    Setup { name: "random wait, ns-2's sender and queue", queue: QUEUE - 1, ..RANDOM_WAIT };

/// A change of one thing from [`RANDOM_WAIT`] and the profile `paper`: each is a difference of
/// ns-2.
pub(super) type Change = (Setup, fn(Profile) -> Profile);

const fn changed(name: &'static str) -> Setup {
    Setup { name, ..RANDOM_WAIT }
}

pub(super) const CHANGES: [Change; 9] = [
    (changed("RTO of at least 1 s"), |profile| Profile { rto: RtoForm::RFC, ..profile }),
    (changed("whole segments"), |profile| Profile { whole_segments: true, ..profile }),
    (changed("slow but steady"), |profile| Profile { patient: true, ..profile }),
    (changed("Sack1's pipe"), |profile| Profile { sack: Some(&SACK1), ..profile }),
    (changed("one segment per ACK"), |profile| Profile { byte_counting_limit: 1, ..profile }),
    (changed("no limited transmit"), |profile| Profile { limited_transmit: false, ..profile }),
    (changed("initial window of 1"), |profile| Profile { initial_window: 1, ..profile }),
    (changed("cwnd of at most 20"), |profile| Profile { cwnd_clamp: Some(20), ..profile }),
    (Setup { name: "queue of 59", ..NS2 }, |profile| profile),
];

/// Returns twelve flows of these kinds, the same number of each, in their order.
pub(super) fn network(
    kinds: &[&str],
    profile: &Profile,
    setup: Setup,
) -> Result<Scenario, LabError> {
    let access = feed::wire(if setup.is_random { ACCESS_AT_RANDOM } else { ACCESS }, ACCESS)?;
    let queue = setup.queue;
    let bottleneck = Wire::both(feed::spec(&format!("rate 10mbit delay 10ms limit {queue}"))?);
    let each = FLOWS / kinds.len() as u32;
    let flow = |(combination, number): (&str, u32)| FlowSpec {
        name: format!("{combination} {number}"),
        ..flow(combination, profile)
    };
    let flows = kinds.iter().flat_map(|kind| (1..=each).map(move |number| (*kind, number)));
    Ok(Scenario {
        flows: flows.map(flow).collect(),
        ..Scenario::new("table16", Topology::Dumbbell { access, bottleneck })
    })
}
