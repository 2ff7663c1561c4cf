//! The sender: owns the board, the timers and the counters, queries the strategies and applies
//! their decisions.

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
    /// Its strategies.
    pub combination: Combination,
    /// Everything else.
    pub profile: Profile,
    /// Whether it paces even where its control asks for no rate: at twice the window per
    /// round trip in slow start and 1.2 times in congestion avoidance, as Linux does.
    pub pacing: bool,
    /// Whether it makes events.
    pub events: bool,
}

/// State of the connection at the end of the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The time.
    pub now: Instant,
    /// The sequence number of the first byte: ISS + 1.
    pub first: ExtSeq,
    /// Payload bytes of a full segment.
    pub smss: ByteCount,
    /// What the peer granted.
    pub granted: WireNeeds,
    /// The round-trip time of the handshake, where it was measured.
    pub handshake_rtt: Option<Duration>,
    /// Whether the SYN or the SYN-ACK had to be sent again, or arrived with a congestion mark.
    pub syn_retransmitted: bool,
    /// Seeds the random choices of its strategies.
    pub seed: u64,
}

/// An acceptable ACK: `ack` <= SND.NXT. One below SND.UNA was overtaken.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// What it acknowledges.
    pub ack: ExtSeq,
    /// Whether it changed the peer's window.
    pub window_changed: bool,
    /// Whether it opened a window that was closed when time-outs sent data into it.
    pub window_opened: bool,
    /// Whether its segment carried data, a SYN or a FIN: then it is no duplicate ACK.
    pub has_payload: bool,
    /// Its SACK blocks above `ack` and SND.UNA, in their order; the DSACK, if any, taken out.
    pub sack: &'a [SeqRange],
    /// Its DSACK (RFC 2883).
    pub dsack: Option<SeqRange>,
    /// The instant, in whole milliseconds, at which the time stamp it echoes was made.
    pub echo: Option<Instant>,
    /// Whether it carries ECE, where ECN was agreed on (RFC 3168).
    pub ece: bool,
    /// Bytes newly known to have arrived with a congestion mark, where AccECN was agreed on (RFC
    /// 9768); else zero.
    pub ce: ByteCount,
    /// The transmission whose number it echoes, where both ends number them: the one that made it
    /// leave.
    pub echoed: Option<TxNo>,
}

/// The part of the sender's state that strategies may see.
#[derive(Debug)]
struct Core {
    board: Board,
    rtt: RttEstimator,
    smss: ByteCount,
    recovery: RecoveryState,
    deferred: Deferred,
    /// Whether the detection goes by SACK.
    sack: bool,
    dup_thresh: u8,
    rto: RtoTimer,
}

impl Core {
    /// Nothing is sent.
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

/// Decides what is lost, what that means, and what to send when.
///
/// Pure state: time and ACKs go in, decisions come out. See
/// [`LossDetection`](crate::LossDetection) for the order in which an ACK is worked, and
/// [`next_transmission`](Self::next_transmission) for the rules by which a transmission may leave.
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
    /// The window was reduced, or the control answered a mark, and
    /// [`take_reduced`](Sender::take_reduced) has not reported it.
    reduced: bool,
    /// A transmission whose repair leaves whatever the windows say, and the rule for it.
    immediate: Option<(TxNo, SendRule)>,
    /// Bytes judged lost since the connection began, whatever the cause.
    lost: ByteCount,
    /// Bytes that the ACK being worked newly told to have arrived.
    newly_delivered: ByteCount,
    /// A full segment has arrived since their size last changed.
    full_arrived: bool,
    /// The peer's largest window.
    max_window: ByteCount,
    stats: Stats,
    events: Events,
    /// Kept from ACK to ACK, so that working one allocates nothing.
    scratch: Option<Box<Scratch>>,
}

/// What is gathered while an ACK is worked.
#[derive(Debug, Default)]
struct Scratch {
    newly: Vec<Delivered>,
    findings: Findings,
    raised: Raised,
}

impl Sender {
    /// A sender with nothing sent. Where the peer did not grant what the detection needs, its
    /// fallback takes its place: [`combination`](Self::combination) tells.
    pub fn new(config: &SenderConfig, start: &Start) -> Self {
        let profile = config.profile.clone();
        let smss = start.smss.max(ByteCount(1));
        // RFC 5681 section 3.1: a lost SYN leaves one segment.
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

    /// The strategies in use.
    pub const fn combination(&self) -> &Combination {
        self.strategies.combination()
    }

    /// What was sent and what became of it.
    pub const fn board(&self) -> &Board {
        &self.core.board
    }

    /// The oldest byte not cumulatively acknowledged: SND.UNA.
    pub const fn snd_una(&self) -> ExtSeq {
        self.core.board.snd_una()
    }

    /// The next byte to be sent for the first time: SND.NXT.
    pub const fn snd_nxt(&self) -> ExtSeq {
        self.core.board.snd_nxt()
    }

    /// The window of the control, before other limits: [`cwnd`](Self::cwnd) is what may be in
    /// flight.
    pub(crate) fn control_window(&self) -> ByteCount {
        self.strategies.control().window()
    }

    /// What may be in flight: the control's window. While a reduction is spread over its round trip
    /// it is what is in flight and what may yet leave (RFC 9937); while a judge waits it is no more
    /// than when it began to, so that each duplicate ACK releases what it tells to have arrived
    /// (DCR 2.2). After an undo without pacing no ACK releases more than an initial window.
    pub fn cwnd(&self) -> ByteCount {
        let waits = self.core.deferred.window().filter(|_| self.waits());
        let window = match (&self.prr, waits) {
            (Some(prr), _) => self.pipe() + prr.quota(),
            (None, Some(window)) => self.control_window().min(window),
            (None, None) => self.control_window().min(self.refill.limit()),
        };
        window.min(self.clamp()).max(self.core.smss)
    }

    /// The most that cwnd may be.
    fn clamp(&self) -> ByteCount {
        let clamp = self.profile.cwnd_clamp;
        clamp.map_or(ByteCount::MAX, |segments| self.core.smss * u64::from(segments))
    }

    /// Whether an ACK that advances SND.UNA restarts the retransmission timer.
    fn restarts_rto(&self) -> bool {
        self.profile.patient || self.strategies.detection().restarts_rto()
    }

    /// Whether a judge has put something off, and nothing else goes on.
    fn waits(&self) -> bool {
        !self.core.deferred.is_empty() && self.core.phase() == Phase::Open
    }

    /// The state that the control reports.
    pub fn control_state(&self) -> ControlState {
        self.strategies.control().state()
    }

    /// The control's model of the path, if it has one.
    pub fn path_model(&self) -> Option<PathModel> {
        self.strategies.control().path_model()
    }

    /// Bytes the detection holds to be in the network.
    pub fn pipe(&self) -> ByteCount {
        self.strategies.detection().pipe(&self.core.board)
    }

    /// Its phase: open, in recovery, or after a time-out.
    pub fn phase(&self) -> Phase {
        self.core.phase()
    }

    /// Payload bytes of a full segment.
    pub const fn smss(&self) -> ByteCount {
        self.core.smss
    }

    /// Round-trip time and time-out.
    pub const fn rtt(&self) -> &RttEstimator {
        &self.core.rtt
    }

    /// How often the retransmission timer ran out since SND.UNA last advanced.
    pub const fn backoff(&self) -> u32 {
        self.core.rto.timeouts()
    }

    /// The last delivery rate, and whether the application limited it.
    pub const fn delivery_rate(&self) -> Option<(Rate, bool)> {
        self.rate.last()
    }

    /// Whether the application is what limits the rate now.
    pub fn is_app_limited(&self) -> bool {
        self.rate.is_app_limited()
    }

    /// Bytes known to have arrived.
    pub const fn delivered(&self) -> ByteCount {
        self.rate.delivered()
    }

    /// The rate at which data may leave, if it is paced.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// By how many segments something that was sent once was overtaken, at most, as sequence
    /// numbers tell; zero where that was never seen. Linux's `tcpi_reordering` is the same, and no
    /// less than DupThresh.
    pub const fn reordering(&self) -> u32 {
        self.reordering.extent()
    }

    /// On how many ACKs that was seen, 65,535 at most (`tcpi_reord_seen`).
    pub const fn reord_seen(&self) -> u32 {
        self.reordering.seen()
    }

    /// DupThresh.
    pub const fn dup_thresh(&self) -> u32 {
        self.core.dup_thresh as u32
    }

    /// Whether the window was reduced since the last call, by whatever event: the peer gets CWR for
    /// it (RFC 3168 section 6.1.2). A round trip in which a control that answers congestion marks
    /// itself heard of one counts, too.
    pub fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    /// Its counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Its next deadline: the retransmission timer, the pacer, the probe, the detection, a deferred
    /// ruling.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let detection = self.strategies.detection().next_timer();
        let deferred = self.core.deferred.next_at();
        let rto = self.core.rto.expires_at();
        [rto, self.pacer.wakes_at(), self.probes.next_at(), detection, deferred]
            .into_iter()
            .flatten()
            .min()
    }

    /// Handles every deadline that is due; gives whether there was a retransmission time-out.
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

    /// Whether there is something that [`shrink`](Self::shrink) gives back.
    pub const fn can_shrink(&self) -> bool {
        self.scratch.is_some()
    }

    /// Gives memory back that it keeps so as not to allocate while data flows. Without loss of
    /// anything but time: call it where nothing may be sent for long.
    pub fn shrink(&mut self) {
        self.core.board.shrink();
        self.core.deferred.shrink();
        self.strategies.shrink();
        self.probes.shrink();
        self.scratch = None;
    }

    /// The next event, if events are on.
    pub fn poll_event(&mut self) -> Option<EventKind> {
        self.events.next()
    }

    #[cfg(test)]
    pub(crate) fn notify_control(&mut self, now: Instant, kind: NoticeKind) {
        self.strategies.notify(&Notice::new(now, ByteCount::ZERO, kind));
    }

    /// Gives the control a notice.
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

    /// Linux's sk_pacing_rate: the window per round trip, and some more so that it can grow.
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
        // The pacer spreads what a stretch ACK lets out; without one, L is the limit of a burst.
        byte_counting_limit: if pacing { u32::MAX } else { profile.byte_counting_limit },
        hystart: profile.hystart,
        whole_segments: profile.whole_segments,
        ..ControlParams::new(smss, smss * u64::from(initial_window))
    }
}

#[cfg(test)]
mod tests;
