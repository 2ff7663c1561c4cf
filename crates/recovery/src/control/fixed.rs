//! `fixed:N`: a constant window of N segments.

use airtcp_types::ByteCount;

use super::{CongestionControl, ControlParams, ControlState, Notice, NoticeKind};
use crate::registry::{Entry, TakesOver, WireNeeds};
use crate::view::AckView;

pub(crate) const FIXED: Entry<dyn CongestionControl> = Entry {
    name: "fixed",
    parameter: ":N",
    example: Some("32"),
    summary: "constant window of N segments",
    source: "upper bound for comparisons; unfair to other flows",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, params| {
        let segments = parameter.and_then(|n| n.parse().ok()).filter(|n| (1..=65_535).contains(n));
        match segments {
            Some(segments) => Ok(Box::new(Fixed::new(params, segments))),
            None => Err("it takes 1 to 65535 segments, as in `fixed:32`".to_owned()),
        }
    },
};

/// An upper bound for comparisons of recovery schemes: a loss costs a retransmission, but never
/// window.
#[derive(Clone, Debug)]
pub struct Fixed {
    segments: u32,
    window: ByteCount,
}

impl Fixed {
    /// Creates a window of `segments` full segments, at least one.
    pub fn new(params: &ControlParams, segments: u32) -> Self {
        let segments = segments.max(1);
        Self { segments, window: params.smss * u64::from(segments) }
    }
}

impl CongestionControl for Fixed {
    fn on_ack(&mut self, _: &AckView<'_>) {}

    fn on_notice(&mut self, notice: &Notice) {
        if let NoticeKind::SegmentSize(smss) = notice.kind {
            self.window = smss * u64::from(self.segments);
        }
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn in_slow_start(&self) -> bool {
        false
    }

    fn state(&self) -> ControlState {
        ControlState { ssthresh: None, mode: "fixed" }
    }
}
