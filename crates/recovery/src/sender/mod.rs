//! The sender: owns the board, the timers and the counters, calls the strategies and applies their
//! decisions.

mod ack;
mod cwnd_use;
mod cwr;
mod events;
mod f_rto;
mod idle;
mod inherit;
mod losses;
mod probe;
mod prr;
mod recovery;
mod reordering;
mod resize;
mod rto;
mod send;
mod special_ack;
mod strategies;
mod take_over;
mod undo;
mod validation;

use std::time::Duration;

use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant, Rate, SendRule, SeqRange, TxNo};

use crate::board::Board;
use crate::combination::Combination;
use crate::control::{
    CongestionControl, ControlParams, ControlState, Notice, NoticeKind, PathModel,
};
use crate::deferred::Deferred;
use crate::detection::Findings;
use crate::judge::Raised;
use crate::pacer::Pacer;
use crate::profile::Profile;
use crate::rate::RateSampler;
use crate::registry::WireNeeds;
use crate::rtt::RttEstimator;
use crate::stats::Stats;
use crate::transmission::Delivered;
use crate::view::{Phase, View};

pub use send::{Decision, Limit, Supply, Transmit};
pub use undo::UndoSign;

use cwnd_use::CwndUse;
use cwr::MarkAnswers;
use events::Events;
use idle::Idle;
use probe::TailProbes;
use prr::Prr;
use recovery::RecoveryState;
use reordering::Reordering;
use rto::RtoTimer;
use strategies::Strategies;
use undo::{Refill, Undo};
use validation::WindowValidation;

/// Configuration of a sender.
#[derive(Clone, Debug, Default)]
pub struct SenderConfig {
    /// The strategies.
    pub combination: Combination,
    /// All other settings.
    pub profile: Profile,
    /// Whether to pace even if the control returns no pacing rate. The rate is then twice cwnd per
    /// round trip while cwnd is below half of ssthresh, and 1.2 times cwnd per round trip
    /// otherwise, as in Linux.
    pub pacing: bool,
    /// Whether to record events for [`Sender::poll_event`].
    pub events: bool,
}

/// The state of the connection at the end of the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The current time.
    pub now: Instant,
    /// The sequence number of the first byte: ISS + 1.
    pub first: ExtSeq,
    /// Payload bytes of a full segment.
    pub smss: ByteCount,
    /// The TCP options that the peer granted.
    pub granted: WireNeeds,
    /// The RTT of the handshake; `None` if it was not measured.
    pub handshake_rtt: Option<Duration>,
    /// Whether the SYN or the SYN-ACK was retransmitted, or arrived with a congestion mark.
    pub syn_retransmitted: bool,
    /// The seed for random choices of the strategies, any number.
    pub seed: u64,
}

/// An acceptable ACK: `ack` <= SND.NXT. It is an old ACK if `ack` is below SND.UNA.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// The cumulative acknowledgement number.
    pub ack: ExtSeq,
    /// Whether the ACK changed the peer's window.
    pub window_changed: bool,
    /// Whether the ACK opened a window that was closed when time-outs sent data into it.
    pub window_opened: bool,
    /// Whether its segment carried data, a SYN or a FIN; if so, it is not a duplicate ACK.
    pub has_payload: bool,
    /// The SACK blocks above `ack` and SND.UNA, in the order received, without the DSACK.
    pub sack: &'a [SeqRange],
    /// The DSACK (RFC 2883).
    pub dsack: Option<SeqRange>,
    /// The time of the echoed time stamp (TSecr), in whole milliseconds.
    pub echo: Option<Instant>,
    /// Whether the ACK carries ECE, if ECN was negotiated (RFC 3168).
    pub ece: bool,
    /// Newly delivered bytes that carried a congestion mark, if AccECN was negotiated (RFC 9768);
    /// otherwise zero.
    pub ce: ByteCount,
    /// The number of the transmission that triggered the ACK, if transmission numbers were
    /// negotiated.
    pub echoed: Option<TxNo>,
}

/// The part of the sender's state that strategies can read.
#[derive(Debug)]
struct Core {
    board: Board,
    rtt: RttEstimator,
    smss: ByteCount,
    recovery: RecoveryState,
    deferred: Deferred,
    /// Whether the detection uses SACK.
    sack: bool,
    dup_thresh: u8,
    rto: RtoTimer,
}

impl Core {
    /// The state before anything is sent.
    fn new(first: ExtSeq, smss: ByteCount, rtt: RttEstimator, sack: bool, dup_thresh: u8) -> Self {
        Self {
            board: Board::new(first),
            rtt,
            smss,
            recovery: RecoveryState::default(),
            deferred: Deferred::default(),
            sack,
            dup_thresh: dup_thresh.max(1),
            rto: RtoTimer::default(),
        }
    }

    fn phase(&self) -> Phase {
        self.recovery.phase()
    }

    fn view(&self, now: Instant, control: &dyn CongestionControl) -> View<'_> {
        View {
            now,
            board: &self.board,
            phase: self.phase(),
            in_recovery: self.recovery.is_running(now),
            smss: self.smss,
            cwnd: control.window(),
            ssthresh: control.state().ssthresh,
            slow_start: control.in_slow_start(),
            sack: self.sack,
            dup_thresh: self.dup_thresh.into(),
            rtt: &self.rtt,
            rto_left: self.rto.expires_at().map(|at| at.since(now)),
            deferred: &self.deferred,
        }
    }
}

/// Decides which segments are lost, what their loss means, and what to send when.
///
/// It does no I/O and reads no clock: the time and ACKs are inputs, decisions are outputs. The
/// order of processing an ACK is documented at [`LossDetection`](crate::LossDetection), the rules
/// that permit a transmission at [`next_transmission`](Self::next_transmission).
#[derive(Debug)]
pub struct Sender {
    strategies: Strategies,
    profile: Profile,
    pacing: bool,
    core: Core,
    rate: RateSampler,
    pacer: Pacer,
    undo: Undo,
    refill: Refill,
    prr: Option<Box<Prr>>,
    validation: WindowValidation,
    probes: TailProbes,
    cwnd_use: CwndUse,
    idle: Idle,
    reordering: Reordering,
    mark_answers: MarkAnswers,
    /// The window was reduced, or the control responded to a mark, since the last
    /// [`take_reduced`](Sender::take_reduced).
    reduced: bool,
    /// A transmission that is retransmitted at once, whatever the windows permit, and the rule for
    /// it.
    immediate: Option<(TxNo, SendRule)>,
    /// Bytes marked lost since the connection started, whatever the cause.
    lost: ByteCount,
    /// Bytes that the current ACK newly delivers.
    newly_delivered: ByteCount,
    /// A full segment was delivered since the segment size last changed.
    full_arrived: bool,
    /// The largest window that the peer has advertised.
    max_window: ByteCount,
    stats: Stats,
    events: Events,
    /// Buffers that are reused, so that processing an ACK does not allocate.
    scratch: Option<Box<Scratch>>,
}

/// Buffers for one ACK.
#[derive(Debug, Default)]
struct Scratch {
    newly: Vec<Delivered>,
    findings: Findings,
    raised: Raised,
}

impl Sender {
    /// Creates a sender that has sent nothing. If the peer did not grant what the detection needs,
    /// the sender uses the detection's fallback: [`combination`](Self::combination) returns the
    /// strategies in use.
    pub fn new(config: &SenderConfig, start: &Start) -> Self {
        let profile = config.profile.clone();
        let smss = start.smss.max(ByteCount(1));
        // RFC 5681 section 3.1: after a lost SYN the initial window is one segment.
        let segments = if start.syn_retransmitted { 1 } else { profile.initial_window };
        let params = ControlParams {
            now: start.now,
            rtt: start.handshake_rtt,
            seed: start.seed,
            ..control_params(&profile, config.pacing, smss, segments)
        };
        let wanted = profile.variant_of(&config.combination);
        let strategies = Strategies::new(&wanted, start.granted, params);
        let mut rtt = RttEstimator::new(profile.rto, start.syn_retransmitted);
        rtt.set_window(segments);
        rtt.set_variances(strategies.rto_variances());
        start.handshake_rtt.into_iter().for_each(|sample| rtt.on_sample(sample));
        let sack = strategies.uses_sack();
        let probes = profile.tail_loss_probe && sack && strategies.detection().wants_probes();
        let mut sender = Self {
            pacing: config.pacing,
            core: Core::new(start.first, smss, rtt, sack, profile.dup_thresh),
            strategies,
            profile,
            rate: RateSampler::new(start.now),
            pacer: Pacer::default(),
            undo: Undo::default(),
            refill: Refill::OFF,
            prr: None,
            validation: WindowValidation::default(),
            probes: TailProbes::new(probes, start.handshake_rtt.is_none()),
            cwnd_use: CwndUse::new(start.first),
            idle: Idle::new(start.now),
            reordering: Reordering::default(),
            mark_answers: MarkAnswers::default(),
            reduced: false,
            immediate: None,
            lost: ByteCount::ZERO,
            newly_delivered: ByteCount::ZERO,
            full_arrived: false,
            max_window: ByteCount::ZERO,
            stats: Stats::default(),
            events: Events::new(config.events),
            scratch: None,
        };
        // The first segment is paced, too.
        sender.update_pacing(start.now);
        sender
    }

    /// Returns the strategies in use.
    pub const fn combination(&self) -> &Combination {
        self.strategies.combination()
    }

    /// Returns the board: all outstanding transmissions and their states.
    pub const fn board(&self) -> &Board {
        &self.core.board
    }

    /// Returns SND.UNA, the oldest byte not cumulatively acknowledged.
    pub const fn snd_una(&self) -> ExtSeq {
        self.core.board.snd_una()
    }

    /// Returns SND.NXT, the next byte to be sent for the first time.
    pub const fn snd_nxt(&self) -> ExtSeq {
        self.core.board.snd_nxt()
    }

    /// Returns the control's window, before the other limits of [`cwnd`](Self::cwnd).
    pub(crate) fn control_window(&self) -> ByteCount {
        self.strategies.control().window()
    }

    /// Returns how many bytes may be in flight: the control's window, with these exceptions. While
    /// a reduction is spread over a round trip, it is the pipe plus what PRR allows to be sent (RFC
    /// 9937). While a judge defers a response, it does not exceed its value at the start of the
    /// wait, so that each duplicate ACK releases as many bytes as it delivers (DCR 2.2). After an
    /// undo without pacing, no ACK releases more than an initial window.
    pub fn cwnd(&self) -> ByteCount {
        let waits = self.core.deferred.window().filter(|_| self.waits());
        let window = match (&self.prr, waits) {
            (Some(prr), _) => self.pipe() + prr.quota(),
            (None, Some(window)) => self.control_window().min(window),
            (None, None) => self.control_window().min(self.refill.limit()),
        };
        window.min(self.clamp()).max(self.core.smss)
    }

    /// The upper limit of cwnd.
    fn clamp(&self) -> ByteCount {
        let clamp = self.profile.cwnd_clamp;
        clamp.map_or(ByteCount::MAX, |segments| self.core.smss * u64::from(segments))
    }

    /// Returns whether an ACK that advances SND.UNA restarts the retransmission timer.
    fn restarts_rto(&self) -> bool {
        self.profile.patient || self.strategies.detection().restarts_rto()
    }

    /// Returns whether a judge has deferred a response and no other response is in progress.
    fn waits(&self) -> bool {
        !self.core.deferred.is_empty() && self.core.phase() == Phase::Open
    }

    /// Returns the control's state.
    pub fn control_state(&self) -> ControlState {
        self.strategies.control().state()
    }

    /// Returns the control's model of the path, if it has one.
    pub fn path_model(&self) -> Option<PathModel> {
        self.strategies.control().path_model()
    }

    /// Returns the bytes in flight, as the detection counts them.
    pub fn pipe(&self) -> ByteCount {
        self.strategies.detection().pipe(&self.core.board)
    }

    /// Returns the response to congestion that is in progress.
    pub fn phase(&self) -> Phase {
        self.core.phase()
    }

    /// Returns the payload bytes of a full segment.
    pub const fn smss(&self) -> ByteCount {
        self.core.smss
    }

    /// Returns the RTT estimates and the retransmission time-out.
    pub const fn rtt(&self) -> &RttEstimator {
        &self.core.rtt
    }

    /// Returns the number of expiries of the retransmission timer since SND.UNA last advanced.
    pub const fn backoff(&self) -> u32 {
        self.core.rto.timeouts()
    }

    /// Returns the last delivery rate, and whether the application limited it.
    pub const fn delivery_rate(&self) -> Option<(Rate, bool)> {
        self.rate.last()
    }

    /// Returns whether the application currently limits the rate.
    pub fn is_app_limited(&self) -> bool {
        self.rate.is_app_limited()
    }

    /// Returns the bytes delivered to the peer, cumulatively or selectively acknowledged.
    pub const fn delivered(&self) -> ByteCount {
        self.rate.delivered()
    }

    /// Returns the pacing rate; `None` without pacing.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// Returns the largest reordering distance seen, in segments by sequence number, of segments
    /// sent once; zero if none was seen. Linux's `tcpi_reordering` is the same, but at least
    /// DupThresh.
    pub const fn reordering(&self) -> u32 {
        self.reordering.extent()
    }

    /// Returns the number of ACKs that showed reordering, at most 65,535 (`tcpi_reord_seen`).
    pub const fn reord_seen(&self) -> u32 {
        self.reordering.seen()
    }

    /// Returns DupThresh of RFC 5681 and RFC 6675: the number of duplicate ACKs or segments above a
    /// hole that indicate a loss.
    pub const fn dup_thresh(&self) -> u32 {
        self.core.dup_thresh as u32
    }

    /// Returns whether the window was reduced since the last call, for any reason. The caller then
    /// sends CWR to the peer (RFC 3168 section 6.1.2). If the control responds to congestion marks
    /// itself, the first mark of each round trip counts, too.
    pub fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the next deadline: of the retransmission timer, the pacer, the probe, the detection
    /// or a deferred ruling.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let detection = self.strategies.detection().next_timer();
        let deferred = self.core.deferred.next_at();
        let rto = self.core.rto.expires_at();
        [rto, self.pacer.wakes_at(), self.probes.next_at(), detection, deferred]
            .into_iter()
            .flatten()
            .min()
    }

    /// Handles every deadline that is due; returns whether the retransmission timer expired with
    /// data outstanding.
    pub fn on_timeout(&mut self, now: Instant) -> bool {
        self.pacer.on_timeout(now);
        self.rule_what_is_due(now);
        if self.strategies.detection().next_timer().is_some_and(|at| at <= now) {
            let mut scratch = self.scratch.take().unwrap_or_default();
            self.strategies.detect_by_time(&self.core, now, &mut scratch.findings);
            self.work_findings(now, &mut scratch.findings);
            self.scratch = Some(scratch);
        }
        self.on_probe_timeout(now);
        let timed_out = self.core.rto.is_due(now) && self.on_rto(now);
        self.update_pacing(now);
        self.report_window();
        timed_out
    }

    /// Returns whether [`shrink`](Self::shrink) can free memory.
    pub const fn can_shrink(&self) -> bool {
        self.scratch.is_some()
    }

    /// Frees the buffers that avoid allocations while data flows; they are allocated again when
    /// needed. Call it when nothing is expected to be sent for a long time.
    pub fn shrink(&mut self) {
        self.core.board.shrink();
        self.core.deferred.shrink();
        self.strategies.shrink();
        self.probes.shrink();
        self.scratch = None;
    }

    /// Returns the next event, if events are recorded.
    pub fn poll_event(&mut self) -> Option<EventKind> {
        self.events.next()
    }

    #[cfg(test)]
    pub(crate) fn notify_control(&mut self, now: Instant, kind: NoticeKind) {
        self.strategies.notify(&Notice::new(now, ByteCount::ZERO, kind));
    }

    /// Sends the control a notice.
    fn notify(&mut self, now: Instant, kind: NoticeKind) {
        let delivered = self.rate.delivered();
        let notice = Notice { delivered, ..Notice::new(now, self.pipe(), kind) };
        self.strategies.notify(&notice);
    }

    fn report_window(&mut self) {
        if self.events.are_on() {
            let (cwnd, pipe) = (self.cwnd(), self.pipe());
            let control = self.strategies.control();
            let (ssthresh, bandwidth) = (control.state().ssthresh, control.bandwidth());
            let pacing_rate = self.pacer.rate();
            let window = EventKind::Window { cwnd, ssthresh, pipe, pacing_rate, bandwidth };
            self.events.add(|| window);
        }
    }

    /// Restarts the retransmission timer, or stops it if nothing is outstanding.
    fn restart_rto(&mut self, now: Instant) {
        if self.core.board.is_empty() {
            self.core.rto.stop();
        } else {
            self.core.rto.restart(now, self.core.rtt.rto());
        }
    }

    fn update_pacing(&mut self, now: Instant) {
        let control = self.strategies.control();
        let asked = control.pacing_rate();
        let rate = asked.or_else(|| if self.pacing { self.window_rate() } else { None });
        self.pacer.set_rate(now, rate, control.send_quantum(), self.core.smss);
    }

    /// The pacing rate of Linux (sk_pacing_rate): cwnd per round trip, times a gain that lets it
    /// grow.
    fn window_rate(&self) -> Option<Rate> {
        let srtt = self.core.rtt.srtt()?;
        let slow_start = self
            .strategies
            .control()
            .state()
            .ssthresh
            .is_none_or(|ssthresh| self.cwnd() < ssthresh.half());
        let gain = if slow_start { 2.0 } else { 1.2 };
        Some(Rate::from_bytes_over(self.cwnd(), srtt).scale(gain))
    }
}

fn control_params(
    profile: &Profile,
    pacing: bool,
    smss: ByteCount,
    initial_window: u32,
) -> ControlParams {
    ControlParams {
        // The pacer spreads what a stretch ACK releases; without pacing, L limits the burst.
        byte_counting_limit: if pacing { u32::MAX } else { profile.byte_counting_limit },
        hystart: profile.hystart,
        whole_segments: profile.whole_segments,
        ..ControlParams::new(smss, smss * u64::from(initial_window))
    }
}

#[cfg(test)]
mod tests;
