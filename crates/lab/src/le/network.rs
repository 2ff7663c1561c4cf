//! The dumbbell of LE's Fig. 3. The paper does not state its rates and delays.

use std::time::Duration;

use airtcp_recovery::{Combination, Profile};
use airtcp_sim::{FlowSpec, Scenario, Topology};

use super::{controls, variants};
use crate::{LabError, Run, feed};

/// The rate of the bottleneck in Mbit/s, and that of a faster one.
pub(super) const RATE: u32 = 5;
pub(super) const WIDE: u32 = 30;

/// Returns the bottleneck's description: a round-trip time of 80 ms, and a queue of one BDP.
fn bottleneck(rate: u32) -> String {
    format!("rate {rate}mbit delay 38ms limit {}", rate * 10)
}

/// Returns the bottleneck's capacity for payload in full segments, in bit/s.
pub(super) fn capacity(rate: u32) -> f64 {
    f64::from(rate) * 1e6 * 1_000.0 / 1_040.0
}

const ACCESS: &str = "rate 100mbit delay 1ms limit 1000";
/// 1000 bytes of payload and a header of 40 bytes: ns-2's flows have no timestamps.
const MTU: u16 = 1_040;

pub(super) fn note(rate: u32) -> String {
    format!(
        "The paper states no rate, delay, queue or time-out: here they are {rate} Mbit/s, an RTT of 80 ms, {} packets, and at least \
         200 ms. Flows start within the first second.",
        rate * 10
    )
}

/// Returns the scenario of flows with these combinations, one each, that lose `loss` per cent of
/// their data packets at the bottleneck.
pub(super) fn scenario(
    run: &Run,
    combinations: &[&str],
    profile: &Profile,
    rate: u32,
    loss: f64,
) -> Result<Scenario, LabError> {
    // Packets wait for a random time of up to half of the bottleneck's transmission time of one
    // packet before they leave, so that flows do not synchronise with its queue (Floyd and Jacobson
    // 1992).
    let at_random = ACCESS.replace("1ms", &format!("1ms {}us inorder", 4_160 / rate));
    let access = feed::wire(&at_random, ACCESS)?;
    let bottleneck = feed::lossy(&bottleneck(rate), loss)?;
    let flow = |(number, combination): (usize, &&str)| FlowSpec {
        name: format!("flow {number}"),
        profile: profile.clone(),
        mtu: MTU,
        timestamps: false,
        ..FlowSpec::new(combine(combination).into())
    };
    Ok(Scenario {
        duration: Duration::from_secs(if run.is_small { 1 } else { 100 }),
        flows: combinations.iter().enumerate().map(flow).collect(),
        ..Scenario::new("le", Topology::Dumbbell { access, bottleneck })
    })
}

/// The name of LE whose retransmissions do not restart the timer.
pub(super) const OWN_TIMER: &str = "le, own timer";

/// Parses a combination's name, whose detection can be [`OWN_TIMER`] and whose control one of
/// [`controls`].
pub(super) fn combine(name: &str) -> Combination {
    match name.strip_prefix(OWN_TIMER) {
        Some(rest) => controls::combine(&format!("le{rest}")).with_detection(variants::own_timer()),
        None => controls::combine(name),
    }
}
