//! The senders of all these experiments.

use airtcp_basestation::Policy;
use airtcp_recovery::Profile;
use airtcp_sim::FlowSpec;
use airtcp_types::ByteCount;

/// 1000 bytes of payload and a header of 40: ns-2's flows have no timestamps.
const MTU: u16 = 1_040;
/// ns-2's window where a script does not say another: so many packets.
const PACKETS: u64 = 20;
/// Never the limit: several times what the path holds.
const LARGE: ByteCount = ByteCount::from_mib(4);

/// A sender, with what its connection offers.
#[derive(Clone, Copy)]
pub(super) struct Sender {
    pub(super) name: &'static str,
    combination: &'static str,
    profile: fn() -> Profile,
    /// The receiver's window.
    window: ByteCount,
}

/// The paper's sender is ns-2's Reno. It does not say how large the window is, and what it shows
/// may depend on that.
pub(super) static SENDERS: [Sender; 3] = [
    Sender {
        name: "reno/reno, paper, window 20",
        combination: "reno/reno",
        profile: Profile::paper,
        window: ByteCount(PACKETS * 1_000),
    },
    Sender {
        name: "reno/reno, paper",
        combination: "reno/reno",
        profile: Profile::paper,
        window: LARGE,
    },
    Sender {
        name: "rack/cubic, modern",
        combination: "rack/cubic",
        profile: Profile::modern,
        window: LARGE,
    },
];

/// The sender of that name.
///
/// # Panics
///
/// There is none.
pub(super) fn named(name: &str) -> &'static Sender {
    SENDERS.iter().find(|sender| sender.name == name).expect("one of the senders")
}

impl Sender {
    /// What Mathis' law allows it at a share of lost packets, in bit/s, where that law is its own;
    /// `rtt` in seconds.
    pub(super) fn law(&self, lost: f64, rtt: f64) -> Option<f64> {
        let is_its = self.combination == "reno/reno" && self.window == LARGE && lost > 0.0;
        let segment = f64::from(MTU - 40) * 8.0;
        is_its.then(|| segment / rtt * (1.5 / lost).sqrt())
    }

    /// Its flow to a mobile behind a station of this policy, which knows of that policy what there
    /// is to know.
    pub(super) fn flow(&self, policy: Policy) -> FlowSpec {
        let profile = (self.profile)();
        let usual = FlowSpec::new(self.combination.parse().expect("a name of the registry"));
        let is_paper = profile.name == Profile::paper().name;
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
