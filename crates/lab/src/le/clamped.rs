//! AIMD with a maximum window, like ns-2's `maxcwnd_`: the "maximum cwnd" of LE 3.1.

use airtcp_recovery::control::Reno;
use airtcp_recovery::registry::{Entry, TakesOver, WireNeeds};
use airtcp_recovery::{
    AckView, Choice, CongestionControl, ControlParams, ControlState, Notice, NoticeKind,
};
use airtcp_types::{ByteCount, Instant};

/// The paper's limit, in segments.
pub(super) const MAXIMUM: u64 = 32;

static ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "reno-max-32",
    parameter: "",
    example: None,
    summary: "AIMD with a window of at most 32 segments",
    source: "LE 3.1",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, params| match parameter {
        None => Ok(Box::new(Clamped::new(params))),
        Some(_) => Err("it takes no parameter".to_owned()),
    },
};

pub(super) fn control() -> Choice<dyn CongestionControl> {
    Choice::new(&ENTRY, None).expect("it needs no parameter")
}

#[derive(Debug)]
struct Clamped {
    reno: Reno,
    most: ByteCount,
}

impl Clamped {
    fn new(params: &ControlParams) -> Self {
        Self { reno: Reno::new(params), most: params.smss * MAXIMUM }
    }

    /// Limits the window, so that a reduction halves 32 segments.
    fn clamp(&mut self, now: Instant, pipe: ByteCount) {
        if self.reno.window() > self.most {
            let ssthresh = self.reno.state().ssthresh;
            let notice = NoticeKind::TakeOver { cwnd: self.most, ssthresh };
            self.reno.on_notice(&Notice::new(now, pipe, notice));
        }
    }
}

impl CongestionControl for Clamped {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        self.reno.on_ack(ack);
        self.clamp(ack.now, ack.pipe);
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.reno.on_notice(notice);
        self.clamp(notice.now, notice.pipe);
    }

    fn window(&self) -> ByteCount {
        self.reno.window()
    }

    fn state(&self) -> ControlState {
        self.reno.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_at_most_32_segments_and_halves_from_there() {
        let smss = ByteCount(1_000);
        let mut control = Clamped::new(&ControlParams::new(smss, smss * 40));
        let take_over = NoticeKind::TakeOver { cwnd: smss * 100, ssthresh: None };
        control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, take_over));
        assert_eq!(control.window(), smss * 32);
        let cause = airtcp_recovery::Cause::Congestion;
        let reduce = NoticeKind::Reduce { flight_size: smss * 34, cause };
        control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, reduce));
        assert_eq!(control.window(), smss * 16);
    }
}
