//! `veno`: Reno that distinguishes random losses from congestion by the length of the queue (Fu,
//! Liew, 2003).

use std::time::Duration;

use airtcp_types::ByteCount;

use super::reno::Reno;
use super::{CongestionControl, ControlParams, ControlState, Notice, NoticeKind};
use crate::judge::Cause;
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::view::AckView;

pub(crate) const VENO: Entry<dyn CongestionControl> = Entry {
    name: "veno",
    parameter: "",
    example: None,
    summary: "reduces by a fifth if fewer than three segments are queued (random loss), otherwise by half",
    source: "Fu, Liew 2003",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, params| no_parameter(parameter).map(|()| Box::new(Veno::new(params)) as _),
};

/// The path is congested from this many segments in the queue.
const BETA: f64 = 3.0;

/// Grows like `reno` while the queue is short, otherwise half as fast.
#[derive(Clone, Debug)]
pub struct Veno {
    aimd: Reno,
    smss: ByteCount,
    /// BaseRTT: the smallest RTT since the last loss or mark.
    base: Option<Duration>,
    /// The smoothed RTT of the samples of `base`. The estimator of the time-out includes delayed
    /// ACKs.
    srtt: Option<Duration>,
}

impl Veno {
    /// Creates a control in slow start.
    pub fn new(params: &ControlParams) -> Self {
        Self { aimd: Reno::new(params), smss: params.smss, base: None, srtt: None }
    }

    /// Returns whether N = (Expected - Actual) BaseRTT is below beta with `window` in flight;
    /// `false` without a measurement.
    fn is_short(&self, window: ByteCount) -> bool {
        self.base.zip(self.srtt).is_some_and(|(base, srtt)| {
            let share = base.as_secs_f64() / srtt.max(base).as_secs_f64();
            window.0 as f64 / self.smss.0 as f64 * (1.0 - share) < BETA
        })
    }
}

impl CongestionControl for Veno {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        let measured = self.base.is_some();
        if self.aimd.in_slow_start() || !measured || self.is_short(self.aimd.window()) {
            self.aimd.on_ack(ack);
        } else {
            // Fu, Liew III.B: one segment per two windows of ACKs.
            self.aimd.on_ack(&AckView { delivered: ack.delivered.half(), ..*ack });
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { flight_size, cause } => {
                let used = self.aimd.used(flight_size);
                // A mark comes from a queue, so it is never random.
                let ssthresh = match cause != Cause::Mark && self.is_short(used) {
                    true => used - ByteCount(used.0 / 5),
                    false => used.half(),
                };
                self.aimd.reduce_to(ssthresh);
                self.base = None;
            }
            NoticeKind::Timeout { .. } => {
                self.aimd.on_notice(notice);
                self.base = None;
            }
            NoticeKind::SegmentSize(smss) => {
                self.smss = smss;
                self.aimd.on_notice(notice);
            }
            _ => self.aimd.on_notice(notice),
        }
    }

    fn window(&self) -> ByteCount {
        self.aimd.window()
    }

    fn state(&self) -> ControlState {
        self.aimd.state()
    }
}

#[cfg(test)]
mod tests;
