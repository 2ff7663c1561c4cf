//! The states of the state machine, and their gains.

/// The state of the state machine (BBR.state).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

/// BBR.StartupPacingGain: 4 ln 2, the smallest gain that doubles the rate in each round.
pub(super) const STARTUP_PACING_GAIN: f64 = 2.77;
/// BBR.DefaultCwndGain.
const DEFAULT_CWND_GAIN: f64 = 2.0;
/// BBR.ProbeRTTCwndGain.
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeBwDown => "probe-bw-down",
            Self::ProbeBwCruise => "probe-bw-cruise",
            Self::ProbeBwRefill => "probe-bw-refill",
            Self::ProbeBwUp => "probe-bw-up",
            Self::ProbeRtt => "probe-rtt",
        }
    }

    // draft-ietf-ccwg-bbr, "Summary of Control Behavior in the State Machine".
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => 0.5,
            Self::ProbeBwDown => 0.9,
            Self::ProbeBwCruise | Self::ProbeBwRefill => 1.0,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            Self::ProbeBwUp => 1.25,
        }
    }

    pub(super) const fn cwnd_gain(self) -> f64 {
        match self {
            Self::ProbeBwUp => 2.25,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => DEFAULT_CWND_GAIN,
        }
    }

    /// IsInAProbeBWState.
    pub(super) const fn is_in_probe_bw(self) -> bool {
        matches!(
            self,
            Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp
        )
    }

    /// IsProbingBW: returns whether the rate or the data in flight is being raised.
    pub(super) const fn is_probing_bw(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }
}
