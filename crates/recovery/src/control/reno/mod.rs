//! `reno`: slow start, congestion avoidance and halving (RFC 5681), with byte counting (RFC 3465).

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

/// The window and ssthresh of the loss-based controls, and slow start.
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
    /// The window and ssthresh before the last reduction.
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

    /// Processes every ACK, whether or not the window may grow.
    pub(super) fn measure(&mut self, ack: &AckView<'_>) {
        // RFC 9406 section 4.3: only in the first slow start, while ssthresh is not set.
        if self.hystart_is_on && self.ssthresh.is_none() && self.hystart.on_ack(ack) {
            self.ssthresh = Some(self.cwnd);
        }
    }

    /// Grows the window by the delivered bytes, up to the limit of RFC 3465, to ssthresh and to
    /// twice the bytes that were outstanding; returns the remaining bytes, for congestion
    /// avoidance.
    pub(super) fn slow_start(&mut self, ack: &AckView<'_>) -> ByteCount {
        // RFC 3465 section 2.3: after a time-out one ACK may cover much data that had arrived
        // before.
        let limit = if ack.phase == Phase::Loss { 1 } else { self.byte_counting_limit };
        let counted = ack.delivered.min(self.smss * u64::from(limit));
        // draft-ietf-ccwg-ratelimited-increase section 3: limit(maxFS) is 2 * maxFS.
        let ssthresh = self.ssthresh.unwrap_or(ByteCount::MAX);
        let room = ssthresh.min(ack.max_flight * 2) - self.cwnd;
        let step = self.hystart.step(counted).min(room);
        self.cwnd += step;
        counted - step
    }

    /// Returns the window that a reduction starts from: the bytes in flight that cwnd permitted.
    pub(super) fn used(&self, flight_size: ByteCount) -> ByteCount {
        self.cwnd.min(flight_size)
    }

    /// Reduces the window and ssthresh to `ssthresh`, but not below the minimum.
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

    /// Reduces the window to one segment after a time-out (RFC 5681 section 3.1, equation 4 and
    /// step 6.4).
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

    /// Restart after an idle time (RFC 5681 section 4.1).
    pub(super) fn restart(&mut self) {
        self.cwnd = self.cwnd.min(self.initial_window.max(self.smss));
        // The path may have changed.
        self.hystart = HyStart::default();
    }

    /// Halves a window that was not used (RFC 7661 section 4.4.3).
    pub(super) fn give_up_unused(&mut self) {
        let three_quarters = self.cwnd - ByteCount(self.cwnd.0 / 4);
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(three_quarters));
        let least = self.initial_window.max(self.smss);
        self.cwnd = self.cwnd.half().max(least).min(self.cwnd);
    }

    /// Returns whether the window may grow on an ACK.
    pub(super) fn may_grow(ack: &AckView<'_>) -> bool {
        // RFC 5681 section 3.1: the window grows on ACKs of new data. RFC 3042 section 2: duplicate
        // ACKs do not change cwnd, so SACK blocks alone do not count. Exceptions: while a judge
        // defers a response, there are only duplicate ACKs, and the window keeps growing (DCR 2.2);
        // and the recovery of `le` ends by time.
        let counts =
            ack.acked > ByteCount::ZERO || (ack.grows_with_hole && ack.delivered > ByteCount::ZERO);
        // RFC 3168 section 6.1.2: an ACK that echoes a mark does not grow the window, either.
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
    /// Bytes delivered in congestion avoidance since the window last grew.
    counted: ByteCount,
}

impl Reno {
    /// Creates a control in slow start.
    pub fn new(params: &ControlParams) -> Self {
        Self { windows: Windows::new(params), counted: ByteCount::ZERO }
    }

    /// Returns the window that a reduction starts from.
    pub(super) fn used(&self, flight_size: ByteCount) -> ByteCount {
        self.windows.used(flight_size)
    }

    pub(super) fn reduce_to(&mut self, ssthresh: ByteCount) {
        self.counted = ByteCount::ZERO;
        self.windows.reduce_to(ssthresh);
    }

    /// Reduces the window to one segment after a time-out.
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
            // RFC 5681 section 3.1: one SMSS per window of delivered bytes.
            self.counted += arrived;
            if self.counted >= self.windows.cwnd {
                // At most one SMSS per ACK; at most a window of bytes is carried over.
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
