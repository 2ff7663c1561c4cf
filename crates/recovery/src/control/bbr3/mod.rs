//! `bbr3`: BBR version 3 (draft-ietf-ccwg-bbr, git head of August 2026).
//!
//! It estimates the path's bandwidth as the largest delivery rate of two probing cycles, and its
//! RTT without a queue as the smallest RTT of ten seconds. It paces at the bandwidth times a gain,
//! and limits the data in flight to a multiple of their product. Loss above 2 % in a probe sets a
//! long-term bound on the data in flight; loss outside of probes sets short-term bounds, which hold
//! until the next probe.
//!
//! The names are those of the draft. Each file cites the section that it implements.
//!
//! # What the draft leaves open
//!
//! **Losses other than congestion.** A loss with another [cause](Cause::is_congestion) is
//! retransmitted, and has no effect here. The pacing rate and the data in flight are divided by
//! `1 - p`, where `p` is [`AckView::random_share`], at most 0.3. Without this, the sender paces at
//! the rate that *arrives*; the link loses `p` of that again, and the flow gets `(1 - p)^2` of the
//! link. See `Machine::share_that_arrives`.
//!
//! **Congestion marks (ECN).** The draft requires that CE is treated as congestion, but specifies
//! no response. Here a marked byte counts as a lost byte, because a queue of RFC 3168 marks packets
//! that it would otherwise drop. A round with a mark therefore lowers the short-term bounds, and a
//! share above 2 % in a round ends a probe or Startup. Google's BBRv3 tolerates a half, but only in
//! data centres, where the queue is known to mark everything above a low threshold. Classic ECN
//! echoes one mark in all ACKs of a round trip, so a round with an echo counts as a round of marks.
//!
//! **Recovery.** Fast recovery lasts from [`NoticeKind::Reduce`] to [`NoticeKind::RecoveryOver`],
//! also with a detection whose recoveries end by time. The state that an undo restores is saved
//! once, before the first loss of a recovery is processed. The pseudo-code saves it with the first
//! loss of each round, after `StartProbeBW_DOWN`, and when the recovery starts; an undo would then
//! restore the state that the losses left.
//!
//! **Window validation (RFC 7661)** is not implemented: the window follows from the measured
//! bandwidth, not from growth by ACKs, and data sent after a pause is paced.
//!
//! # Deviations
//!
//! - Drain ends after three round trips, as in the text and the test cases. The pseudo-code has
//!   four.
//! - A sample without a rate, because ACKs were compressed, does not count as a round without
//!   growth.
//! - ProbeRTT saves the window before it changes the state: afterwards, `SaveCwnd` would keep an
//!   older window.
//! - The interval between two ProbeRTTs grows to 40 round trips, at most 30 s. A ProbeRTT every
//!   five seconds would cost 15 % of a path with an RTT of 0.84 s.
//! - While a judge needs losses at a low load to measure the share of random losses
//!   ([`AckView::low_load_wanted`]), a ProbeRTT interrupts Cruise once a second, or every eight
//!   round trips. This one changes neither the cycle nor the time of the next measurement of the
//!   minimum.
//! - ProbeRTT paces at half of the bandwidth, in proportion to its window. At the full bandwidth,
//!   as in the draft, half a window is sent in half of a round trip, followed by silence. Such a
//!   train fills a short queue like a full load does, and a judge takes the drops for random
//!   losses.
//! - If the rate that the path has carried for other connections to the same peer is known
//!   ([`ControlParams::rate`]), Startup starts at this rate.
//! - Samples of data sent in ProbeRTT count as limited by the application in this control only: see
//!   [`ProbeRtt`].

mod congestion;
mod cycle;
mod extra_acked;
mod full_bw;
mod losses;
mod max_bw;
mod min_rtt;
mod output;
mod probe_bw;
mod probe_rtt;
mod rounds;
mod sample;
mod startup;
mod state;

use airtcp_types::{ByteCount, Instant, Rate};

use self::congestion::{Congestion, NO_BOUND};
use self::cycle::Cycle;
use self::extra_acked::{Acked, ExtraAcked};
use self::full_bw::FullBw;
use self::losses::{RecoveryMode, Saved};
use self::max_bw::MaxBw;
use self::min_rtt::MinRtt;
use self::probe_rtt::ProbeRtt;
use self::rounds::Rounds;
use self::sample::Sample;
use self::state::State;
use super::{CongestionControl, ControlParams, ControlState, Notice, NoticeKind, PathModel};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::view::AckView;

#[cfg(doc)]
use crate::judge::Cause;

pub(crate) const BBR3: Entry<dyn CongestionControl> = Entry {
    name: "bbr3",
    parameter: "",
    example: None,
    summary: "paces at the measured bandwidth with a short queue; tolerates 2 % of loss while probing",
    source: "draft-ietf-ccwg-bbr",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver { recovery: true, marks: true },
    uses_seed: true,
    make: |parameter, params| no_parameter(parameter).map(|()| Box::new(Bbr3::new(params)) as _),
};

/// BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    params: ControlParams,
    /// Created at the first ACK or notice, because a connection that sends nothing should stay
    /// small.
    machine: Option<Box<Machine>>,
}

impl Bbr3 {
    /// Creates a control in Startup.
    pub const fn new(params: &ControlParams) -> Self {
        Self { params: *params, machine: None }
    }

    fn machine(&mut self) -> &mut Machine {
        self.machine.get_or_insert_with(|| Box::new(Machine::new(&self.params)))
    }

    fn look<T>(&self, look: impl FnOnce(&Machine) -> T) -> T {
        match &self.machine {
            Some(machine) => look(machine),
            None => look(&Machine::new(&self.params)),
        }
    }
}

/// The state machine, the model of the path and the control parameters.
#[derive(Clone, Debug)]
struct Machine {
    smss: ByteCount,
    /// C.InitialCwnd.
    initial_cwnd: ByteCount,
    /// C.has_selective_acks.
    has_selective_acks: bool,
    state: State,
    cwnd: ByteCount,
    pacing_rate: Rate,
    /// BBR.bw.
    bw: Rate,
    /// C.delivered of the last ACK or notice.
    delivered: ByteCount,
    /// The share of transmissions that the link loses at random.
    random_share: f64,
    /// [`AckView::low_load_wanted`] of the last ACK.
    low_load_wanted: bool,
    rounds: Rounds,
    max_bw: MaxBw,
    min_rtt: MinRtt,
    extra_acked: ExtraAcked,
    full_bw: FullBw,
    congestion: Congestion,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    /// BBR.drain_start_round.
    drain_start_round: u64,
    /// BBR.idle_restart.
    idle_restart: bool,
    recovery: RecoveryMode,
    /// BBR.prior_cwnd.
    prior_cwnd: ByteCount,
    /// Set from the first loss of a recovery on.
    undo: Option<Saved>,
}

impl Machine {
    /// OnInit: starts in Startup.
    fn new(params: &ControlParams) -> Self {
        let smss = params.smss.max(ByteCount(1));
        let initial_cwnd = params.initial_window.max(smss);
        let mut bbr = Self {
            smss,
            initial_cwnd,
            has_selective_acks: params.sack,
            state: State::Startup,
            cwnd: initial_cwnd,
            pacing_rate: Rate::ZERO,
            bw: Rate::ZERO,
            delivered: ByteCount::ZERO,
            random_share: 0.0,
            low_load_wanted: false,
            rounds: Rounds::default(),
            max_bw: MaxBw::default(),
            min_rtt: MinRtt::new(params.now, params.rtt),
            extra_acked: ExtraAcked::new(params.now),
            full_bw: FullBw::default(),
            congestion: Congestion::new(),
            cycle: Cycle::new(params.seed),
            probe_rtt: ProbeRtt::default(),
            drain_start_round: 0,
            idle_restart: false,
            recovery: RecoveryMode::None,
            prior_cwnd: ByteCount::ZERO,
            undo: None,
        };
        bbr.init_pacing_rate(params.rtt);
        if let (Some(rate), Some(rtt)) = (params.rate, params.rtt) {
            bbr.begin_at(rate, rtt);
        }
        bbr
    }

    // draft-ietf-ccwg-bbr, "Per-ACK Steps": UpdateOnACK.
    fn update_on_ack(&mut self, sample: &Sample) {
        self.update_model_and_state(sample);
        // UpdateControlParameters. SetSendQuantum is `quantum`.
        self.set_pacing_rate_with_gain(self.state.pacing_gain());
        self.set_cwnd(sample);
    }

    /// UpdateModelAndState.
    fn update_model_and_state(&mut self, sample: &Sample) {
        self.congestion.update_latest(sample);
        self.update_congestion_signals(sample);
        self.update_ack_aggregation(sample);
        if self.rounds.start() {
            self.full_bw.on_round(sample.delivery_rate, sample.is_app_limited);
        }
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_probe_bw_cycle_phase(sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        self.congestion.advance_latest(sample);
        self.bound_bw_for_model();
    }

    /// UpdateCongestionSignals.
    fn update_congestion_signals(&mut self, sample: &Sample) {
        // UpdateMaxBw
        self.rounds.on_ack(sample.prior_delivered, sample.total_delivered);
        if self.rounds.start() {
            self.cycle.on_round();
        }
        if sample.delivery_rate > Rate::ZERO {
            self.max_bw.on_sample(sample.delivery_rate, sample.is_app_limited);
        }
        let adapts = !self.state.is_probing_bw();
        self.congestion.end_round(adapts, self.max_bw.get(), self.cwnd);
    }

    fn update_ack_aggregation(&mut self, sample: &Sample) {
        self.extra_acked.on_ack(&Acked {
            now: sample.now,
            bytes: sample.newly_acked,
            bw: self.bw,
            cwnd: self.cwnd,
            round: self.rounds.count(),
            full_bw_reached: self.full_bw.reached,
        });
    }

    fn update_min_rtt(&mut self, sample: &Sample) {
        let is_first = self.min_rtt.get().is_none();
        self.min_rtt.on_ack(sample.now, sample.rtt);
        if is_first && self.min_rtt.get().is_some() {
            // "Pacing Rate: C.pacing_rate": initialised from the first RTT.
            self.init_pacing_rate(sample.rtt);
        }
    }

    /// BoundBWForModel.
    fn bound_bw_for_model(&mut self) {
        self.bw = self.max_bw.get().min(self.congestion.short_term.bw);
    }

    // draft-ietf-ccwg-bbr, "Actions when Restarting from Idle": HandleRestartFromIdle.
    fn handle_restart_from_idle(&mut self, now: Instant, app_limited: bool) {
        // What is sent in ProbeRTT counts as limited by the application.
        if !app_limited && self.state != State::ProbeRtt {
            return;
        }
        self.idle_restart = true;
        self.extra_acked.restart(now);
        if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
        if self.state.is_in_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        }
    }

    /// Starts from the window of another control, whose measurements are not known.
    fn take_over(&mut self, cwnd: ByteCount) {
        self.cwnd = cwnd.max(self.smss);
        self.init_pacing_rate(self.min_rtt.get());
    }

    fn on_ack(&mut self, ack: &AckView<'_>) {
        self.delivered = ack.delivered_total;
        self.random_share = ack.random_share;
        self.low_load_wanted = ack.low_load_wanted;
        self.note_marks(ack);
        if let Some(mut sample) = Sample::of(ack) {
            sample.is_app_limited |= self.probe_rtt.limits(sample.prior_delivered);
            self.update_on_ack(&sample);
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.delivered = self.delivered.max(notice.delivered);
        match notice.kind {
            NoticeKind::Lost(loss) => self.on_lost(notice.now, &loss),
            NoticeKind::Reduce { cause, .. } => self.on_enter_fast_recovery(cause),
            NoticeKind::Timeout { first, .. } => self.on_enter_rto(notice.pipe, first),
            NoticeKind::RecoveryOver => self.on_exit_recovery(),
            NoticeKind::Undo { resumes } => {
                self.handle_spurious_loss_detection();
                if resumes {
                    // The state was saved when that recovery started, and is not saved again for
                    // its losses.
                    self.recovery = RecoveryMode::Fast;
                }
            }
            NoticeKind::Idle { app_limited, .. } => {
                self.handle_restart_from_idle(notice.now, app_limited);
            }
            NoticeKind::SegmentSize(smss) => {
                self.smss = smss.max(ByteCount(1));
                self.cwnd = self.cwnd.max(self.smss);
            }
            NoticeKind::TakeOver { cwnd, .. } => self.take_over(cwnd),
            // See the module documentation.
            NoticeKind::Unused => {}
        }
    }

    /// The ssthresh that is reported, and passed to another control, is the volume that fills the
    /// path; `None` while that is not known.
    fn shown_state(&self) -> ControlState {
        let ssthresh = self.full_bw.reached.then(|| self.inflight(self.bw, 1.0));
        ControlState { ssthresh, mode: self.state.name() }
    }

    fn path_model(&self) -> PathModel {
        let bound = |bound: ByteCount| Some(bound).filter(|bound| *bound != NO_BOUND);
        let short_term = &self.congestion.short_term;
        PathModel {
            state: self.state.name(),
            bw: self.bw,
            max_bw: self.max_bw.get(),
            bw_shortterm: short_term.bw(),
            min_rtt: self.min_rtt.get(),
            pacing_gain: self.state.pacing_gain(),
            cwnd_gain: self.state.cwnd_gain(),
            inflight_longterm: bound(self.cycle.inflight_longterm),
            inflight_shortterm: bound(short_term.inflight),
            extra_acked: self.extra_acked.get(),
            full_bw_reached: self.full_bw.reached,
            round_count: self.rounds.count(),
        }
    }
}

impl CongestionControl for Bbr3 {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        self.machine().on_ack(ack);
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.machine().on_notice(notice);
    }

    fn window(&self) -> ByteCount {
        self.look(|machine| machine.cwnd)
    }

    fn in_slow_start(&self) -> bool {
        self.look(|machine| machine.state == State::Startup)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.look(|machine| machine.pacing_rate))
    }

    fn send_quantum(&self) -> Option<ByteCount> {
        Some(self.look(Machine::quantum))
    }

    fn state(&self) -> ControlState {
        self.look(Machine::shown_state)
    }

    fn path_model(&self) -> Option<PathModel> {
        Some(self.look(Machine::path_model))
    }
}

#[cfg(test)]
mod tests;
