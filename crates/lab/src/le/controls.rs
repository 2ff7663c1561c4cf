//! Controls in which one rule differs from ours, to isolate the effect of that rule.

use std::time::Duration;

use airtcp_recovery::control::Reno;
use airtcp_recovery::registry::Entry;
use airtcp_recovery::{
    AckView, Cause, Choice, Combination, CongestionControl, ControlParams, ControlState, Notice,
    NoticeKind,
};
use airtcp_types::{ByteCount, Instant};

/// The ends of the names of combinations with these controls.
pub(super) const NO_GROWTH: &str = " without growth above a hole";
pub(super) const LETTER: &str = " by the letter of LE 2.2.3";
pub(super) const LINUX: &str = " of Linux";

static RENO_NO_GROWTH: Entry<dyn CongestionControl> = Entry {
    name: "reno-no-growth",
    summary: "`reno` whose window grows on ACKs that advance SND.UNA only",
    source: "RFC 5681 section 3.1",
    make: |_, params| Ok(Box::new(Changed::new(params, Rule::NoGrowth))),
    ..Entry::BLANK
};

static RENO_LETTER: Entry<dyn CongestionControl> = Entry {
    name: "reno-letter",
    summary: "`reno` that halves for every loss that is found more than a round trip after the last cut",
    source: "LE 2.2.3",
    make: |_, params| Ok(Box::new(Changed::new(params, Rule::Letter))),
    ..Entry::BLANK
};

static WESTWOOD_LINUX: Entry<dyn CongestionControl> = Entry {
    name: "westwood-linux",
    summary: "`westwood-plus` that halves when recovery begins, and has the estimate when it ends",
    source: "tcp_westwood.c",
    make: |_, params| LinuxWestwood::new(params).map(|own| Box::new(own) as _),
    ..Entry::BLANK
};

/// Parses a combination's name that may end with one of the names above.
pub(super) fn combine(name: &str) -> Combination {
    let parse = |name: &str| -> Combination { name.parse().expect("a name of the registry") };
    for (end, entry) in
        [(NO_GROWTH, &RENO_NO_GROWTH), (LETTER, &RENO_LETTER), (LINUX, &WESTWOOD_LINUX)]
    {
        if let Some(base) = name.strip_suffix(end) {
            let control = Choice::plain(entry).expect("it takes no parameter");
            return parse(base).with_control(control);
        }
    }
    parse(name)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// The window grows on ACKs that advance SND.UNA only.
    NoGrowth,
    /// A loss that is found more than one SRTT after the last cut is another cut, also if it was
    /// sent before that cut.
    Letter,
}

#[derive(Debug)]
struct Changed {
    reno: Reno,
    rule: Rule,
    srtt: Duration,
    cut_at: Option<Instant>,
}

impl Changed {
    fn new(params: &ControlParams, rule: Rule) -> Self {
        Self { reno: Reno::new(params), rule, srtt: Duration::ZERO, cut_at: None }
    }
}

impl CongestionControl for Changed {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        let mut ack = *ack;
        ack.grows_with_hole &= self.rule != Rule::NoGrowth;
        self.srtt = ack.srtt;
        self.reno.on_ack(&ack);
    }

    fn on_notice(&mut self, notice: &Notice) {
        let is_letter = self.rule == Rule::Letter;
        let is_due = self.cut_at.is_none_or(|at| notice.now > at + self.srtt);
        match notice.kind {
            // The sender's own cut follows the notice of the loss, and is then not due.
            NoticeKind::Lost(loss) if is_letter && is_due && loss.cause == Cause::Congestion => {
                self.cut_at = Some(notice.now);
                let flight_size = self.reno.window();
                let kind = NoticeKind::Reduce { flight_size, cause: loss.cause };
                self.reno.on_notice(&Notice::new(notice.now, notice.pipe, kind));
            }
            NoticeKind::Reduce { .. } if is_letter && !is_due => return,
            NoticeKind::Reduce { .. } | NoticeKind::Timeout { .. } => {
                self.cut_at = Some(notice.now);
            }
            _ => {}
        }
        self.reno.on_notice(notice);
    }

    fn window(&self) -> ByteCount {
        self.reno.window()
    }

    fn state(&self) -> ControlState {
        self.reno.state()
    }
}

#[derive(Debug)]
struct LinuxWestwood {
    plus: Box<dyn CongestionControl>,
    least: ByteCount,
    rtt_min: Option<Duration>,
    is_reduced: bool,
}

impl LinuxWestwood {
    fn new(params: &ControlParams) -> Result<Self, String> {
        let plus = combine("sack/westwood-plus");
        let plus = (plus.control().entry().make)(None, params)?;
        Ok(Self { plus, least: params.smss * 2, rtt_min: None, is_reduced: false })
    }

    /// Sets the window and ssthresh.
    fn set(&mut self, notice: &Notice, window: ByteCount) {
        let cwnd = window.max(self.least);
        let kind = NoticeKind::TakeOver { cwnd, ssthresh: Some(cwnd) };
        self.plus.on_notice(&Notice::new(notice.now, notice.pipe, kind));
    }
}

impl CongestionControl for LinuxWestwood {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        self.rtt_min = self.rtt_min.into_iter().chain(ack.rtt).min();
        self.plus.on_ack(ack);
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { flight_size, .. } => {
                self.is_reduced = true;
                self.set(notice, self.plus.window().min(flight_size).half());
            }
            NoticeKind::RecoveryOver if std::mem::take(&mut self.is_reduced) => {
                if let Some((rate, rtt_min)) = self.plus.bandwidth().zip(self.rtt_min) {
                    let bytes = rate.bits_per_sec() as f64 / 8.0 * rtt_min.as_secs_f64();
                    self.set(notice, ByteCount(bytes as u64));
                }
            }
            _ => self.plus.on_notice(notice),
        }
    }

    fn window(&self) -> ByteCount {
        self.plus.window()
    }

    fn state(&self) -> ControlState {
        self.plus.state()
    }
}

#[cfg(test)]
mod tests {
    use airtcp_recovery::testkit::{RTT, ack_view};

    use super::*;

    const SMSS: ByteCount = ByteCount(1_000);

    fn control(entry: &Entry<dyn CongestionControl>) -> Box<dyn CongestionControl> {
        let mut control = (entry.make)(None, &ControlParams::new(SMSS, SMSS * 10)).unwrap();
        let kind = NoticeKind::TakeOver { cwnd: SMSS * 40, ssthresh: Some(SMSS * 40) };
        control.on_notice(&Notice::new(Instant::ZERO, ByteCount::ZERO, kind));
        control
    }

    fn reduce(control: &mut dyn CongestionControl, ms: u64) -> u64 {
        let (flight_size, cause) = (control.window(), Cause::Congestion);
        let kind = NoticeKind::Reduce { flight_size, cause };
        control.on_notice(&Notice::new(Instant::from_millis(ms), ByteCount::ZERO, kind));
        control.window().0 / SMSS.0
    }

    #[test]
    fn without_growth_above_a_hole_only_acks_that_advance_let_the_window_grow() {
        for (entry, grows) in [(&RENO_NO_GROWTH, false), (&RENO_LETTER, true)] {
            let mut control = control(entry);
            let mut acks = |acked: ByteCount| {
                for number in 0..100 {
                    let mut ack = ack_view(Instant::from_millis(number), SMSS);
                    (ack.acked, ack.grows_with_hole) = (acked, true);
                    control.on_ack(&ack);
                }
                control.window()
            };
            assert_eq!(acks(ByteCount::ZERO) > SMSS * 40, grows, "{}", entry.name);
            assert!(acks(SMSS) > SMSS * 41, "{}", entry.name);
        }
    }

    #[test]
    fn linux_sets_the_window_to_the_estimate_when_the_recovery_is_over() {
        let mut control = control(&WESTWOOD_LINUX);
        let mut now = Instant::ZERO;
        for _ in 0..40 {
            now += RTT;
            control.on_ack(&ack_view(now, SMSS * 10));
        }
        let before = control.window();
        let flight_size = before;
        let kind = NoticeKind::Reduce { flight_size, cause: Cause::Congestion };
        control.on_notice(&Notice::new(now, ByteCount::ZERO, kind));
        assert_eq!(control.window(), before.half());
        control.on_notice(&Notice::new(now, ByteCount::ZERO, NoticeKind::RecoveryOver));
        let estimate = control.window();
        assert!((SMSS * 10..SMSS * 12).contains(&estimate), "{estimate:?}, half {before:?}");
        // Only the end of a recovery with a reduction sets it.
        let kind = NoticeKind::TakeOver { cwnd: SMSS * 30, ssthresh: Some(SMSS * 30) };
        for kind in [kind, NoticeKind::RecoveryOver] {
            control.on_notice(&Notice::new(now, ByteCount::ZERO, kind));
        }
        assert_eq!(control.window(), SMSS * 30);
    }

    #[test]
    fn by_the_letter_a_cut_needs_more_than_the_time_since_the_last() {
        let mut control = control(&RENO_LETTER);
        // Without an ACK, SRTT is zero.
        assert_eq!(reduce(&mut *control, 10), 20);
        assert_eq!(reduce(&mut *control, 10), 20);
        assert_eq!(reduce(&mut *control, 11), 10);
    }

    #[test]
    fn linux_halves_although_westwood_has_measured_nothing() {
        let mut control = control(&WESTWOOD_LINUX);
        assert_eq!(reduce(&mut *control, 10), 20);
        let over = Notice::new(Instant::from_millis(20), ByteCount::ZERO, NoticeKind::RecoveryOver);
        control.on_notice(&over);
        assert_eq!(control.window(), SMSS * 20, "no estimate");
    }
}
