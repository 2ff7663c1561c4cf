//! The senders of the TCP-ECN experiments.

use airtcp_basestation::Policy;
use airtcp_link::{Arq, RadioSpec};
use airtcp_recovery::Profile;
use airtcp_sim::FlowSpec;
use airtcp_types::ByteCount;

use crate::paper::{self, NS_2_29};

/// 1000 bytes of payload and a header of 40 bytes: ns-2's flows have no timestamps.
const MTU: u16 = 1_040;
/// The default window of ns-2, in packets.
const PACKETS: u64 = 20;
/// A window that never limits the sender: several times the capacity of the path.
const LARGE: ByteCount = ByteCount::from_mib(4);

/// A sender and the options of its connection.
#[derive(Clone, Copy)]
pub(super) struct Sender {
    pub(super) name: &'static str,
    combination: &'static str,
    profile: fn() -> Profile,
    /// The receiver's window.
    window: ByteCount,
}

/// The paper's sender is the Reno of ns-2.29. The paper does not state the window, which may affect its
/// results.
pub(super) static SENDERS: [Sender; 3] = [
    Sender {
        name: "reno/reno, ns-2.29, window 20",
        combination: "reno/reno",
        profile: ns2,
        window: ByteCount(PACKETS * 1_000),
    },
    Sender { name: "reno/reno, ns-2.29", combination: "reno/reno", profile: ns2, window: LARGE },
    Sender {
        name: "rack/cubic, modern",
        combination: "rack/cubic",
        profile: Profile::modern,
        window: LARGE,
    },
];

/// Returns the profile of the paper's version of ns-2.
fn ns2() -> Profile {
    paper::profile(NS_2_29)
}

/// Returns the sender of that name.
///
/// # Panics
///
/// Panics if there is none.
pub(super) fn named(name: &str) -> &'static Sender {
    SENDERS.iter().find(|sender| sender.name == name).expect("one of the senders")
}

impl Sender {
    /// Returns whether this is the paper's sender.
    pub(super) fn is_papers(&self) -> bool {
        (self.profile)().name == NS_2_29
    }

    /// Returns the maximum payload that a radio carries, in bit/s.
    pub(super) fn bound(&self, radio: &RadioSpec, arq: Arq) -> f64 {
        let profile = (self.profile)();
        let flow = self.flow(Policy::Plain);
        // Timestamps take 12 bytes.
        let ack = if flow.timestamps { 52 } else { 40 };
        let packet = usize::from(flow.mtu);
        let per_ack = if profile.delayed_acks { 2 } else { 1 };
        radio.bound_with(arq, packet - ack, packet, ack, per_ack).bits_per_sec() as f64
    }

    /// Returns the goodput that Mathis' law allows at a share of lost packets, in bit/s, for
    /// senders that follow the law. `rtt` is in seconds.
    pub(super) fn law(&self, lost: f64, rtt: f64) -> Option<f64> {
        let is_its = self.combination == "reno/reno" && self.window == LARGE && lost > 0.0;
        let segment = f64::from(MTU - 40) * 8.0;
        is_its.then(|| segment / rtt * (1.5 / lost).sqrt())
    }

    /// Returns the sender's flow to a mobile behind a station with this policy. The mobile heeds
    /// marks if the policy sets them.
    pub(super) fn flow(&self, policy: Policy) -> FlowSpec {
        let (profile, is_paper) = ((self.profile)(), self.is_papers());
        let usual = FlowSpec::new(self.combination.parse().expect("a name of the registry"));
        FlowSpec {
            name: self.name.to_owned(),
            profile,
            mtu: if is_paper { MTU } else { usual.mtu },
            timestamps: !is_paper,
            sack: !is_paper,
            receive_buffer: Some(self.window),
            mark_aware: policy == Policy::TcpEcn,
            ..usual
        }
    }
}
