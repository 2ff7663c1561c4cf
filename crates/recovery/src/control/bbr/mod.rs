//! `bbr`: BBR version 1, as in Linux's `tcp_bbr`.
//!
//! It estimates the bottleneck bandwidth as the largest delivery rate of the last ten rounds, and
//! the RTT without a queue as the smallest RTT of the last ten seconds. It paces at the bandwidth
//! times a gain, and limits the data in flight to twice their product.
//!
//! A loss does not reduce the estimates. It limits the window for the rest of the recovery, ends a
//! probe for more bandwidth, and counts in the detection of a policer. A loss that a judge rules
//! not to be congestion has none of these effects.
//!
//! Sources: Linux `net/ipv4/tcp_bbr.c`, whose names the comments give, and
//! draft-cardwell-iccrg-bbr-congestion-control-00. Linux counts packets; this implementation counts
//! bytes.
//!
//! Not modelled: Linux's departure times (`bbr_packets_in_net_at_edt`), because the pacer here
//! receives a segment only when it is sent; and the limit of 2^20 packets of an aggregation epoch,
//! because bytes are counted in 64 bits.

mod aggregation;
mod long_term;
mod max_filter;

use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, Rate};

use self::aggregation::Aggregation;
use self::long_term::{LongTerm, News, Totals};
use self::max_filter::MaxFilter;
use super::{CongestionControl, ControlParams, ControlState, Notice, NoticeKind, PathModel};
use crate::judge::Cause;
use crate::rate::RateSample;
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::view::AckView;

pub(crate) const BBR: Entry<dyn CongestionControl> = Entry {
    name: "bbr",
    parameter: "",
    example: None,
    summary: "paces at the measured bandwidth and ignores loss: BBR version 1, as in Linux",
    source: "Linux tcp_bbr, draft-cardwell-iccrg-bbr-congestion-control-00",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver { recovery: true, marks: true },
    uses_seed: true,
    make: |parameter, params| no_parameter(parameter).map(|()| Box::new(Bbr::new(params)) as _),
};

/// `bbr_high_gain`, 2/ln 2: the smallest gain that doubles the rate in each round.
const HIGH_GAIN: f64 = 2.885;
/// `bbr_drain_gain`: drains in about one round the queue that `HIGH_GAIN` built in one.
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// `bbr_cwnd_gain`: leaves room for delayed and stretched ACKs.
const CWND_GAIN: f64 = 2.0;
/// `bbr_pacing_gain`: probe for bandwidth, drain the resulting queue, cruise.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// `bbr_pacing_margin_percent`.
const MARGIN: f64 = 0.99;
/// `bbr_bw_rtts`.
const BW_ROUNDS: u32 = CYCLE.len() as u32 + 2;
/// `bbr_min_rtt_win_sec`.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// `bbr_probe_rtt_mode_ms`.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// `bbr_full_bw_thresh` and `bbr_full_bw_cnt`.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u8 = 3;
/// `bbr_cwnd_min_target`, in segments.
const MIN_PIPE: u64 = 4;
/// `bbr_extra_acked_max_us`: the most that is added for aggregated ACKs, as time at the bandwidth.
const MOST_EXTRA: Duration = Duration::from_millis(100);
/// `bbr_min_tso_rate`: below this rate, segments are sent one by one.
const MIN_TSO_RATE: Rate = Rate::from_bits_per_sec(1_200_000);
/// `bbr_tso_segs_goal`: the quantum, as time at the pacing rate, and its maximum in segments.
const QUANTUM: Duration = Duration::from_millis(1);
const MOST_SEGMENTS: u64 = 0x7f;
const LARGEST_QUANTUM: ByteCount = ByteCount(64 * 1024);
/// The RTT before the first sample, for the pacing rate.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw {
        phase: u8,
        since: Instant,
    },
    ProbeRtt {
        /// The earliest end; known once at most `MIN_PIPE` segments are in flight.
        until: Option<Instant>,
        /// Whether a round has passed since then.
        round_done: bool,
    },
}

/// The sender's response to losses (`TCP_CA_Open`, `_Recovery`, `_Loss`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum State {
    Open,
    Recovery,
    Loss,
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    smss: ByteCount,
    initial_window: ByteCount,
    seed: u64,
    /// The number of random numbers drawn so far.
    draws: u64,
    mode: Mode,
    cwnd: ByteCount,
    /// The window before a recovery or `ProbeRtt` reduced it.
    prior_cwnd: ByteCount,
    ssthresh: Option<ByteCount>,
    pacing_rate: Rate,
    has_seen_rtt: bool,

    bw: MaxFilter,
    round: u32,
    /// The round ends when data is acknowledged that was sent after this many bytes were delivered.
    round_end: ByteCount,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    full_bw: Rate,
    full_bw_rounds: u8,
    full_bw_reached: bool,
    aggregation: Aggregation,
    long_term: LongTerm,

    totals: Totals,
    /// Bytes lost to congestion since the last ACK.
    losses: ByteCount,
    /// Samples of data sent while C.delivered was in this range belong to `ProbeRtt`.
    probe_rtt_sent: [ByteCount; 2],
    state: State,
    /// `state` at the last ACK.
    prev_state: State,
    packet_conservation: bool,
    idle_restart: bool,
}

/// The information of an ACK about the delivery rate.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The sample, if it is valid.
    sample: Option<RateSample>,
    start: bool,
    app_limited: bool,
}

impl Bbr {
    /// Creates a control in Startup.
    pub fn new(params: &ControlParams) -> Self {
        let mut bbr = Self {
            smss: params.smss.max(ByteCount(1)),
            initial_window: params.initial_window.max(params.smss),
            seed: params.seed,
            draws: 0,
            mode: Mode::Startup,
            cwnd: params.initial_window.max(params.smss),
            prior_cwnd: ByteCount::ZERO,
            ssthresh: None,
            pacing_rate: Rate::ZERO,
            has_seen_rtt: false,
            bw: MaxFilter::default(),
            round: 0,
            round_end: ByteCount::ZERO,
            min_rtt: params.rtt,
            min_rtt_at: params.now,
            full_bw: Rate::ZERO,
            full_bw_rounds: 0,
            full_bw_reached: false,
            aggregation: Aggregation::new(params.now),
            long_term: LongTerm::default(),
            totals: Totals { at: params.now, ..Totals::default() },
            losses: ByteCount::ZERO,
            probe_rtt_sent: [ByteCount::ZERO; 2],
            state: State::Open,
            prev_state: State::Open,
            packet_conservation: false,
            idle_restart: false,
        };
        bbr.init_pacing_rate(params.rtt);
        bbr
    }

    /// `bbr_init_pacing_rate_from_rtt`.
    fn init_pacing_rate(&mut self, srtt: Option<Duration>) {
        self.has_seen_rtt = srtt.is_some();
        let rtt = srtt.unwrap_or(NOMINAL_RTT).max(Duration::from_micros(1));
        self.pacing_rate = Rate::from_bytes_over(self.cwnd, rtt).scale(HIGH_GAIN * MARGIN);
    }

    /// Returns the estimated bandwidth (`bbr_bw`).
    fn bw(&self) -> Rate {
        self.long_term.rate().unwrap_or_else(|| self.bw.get())
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.long_term.rate().is_some() => 1.0,
            Mode::ProbeBw { phase, .. } => CYCLE[usize::from(phase)],
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    fn mode_name(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw { .. } if self.long_term.rate().is_some() => "policed",
            Mode::ProbeBw { .. } => "probe-bw",
            Mode::ProbeRtt { .. } => "probe-rtt",
        }
    }

    const fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => CWND_GAIN,
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    /// `bbr_bdp`: returns the bandwidth times the smallest RTT, times `gain`.
    fn bdp(&self, bw: Rate, gain: f64) -> ByteCount {
        let Some(min_rtt) = self.min_rtt else { return self.initial_window };
        bw.scale(gain).bytes_in(min_rtt) + ByteCount(1)
    }

    /// `bbr_tso_segs_goal`, in bytes.
    fn quantum(&self) -> ByteCount {
        let bytes = self.pacing_rate.bytes_in(QUANTUM).min(LARGEST_QUANTUM);
        let least = if self.pacing_rate < MIN_TSO_RATE { 1 } else { 2 };
        self.smss * (bytes.0 / self.smss.0).max(least).min(MOST_SEGMENTS)
    }

    /// `bbr_quantization_budget`: adds three quanta, for those that wait in the two hosts, and
    /// rounds up to an even number of segments.
    fn with_quanta(&self, bytes: ByteCount) -> ByteCount {
        let pair = self.smss * 2;
        let whole = pair * (bytes + self.quantum() * 3).0.div_ceil(pair.0);
        // So that a probe also exceeds a small bandwidth-delay product.
        let probes = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        if probes { whole + pair } else { whole }
    }

    /// `bbr_inflight`.
    fn inflight(&self, gain: f64) -> ByteCount {
        self.with_quanta(self.bdp(self.bw.get(), gain))
    }

    /// `bbr_update_bw`.
    fn update_bw(&mut self, ack: &AckView<'_>) -> Round {
        let valid = |sample: &RateSample| sample.interval.is_some();
        let Some(sample) = ack.rate.filter(valid) else {
            return Round { sample: None, start: false, app_limited: false };
        };
        let start = sample.prior_delivered >= self.round_end;
        if start {
            self.round_end = ack.delivered_total;
            self.round += 1;
            self.packet_conservation = false;
        }
        let [from, to] = self.probe_rtt_sent;
        let in_probe_rtt = (from..to).contains(&sample.prior_delivered);
        let app_limited = sample.app_limited || in_probe_rtt;
        self.sample_long_term(News {
            losses: self.losses > ByteCount::ZERO,
            app_limited,
            round_start: start,
        });
        let bw = sample.rate().unwrap_or_default();
        // A sample limited by the application counts only if it exceeds the estimate.
        if !app_limited || bw >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.round, bw);
        }
        Round { sample: Some(sample), start, app_limited }
    }

    fn sample_long_term(&mut self, news: News) {
        if self.long_term.rate().is_none() {
            self.long_term.sample(self.totals, news);
        } else if news.round_start
            && matches!(self.mode, Mode::ProbeBw { .. })
            && self.long_term.end_of_use(self.totals)
        {
            self.enter_probe_bw();
        }
    }

    /// `bbr_update_ack_aggregation`.
    fn update_aggregation(&mut self, ack: &AckView<'_>, round: &Round) {
        if round.sample.is_some() {
            let (bw, cwnd) = (self.bw(), self.cwnd);
            self.aggregation.on_ack(ack.now, ack.delivered, round.start, bw, cwnd);
        }
    }

    /// `bbr_update_cycle_phase`.
    fn update_cycle_phase(&mut self, ack: &AckView<'_>) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let full_length = self.min_rtt.is_none_or(|min_rtt| self.totals.at.since(since) > min_rtt);
        let gain = self.pacing_gain();
        let next = if gain > 1.0 {
            // Until this much is in flight, which takes longer than a round trip on short paths, or
            // until a loss.
            let lost = self.losses > ByteCount::ZERO;
            let filled = || ack.prior_pipe + self.quantum() >= self.inflight(gain);
            full_length && (lost || filled())
        } else {
            full_length || (gain < 1.0 && ack.prior_pipe <= self.inflight(1.0))
        };
        if next {
            let phase = (phase + 1) % CYCLE.len() as u8;
            self.mode = Mode::ProbeBw { phase, since: self.totals.at };
        }
    }

    /// `bbr_reset_probe_bw_mode`: starts at a random phase except the one that drains.
    fn enter_probe_bw(&mut self) {
        let draw = Stream::new(self.seed, self.draws).below(CYCLE.len() as u64 - 1);
        self.draws += 1;
        let phase = if draw == 0 { 0 } else { draw as u8 + 1 };
        self.mode = Mode::ProbeBw { phase, since: self.totals.at };
    }

    /// `bbr_check_full_bw_reached`.
    fn check_full_bw(&mut self, round: &Round) {
        if self.full_bw_reached || !round.start || round.app_limited {
            return;
        }
        if self.bw.get() >= self.full_bw.scale(FULL_BW_GROWTH) {
            (self.full_bw, self.full_bw_rounds) = (self.bw.get(), 0);
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_reached = self.full_bw_rounds >= FULL_BW_ROUNDS;
    }

    /// `bbr_check_drain`.
    fn check_drain(&mut self, ack: &AckView<'_>) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            self.ssthresh = Some(self.inflight(1.0));
        }
        if self.mode == Mode::Drain && ack.pipe <= self.inflight(1.0) {
            self.enter_probe_bw();
        }
    }

    /// `bbr_update_min_rtt`: updates the filter, and enters the mode that empties the queue when it
    /// expires.
    fn update_min_rtt(&mut self, ack: &AckView<'_>, round: &Round) {
        let expired = ack.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt {
            let smaller = self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt);
            if smaller || (expired && !self.is_ack_delayed(ack)) {
                (self.min_rtt, self.min_rtt_at) = (Some(rtt), ack.now);
            }
        }
        let probes = matches!(self.mode, Mode::ProbeRtt { .. });
        if expired && !self.idle_restart && !probes {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt { until: None, round_done: false };
            self.probe_rtt_sent[0] = ack.delivered_total;
        }
        if let Mode::ProbeRtt { until, round_done } = &mut self.mode {
            // Data sent now gives no bandwidth samples.
            self.probe_rtt_sent[1] = ack.delivered_total + ack.pipe.max(ByteCount(1));
            if until.is_none() && ack.pipe <= self.smss * MIN_PIPE {
                *until = Some(ack.now + PROBE_RTT_TIME);
                self.round_end = ack.delivered_total;
            } else if until.is_some() {
                *round_done |= round.start;
                if *round_done {
                    self.check_probe_rtt_done(ack.now);
                }
            }
        }
        if ack.delivered > ByteCount::ZERO {
            self.idle_restart = false;
        }
    }

    /// Linux's `FLAG_ACK_MAYBE_DELAYED`: a single segment that is not full, whose ACK the receiver
    /// may have delayed.
    fn is_ack_delayed(&self, ack: &AckView<'_>) -> bool {
        let alone = |sample: RateSample| sample.delivered == ack.delivered;
        ack.newly.len() == 1 && ack.acked < self.smss && ack.rate.is_some_and(alone)
    }

    /// `bbr_check_probe_rtt_done`.
    fn check_probe_rtt_done(&mut self, now: Instant) {
        if !matches!(self.mode, Mode::ProbeRtt { until: Some(until), .. } if now > until) {
            return;
        }
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw();
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// `bbr_set_pacing_rate`. In Startup the rate does not decrease.
    fn set_pacing_rate(&mut self, gain: f64, srtt: Duration) {
        if !self.has_seen_rtt && !srtt.is_zero() {
            self.init_pacing_rate(Some(srtt));
        }
        let rate = self.bw().scale(gain * MARGIN);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `bbr_save_cwnd`.
    fn save_cwnd(&mut self) {
        let is_reduced =
            self.prev_state >= State::Recovery || matches!(self.mode, Mode::ProbeRtt { .. });
        let least = if is_reduced { self.prior_cwnd } else { ByteCount::ZERO };
        self.prior_cwnd = self.cwnd.max(least);
    }

    /// `bbr_set_cwnd`: moves the window towards the target by the delivered bytes.
    fn set_cwnd(&mut self, ack: &AckView<'_>) {
        if ack.delivered > ByteCount::ZERO && !self.conserve_packets(ack) {
            let bw = self.bw();
            let target = self.bdp(bw, self.cwnd_gain()) + self.extra_cwnd(bw);
            let target = self.with_quanta(target);
            let grown = self.cwnd + ack.delivered;
            if self.full_bw_reached {
                self.cwnd = grown.min(target);
            } else if self.cwnd < target || ack.delivered_total < self.initial_window {
                self.cwnd = grown;
            }
            self.cwnd = self.cwnd.max(self.smss * MIN_PIPE);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.smss * MIN_PIPE);
        }
    }

    /// `bbr_ack_aggregation_cwnd`.
    fn extra_cwnd(&self, bw: Rate) -> ByteCount {
        if self.full_bw_reached {
            self.aggregation.extra().min(bw.bytes_in(MOST_EXTRA))
        } else {
            ByteCount::ZERO
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: in the first round of a recovery, each ACK releases as
    /// many bytes as it delivers, then at most twice as many; after the recovery the window is
    /// restored. Returns whether this is the first round.
    fn conserve_packets(&mut self, ack: &AckView<'_>) -> bool {
        self.cwnd = (self.cwnd - self.losses).max(self.smss);
        let in_flight = ack.pipe + ack.delivered;
        let before = std::mem::replace(&mut self.prev_state, self.state);
        if self.state == State::Recovery && before != State::Recovery {
            self.packet_conservation = true;
            self.round_end = ack.delivered_total;
            self.cwnd = in_flight.max(self.smss);
        } else if before >= State::Recovery && self.state == State::Open {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(in_flight);
        }
        self.packet_conservation
    }

    /// `bbr_set_state` and `tcp_enter_loss`; `pipe` is the bytes still in flight.
    fn on_timeout(&mut self, pipe: ByteCount) {
        self.save_cwnd();
        self.cwnd = self.cwnd.min(pipe + self.smss);
        (self.state, self.prev_state) = (State::Loss, State::Loss);
        self.full_bw = Rate::ZERO;
        self.losses = ByteCount::ZERO;
        // As at the end of a round.
        self.sample_long_term(News { losses: true, app_limited: false, round_start: true });
    }

    /// `bbr_cwnd_event`: new data is sent after an idle time.
    fn on_restart(&mut self, now: Instant) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw { .. } => self.set_pacing_rate(1.0, Duration::ZERO),
            Mode::ProbeRtt { .. } => self.check_probe_rtt_done(now),
            Mode::Startup | Mode::Drain => {}
        }
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        if ack.delivered > ByteCount::ZERO {
            (self.totals.at, self.totals.delivered) = (ack.now, ack.delivered_total);
        }
        // `bbr_update_model`.
        let round = self.update_bw(ack);
        self.update_aggregation(ack, &round);
        self.update_cycle_phase(ack);
        self.check_full_bw(&round);
        self.check_drain(ack);
        self.update_min_rtt(ack, &round);
        // `bbr_main`.
        self.set_pacing_rate(self.pacing_gain(), ack.srtt);
        self.set_cwnd(ack);
        self.losses = ByteCount::ZERO;
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Lost(loss) if loss.cause.is_congestion() => {
                self.losses += loss.bytes;
                self.totals.lost += loss.bytes;
            }
            NoticeKind::Reduce { cause, .. } if cause != Cause::Mark => {
                self.save_cwnd();
                self.state = State::Recovery;
            }
            NoticeKind::Timeout { .. } => self.on_timeout(notice.pipe),
            NoticeKind::RecoveryOver => self.state = State::Open,
            NoticeKind::Undo { .. } => {
                // `bbr_undo_cwnd`.
                (self.full_bw, self.full_bw_rounds) = (Rate::ZERO, 0);
                self.long_term.reset(self.totals);
                self.state = State::Open;
            }
            NoticeKind::Idle { app_limited: true, .. } => self.on_restart(notice.now),
            NoticeKind::SegmentSize(smss) => {
                self.smss = smss.max(ByteCount(1));
                self.cwnd = self.cwnd.max(smss);
            }
            NoticeKind::TakeOver { cwnd, .. } => {
                self.cwnd = cwnd.max(self.smss);
                self.init_pacing_rate(self.min_rtt);
            }
            // For controls that model the path, Linux neither restarts the window after an idle
            // time nor validates it.
            NoticeKind::Lost(_)
            | NoticeKind::Reduce { .. }
            | NoticeKind::Idle { .. }
            | NoticeKind::Unused => {}
        }
    }

    fn window(&self) -> ByteCount {
        self.cwnd
    }

    fn in_slow_start(&self) -> bool {
        !self.full_bw_reached
    }

    fn pacing_rate(&self) -> Option<Rate> {
        // A rate of zero would turn pacing off.
        Some(self.pacing_rate.max(Rate::from_bits_per_sec(8)))
    }

    fn send_quantum(&self) -> Option<ByteCount> {
        Some(self.quantum())
    }

    fn state(&self) -> ControlState {
        let ssthresh = self.ssthresh.map(|bytes| bytes.max(self.smss * 2));
        ControlState { ssthresh, mode: self.mode_name() }
    }

    fn path_model(&self) -> Option<PathModel> {
        Some(PathModel {
            state: self.mode_name(),
            bw: self.bw(),
            max_bw: self.bw.get(),
            bw_shortterm: None,
            min_rtt: self.min_rtt,
            pacing_gain: self.pacing_gain(),
            cwnd_gain: self.cwnd_gain(),
            inflight_longterm: None,
            inflight_shortterm: None,
            extra_acked: self.aggregation.extra(),
            full_bw_reached: self.full_bw_reached,
            round_count: self.round.into(),
        })
    }
}

#[cfg(test)]
mod tests;
