//! Named sets of defaults.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::rtt::RtoForm;

/// What a sender does besides its strategies, under a name.
///
/// The fields are public: take a profile and change what you need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// `modern` or `paper`.
    pub name: &'static str,
    /// The initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// L of RFC 3465: segments that one ACK may count for in slow start.
    pub byte_counting_limit: u32,
    /// Whether the first slow start ends when round trips grow, too (HyStart++, RFC 9406).
    pub hystart: bool,
    /// New data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// DupThresh of RFC 5681 and RFC 6675 (Linux's `tcp_reordering`): so many signs that something is missing are a loss, one
    /// at least. `le` has three, whatever this says.
    pub dup_thresh: u8,
    /// Whether a reduction is spread over the round trip it takes (RFC 9937), where the detection
    /// goes by SACK.
    pub proportional_rate_reduction: bool,
    /// Whether a tail that nothing is heard of is probed before the retransmission timer runs out
    /// (RFC 8985 section 7), where the detection makes use of it.
    pub tail_loss_probe: bool,
    /// Whether a reduction found spurious is taken back (RFC 4015; detected by RFC 3522 and DSACK).
    pub undo: bool,
    /// Whether, without time stamps, new data leaves on the first ACK after a time-out, so that the second ACK shows
    /// whether it was spurious (F-RTO, RFC 5682). It takes `undo`.
    pub f_rto: bool,
    /// Whether cwnd falls to the initial window after a time-out's worth of silence (RFC 5681
    /// section 4.1).
    pub idle_restart: bool,
    /// Whether a window of which less than half was used for five minutes is halved, and a loss meanwhile answered from
    /// what was used (RFC 7661).
    pub window_validation: bool,
    /// How the retransmission time-out is computed.
    pub rto: RtoForm,
    /// Whether the receiver delays ACKs (RFC 5681 section 4.2); without, every segment is
    /// acknowledged.
    pub delayed_acks: bool,
}

impl Profile {
    /// What a current Linux host does, and the default.
    pub const fn modern() -> Self {
        Self {
            name: "modern",
            initial_window: 10,
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
            rto: RtoForm::LINUX,
            delayed_acks: true,
        }
    }

    /// What the simulators of the 2000s did: an initial window of two segments, windows that fall
    /// at once, no probes, no undo, every segment acknowledged, RFC 6298's time-out with a floor
    /// of 200 ms.
    pub const fn paper() -> Self {
        Self {
            name: "paper",
            initial_window: 2,
            byte_counting_limit: 2,
            hystart: false,
            limited_transmit: true,
            dup_thresh: 3,
            proportional_rate_reduction: false,
            tail_loss_probe: false,
            undo: false,
            f_rto: false,
            idle_restart: false,
            window_validation: false,
            rto: RtoForm::Rfc { floor: Duration::from_millis(200) },
            delayed_acks: false,
        }
    }
}

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

/// There is no profile of that name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no profile `{0}`: use `modern` or `paper`")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        match name {
            "modern" => Ok(Self::modern()),
            "paper" => Ok(Self::paper()),
            other => Err(UnknownProfile(other.to_owned())),
        }
    }
}
