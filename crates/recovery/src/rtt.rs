//! RTT estimates and the retransmission time-out (RFC 6298).

use std::time::Duration;

use crate::learned::LearnedRtt;

/// The formula of the retransmission time-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoForm {
    /// SRTT + max(floor, 4 RTTVAR), as in Linux. The floor applies to the variance term, so that on
    /// a stable long path the time-out is never close to the RTT.
    Linux {
        /// The minimum of the term added to SRTT.
        floor: Duration,
    },
    /// max(floor, SRTT + max(G, 4 RTTVAR)), as in RFC 6298 section 2.
    Rfc {
        /// The minimum time-out.
        floor: Duration,
    },
    /// The formula of Linux 2.2 (`tcp_set_rto`): t + t / 4 + t / 2^(cwnd - 1) with t = SRTT + 4
    /// RTTVAR and cwnd in segments, but at least the floor. It is therefore at least 1.25 SRTT, and
    /// 2.25 SRTT with a window of one. The back-off ends when nothing is outstanding, not with a
    /// sample.
    Linux22 {
        /// The minimum time-out.
        floor: Duration,
    },
}

impl RtoForm {
    /// Linux's formula with its floor of 200 ms.
    pub const LINUX: Self = Self::Linux { floor: Duration::from_millis(200) };
    /// RFC 6298's formula with its floor of 1 s.
    pub const RFC: Self = Self::Rfc { floor: Duration::from_secs(1) };

    /// Returns the same formula with another floor.
    #[must_use]
    pub const fn with_floor(self, floor: Duration) -> Self {
        match self {
            Self::Linux { .. } => Self::Linux { floor },
            Self::Rfc { .. } => Self::Rfc { floor },
            Self::Linux22 { .. } => Self::Linux22 { floor },
        }
    }

    /// Returns whether the back-off lasts until nothing is outstanding.
    const fn keeps_backoff(self) -> bool {
        matches!(self, Self::Linux22 { .. })
    }
}

/// RFC 6298 section 2.1: the time-out before the first sample.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// RFC 6298 section 5.7: the time-out before the first sample if the SYN was retransmitted.
const RTO_AFTER_SYN_LOSS: Duration = Duration::from_secs(3);
/// RFC 6298 section 2.5 allows a maximum of at least 60 s; Linux's is 120 s.
const MAX_RTO: Duration = Duration::from_secs(120);
/// RFC 6298's clock granularity G.
const GRANULARITY: Duration = Duration::from_millis(1);

/// The RTT estimates (SRTT, RTTVAR) and the retransmission time-out.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    form: RtoForm,
    /// SRTT and RTTVAR; `None` before the first sample.
    smoothed: Option<(Duration, Duration)>,
    latest: Option<Duration>,
    min: Option<Duration>,
    /// The smallest sample of other connections to the same peer.
    inherited_min: Option<Duration>,
    /// The smallest sample since the last [`hand_on`](Self::hand_on).
    recent_min: Option<Duration>,
    initial: Duration,
    backoff: u32,
    /// K of RFC 6298: the multiple of RTTVAR that the time-out adds to SRTT.
    variances: u32,
    /// cwnd at the last sample (segments).
    window: u32,
}

/// RFC 6298 section 2: K.
const VARIANCES: u32 = 4;

impl RttEstimator {
    /// Creates an estimator without a sample. With `syn_retransmitted` the first time-out is 3 s
    /// (RFC 6298 section 5.7).
    pub fn new(form: RtoForm, syn_retransmitted: bool) -> Self {
        let initial = if syn_retransmitted { RTO_AFTER_SYN_LOSS } else { INITIAL_RTO };
        Self {
            form,
            smoothed: None,
            latest: None,
            min: None,
            inherited_min: None,
            recent_min: None,
            initial,
            backoff: 0,
            variances: VARIANCES,
            window: 1,
        }
    }

    /// Processes a sample (RFC 6298 sections 2.2 and 2.3) and ends the back-off, except with
    /// [`RtoForm::Linux22`]. The caller applies Karn's rule.
    pub fn on_sample(&mut self, sample: Duration) {
        if !self.form.keeps_backoff() {
            self.backoff = 0;
        }
        self.latest = Some(sample);
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        self.recent_min = Some(self.recent_min.map_or(sample, |min| min.min(sample)));
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / 2),
            Some(smoothed) => smooth(smoothed, sample),
        });
    }

    /// Starts from the estimates of other connections to the same peer. If this connection already
    /// has a sample, that counts as the next one.
    pub fn inherit(&mut self, known: &LearnedRtt) {
        let smoothed = (known.srtt, known.rttvar);
        self.smoothed = Some(self.latest.map_or(smoothed, |sample| smooth(smoothed, sample)));
        self.inherited_min = Some(known.min);
    }

    /// Exports the estimates. The minimum is that of the samples since the last export, so that no
    /// sample is exported twice or outlives a change to a longer path; `None` if there were none.
    pub(crate) fn hand_on(&mut self) -> Option<LearnedRtt> {
        let (srtt, rttvar) = self.smoothed?;
        Some(LearnedRtt { srtt, rttvar, min: self.recent_min.take()? })
    }

    /// Sets K, the multiple of RTTVAR in the time-out; `None` is RFC 6298's four. A smaller K
    /// lowers the floor in proportion.
    pub(crate) fn set_variances(&mut self, variances: Option<u32>) {
        self.variances = variances.unwrap_or(VARIANCES);
    }

    /// Sets cwnd in segments, which [`RtoForm::Linux22`] uses.
    pub(crate) fn set_window(&mut self, segments: u32) {
        self.window = segments.max(1);
    }

    /// Records that nothing is outstanding.
    pub(crate) fn on_all_acked(&mut self) {
        if self.form.keeps_backoff() {
            self.backoff = 0;
        }
    }

    /// Doubles the time-out (RFC 6298 section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Ends the back-off without a sample.
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Returns the number of times that the time-out was doubled since the back-off last ended.
    pub const fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Returns SRTT.
    pub fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// Returns RTTVAR.
    pub fn rttvar(&self) -> Option<Duration> {
        self.smoothed.map(|(_, rttvar)| rttvar)
    }

    /// Returns the last sample.
    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Returns the smallest sample of this connection and of those that it inherited from.
    pub fn min(&self) -> Option<Duration> {
        self.min.into_iter().chain(self.inherited_min).min()
    }

    /// Returns the retransmission time-out, including the back-off.
    pub fn rto(&self) -> Duration {
        // A smaller K lowers the floor; a larger K does not raise it.
        let lowered = |floor: Duration| floor / VARIANCES * self.variances.min(VARIANCES);
        let base = match (self.smoothed, self.form) {
            (None, _) => self.initial,
            (Some((srtt, rttvar)), RtoForm::Linux { floor }) => {
                srtt + lowered(floor).max(rttvar * self.variances)
            }
            (Some((srtt, rttvar)), RtoForm::Rfc { floor }) => {
                lowered(floor).max(srtt + GRANULARITY.max(rttvar * self.variances))
            }
            (Some((srtt, rttvar)), RtoForm::Linux22 { floor }) => {
                let term = srtt + rttvar * self.variances;
                let term = term + term / 4 + term / (1 << (self.window - 1).min(31));
                lowered(floor).max(term)
            }
        };
        base.saturating_mul(1 << self.backoff.min(16)).min(MAX_RTO)
    }
}

/// RFC 6298 section 2.3: returns SRTT and RTTVAR after a sample.
fn smooth((srtt, rttvar): (Duration, Duration), sample: Duration) -> (Duration, Duration) {
    let deviation = srtt.abs_diff(sample);
    ((srtt * 7 + sample) / 8, (rttvar * 3 + deviation) / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    // Shows: RFC9293-MUST-18, RFC6298-2.1, RFC6298-2.2
    #[test]
    fn the_first_sample_sets_both_estimates() {
        let mut rtt = RttEstimator::new(RtoForm::RFC, false);
        assert_eq!(rtt.rto(), ms(1000));
        rtt.on_sample(ms(400));
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(400)), Some(ms(200))));
        assert_eq!(rtt.rto(), ms(1200));
    }

    #[test]
    fn fewer_variances_lower_the_floor_and_more_do_not_raise_it() {
        let floor = ms(400);
        for form in [RtoForm::Rfc { floor }, RtoForm::Linux { floor }, RtoForm::Linux22 { floor }] {
            let mut rtt = RttEstimator::new(form, false);
            (0..200).for_each(|_| rtt.on_sample(ms(20)));
            let of = |rtt: &mut RttEstimator, variances| {
                rtt.set_variances(Some(variances));
                rtt.rto()
            };
            let usual = of(&mut rtt, 4);
            assert!(usual >= floor && of(&mut rtt, 2) <= usual - floor / 4, "{form:?}");
            assert_eq!(of(&mut rtt, 16), usual, "{form:?}");
        }
    }

    // Shows: RFC9293-MUST-18, RFC6298-2.3-1, RFC6298-2.3-2
    #[test]
    fn later_samples_are_smoothed_by_an_eighth_and_a_quarter() {
        let mut rtt = RttEstimator::new(RtoForm::RFC, false);
        rtt.on_sample(ms(400));
        rtt.on_sample(ms(480));
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(410)), Some(ms(170))));
    }

    // Shows: RFC6298-2.3-3, RFC6298-4
    #[test]
    fn on_a_steady_path_linux_keeps_its_distance_and_the_rfc_its_floor() {
        let (mut linux, mut rfc) = (
            RttEstimator::new(RtoForm::LINUX, false),
            RttEstimator::new(RtoForm::Rfc { floor: ms(200) }, false),
        );
        for _ in 0..100 {
            linux.on_sample(ms(300));
            rfc.on_sample(ms(300));
        }
        assert_eq!(linux.rto(), ms(500));
        assert_eq!(rfc.rto(), ms(301));
    }

    #[test]
    fn fewer_variances_lower_the_floor_in_proportion() {
        // LE 5.2.2: on a path of 20 ms the time-out of RR must be shorter than the traditional one.
        for (form, of) in
            [(RtoForm::LINUX, [220, 120]), (RtoForm::Rfc { floor: ms(200) }, [200, 100])]
        {
            let mut rtt = RttEstimator::new(form, false);
            (0..100).for_each(|_| rtt.on_sample(ms(20)));
            for (variances, rto) in [None, Some(2)].into_iter().zip(of) {
                rtt.set_variances(variances);
                assert_eq!(rtt.rto(), ms(rto), "{form:?}");
            }
        }
    }

    #[test]
    fn the_time_out_of_linux_2_2_is_over_a_quarter_above_the_round_trip() {
        let mut rtt = RttEstimator::new(RtoForm::Linux22 { floor: ms(200) }, false);
        for _ in 0..100 {
            rtt.on_sample(ms(400));
        }
        for (window, rto) in [(1, ms(900)), (2, ms(700)), (3, ms(600)), (100, ms(500))] {
            rtt.set_window(window);
            assert_eq!(rtt.rto(), rto, "{window}");
        }
        (0..200).for_each(|_| rtt.on_sample(ms(1)));
        assert_eq!(rtt.rto(), ms(200));
        rtt.back_off();
        rtt.on_sample(ms(1));
        assert_eq!(rtt.rto(), ms(400));
        rtt.on_all_acked();
        assert_eq!(rtt.rto(), ms(200));
    }

    // Shows: RFC6298-5.5, RFC6298-5.7
    #[test]
    fn back_off_doubles_to_the_maximum_and_a_sample_ends_it() {
        let mut rtt = RttEstimator::new(RtoForm::LINUX, true);
        assert_eq!(rtt.rto(), Duration::from_secs(3));
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(6));
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), MAX_RTO);
        rtt.on_sample(ms(100));
        assert_eq!((rtt.backoff(), rtt.rto()), (0, ms(300)));
    }
}
