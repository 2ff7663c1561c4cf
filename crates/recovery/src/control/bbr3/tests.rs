//! The control as a whole, ACK by ACK. Whole connections are in `tests/sim/bbr3`.

use std::time::Duration;

use super::congestion::ShortTerm;
use super::sample::tests::sample;
use super::*;
use crate::control::Loss;
use crate::judge::Cause;
use crate::testkit::{RTT, SMSS, ack_view};

const REDUCE: NoticeKind =
    NoticeKind::Reduce { flight_size: ByteCount::ZERO, cause: Cause::Congestion };
const TIMEOUT: NoticeKind = NoticeKind::Timeout { flight_size: ByteCount::ZERO, first: true };
const IDLE: NoticeKind =
    NoticeKind::Idle { time: Duration::from_secs(1), restart: true, app_limited: true };

fn params() -> ControlParams {
    let initial = ByteCount(10 * SMSS);
    ControlParams { rtt: Some(RTT), seed: 3, ..ControlParams::new(ByteCount(SMSS), initial) }
}

/// A control and the path of its ACKs: 100 segments per RTT of 100 ms; the excess waits in a queue.
struct Flow {
    bbr: Machine,
    now: Instant,
    delivered: ByteCount,
    /// The queueing delay that is added to the RTT.
    queue: Duration,
    /// Whether the window is the limit.
    is_cwnd_limited: bool,
}

const PATH: ByteCount = ByteCount(100 * SMSS);

impl Flow {
    fn new() -> Self {
        Self {
            bbr: Machine::new(&params()),
            now: Instant::ZERO,
            delivered: ByteCount::ZERO,
            queue: Duration::ZERO,
            is_cwnd_limited: false,
        }
    }

    /// Returns a flow in ProbeBW, in `state`.
    fn in_state(state: State) -> Self {
        let mut flow = Self::new();
        flow.until(state);
        flow
    }

    fn until(&mut self, state: State) {
        for _ in 0..1_000 {
            if self.bbr.state == state {
                return;
            }
            self.round();
        }
        panic!("{state:?} does not come: {:?}", self.bbr);
    }

    fn sample(&self) -> Sample {
        let inflight = self.bbr.cwnd.min(PATH);
        Sample {
            now: self.now,
            rtt: Some(RTT + self.queue),
            delivery_rate: Rate::from_bytes_over(inflight, RTT),
            delivered: inflight,
            newly_acked: inflight,
            prior_delivered: self.delivered - inflight,
            tx_in_flight: inflight,
            total_delivered: self.delivered,
            inflight,
            is_cwnd_limited: self.is_cwnd_limited,
            ..sample()
        }
    }

    /// Processes one ACK of a whole round trip.
    fn round(&mut self) {
        self.now += RTT + self.queue;
        self.delivered += self.bbr.cwnd.min(PATH);
        let mut sample = self.sample();
        sample.is_app_limited |= self.bbr.probe_rtt.limits(sample.prior_delivered);
        self.bbr.delivered = self.delivered;
        self.bbr.update_on_ack(&sample);
    }

    fn notice(&mut self, kind: NoticeKind) {
        let delivered = self.delivered;
        let notice = Notice { delivered, ..Notice::new(self.now, ByteCount(SMSS), kind) };
        self.bbr.on_notice(&notice);
    }

    /// Reports the loss of a segment that was sent with `PATH` in flight, since when `share` of it
    /// was lost.
    fn lose(&mut self, cause: Cause, share: f64) {
        self.notice(NoticeKind::Lost(Loss {
            start: airtcp_types::ExtSeq(self.delivered.0),
            bytes: ByteCount(SMSS),
            cause,
            sent_at: self.now,
            tx_in_flight: PATH,
            prior_delivered: self.delivered,
            lost_since_sent: PATH.scale(share),
            app_limited: false,
        }));
    }
}

#[test]
fn the_first_rate_follows_from_the_first_round_trip_time() {
    let expected = |rtt| Rate::from_bytes_over(ByteCount(10 * SMSS), rtt).scale(2.77);
    let mut flow = Flow::new();
    assert_eq!(flow.bbr.pacing_rate, expected(RTT));
    flow.bbr = Machine::new(&ControlParams { rtt: None, ..params() });
    assert_eq!(flow.bbr.pacing_rate, expected(Duration::from_millis(1)));
    let sample = Sample { rtt: Some(RTT), newly_acked: ByteCount(SMSS), ..sample() };
    flow.bbr.update_on_ack(&sample);
    assert_eq!(flow.bbr.pacing_rate, expected(RTT), "it is set anew, and lower");
}

#[test]
fn bbr3_passes_through_its_states_with_their_gains() {
    let mut flow = Flow::new();
    let rate = Rate::from_bytes_over(PATH, RTT);
    flow.until(State::ProbeBwCruise);
    assert_eq!(flow.bbr.bw, rate);
    for (state, pacing, window) in [
        (State::ProbeBwUp, 1.25, 2.25),
        (State::ProbeBwDown, 0.9, 2.0),
        (State::ProbeBwCruise, 1.0, 2.0),
        (State::ProbeBwRefill, 1.0, 2.0),
    ] {
        flow.until(state);
        assert_eq!(flow.bbr.pacing_rate, rate.scale(pacing * 0.99), "{state:?}");
        flow.round();
        if flow.bbr.state == state {
            let extra = ByteCount(if state == State::ProbeBwUp { 2 * SMSS } else { 0 });
            let cwnd = PATH.scale(window) + flow.bbr.extra_acked.get() + extra;
            assert_eq!(flow.bbr.cwnd, cwnd, "{state:?}");
        }
    }
    // A millisecond at the pacing rate.
    assert_eq!(flow.bbr.quantum(), ByteCount(2 * SMSS));
}

#[test]
fn losses_without_congestion_change_nothing() {
    for cause in [Cause::Random, Cause::Corruption, Cause::TooBig, Cause::Reordering] {
        let mut flow = Flow::in_state(State::ProbeBwUp);
        let before = format!("{:?}", flow.bbr);
        (0..100).for_each(|_| flow.lose(cause, 0.5));
        flow.notice(NoticeKind::Reduce { flight_size: ByteCount::ZERO, cause });
        assert_eq!(format!("{:?}", flow.bbr), before, "{cause:?}");
    }
    let mut flow = Flow::in_state(State::ProbeBwUp);
    flow.lose(Cause::Congestion, 0.02);
    assert_eq!(flow.bbr.state, State::ProbeBwUp, "2 % are tolerated");
    flow.lose(Cause::Congestion, 0.03);
    assert_eq!(flow.bbr.state, State::ProbeBwDown);
    // Of 99 segments in flight before this one, 1.98 may be lost; two had been.
    assert_eq!(flow.bbr.cycle.inflight_longterm, PATH - ByteCount(SMSS));
}

#[test]
fn bbr3_sends_the_random_share_in_addition() {
    let mut flow = Flow::in_state(State::ProbeBwCruise);
    let (rate, bdp) = (flow.bbr.bw, PATH);
    for (share, factor) in [(0.1, 0.9), (0.3, 0.7), (0.9, 0.7), (-1.0, 1.0), (f64::NAN, 1.0)] {
        flow.bbr.random_share = share;
        flow.bbr.set_pacing_rate_with_gain(1.0);
        assert_eq!(flow.bbr.pacing_rate, rate.scale(0.99 / factor), "{share}");
        assert_eq!(flow.bbr.bdp_multiple(rate, 2.0), bdp.scale(1.0 / factor) * 2, "{share}");
    }
}

#[test]
fn a_loss_outside_probes_lowers_the_short_term_bounds_until_the_next() {
    let mut flow = Flow::in_state(State::ProbeBwCruise);
    flow.round();
    let window = flow.bbr.cwnd;
    flow.lose(Cause::Congestion, 0.01);
    flow.notice(REDUCE);
    flow.round();
    // The delivery rate has not changed: the bound is the bandwidth.
    let bounds = flow.bbr.congestion.short_term;
    assert_eq!(bounds.bw, flow.bbr.max_bw.get());
    assert_eq!(bounds.inflight, window.scale(0.7));
    assert!(flow.bbr.cwnd <= bounds.inflight);
    flow.until(State::ProbeBwRefill);
    assert_eq!(flow.bbr.congestion.short_term, ShortTerm::UNBOUNDED);
}

#[test]
fn a_time_out_leaves_one_segment_and_the_window_comes_back_after_it() {
    let mut flow = Flow::in_state(State::ProbeBwCruise);
    let before = flow.bbr.cwnd;
    flow.lose(Cause::Timeout, 1.0);
    flow.notice(TIMEOUT);
    assert_eq!(flow.bbr.cwnd, ByteCount(2 * SMSS), "one is in flight");
    flow.notice(NoticeKind::Timeout { flight_size: ByteCount::ZERO, first: false });
    flow.notice(NoticeKind::RecoveryOver);
    assert_eq!(flow.bbr.cwnd, before);
    flow.bbr.cwnd = ByteCount(SMSS);
    flow.notice(NoticeKind::RecoveryOver);
    assert_eq!(flow.bbr.cwnd, ByteCount(SMSS), "no recovery, nothing to come back to");
}

#[test]
fn an_undo_resumes_the_probe_that_spurious_losses_ended() {
    let mut flow = Flow::in_state(State::ProbeBwUp);
    let (window, longterm) = (flow.bbr.cwnd, flow.bbr.cycle.inflight_longterm);
    flow.lose(Cause::Congestion, 0.05);
    flow.lose(Cause::Congestion, 0.06);
    flow.notice(REDUCE);
    assert_eq!(flow.bbr.state, State::ProbeBwDown);
    assert!(flow.bbr.cycle.inflight_longterm < longterm);
    flow.notice(NoticeKind::Undo { resumes: false });
    assert_eq!(flow.bbr.state, State::ProbeBwRefill);
    assert_eq!(flow.bbr.cycle.inflight_longterm, longterm);
    assert_eq!(flow.bbr.cwnd, window);
    // A second undo has nothing to restore.
    flow.bbr.state = State::ProbeBwCruise;
    flow.notice(NoticeKind::Undo { resumes: false });
    assert_eq!(flow.bbr.state, State::ProbeBwCruise);
}

#[test]
fn losses_of_a_recovery_that_an_undo_resumes_save_no_state() {
    for resumes in [true, false] {
        let mut flow = Flow::in_state(State::ProbeBwCruise);
        flow.lose(Cause::Congestion, 0.01);
        flow.notice(REDUCE);
        flow.lose(Cause::Timeout, 0.01);
        flow.notice(TIMEOUT);
        flow.notice(NoticeKind::Undo { resumes });
        assert_eq!(flow.bbr.recovery.is_on(), resumes);
        flow.lose(Cause::Congestion, 0.01);
        assert_eq!(flow.bbr.undo.is_some(), !resumes);
        flow.notice(NoticeKind::RecoveryOver);
        assert!(!flow.bbr.recovery.is_on());
    }
}

#[test]
fn a_share_of_marks_above_the_threshold_ends_a_probe() {
    let mut flow = Flow::in_state(State::ProbeBwUp);
    flow.bbr.delivered = flow.delivered;
    let marked = |flow: &Flow, bytes| AckView {
        ece: true,
        marked: ByteCount(bytes),
        delivered_total: flow.delivered,
        ..ack_view(flow.now, ByteCount(50 * SMSS))
    };
    // 2 % of the bytes in flight.
    flow.bbr.on_ack(&marked(&flow, 2 * SMSS));
    flow.bbr.update_on_ack(&flow.sample());
    assert_eq!(flow.bbr.state, State::ProbeBwUp);
    flow.bbr.on_ack(&marked(&flow, 1));
    flow.bbr.update_on_ack(&flow.sample());
    assert_eq!(flow.bbr.state, State::ProbeBwDown);
    assert_eq!(flow.bbr.cycle.inflight_longterm, PATH);
    // No sign shows a mark to be spurious.
    flow.notice(NoticeKind::Undo { resumes: false });
    assert_eq!(flow.bbr.state, State::ProbeBwDown);
}

#[test]
fn an_undo_ends_the_recovery_and_leaves_what_marks_have_lowered() {
    let mut flow = Flow::in_state(State::ProbeBwUp);
    let window = flow.bbr.cwnd;
    flow.bbr.delivered = flow.delivered;
    flow.lose(Cause::Timeout, 0.01);
    flow.notice(TIMEOUT);
    assert!(flow.bbr.recovery.is_on() && flow.bbr.cwnd < window);
    flow.bbr.on_ack(&AckView {
        ece: true,
        marked: ByteCount(50 * SMSS),
        delivered_total: flow.delivered,
        ..ack_view(flow.now, ByteCount(50 * SMSS))
    });
    flow.bbr.update_on_ack(&flow.sample());
    let state = flow.bbr.state;
    let (bounds, longterm) = (flow.bbr.congestion.short_term, flow.bbr.cycle.inflight_longterm);
    flow.notice(NoticeKind::Undo { resumes: false });
    assert!(!flow.bbr.recovery.is_on());
    assert_eq!(flow.bbr.state, state);
    assert_eq!(flow.bbr.congestion.short_term, bounds);
    assert_eq!(flow.bbr.cycle.inflight_longterm, longterm);
}

#[test]
fn a_mark_in_a_round_lowers_the_short_term_bounds_as_a_loss_does() {
    let mut flow = Flow::in_state(State::ProbeBwCruise);
    flow.round();
    let window = flow.bbr.cwnd;
    flow.bbr.on_ack(&AckView {
        ece: true,
        marked: ByteCount(SMSS),
        delivered_total: flow.delivered,
        ..ack_view(flow.now, ByteCount(SMSS))
    });
    flow.round();
    assert_eq!(flow.bbr.congestion.short_term.inflight, window.scale(0.7));
}

#[test]
fn probe_rtt_halves_the_volume_in_flight_and_its_samples_do_not_count() {
    let mut flow = Flow::new();
    flow.until(State::ProbeBwCruise);
    // The queue hides the base RTT.
    flow.queue = Duration::from_millis(20);
    flow.until(State::ProbeRtt);
    assert_eq!(flow.bbr.pacing_rate, flow.bbr.bw.scale(0.5 * 0.99), "spread over the round trip");
    let (began, max_bw) = (flow.now, flow.bbr.max_bw.get());
    assert!(began > Instant::from_millis(5_000));
    assert_eq!(flow.bbr.cwnd, PATH.half());
    while flow.bbr.state == State::ProbeRtt {
        flow.round();
        assert!(flow.bbr.cwnd == PATH.half() || flow.bbr.state != State::ProbeRtt);
    }
    assert!(flow.now.since(began) >= Duration::from_millis(200));
    assert_eq!(flow.bbr.state, State::ProbeBwCruise);
    (0..100).for_each(|_| flow.round());
    assert_eq!(flow.bbr.max_bw.get(), max_bw);
    assert!(flow.bbr.cwnd >= PATH * 2);
}

#[test]
fn a_low_load_that_a_judge_asks_for_leaves_probes_and_the_minimum_as_they_are() {
    // Counts the states that start in 20 s: ProbeRTTs, and probes of the bandwidth.
    let begun = |low_load_wanted| {
        let mut flow = Flow::in_state(State::ProbeBwCruise);
        flow.bbr.low_load_wanted = low_load_wanted;
        let (mut low, mut up, end) = (0, 0, flow.now + Duration::from_secs(20));
        while flow.now < end {
            let before = flow.bbr.state;
            flow.round();
            let begins = |state| u32::from(flow.bbr.state == state && before != state);
            low += begins(State::ProbeRtt);
            up += begins(State::ProbeBwUp);
        }
        (low, up)
    };
    let ((least, up), (low, still_up)) = (begun(false), begun(true));
    assert!(low > least + 4, "{low} and {least}");
    assert!(up >= 4 && still_up + 1 >= up, "{still_up} and {up}");
}

#[test]
fn after_a_pause_it_paces_at_the_bandwidth_and_skips_probe_rtt() {
    let mut flow = Flow::in_state(State::ProbeBwDown);
    let window = flow.bbr.cwnd;
    flow.now += Duration::from_secs(20);
    flow.notice(IDLE);
    assert_eq!(flow.bbr.pacing_rate, flow.bbr.bw.scale(0.99));
    assert_eq!(flow.bbr.cwnd, window, "the window stays");
    flow.round();
    assert_ne!(flow.bbr.state, State::ProbeRtt);
    // A pause in ProbeRTT ends it, if it was long enough.
    flow.until(State::ProbeRtt);
    while flow.bbr.probe_rtt.done_stamp.is_none() {
        flow.round();
    }
    flow.now += Duration::from_secs(1);
    flow.notice(IDLE);
    assert_eq!(flow.bbr.state, State::ProbeBwCruise);
    assert_eq!(flow.bbr.cwnd, window);
    assert_eq!(flow.bbr.pacing_rate, flow.bbr.bw.scale(0.99), "no longer at half of the rate");
}

#[test]
fn bbr3_continues_with_the_window_of_another_control() {
    let mut flow = Flow::new();
    flow.notice(NoticeKind::TakeOver { cwnd: PATH, ssthresh: Some(PATH) });
    assert_eq!(flow.bbr.cwnd, PATH);
    assert_eq!(flow.bbr.pacing_rate, Rate::from_bytes_over(PATH, RTT).scale(2.77));
    assert_eq!(flow.bbr.state, State::Startup);
    flow.until(State::ProbeBwCruise);
    assert_eq!(flow.bbr.max_bw.get(), Rate::from_bytes_over(PATH, RTT));
}

#[test]
fn floors_follow_the_size_of_segments() {
    let mut flow = Flow::in_state(State::ProbeBwCruise);
    flow.notice(NoticeKind::SegmentSize(ByteCount(100)));
    assert_eq!(flow.bbr.min_pipe_cwnd(), ByteCount(400));
    flow.notice(NoticeKind::SegmentSize(ByteCount(1_000_000)));
    assert_eq!(flow.bbr.cwnd, ByteCount(1_000_000));
    assert_eq!(flow.bbr.quantum(), ByteCount(2_000_000));
}

#[test]
fn startup_ends_without_a_sample_and_it_still_paces() {
    let mut flow = Flow::new();
    let rate = flow.bbr.pacing_rate;
    flow.bbr.full_bw.set();
    flow.bbr.update_on_ack(&Sample { delivery_rate: Rate::ZERO, ..flow.sample() });
    assert_eq!(flow.bbr.pacing_rate, rate);
}
