//! A control that measures the bandwidth as another, and keeps its window.

use airtcp_recovery::registry::Entry;
use airtcp_recovery::{
    AckView, Choice, Combination, CongestionControl, ControlParams, ControlState, Notice,
};
use airtcp_types::ByteCount;

/// The window in segments: more than the path's bandwidth-delay product of 17, and less than that
/// and its queue of 50.
const WINDOW: u64 = 40;

/// The end of the names of controls that keep their window.
const PINNED: &str = ", pinned";

static WESTWOOD: Entry<dyn CongestionControl> = Entry {
    name: "westwood-pinned",
    summary: "the estimate of `westwood` with a window of 40 segments",
    source: "Mascolo et al. 2001",
    make: |_, params| Pinned::new("westwood", params).map(|own| Box::new(own) as _),
    ..Entry::BLANK
};

static WESTWOOD_PLUS: Entry<dyn CongestionControl> = Entry {
    name: "westwood-plus-pinned",
    summary: "the estimate of `westwood-plus` with a window of 40 segments",
    source: "Grieco, Mascolo 2004",
    make: |_, params| Pinned::new("westwood-plus", params).map(|own| Box::new(own) as _),
    ..Entry::BLANK
};

/// Returns SACK with the control of this name. If its window is pinned, the detection is LE, which
/// has no time-outs for lost retransmissions.
pub(super) fn combine(control: &str) -> Combination {
    let parse = |name: &str| -> Combination { name.parse().expect("a name of the registry") };
    let Some(name) = control.strip_suffix(PINNED) else { return parse(&format!("sack/{control}")) };
    let entry = if name == "westwood" { &WESTWOOD } else { &WESTWOOD_PLUS };
    parse("le/reno").with_control(Choice::plain(entry).expect("it takes no parameter"))
}

#[derive(Debug)]
struct Pinned {
    inner: Box<dyn CongestionControl>,
    window: ByteCount,
}

impl Pinned {
    fn new(name: &str, params: &ControlParams) -> Result<Self, String> {
        let inner = (combine(name).control().entry().make)(None, params)?;
        Ok(Self { inner, window: params.smss * WINDOW })
    }
}

impl CongestionControl for Pinned {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        self.inner.on_ack(ack);
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.inner.on_notice(notice);
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn state(&self) -> ControlState {
        self.inner.state()
    }
}

#[cfg(test)]
mod tests {
    use airtcp_recovery::{Cause, NoticeKind};
    use airtcp_types::Instant;

    use super::*;

    #[test]
    fn a_reduction_sets_ssthresh_and_leaves_the_window() {
        let smss = ByteCount(1_000);
        let pinned = combine("westwood, pinned");
        let make = pinned.control().entry().make;
        let mut control = make(None, &ControlParams::new(smss, smss * 10)).unwrap();
        let kind = NoticeKind::Reduce { flight_size: smss * 40, cause: Cause::Congestion };
        control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, kind));
        assert_eq!(control.window(), smss * WINDOW);
        assert!(control.state().ssthresh.is_some());
    }
}
