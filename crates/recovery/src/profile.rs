//! Profiles: named sets of defaults.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::combination::{Choice, Combination};
use crate::detection::{FACK, LossDetection, SACK, SACK1};
use crate::registry::Entry;
use crate::rtt::RtoForm;

/// A named set of sender and receiver settings, apart from the strategies.
///
/// The fields are public: start from a profile and change individual settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The name. [`all`](Self::all) returns the named profiles.
    pub name: &'static str,
    /// A summary in one line.
    pub summary: &'static str,
    /// The initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// The maximum of cwnd in segments (Linux's `snd_cwnd_clamp`, ns-2's `window_`); `None` for no
    /// limit.
    pub cwnd_clamp: Option<u32>,
    /// L of RFC 3465: the most segments by which one ACK increases cwnd in slow start.
    pub byte_counting_limit: u32,
    /// Whether the first slow start also ends when the RTT grows (HyStart++, RFC 9406).
    pub hystart: bool,
    /// Whether the first two duplicate ACKs permit new data (limited transmit, RFC 3042).
    pub limited_transmit: bool,
    /// DupThresh of RFC 5681 and RFC 6675 (Linux's `tcp_reordering`): the number of duplicate ACKs
    /// or segments above a hole that indicate a loss; at least one. `le` always uses three.
    pub dup_thresh: u8,
    /// Whether a reduction is spread over a round trip (proportional rate reduction, RFC 9937), if
    /// the detection uses SACK.
    pub proportional_rate_reduction: bool,
    /// Whether the tail loss probe is sent before the retransmission timer expires (RFC 8985
    /// section 7), if the detection uses it.
    pub tail_loss_probe: bool,
    /// Whether a spurious reduction is undone (RFC 4015; detected by RFC 3522 and DSACK).
    pub undo: bool,
    /// F-RTO (RFC 5682): without time stamps, the first ACK after a time-out permits new data, so
    /// that the second ACK shows whether the time-out was spurious. Needs `undo`.
    pub f_rto: bool,
    /// Whether cwnd falls to the initial window after nothing was sent for one retransmission
    /// time-out (RFC 5681 section 4.1).
    pub idle_restart: bool,
    /// Whether cwnd is halved after less than half of it was used for five minutes, and whether a
    /// loss before then reduces from the part that was used (RFC 7661).
    pub window_validation: bool,
    /// Whether a reduced window is rounded down to whole segments, as in stacks that count windows
    /// in segments.
    pub whole_segments: bool,
    /// How the retransmission time-out is computed.
    pub rto: RtoForm,
    /// Whether every partial ACK restarts the retransmission timer ("slow but steady", RFC 6582
    /// section 4), whatever the detection says.
    pub patient: bool,
    /// The detection that replaces `sack` (RFC 6675); `None` to use `sack` itself.
    pub sack: Option<&'static Entry<dyn LossDetection>>,
    /// Whether the receiver delays ACKs (RFC 5681 section 4.2); if not, it acknowledges every
    /// segment.
    pub delayed_acks: bool,
}

impl Profile {
    /// The default: the behaviour of current Linux.
    pub const fn modern() -> Self {
        MODERN
    }

    /// The behaviour of the simulators of the 2000s: an initial window of two segments, immediate
    /// window reductions, no probes, no undo, no delayed ACKs, and the time-out of RFC 6298 with a
    /// minimum of 200 ms.
    pub const fn paper() -> Self {
        PAPER
    }

    /// Returns `wanted` with the detection that this profile substitutes for `sack`.
    pub(crate) fn variant_of(&self, wanted: &Combination) -> Combination {
        let variant = self.sack.filter(|_| *wanted.detection().entry() == SACK);
        match variant.map(Choice::plain) {
            Some(Ok(variant)) => wanted.clone().with_detection(variant),
            _ => wanted.clone(),
        }
    }

    /// Returns all named profiles.
    pub const fn all() -> &'static [Self] {
        PROFILES
    }
}

const PROFILES: &[Profile] = &[MODERN, PAPER, NS_2_26, NS_2_35, LINUX_2_2];

const MODERN: Profile = Profile {
    name: "modern",
    summary: "the defaults of airtcp, close to current Linux",
    initial_window: 10,
    cwnd_clamp: None,
    byte_counting_limit: 8,
    hystart: true,
    limited_transmit: true,
    dup_thresh: 3,
    proportional_rate_reduction: true,
    tail_loss_probe: true,
    undo: true,
    f_rto: true,
    idle_restart: true,
    window_validation: true,
    whole_segments: false,
    rto: RtoForm::LINUX,
    patient: false,
    sack: None,
    delayed_acks: true,
};

const PAPER: Profile = Profile {
    name: "paper",
    summary: "simulators of the 2000s: IW 2, no PRR, no undo, no probes, RTO of at least 200 ms, no delayed ACKs",
    initial_window: 2,
    byte_counting_limit: 2,
    hystart: false,
    proportional_rate_reduction: false,
    tail_loss_probe: false,
    undo: false,
    f_rto: false,
    idle_restart: false,
    window_validation: false,
    rto: RtoForm::Rfc { floor: Duration::from_millis(200) },
    delayed_acks: false,
    ..MODERN
};

const NS_2_26: Profile = Profile {
    name: "ns-2.26",
    summary: "ns-2 of 2003: `paper` with an RTO of at least 1 s, windows in whole segments, slow-but-steady NewReno, Sack1's pipe for `sack`",
    // ns-2's minrto_ until 2004.
    rto: RtoForm::Rfc { floor: Duration::from_secs(1) },
    // ns-2's precisionReduce_ was false until 2006.
    whole_segments: true,
    // ns-2's newreno_changes1_ until May 2003.
    patient: true,
    ..NS_2_35
};

const NS_2_35: Profile = Profile {
    name: "ns-2.35",
    summary: "ns-2 of 2011: `paper` with Sack1's pipe for `sack`",
    // ns-2's tcp.cc, opencwnd: one segment for each ACK.
    byte_counting_limit: 1,
    sack: Some(&SACK1),
    ..PAPER
};

const LINUX_2_2: Profile = Profile {
    name: "linux-2.2",
    summary: "Linux of 1999: its RTO, windows in whole segments, slow-but-steady NewReno, FACK for `sack`",
    byte_counting_limit: 1,
    // RFC 3042 dates from 2001.
    limited_transmit: false,
    whole_segments: true,
    rto: RtoForm::Linux22 { floor: Duration::from_millis(200) },
    patient: true,
    sack: Some(&FACK),
    delayed_acks: true,
    ..PAPER
};

impl Default for Profile {
    fn default() -> Self {
        Self::modern()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The error returned for an unknown profile name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownProfile(String);

impl std::error::Error for UnknownProfile {}

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
        write!(f, "no profile `{}`: use one of {}", self.0, names.join(", "))?;
        match airtcp_types::nearest(&self.0, names) {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let found = PROFILES.iter().find(|profile| profile.name == name);
        found.cloned().ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}
