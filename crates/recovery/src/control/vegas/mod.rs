//! `vegas`: keeps a few segments in the queue, based on RTTs (Brakmo, Peterson, 1995).

use std::time::Duration;

use airtcp_types::ByteCount;

use super::reno::Windows;
use super::{CongestionControl, ControlParams, ControlState, Notice, NoticeKind};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::view::{AckView, Phase};

pub(crate) const VEGAS: Entry<dyn CongestionControl> = Entry {
    name: "vegas",
    parameter: "",
    example: None,
    summary: "keeps two to four segments queued, measured by RTT; yields to flows that fill the queue",
    source: "Brakmo, Peterson 1995",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, params| no_parameter(parameter).map(|()| Box::new(Vegas::new(params)) as _),
};

/// Segments in the queue: below ALPHA the window grows, above BETA it shrinks.
const ALPHA: f64 = 2.0;
const BETA: f64 = 4.0;
/// The same in slow start: above it, slow start ends.
const GAMMA: f64 = 1.0;

/// The data in the queue: the window minus what the path holds without a queue.
#[derive(Clone, Debug, Default)]
struct Backlog {
    /// The smallest RTT so far, that of an empty queue.
    base: Option<Duration>,
    /// The smallest RTT of this round trip, which delayed ACKs do not lengthen.
    round: Option<Duration>,
}

impl Backlog {
    /// Processes every ACK.
    fn on_ack(&mut self, ack: &AckView<'_>) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.round = Some(self.round.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Ends a round trip; returns baseRTT divided by its RTT, which is 1 without a queue. `None` if
    /// nothing was measured.
    fn end_round(&mut self) -> Option<f64> {
        let (base, round) = (self.base?, self.round.take()?);
        Some(base.as_secs_f64() / round.as_secs_f64())
    }
}

/// The Vegas control.
#[derive(Clone, Debug)]
pub struct Vegas {
    windows: Windows,
    backlog: Backlog,
    /// Whether slow start doubles the window in this round trip: every other one, so that the queue
    /// can be measured in between.
    doubles: bool,
}

impl Vegas {
    /// Creates a control in slow start.
    pub fn new(params: &ControlParams) -> Self {
        Self { windows: Windows::new(params), backlog: Backlog::default(), doubles: true }
    }

    /// Handles the end of a round trip: diff = (expected - actual) baseRTT, in segments.
    fn on_round(&mut self, may_grow: bool) {
        let Some(share) = self.backlog.end_round() else { return };
        let smss = self.windows.smss;
        let cwnd = self.windows.cwnd;
        let diff = cwnd.0 as f64 / smss.0 as f64 * (1.0 - share);
        if self.windows.in_slow_start() {
            self.doubles = !self.doubles;
            if diff > GAMMA {
                // What the path holds without a queue, plus one segment.
                let holds = ByteCount((cwnd.0 as f64 * share) as u64) + smss;
                self.lower_to(cwnd.min(holds));
            }
        } else if diff > BETA {
            self.lower_to(cwnd - smss);
        } else if diff < ALPHA && may_grow {
            self.windows.cwnd += smss;
        }
    }

    /// Lowers the window and ssthresh, so that slow start does not start again; a window below two
    /// segments stays.
    fn lower_to(&mut self, cwnd: ByteCount) {
        let cwnd = cwnd.max(self.windows.smss * 2);
        (self.windows.cwnd, self.windows.ssthresh) = (cwnd.min(self.windows.cwnd), Some(cwnd));
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        self.backlog.on_ack(ack);
        let may_grow = Windows::may_grow(ack);
        if ack.round_start && ack.phase == Phase::Open {
            self.on_round(may_grow);
        }
        // After a time-out there is no RTT to measure, so the window grows as in Reno.
        if may_grow && self.windows.in_slow_start() && (self.doubles || ack.phase == Phase::Loss) {
            self.windows.slow_start(ack);
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { flight_size, .. } => {
                let ssthresh = self.windows.used(flight_size).half();
                self.windows.reduce_to(ssthresh);
            }
            NoticeKind::Timeout { flight_size, first } => {
                self.windows.collapse(first, self.windows.used(flight_size).half());
            }
            NoticeKind::Undo { .. } => self.windows.undo(),
            NoticeKind::Unused => self.windows.give_up_unused(),
            NoticeKind::TakeOver { cwnd, ssthresh } => self.windows.take_over(cwnd, ssthresh),
            NoticeKind::SegmentSize(smss) => self.windows.resize(smss),
            NoticeKind::Idle { restart: true, .. } => self.windows.restart(),
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
