//! `reno`: slow start, congestion avoidance and halving (RFC 5681), counting bytes (RFC 3465).

use airtcp_types::ByteCount;

use super::hystart::HyStart;
use super::{CongestionControl, ControlParams, ControlState, Notice, NoticeKind};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::view::{AckView, Phase};

pub(crate) const RENO: Entry<dyn CongestionControl> = Entry {
    name: "reno",
    parameter: "",
    example: None,
    summary: "additive increase, halving after a loss, byte counting",
    source: "RFC 5681, RFC 3465",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, params| no_parameter(parameter).map(|()| Box::new(Reno::new(params)) as _),
};

/// The window and threshold that every loss-based control has, and how slow start moves them.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    pub(super) smss: ByteCount,
    initial_window: ByteCount,
    byte_counting_limit: u32,
    hystart_is_on: bool,
    whole_segments: bool,
    pub(super) cwnd: ByteCount,
    pub(super) ssthresh: Option<ByteCount>,
    hystart: HyStart,
    /// Both before the last reduction.
    prior: Option<Box<(ByteCount, Option<ByteCount>)>>,
}

impl Windows {
    pub(super) fn new(params: &ControlParams) -> Self {
        let cwnd = params.initial_window.max(params.smss);
        Self {
            smss: params.smss,
            initial_window: params.initial_window,
            byte_counting_limit: params.byte_counting_limit,
            hystart_is_on: params.hystart,
            whole_segments: params.whole_segments,
            cwnd,
            ssthresh: None,
            hystart: HyStart::default(),
            prior: None,
        }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh)
    }

    /// Hears every ACK, whether or not it lets the window grow.
    pub(super) fn measure(&mut self, ack: &AckView<'_>) {
        // RFC 9406 section 4.3: for the first slow start, while ssthresh is not set.
        if self.hystart_is_on && self.ssthresh.is_none() && self.hystart.on_ack(ack) {
            self.ssthresh = Some(self.cwnd);
        }
    }

    /// Grows by what arrived, up to the limit of RFC 3465, to ssthresh and to twice what was
    /// outstanding; gives back the bytes that are left for congestion avoidance.
    pub(super) fn slow_start(&mut self, ack: &AckView<'_>) -> ByteCount {
        // RFC 3465 section 2.3: after a time-out one ACK may tell of much that had arrived before.
        let limit = if ack.phase == Phase::Loss { 1 } else { self.byte_counting_limit };
        let counted = ack.delivered.min(self.smss * u64::from(limit));
        // draft-ietf-ccwg-ratelimited-increase section 3: limit(maxFS) is 2 * maxFS.
        let ssthresh = self.ssthresh.unwrap_or(ByteCount::MAX);
        let room = ssthresh.min(ack.max_flight * 2) - self.cwnd;
        let step = self.hystart.step(counted).min(room);
        self.cwnd += step;
        counted - step
    }

    /// The window from which a reduction starts: what was in flight by leave of cwnd.
    pub(super) fn used(&self, flight_size: ByteCount) -> ByteCount {
        self.cwnd.min(flight_size)
    }

    /// Reduces both windows to `ssthresh`, within the floor.
    pub(super) fn reduce_to(&mut self, ssthresh: ByteCount) {
        self.prior = Some(Box::new((self.cwnd, self.ssthresh)));
        self.hystart = HyStart::default();
        let rest = if self.whole_segments {
            ByteCount(ssthresh.0 % self.smss.0.max(1))
        } else {
            ByteCount::ZERO
        };
        let ssthresh = (ssthresh - rest).max(self.smss * 2);
        self.ssthresh = Some(ssthresh);
        self.cwnd = self.cwnd.min(ssthresh);
    }

    /// After a time-out: one segment (RFC 5681 section 3.1, equation 4 and step 6.4).
    pub(super) fn collapse(&mut self, first: bool, ssthresh: ByteCount) {
        if first {
            self.reduce_to(ssthresh);
        }
        self.cwnd = self.smss;
    }

    pub(super) fn undo(&mut self) {
        if let Some((cwnd, ssthresh)) = self.prior.take().map(|prior| *prior) {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = ssthresh;
        }
    }

    pub(super) fn take_over(&mut self, cwnd: ByteCount, ssthresh: Option<ByteCount>) {
        (self.cwnd, self.ssthresh) = (cwnd, ssthresh);
        (self.hystart, self.prior) = (HyStart::default(), None);
    }

    pub(super) fn resize(&mut self, smss: ByteCount) {
        self.smss = smss;
        self.cwnd = self.cwnd.max(smss);
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(smss * 2));
    }

    /// RFC 5681 section 4.1.
    pub(super) fn restart(&mut self) {
        self.cwnd = self.cwnd.min(self.initial_window.max(self.smss));
        // The path may be another by now.
        self.hystart = HyStart::default();
    }

    /// RFC 7661 section 4.4.3.
    pub(super) fn give_up_unused(&mut self) {
        let three_quarters = self.cwnd - ByteCount(self.cwnd.0 / 4);
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(three_quarters));
        let least = self.initial_window.max(self.smss);
        self.cwnd = self.cwnd.half().max(least).min(self.cwnd);
    }

    /// Whether an ACK lets the window grow at all.
    pub(super) fn may_grow(ack: &AckView<'_>) -> bool {
        // RFC 5681 section 3.1 grows on ACKs of new data, and RFC 3042 section 2 leaves cwnd alone
        // on duplicate ACKs: a SACK block alone does not count. While a judge waits they are all
        // there is, and the window goes on growing (DCR 2.2); LE knows no recovery.
        let counts =
            ack.acked > ByteCount::ZERO || (ack.grows_with_hole && ack.delivered > ByteCount::ZERO);
        // RFC 3168 section 6.1.2: not by an ACK that echoes a mark either.
        let stays = ack.ece || matches!(ack.phase, Phase::Recovery | Phase::Cwr);
        ack.cwnd_limited && !stays && counts
    }

    pub(super) fn state(&self) -> ControlState {
        let mode = match self.in_slow_start() {
            true if self.hystart.is_conservative() => "conservative-slow-start",
            true => "slow-start",
            false => "congestion-avoidance",
        };
        ControlState { ssthresh: self.ssthresh, mode }
    }
}

/// Additive increase, multiplicative decrease.
#[derive(Clone, Debug)]
pub struct Reno {
    windows: Windows,
    /// Bytes that arrived since the window last grew in congestion avoidance.
    counted: ByteCount,
}

impl Reno {
    /// In slow start.
    pub fn new(params: &ControlParams) -> Self {
        Self { windows: Windows::new(params), counted: ByteCount::ZERO }
    }

    /// The window from which a reduction starts.
    pub(super) fn used(&self, flight_size: ByteCount) -> ByteCount {
        self.windows.used(flight_size)
    }

    pub(super) fn reduce_to(&mut self, ssthresh: ByteCount) {
        self.counted = ByteCount::ZERO;
        self.windows.reduce_to(ssthresh);
    }

    /// After a time-out.
    pub(super) fn collapse(&mut self, first: bool, ssthresh: ByteCount) {
        self.counted = ByteCount::ZERO;
        self.windows.collapse(first, ssthresh);
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        self.windows.measure(ack);
        if !Windows::may_grow(ack) {
            return;
        }
        let mut arrived = ack.delivered;
        if self.windows.in_slow_start() {
            arrived = self.windows.slow_start(ack);
        }
        if !self.windows.in_slow_start() {
            // RFC 5681 section 3.1: one SMSS for each window of bytes that arrived.
            self.counted += arrived;
            if self.counted >= self.windows.cwnd {
                // One SMSS per ACK at most: what is left over is not saved up beyond a window.
                self.counted = (self.counted - self.windows.cwnd).min(self.windows.cwnd);
                self.windows.cwnd += self.windows.smss;
            }
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { flight_size, .. } => {
                self.reduce_to(self.used(flight_size).half());
            }
            NoticeKind::Timeout { flight_size, first } => {
                self.collapse(first, self.used(flight_size).half());
            }
            NoticeKind::Undo { .. } => self.windows.undo(),
            NoticeKind::Unused => self.windows.give_up_unused(),
            NoticeKind::TakeOver { cwnd, ssthresh } => self.windows.take_over(cwnd, ssthresh),
            NoticeKind::SegmentSize(smss) => self.windows.resize(smss),
            NoticeKind::Idle { restart: true, .. } => {
                self.counted = ByteCount::ZERO;
                self.windows.restart();
            }
            NoticeKind::Lost(_) | NoticeKind::RecoveryOver | NoticeKind::Idle { .. } => {}
        }
    }

    fn window(&self) -> ByteCount {
        self.windows.cwnd
    }

    fn state(&self) -> ControlState {
        self.windows.state()
    }
}

#[cfg(test)]
mod tests;
