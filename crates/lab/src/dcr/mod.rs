//! TCP-DCR: Bhandarkar and Reddy, "TCP-DCR: Making TCP robust to non-congestion events".

mod congested;
mod delivery;
pub(crate) mod eq6;
pub(crate) mod fig10;
pub(crate) mod fig11;
pub(crate) mod fig12;
pub(crate) mod fig13;
pub(crate) mod fig14;
pub(crate) mod fig17;
pub(crate) mod fig18;
pub(crate) mod fig4;
pub(crate) mod fig5;
pub(crate) mod fig6;
pub(crate) mod fig7;
pub(crate) mod fig8;
pub(crate) mod fig9;
mod mixed;
mod radio;
mod refused;
mod room;
mod single;
pub(crate) mod table16;
mod table16_row;
pub(crate) mod table20;
pub(crate) mod table20_real;
mod transfer;

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Scenario};
use airtcp_types::ByteCount;

use crate::theory::{Bound, Word};

/// The profile of the paper's simulations, which used ns-2.26 (DCR 3.1). Claims about other
/// profiles are beside the paper.
const PAPERS: &str = "ns-2.26";
/// The paper's words without figures. A loss of more than half is neither "a little" nor "not
/// drastic", and one of less than three tenths is not "drastic". Less than half as much again is
/// not "far more".
const DRASTIC: Word =
    Word { word: "falls drastically", holds: Bound::Below(0.5), fails: Bound::Above(0.7) };
const A_LITTLE: Word =
    Word { word: "degrades a little", holds: Bound::Above(0.9), fails: Bound::Below(0.5) };
const FAR_MORE: Word =
    Word { word: "far more", holds: Bound::Above(2.0), fails: Bound::Below(1.5) };
/// DCR 3.1: the links of the hosts.
const ACCESS: &str = "rate 10mbit delay 1ms limit 50";
/// Packets wait for a random time of up to the bottleneck's transmission time of one packet before
/// they leave (Floyd and Jacobson 1992). Otherwise flows synchronise with the queue and are locked
/// out, as table16 shows.
const ACCESS_AT_RANDOM: &str = "rate 10mbit delay 1ms 416us inorder limit 50";
/// 1000 bytes of payload and a header of 40 bytes: ns-2's flows have no timestamps.
const MTU: u16 = 1_040;
/// The same payload with timestamps, a modern default that undo needs.
const MTU_WITH_TIMESTAMPS: u16 = 1_052;
/// Ten runs of a tenth of the paper's time.
const SHORTER: &str = "each of ten runs is measured for 100 s after a warm-up of 30 s; the paper measures one run for 1000 s \
                       after 100 s";

/// The combinations of the experiments with one flow; the paper's come first.
const COMBINATIONS: [&str; 5] =
    ["sack/reno", "sack/reno/dcr:timer", "sack/reno/dcr:count", "rack/reno", "rack/reno/dcr:timer"];

/// DCR 3.1: the receiver's window never limits the sender. Ten times the capacity of any of the
/// paths.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_mib(4);

/// Returns the paper's profile.
fn papers() -> Profile {
    crate::paper::profile(PAPERS)
}

fn flow(combination: &str, profile: &Profile) -> FlowSpec {
    let is_of_ns2 = profile.name == Profile::paper().name || profile.name.starts_with("ns-2");
    let timestamps = !is_of_ns2;
    FlowSpec {
        mtu: if timestamps { MTU_WITH_TIMESTAMPS } else { MTU },
        timestamps,
        receive_buffer: Some(RECEIVE_BUFFER),
        profile: profile.clone(),
        ..FlowSpec::new(combination.parse().expect("a name of the registry"))
    }
}

fn timed(scenario: Scenario, is_small: bool) -> Scenario {
    let (warm_up, duration) = if is_small { (1, 3) } else { (30, 130) };
    let [warm_up, duration] = [warm_up, duration].map(Duration::from_secs);
    Scenario { warm_up, duration, ..scenario }
}
