//! The probing cycle and its long-term bound (draft-ietf-ccwg-bbr, "ProbeBW").

use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant};

use super::congestion::NO_BOUND;

/// BBR.Headroom.
const HEADROOM: f64 = 0.15;
/// "Time Scale for Bandwidth Probing": the most round trips between two probes.
const MOST_ROUNDS: u64 = 63;
/// The minimum of BBR.bw_probe_wait; a random time of up to a second is added.
const LEAST_WAIT: Duration = Duration::from_secs(2);
/// The maximum of BBR.bw_probe_up_rounds.
const MOST_UP_ROUNDS: u32 = 30;

/// The subject of the feedback in ACKs (BBR.ack_phase).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    /// ACKS_INIT: no probe.
    Init,
    /// ACKS_REFILLING: the pipe is filled.
    Refilling,
    /// ACKS_PROBE_STARTING: a probe has started, and ACKs cover data sent before it.
    ProbeStarting,
    /// ACKS_PROBE_FEEDBACK: ACKs cover data of the probe.
    ProbeFeedback,
    /// ACKS_PROBE_STOPPING: the probe is over, and ACKs still cover data of it.
    ProbeStopping,
}

/// The probing cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample.
    pub(super) is_bw_probe_sample: bool,
    /// BBR.prev_probe_too_high.
    pub(super) prev_probe_too_high: bool,
    /// BBR.prev_probe_precautionary.
    pub(super) prev_probe_precautionary: bool,
    /// BBR.inflight_longterm; [`NO_BOUND`] while it is not set.
    pub(super) inflight_longterm: ByteCount,
    /// BBR.cycle_stamp.
    cycle_stamp: Instant,
    /// BBR.bw_probe_wait.
    bw_probe_wait: Duration,
    /// BBR.rounds_since_probe_up.
    rounds_since_probe_up: u64,
    /// BBR.bw_probe_up_rounds.
    bw_probe_up_rounds: u32,
    /// BBR.bw_probe_up_acked.
    bw_probe_up_acked: ByteCount,
    /// BBR.probe_up_acked_per_inc.
    probe_up_acked_per_inc: ByteCount,
    seed: u64,
    /// The number of waits drawn so far.
    draws: u64,
}

impl Cycle {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            inflight_longterm: NO_BOUND,
            cycle_stamp: Instant::ZERO,
            bw_probe_wait: Duration::ZERO,
            rounds_since_probe_up: 0,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: ByteCount::ZERO,
            probe_up_acked_per_inc: NO_BOUND,
            seed,
            draws: 0,
        }
    }

    /// Handles the start of a round trip.
    pub(super) const fn on_round(&mut self) {
        self.rounds_since_probe_up += 1;
    }

    /// Starts a cycle: the wait until the next probe.
    pub(super) fn start_wait(&mut self, now: Instant) {
        self.probe_up_acked_per_inc = NO_BOUND;
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        // PickProbeWait. Each draw has a stream of its own, so that no generator has to be stored.
        let mut random = Stream::new(self.seed, self.draws);
        self.draws += 1;
        self.rounds_since_probe_up = random.below(2);
        self.bw_probe_wait = LEAST_WAIT + Duration::from_secs(1).mul_f64(random.next_f64());
    }

    /// Starts to fill the pipe for a probe.
    pub(super) const fn start_refill(&mut self) {
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = ByteCount::ZERO;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
    }

    /// Returns whether it is time to probe. `target_inflight` is in segments.
    pub(super) fn is_time_to_probe(&self, now: Instant, target_inflight: u64) -> bool {
        // HasElapsedInPhase, IsRenoCoexistenceProbeTime
        now > self.cycle_stamp + self.bw_probe_wait
            || self.rounds_since_probe_up >= target_inflight.min(MOST_ROUNDS)
    }

    /// InflightWithHeadroom, at least `floor`.
    pub(super) fn inflight_with_headroom(&self, smss: ByteCount, floor: ByteCount) -> ByteCount {
        if self.inflight_longterm == NO_BOUND {
            return NO_BOUND;
        }
        let headroom = self.inflight_longterm.scale(HEADROOM).max(smss);
        (self.inflight_longterm - headroom).max(floor)
    }

    /// RaiseInflightLongtermSlope: the growth in this round is twice that of the previous one.
    pub(super) fn raise_slope(&mut self, cwnd: ByteCount, smss: ByteCount) {
        let growth_this_round = 1u64 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(MOST_UP_ROUNDS);
        self.probe_up_acked_per_inc = ByteCount(cwnd.0 / growth_this_round).max(smss);
    }

    /// The growth in ProbeInflightLongtermUpward, while the bound is the limit; `acked` bytes were
    /// delivered.
    pub(super) fn grow_longterm(&mut self, acked: ByteCount, smss: ByteCount) {
        self.bw_probe_up_acked += acked;
        let delta = self.bw_probe_up_acked.0 / self.probe_up_acked_per_inc.0.max(1);
        if delta > 0 {
            self.bw_probe_up_acked -= self.probe_up_acked_per_inc * delta;
            self.inflight_longterm += smss * delta;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: ByteCount = ByteCount(1_000);

    #[test]
    fn the_wait_is_random_between_two_and_three_seconds() {
        let mut cycle = Cycle::new(7);
        let mut waits = Vec::new();
        for _ in 0..20 {
            cycle.start_wait(Instant::ZERO);
            assert!(cycle.rounds_since_probe_up < 2);
            waits.push(cycle.bw_probe_wait);
        }
        let (least, most) = (Duration::from_secs(2), Duration::from_secs(3));
        assert!(waits.iter().all(|wait| (least..most).contains(wait)), "{waits:?}");
        let mut same = Cycle::new(7);
        same.start_wait(Instant::ZERO);
        assert_eq!(same.bw_probe_wait, waits[0]);
        waits.dedup();
        assert_eq!(waits.len(), 20);
    }

    #[test]
    fn probing_waits_for_the_clock_or_the_rounds_of_reno() {
        let mut cycle = Cycle::new(1);
        cycle.start_wait(Instant::from_millis(10_000));
        assert!(!cycle.is_time_to_probe(Instant::from_millis(12_000), 1_000));
        assert!(cycle.is_time_to_probe(Instant::from_millis(13_000), 1_000));
        for _ in 0..20 {
            cycle.on_round();
        }
        let at = Instant::from_millis(10_100);
        assert!(cycle.is_time_to_probe(at, 20) && !cycle.is_time_to_probe(at, 22));
        for _ in 0..43 {
            cycle.on_round();
        }
        assert!(cycle.is_time_to_probe(at, u64::MAX), "63 rounds are always enough");
    }

    #[test]
    fn headroom_is_left_below_a_bound_that_is_set() {
        let mut cycle = Cycle::new(1);
        assert_eq!(cycle.inflight_with_headroom(SMSS, SMSS), NO_BOUND);
        for (bound, left) in [(100_000, 85_000), (5_000, 4_000), (2_000, 1_500), (500, 1_500)] {
            cycle.inflight_longterm = ByteCount(bound);
            let with_headroom = cycle.inflight_with_headroom(SMSS, ByteCount(1_500));
            assert_eq!(with_headroom, ByteCount(left), "{bound}");
        }
    }

    #[test]
    fn growth_doubles_with_each_round() {
        let mut cycle = Cycle::new(1);
        cycle.start_refill();
        cycle.inflight_longterm = ByteCount(100_000);
        let mut steps = Vec::new();
        for _ in 0..5 {
            cycle.raise_slope(ByteCount(100_000), SMSS);
            let before = cycle.inflight_longterm;
            // A window is acknowledged, segment by segment.
            (0..100).for_each(|_| cycle.grow_longterm(SMSS, SMSS));
            steps.push((cycle.inflight_longterm - before).0 / SMSS.0);
        }
        assert_eq!(steps, [1, 2, 4, 8, 16]);
        for _ in 0..100 {
            cycle.raise_slope(ByteCount(100_000), SMSS);
        }
        assert_eq!(cycle.probe_up_acked_per_inc, SMSS, "the slope has a limit");
    }
}
