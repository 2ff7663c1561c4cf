//! A congestion control: slow start, then one segment per round trip, and a quarter less on a loss.

use airtcp::recovery::{AckView, CongestionControl, ControlParams, ControlState, Entry};
use airtcp::recovery::{Notice, NoticeKind, Phase};
use airtcp::types::ByteCount;

pub static ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "gentle",
    summary: "a segment more per round trip, a quarter less on a loss",
    source: "docs/write-your-own-strategy.md",
    make: |parameter, params| match parameter {
        None => Ok(Box::new(Gentle::new(params))),
        Some(_) => Err("it takes no parameter".to_owned()),
    },
    ..Entry::BLANK
};

#[derive(Debug)]
pub struct Gentle {
    smss: ByteCount,
    cwnd: ByteCount,
    ssthresh: Option<ByteCount>,
    initial_window: ByteCount,
    /// The window and ssthresh before the last reduction.
    prior: (ByteCount, Option<ByteCount>),
}

impl Gentle {
    pub fn new(params: &ControlParams) -> Self {
        let (smss, initial_window) = (params.smss, params.initial_window);
        let (cwnd, ssthresh) = (initial_window, None);
        Self { smss, cwnd, ssthresh, initial_window, prior: (cwnd, ssthresh) }
    }

    fn reduce(&mut self) {
        self.prior = (self.cwnd, self.ssthresh);
        let reduced = self.cwnd.scale(0.75).max(self.smss * 2);
        (self.cwnd, self.ssthresh) = (self.cwnd.min(reduced), Some(reduced));
    }
}

impl CongestionControl for Gentle {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        // Do not grow a window that is not full, nor one in recovery.
        if !ack.cwnd_limited || ack.ece || matches!(ack.phase, Phase::Recovery | Phase::Cwr) {
            return;
        }
        if self.in_slow_start() {
            self.cwnd += ack.acked;
        } else if ack.round_start {
            self.cwnd += self.smss;
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { .. } => self.reduce(),
            NoticeKind::Timeout { first, .. } => {
                if first {
                    self.reduce();
                }
                self.cwnd = self.smss;
            }
            NoticeKind::Undo { .. } => {
                self.cwnd = self.cwnd.max(self.prior.0);
                self.ssthresh = self.prior.1;
            }
            NoticeKind::Idle { restart: true, .. } => {
                self.cwnd = self.cwnd.min(self.initial_window);
            }
            NoticeKind::Unused => {
                let least = self.cwnd.min(self.initial_window);
                self.cwnd = self.cwnd.scale(0.5).max(least);
            }
            NoticeKind::SegmentSize(smss) => {
                self.smss = smss;
                self.initial_window = self.initial_window.max(smss);
                self.cwnd = self.cwnd.max(smss);
                self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(smss * 2));
            }
            NoticeKind::TakeOver { cwnd, ssthresh } => {
                (self.cwnd, self.ssthresh) = (cwnd, ssthresh);
                self.prior = (cwnd, ssthresh);
            }
            _ => {}
        }
    }

    fn window(&self) -> ByteCount {
        self.cwnd
    }

    fn state(&self) -> ControlState {
        ControlState { ssthresh: self.ssthresh, mode: "gentle" }
    }
}
