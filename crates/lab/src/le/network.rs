//! The dumbbell of LE's Fig. 3, whose rates and delays the paper does not say.

use std::time::Duration;

use airtcp_recovery::{Combination, Profile};
use airtcp_sim::{FlowSpec, Scenario, Topology, Wire};

use super::variants;
use crate::{LabError, Run, feed};

/// A round trip of 80 ms, and a queue of its bandwidth-delay product.
const BOTTLENECK: &str = "rate 5mbit delay 38ms limit 50";
/// Payload of full segments on it, bit/s.
pub(super) const CAPACITY: f64 = 5e6 * 1_000.0 / 1_040.0;
/// Packets wait at random before they leave, up to half of the bottleneck's time for one of them, so that flows do not
/// keep in step with its queue (Floyd and Jacobson 1992).
const ACCESS_AT_RANDOM: &str = "rate 100mbit delay 1ms 832us inorder limit 1000";
const ACCESS: &str = "rate 100mbit delay 1ms limit 1000";
/// 1000 bytes of payload and a header of 40: ns-2's flows have no timestamps.
const MTU: u16 = 1_040;

pub(super) const NOTE: &str = "The paper has no rate, delay, queue or time-out: here it is 5 Mbit/s, a round trip of 80 ms, \
                               50 packets, and at least 200 ms. Flows start within the first second.";

/// Flows of these combinations, one each, with `loss` per cent of data packets lost at the bottleneck.
pub(super) fn scenario(
    run: &Run,
    combinations: &[&str],
    profile: &Profile,
    loss: f64,
) -> Result<Scenario, LabError> {
    let access = Wire { forth: feed::spec(ACCESS_AT_RANDOM)?, back: feed::spec(ACCESS)? };
    let lossy = format!("{BOTTLENECK} loss {loss}% only payload");
    let forth = feed::spec(if loss > 0.0 { &lossy } else { BOTTLENECK })?;
    let bottleneck = Wire { forth, back: feed::spec(BOTTLENECK)? };
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

/// LE with one cut for one loss, in names of combinations here.
pub(super) const ONE_CUT: &str = "le, one cut";
/// LE whose repairs leave the timer alone.
pub(super) const OWN_TIMER: &str = "le, own timer";

/// What a name means, of which one of these may be the detection.
pub(super) fn combine(name: &str) -> Combination {
    let parse = |name: &str| -> Combination { name.parse().expect("a name of the registry") };
    for (variant, detection) in [(ONE_CUT, variants::one_cut()), (OWN_TIMER, variants::own_timer())]
    {
        if let Some(rest) = name.strip_prefix(variant) {
            return parse(&format!("le{rest}")).with_detection(detection);
        }
    }
    parse(name)
}
